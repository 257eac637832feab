//! The limits of a device for the shape of a launch.

/// What a device takes in one launch.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::Limits;
///
/// let device = Device::cpu();
/// assert_eq!(*device.limits(), Limits::CUDA);
/// // As many threads as fit, in whole warps of 32, along x:
/// let threads = 5000.min(device.limits().max_threads_per_block).min(device.limits().max_block[0]);
/// assert_eq!(threads, 1024);
/// assert_eq!(device.limits().max_grid, [2_147_483_647, 65_535, 65_535]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Limits {
    /// Threads in a block (`CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK`).
    pub max_threads_per_block: u32,
    /// Threads in a block along each axis, x first (`CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X`, `_Y`, `_Z`).
    pub max_block: [u32; 3],
    /// Blocks in a grid along each axis, x first (`CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X`, `_Y`, `_Z`).
    pub max_grid: [u32; 3],
}

impl Limits {
    /// What every CUDA device so far takes; the CPU device takes the same.
    pub const CUDA: Limits = Limits {
        max_threads_per_block: 1024,
        max_block: [1024, 1024, 64],
        max_grid: [i32::MAX as u32, 65_535, 65_535],
    };

    /// The same, with at most `threads` threads in a block.
    pub(crate) fn with_max_threads(&self, threads: Option<u32>) -> Limits {
        let limit = self.max_threads_per_block;
        Limits { max_threads_per_block: threads.map_or(limit, |threads| threads.min(limit)), ..*self }
    }
}
