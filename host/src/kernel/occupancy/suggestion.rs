//! The block size that fills a multiprocessor.

use crate::error::Result;

/// A block size that fills the device, from
/// [`Device::max_potential_block_size`](crate::Device::max_potential_block_size).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// # /// x <- 2x
/// # #[kernel(max_threads = 512)]
/// # pub fn double(t: Thread<1>, mut x: DisjointSlice<u32>) {
/// #     if let Some(x) = x.get_mut(t.index()) {
/// #         *x *= 2;
/// #     }
/// # }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::cpu();
/// let suggested = device.max_potential_block_size(kernels::double::kernel(), |_| 0, None)?;
/// assert_eq!(suggested.block_size, 512); // the kernel's limit
/// // One block on each worker at a time: with fewer, some have nothing to do.
/// assert_eq!(suggested.min_grid_size, device.properties()?.multiprocessor_count);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BlockSuggestion {
    /// Threads in a block.
    pub block_size: u32,
    /// Blocks of that size that the whole device runs at a time; a smaller grid leaves some of it idle.
    pub min_grid_size: u32,
}

/// The (blocks, threads per block) with most threads in all, of at most `most` threads in a block; the
/// largest such block. As the driver does, it tries whole warps, and `most` itself.
pub(crate) fn fullest(
    most: u32,
    warp: u32,
    full: u32,
    blocks_of: impl Fn(u32) -> Result<u32>,
) -> Result<(u32, u32)> {
    let mut best = (0, 0);
    for warps in (1..=most.div_ceil(warp)).rev() {
        let threads = (warps * warp).min(most);
        let blocks = blocks_of(threads)?;
        if blocks * threads > best.0 * best.1 {
            best = (blocks, threads);
        }
        if blocks * threads >= full {
            break;
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::occupancy::{BlockResources, MultiprocessorLimits};

    /// A kernel with 40 registers on Ampere, whose blocks have `shared(threads)` bytes.
    fn suggestion(most: u32, shared: impl Fn(u32) -> usize) -> (u32, u32) {
        let limits = MultiprocessorLimits::for_architecture("sm_86").unwrap();
        let blocks = |threads| {
            let block =
                BlockResources::new(threads).with_registers(40).with_shared_memory(0, shared(threads));
            Ok(limits.occupancy(&block).active_blocks)
        };
        fullest(most, 32, limits.max_threads_per_multiprocessor, blocks).unwrap()
    }

    #[test]
    fn the_largest_block_that_fills_the_multiprocessor_is_suggested() {
        assert_eq!(suggestion(1024, |_| 0), (2, 768));
        assert_eq!(suggestion(500, |_| 0), (4, 384));
        assert_eq!(suggestion(20, |_| 0), (16, 20));
    }

    #[test]
    fn shared_memory_that_grows_with_the_block_counts() {
        assert_eq!(suggestion(1024, |threads| 128 * threads as usize), (1, 768));
        assert_eq!(suggestion(1024, |_| 200_000), (0, 0));
    }
}
