//! The limits of a device, and the checks of a launch against them and against the promises of a kernel.

use super::MAX_CLUSTER;
use crate::error::{Axis, Error, LaunchError, Result};
use crate::kernel::Kernel;

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
    pub(super) fn with_max_threads(&self, threads: Option<u32>) -> Limits {
        let limit = self.max_threads_per_block;
        Limits { max_threads_per_block: threads.map_or(limit, |threads| threads.min(limit)), ..*self }
    }
}

/// The usual shape, halved along its last dimensions until it has at most `max_threads` threads.
#[inline]
pub(super) fn default_block<const R: usize>(max_threads: Option<u32>) -> [u32; 3] {
    let mut block: [u32; 3] = match R {
        1 => [256, 1, 1],
        2 => [32, 8, 1],
        _ => [8, 8, 8],
    };
    let Some(limit) = max_threads else { return block };
    while block.iter().product::<u32>() > limit.max(1) {
        let last = (0..3).rev().find(|&axis| block[axis] > 1).unwrap_or(0);
        block[last] /= 2;
    }
    block
}

/// Checks the promise of `#[kernel(block = ...)]`.
#[inline]
pub(super) fn check_fixed(kernel: &Kernel, block: [u32; 3]) -> Result<()> {
    match kernel.block() {
        Some(required) if required != block => Err(mismatch(kernel, required, block)),
        _ => Ok(()),
    }
}

#[cold]
fn mismatch(kernel: &Kernel, required: [u32; 3], found: [u32; 3]) -> Error {
    Error::Launch(LaunchError::BlockMismatch { kernel: kernel.name(), required, found })
}

#[inline]
pub(super) fn pad<const R: usize>(sizes: [u32; R]) -> [u32; 3] {
    const { assert!(R >= 1 && R <= 3, "a grid has rank 1, 2 or 3") };
    std::array::from_fn(|axis| sizes.get(axis).copied().unwrap_or(1))
}

/// Without the axes above the rank, which are 1 long.
#[inline]
pub(super) fn cut<const R: usize>(sizes: [u32; 3]) -> [u32; R] {
    std::array::from_fn(|axis| sizes[axis])
}

#[cold]
pub(super) fn check_block(kernel: &'static str, block: [u32; 3], limits: &Limits) -> Result<()> {
    for ((axis, value), limit) in Axis::ALL.into_iter().zip(block).zip(limits.max_block) {
        if value == 0 {
            return Err(Error::Launch(LaunchError::BlockEmpty { kernel, axis, value: 0 }));
        }
        if value > limit {
            return Err(Error::Launch(LaunchError::BlockTooLarge {
                kernel,
                axis,
                value: value.into(),
                limit,
            }));
        }
    }
    let threads: u64 = block.iter().copied().map(u64::from).product();
    let limit = limits.max_threads_per_block;
    if threads > u64::from(limit) {
        return Err(Error::Launch(LaunchError::TooManyThreads { kernel, block, threads, limit }));
    }
    Ok(())
}

#[cold]
pub(super) fn check_grid<const R: usize>(
    kernel: &'static str,
    blocks: [u64; R],
    limits: &Limits,
) -> Result<()> {
    for ((axis, value), limit) in Axis::ALL.into_iter().zip(blocks).zip(limits.max_grid) {
        if value > u64::from(limit) {
            return Err(Error::Launch(LaunchError::GridTooLarge { kernel, axis, value, limit }));
        }
    }
    Ok(())
}

/// The cluster that a launch of `kernel` asks for, if it may.
#[cold]
pub(super) fn checked_cluster(kernel: &Kernel, cluster: [u32; 3]) -> Result<[u32; 3]> {
    let name = kernel.name();
    for (axis, value) in Axis::ALL.into_iter().zip(cluster) {
        if !(1..=MAX_CLUSTER).contains(&value) {
            return Err(Error::Launch(LaunchError::ClusterSize {
                kernel: name,
                axis,
                value: value.into(),
                limit: MAX_CLUSTER,
            }));
        }
    }
    let required = kernel.cluster();
    if required == Some(cluster) || (required.is_none() && kernel.takes_clusters()) {
        return Ok(cluster);
    }
    Err(Error::Launch(LaunchError::ClusterMismatch { kernel: name, required, found: cluster }))
}

/// Checks that the grid is made of whole clusters.
#[cold]
pub(super) fn check_clusters(kernel: &'static str, grid: [u32; 3], cluster: [u32; 3]) -> Result<()> {
    for ((axis, blocks), cluster) in Axis::ALL.into_iter().zip(grid).zip(cluster) {
        if !blocks.is_multiple_of(cluster) {
            return Err(Error::Launch(LaunchError::PartialCluster { kernel, axis, blocks, cluster }));
        }
    }
    Ok(())
}
