//! An executable graph of either backend. [`BackendGraph`] has the operations of each.

use std::ffi::c_void;
use std::sync::Arc;

use super::{DeviceBackend, StreamBackend, cpu, cuda};
use crate::backend::operation::{Address, Node, Operation};
use crate::backend::writers::{Effect, Flow};
use crate::error::Result;

/// An instantiated graph of either backend.
pub(crate) enum GraphBackend {
    Cuda(cuda::CudaGraph),
    Cpu(cpu::CpuGraph),
}

/// Operations of an instantiated graph.
pub(crate) trait BackendGraph {
    /// The driver's `CUgraphExec`, and the `CUgraph` that it was instantiated from.
    fn as_raw(&self) -> (Option<*mut c_void>, Option<*mut c_void>) {
        (None, None)
    }

    /// Sets the arguments and the shape of kernel number `index` to those of `kernel`.
    fn set_kernel(&mut self, index: usize, kernel: &Arc<Operation>) -> Result<()>;

    fn set_enabled(&mut self, index: usize, enabled: bool) -> Result<()>;

    fn is_enabled(&self, index: usize) -> Result<bool>;

    /// Takes over `nodes`, which are of the same kinds and in the same order as those before; `kept` is as in
    /// `GraphBackend::new`.
    fn update(&mut self, nodes: &[Node], kept: Address) -> Result<()>;
}

deref_to_trait!(GraphBackend: BackendGraph { Cuda, Cpu }, mut);

/// The nodes that allocate memory, of a graph that is recorded.
pub(crate) enum MemoryNodes {
    Cuda(cuda::MemoryNodes),
    Cpu(&'static cpu::CpuDevice),
}

impl MemoryNodes {
    pub(crate) fn new(device: DeviceBackend) -> Result<Self> {
        match device {
            DeviceBackend::Cuda(device) => cuda::MemoryNodes::new(device).map(MemoryNodes::Cuda),
            DeviceBackend::Cpu(device) => Ok(MemoryNodes::Cpu(device)),
        }
    }

    /// Makes a node that allocates `bytes` (not 0): where they are, and what must be there as long as the graph can run.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<(Address, Box<dyn Send>)> {
        match self {
            MemoryNodes::Cuda(memory) => Ok((memory.allocate(bytes)?, Box::new(()))),
            MemoryNodes::Cpu(device) => {
                let block = cpu::Block::allocate(device, bytes)?;
                Ok((block.start(), Box::new(block)))
            }
        }
    }
}

impl GraphBackend {
    /// `kept` has a `u64` for each conditional node, for the backend's own use: by the nodes' numbers. `memory` has the
    /// nodes that allocate, if there are any.
    pub(crate) fn new(
        device: DeviceBackend,
        nodes: &[Node],
        kept: Address,
        memory: Option<MemoryNodes>,
    ) -> Result<Self> {
        match device {
            DeviceBackend::Cuda(device) => {
                let memory = match memory {
                    Some(MemoryNodes::Cuda(memory)) => memory,
                    _ => cuda::MemoryNodes::new(device)?,
                };
                cuda::CudaGraph::new(device, nodes, kept, memory).map(GraphBackend::Cuda)
            }
            DeviceBackend::Cpu(_) => Ok(GraphBackend::Cpu(cpu::CpuGraph::new(nodes))),
        }
    }

    /// A graph that another library instantiated.
    ///
    /// # Safety
    /// `raw` is a live `CUgraphExec` of `device`, which this owns from here on.
    pub(crate) unsafe fn foreign(device: &'static cuda::CudaDevice, raw: *mut c_void) -> Result<Self> {
        // SAFETY: passed on.
        unsafe { cuda::CudaGraph::foreign(device, raw) }.map(GraphBackend::Cuda)
    }

    /// Whether another library instantiated it, so that its nodes are not known.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.as_raw(), (Some(_), None))
    }

    /// The driver's own picture of `nodes`, if there is a driver; `kept` is as in `new`.
    pub(crate) fn to_dot(
        device: DeviceBackend,
        nodes: &[Node],
        kept: Address,
        flags: u32,
    ) -> Result<Option<String>> {
        match device {
            DeviceBackend::Cuda(device) => cuda::graph_to_dot(device, nodes, kept, flags).map(Some),
            DeviceBackend::Cpu(_) => Ok(None),
        }
    }

    /// Enqueues all nodes on `stream`, which is of the same device.
    ///
    /// # Safety
    /// The memory of all nodes is ordered there for their uses, and the functions of host nodes stay until
    /// they have run.
    pub(crate) unsafe fn launch<'e>(
        &mut self,
        stream: &StreamBackend,
        nodes: &[Node],
        effects: impl Iterator<Item = Effect<'e>> + Clone,
    ) -> Result<()> {
        match (self, stream) {
            // SAFETY: passed on.
            (GraphBackend::Cuda(graph), StreamBackend::Cuda(stream)) => unsafe {
                graph.launch(stream, nodes, effects)
            },
            // SAFETY: passed on.
            (GraphBackend::Cpu(graph), StreamBackend::Cpu(stream)) => unsafe {
                graph.launch(stream, Flow::of(effects))
            },
            _ => unreachable!("the graph is of the stream's device"),
        }
    }

    pub(crate) fn upload(&mut self, stream: &StreamBackend) -> Result<()> {
        match (self, stream) {
            (GraphBackend::Cuda(graph), StreamBackend::Cuda(stream)) => graph.upload(stream),
            _ => Ok(()),
        }
    }
}
