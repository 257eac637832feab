//! The memory of a device, in bytes.

/// The memory of a device in bytes (`cuMemGetInfo`).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{CpuOptions, MemoryInfo};
///
/// /// How many `f32` still fit, if a tenth of the memory is left to others.
/// fn room(memory: MemoryInfo) -> u64 {
///     memory.free.saturating_sub(memory.total / 10) / 4
/// }
/// let device = Device::cpu_with(CpuOptions::new().memory(1000))?;
/// assert_eq!(device.memory_info()?.map(room), Some(225));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MemoryInfo {
    /// Bytes free now.
    pub free: u64,
    /// Bytes in all.
    pub total: u64,
}
