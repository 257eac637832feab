//! The checks of a launch against the limits of a device and against the promises of a kernel.

use super::MAX_CLUSTER;
use crate::backend::Limits;
use crate::error::{Axis, Error, LaunchError, Result};
use crate::kernel::Kernel;

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

/// `block`, if it is the one of `#[kernel(block = ...)]`.
#[inline]
pub(super) fn checked_block<const R: usize>(
    kernel: &Kernel,
    required: [u32; 3],
    block: [u32; R],
) -> Result<[u32; R]> {
    if pad(block) == required { Ok(block) } else { Err(mismatch(kernel, required, pad(block))) }
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

/// The requested cluster of a launch of `kernel`, if allowed.
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
