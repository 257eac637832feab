//! Queries about kernels on a device, and their preferences there, as methods of [`Device`]. `queries` has those of
//! [`Kernel`], which answer them.

mod queries;

use crate::device::Device;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::kernel::attributes::{CacheConfig, KernelAttributes};
use crate::kernel::dimensions::Dimensions;
use crate::kernel::occupancy::{BlockSuggestion, Occupancy};

impl Device {
    /// The attributes of `kernel` on this device (`cuFuncGetAttribute`); it is loaded if it was not.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel(max_threads = 256)]
    /// # pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
    /// #     let i = t.index();
    /// #     if let Some(y) = y.get_mut(i) {
    /// #         *y += a * x[i.get()];
    /// #     }
    /// # }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let attributes = stream.device().attributes(kernels::saxpy::kernel())?;
    /// println!("{} registers, {} bytes of stack", attributes.num_regs, attributes.local_size_bytes);
    /// assert_eq!(attributes.max_threads_per_block, 256); // as the kernel says: `max_threads = 256`
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn attributes(&self, kernel: &'static Kernel) -> Result<KernelAttributes> {
        kernel.attributes(self)
    }

    /// Says how `kernel` would rather have the L1 cache and shared memory divided
    /// (`cuFuncSetCacheConfig`). The driver may do otherwise. No effect on the CPU.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn stencil(t: Thread<1>, mut y: DisjointSlice<f32>) {
    /// #     let _ = y.get_mut(t.index());
    /// # }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::CacheConfig;
    ///
    /// stream.device().set_cache_config(kernels::stencil::kernel(), CacheConfig::L1)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch.
    pub fn set_cache_config(&self, kernel: &'static Kernel, config: CacheConfig) -> Result<()> {
        kernel.set_cache_config(self, config)
    }

    /// Says how much of the L1 cache `kernel` would rather have as shared memory, in per cent
    /// (`CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`); `None` leaves it to the driver. The
    /// driver rounds up to what the hardware can. No effect on the CPU.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn tiled(_t: Thread<1>, _tile: Shared<[f32; 1024]>) {}
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// let (device, kernel) = (Device::cpu(), kernels::tiled::kernel());
    /// device.set_preferred_shared_memory_carveout(kernel, Some(50))?; // half of it, and the other half for the cache
    /// println!("{:?}", device.attributes(kernel)?.preferred_shared_memory_carveout); // Some(50) on a GPU
    /// device.set_preferred_shared_memory_carveout(kernel, None)?; // as the driver thinks best
    /// assert_eq!(device.attributes(kernel)?.preferred_shared_memory_carveout, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch; the driver's error for more than 100.
    pub fn set_preferred_shared_memory_carveout(
        &self,
        kernel: &'static Kernel,
        percent: Option<u32>,
    ) -> Result<()> {
        kernel.set_preferred_shared_memory_carveout(self, percent)
    }

    /// Allows launches of `kernel` up to `bytes` of dynamic shared memory
    /// (`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`). Launches by this crate do it themselves; it is
    /// for other libraries that launch the same function. No effect on the CPU.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// # #[kernel]
    /// # pub fn sized(_t: Thread<1>, _tile: SharedSlice<f32>) {}
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// let (device, kernel) = (Device::cpu(), kernels::sized::kernel());
    /// device.set_max_dynamic_shared_size_bytes(kernel, 64 << 10)?; // before another library launches it with 64 KiB
    /// assert!(device.attributes(kernel)?.max_dynamic_shared_size_bytes >= 64 << 10);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the kernel does not load, as at a launch; the driver's error for more than the device has.
    pub fn set_max_dynamic_shared_size_bytes(&self, kernel: &'static Kernel, bytes: u32) -> Result<()> {
        kernel.set_max_dynamic_shared_size_bytes(self, bytes)
    }

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
