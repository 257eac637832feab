//! The memory that a device reserves for allocation nodes of graphs.

use crate::backend::Account;
use crate::device::Device;
use crate::error::Result;
use crate::memory::pool::PoolStatistics;

/// The memory of a device for allocation nodes of its graphs ([`Capture::zeros`](crate::Capture::zeros)), of all graphs
/// together. The driver keeps it separate from its pools. A cheap handle.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::cpu_with(ferrogrid::CpuOptions::new())?; // a separate device, so that the figures are exact
/// let (stream, memory) = (device.new_stream()?, device.graph_memory());
/// let (graph, ()) = stream.capture(|capture| capture.zeros::<u8>(1000).map(drop))?;
/// let mut graph = graph.instantiate()?;
/// graph.launch(&stream)?;
/// assert!(memory.statistics()?.reserved_high >= 1000);
/// drop(graph);
/// stream.synchronize()?;
/// memory.trim()?; // nothing stays
/// assert_eq!(memory.statistics()?.reserved, 0);
/// memory.reset_statistics()?;
/// assert_eq!(memory.statistics()?.reserved_high, 0);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct GraphMemory {
    device: Device,
}

impl Device {
    /// The memory that is reserved for allocation nodes of graphs.
    pub fn graph_memory(&self) -> GraphMemory {
        GraphMemory { device: self.clone() }
    }
}

impl GraphMemory {
    /// The reserved bytes, and those that graphs use (`cuDeviceGetGraphMemAttribute`). On the CPU device graphs use theirs
    /// as long as they exist.
    ///
    /// # Errors
    /// If the device fails.
    pub fn statistics(&self) -> Result<PoolStatistics> {
        let figures = self.device.backend().graph_memory()?;
        let [reserved, reserved_high, used, used_high] = figures.unwrap_or_else(|| {
            let account = Account::of_graphs(self.device.backend());
            let (used, high) = (account.balance.used(), account.balance.high());
            [used, high, used, high]
        });
        Ok(PoolStatistics { used, used_high, reserved, reserved_high })
    }

    /// Resets the highest figures to the current ones (`cuDeviceSetGraphMemAttribute`).
    ///
    /// # Errors
    /// If the device fails.
    pub fn reset_statistics(&self) -> Result<()> {
        if !self.device.backend().reset_graph_memory()? {
            Account::of_graphs(self.device.backend()).balance.reset_high();
        }
        Ok(())
    }

    /// Returns memory that no running graph uses to the driver (`cuDeviceGraphMemTrim`); the next launch of a graph reserves
    /// it again. Does nothing on the CPU device.
    ///
    /// # Errors
    /// If the device fails.
    pub fn trim(&self) -> Result<()> {
        self.device.backend().trim_graph_memory()
    }
}
