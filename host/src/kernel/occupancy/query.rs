//! Occupancy of a kernel of this program on a device: the driver's numbers, and the record that names the
//! limiting resource.

use crate::device::Device;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::kernel::occupancy::rules::Occupancy;
use crate::launch::grid::Dimensions;

/// A block size that fills the device, from [`Device::max_potential_block_size`].
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
#[non_exhaustive]
pub struct BlockSuggestion {
    /// Threads in a block.
    pub block_size: u32,
    /// Blocks of that size that the whole device runs at a time; a smaller grid leaves some of it idle.
    pub min_grid_size: u32,
}

impl Device {
    /// How many blocks of `threads` threads a multiprocessor runs at a time, with `dynamic_shared` bytes of
    /// shared memory for the kernel's `SharedSlice` parameters, and what limits that: the published rules, applied to the
    /// kernel's attributes and the device's properties.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
    /// #     let i = t.index();
    /// #     if let Some(y) = y.get_mut(i) {
    /// #         *y += a * x[i.get()];
    /// #     }
    /// # }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let occupancy = stream.device().occupancy(kernels::saxpy::kernel(), 256, 0)?;
    /// println!("{occupancy}"); // 8 blocks, 64 of 64 warps (100 %), limited by ...
    /// assert!(occupancy.active_blocks > 0 && occupancy.fraction() <= 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn occupancy(
        &self,
        kernel: &'static Kernel,
        threads: u32,
        dynamic_shared: usize,
    ) -> Result<Occupancy> {
        kernel.occupancy(self, threads, dynamic_shared)
    }

    /// How many blocks of `threads` threads and `dynamic_shared` bytes of dynamic shared memory a
    /// multiprocessor runs at a time (`cuOccupancyMaxActiveBlocksPerMultiprocessor`); 0 if such a block
    /// cannot be launched. Above 48 KiB it is the answer for a launch that opts in, as launches do.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel(max_threads = 512)]
    /// # pub fn step(_t: Thread<1>) {}
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// let (device, kernel) = (Device::cpu(), kernels::step::kernel());
    /// assert_eq!(device.max_active_blocks_per_multiprocessor(kernel, 256, 0)?, 1); // a worker of the CPU device has one at a time
    /// assert_eq!(device.max_active_blocks_per_multiprocessor(kernel, 1024, 0)?, 0); // `max_threads = 512`
    /// assert_eq!(device.max_active_blocks_per_multiprocessor(kernel, 256, 1 << 20)?, 0); // no block has 1 MiB
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn max_active_blocks_per_multiprocessor(
        &self,
        kernel: &'static Kernel,
        threads: u32,
        dynamic_shared: usize,
    ) -> Result<u32> {
        kernel.max_active_blocks_per_multiprocessor(self, threads, dynamic_shared)
    }

    /// The block size, of at most `limit` threads, with which most threads of `kernel` are on a
    /// multiprocessor (`cuOccupancyMaxPotentialBlockSize`). `dynamic_shared` gives the bytes of dynamic
    /// shared memory of a block of a number of threads: `|_| 0` for none.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// x <- 2x
    /// #[kernel]
    /// pub fn double(t: Thread<1>, mut x: DisjointSlice<u32>) {
    ///     for i in t.grid_stride(x.len()) {
    ///         if let Some(x) = x.get_mut(i) {
    ///             *x *= 2;
    ///         }
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let suggested = stream.device().max_potential_block_size(kernels::double::kernel(), |_| 0, None)?;
    /// let mut x = stream.fill(21_u32, 1 << 12)?;
    /// // As many blocks as the device runs at a time; each thread does its part of the rest.
    /// kernels::double(&stream, Grid::new(suggested.min_grid_size, suggested.block_size), &mut x)?;
    /// assert_eq!(stream.download(&x)?[4095], 42);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch;
    /// [`LaunchError::NoBlockFits`](crate::LaunchError::NoBlockFits) if not even one warp fits.
    pub fn max_potential_block_size(
        &self,
        kernel: &'static Kernel,
        dynamic_shared: impl Fn(u32) -> usize,
        limit: Option<u32>,
    ) -> Result<BlockSuggestion> {
        kernel.max_potential_block_size(self, dynamic_shared, limit)
    }

    /// The bytes of dynamic shared memory that each block may have so that `blocks` blocks of `threads`
    /// threads are still on a multiprocessor at a time (`cuOccupancyAvailableDynamicSMemPerBlock`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// 4 KiB of static shared memory, and dynamic memory as the launch requests.
    /// #[kernel]
    /// pub fn tiled(_t: Thread<1>, _tile: Shared<[f32; 1024]>, _more: SharedSlice<f32>) {}
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let bytes = device.available_dynamic_shared_memory_per_block(kernels::tiled::kernel(), 1, 256)?;
    /// assert_eq!(bytes, device.shared_memory_per_block() - 4096); // for the `SharedSlice`
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch; if that many blocks do not fit even with none.
    pub fn available_dynamic_shared_memory_per_block(
        &self,
        kernel: &'static Kernel,
        blocks: u32,
        threads: u32,
    ) -> Result<usize> {
        kernel.available_dynamic_shared_memory_per_block(self, blocks, threads)
    }

    /// How many clusters of `cluster` blocks of `block` threads, with `dynamic_shared` bytes each, the
    /// device runs at a time (`cuOccupancyMaxActiveClusters`).
    ///
    /// The CPU device runs one on each of its workers.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel(cluster = 4)]
    /// # pub fn clustered(_t: Thread<1>) {}
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// let (device, kernel) = (Device::cpu(), kernels::clustered::kernel());
    /// let clusters = device.max_active_clusters(kernel, 4, 256, 0)?;
    /// assert_eq!(clusters, device.properties()?.multiprocessor_count);
    /// assert_eq!(device.max_active_clusters(kernel, 17, 256, 0)?, 0); // no device takes 17
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) on GPUs before compute capability 9.0; if the kernel does not load; what the
    /// driver's error for a shape that it cannot launch.
    pub fn max_active_clusters<const R: usize>(
        &self,
        kernel: &'static Kernel,
        cluster: impl Dimensions<R>,
        block: impl Dimensions<R>,
        dynamic_shared: u32,
    ) -> Result<u32> {
        kernel.max_active_clusters(self, cluster, block, dynamic_shared)
    }

    /// The most blocks of `block` threads and `dynamic_shared` bytes that a cluster of `kernel` can have
    /// (`cuOccupancyMaxPotentialClusterSize`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel(cluster = 4)]
    /// # pub fn clustered(_t: Thread<1>) {}
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// let size = Device::cpu().max_potential_cluster_size(kernels::clustered::kernel(), 256, 0)?;
    /// assert_eq!(size, 16); // a GPU may have fewer
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Device::max_active_clusters`].
    pub fn max_potential_cluster_size<const R: usize>(
        &self,
        kernel: &'static Kernel,
        block: impl Dimensions<R>,
        dynamic_shared: u32,
    ) -> Result<u32> {
        kernel.max_potential_cluster_size(self, block, dynamic_shared)
    }
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

/// With 1 along further axes. A number that has not 32 bits fits no device, as neither does the one that stands for it.
pub(crate) fn padded<const R: usize>(dimensions: impl Dimensions<R>) -> [u32; 3] {
    let dimensions = dimensions.dimensions();
    std::array::from_fn(|axis| {
        dimensions.get(axis).map_or(1, |&number| u32::try_from(number.max(0)).unwrap_or(u32::MAX))
    })
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
    fn dimensions_are_padded_with_ones_and_fit_no_device_if_they_fit_no_number() {
        assert_eq!(padded(7_u32), [7, 1, 1]);
        assert_eq!(padded([2_u32, 3]), [2, 3, 1]);
        assert_eq!(padded([2_i32, -3, 4]), [2, 0, 4]);
        assert_eq!(padded([1_usize << 32, u32::MAX as usize]), [u32::MAX, u32::MAX, 1]);
    }

    #[test]
    fn shared_memory_that_grows_with_the_block_counts() {
        assert_eq!(suggestion(1024, |threads| 128 * threads as usize), (1, 768));
        assert_eq!(suggestion(1024, |_| 200_000), (0, 0));
    }
}
