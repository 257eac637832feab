//! Queries about a foreign kernel, and its preferences, as in [`Kernel`](crate::Kernel).

use super::ForeignFunction;
use crate::error::Result;
use crate::kernel::attributes::{CacheConfig, KernelAttributes};
use crate::kernel::dimensions::Dimensions;
use crate::kernel::occupancy::{BlockSuggestion, Occupancy};

/// Its attributes, with the dynamic shared memory of this handle
/// ([`ForeignFunction::with_dynamic_shared_memory`]) where that matters.
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::CacheConfig;
///
/// let scan = Device::cuda(0)?.load_file("scan.ptx")?.function("scan")?; // extern __shared__ float partial[];
/// scan.set_cache_config(CacheConfig::Shared)?;
/// let best = scan.max_potential_block_size(|threads| threads as usize * 4, None)?;
/// let scan = scan.with_dynamic_shared_memory(best.block_size * 4)?;
/// println!("{}", scan.occupancy(best.block_size)?);
/// let blocks = scan.max_active_blocks_per_multiprocessor(best.block_size)?;
/// println!("{} bytes more", scan.available_dynamic_shared_memory_per_block(blocks, best.block_size)?);
/// # Ok(()) }
/// ```
impl ForeignFunction {
    /// Its attributes (`cuFuncGetAttribute`).
    ///
    /// # Errors
    /// If the driver fails.
    pub fn attributes(&self) -> Result<KernelAttributes> {
        self.entry.kernel.attributes(&self.entry.device)
    }

    /// How many blocks of `threads` threads, with the dynamic shared memory of this handle, a multiprocessor runs at a
    /// time, and what limits that; see [`Device::occupancy`](crate::Device::occupancy).
    ///
    /// # Errors
    /// If the driver fails.
    pub fn occupancy(&self, threads: u32) -> Result<Occupancy> {
        self.entry.kernel.occupancy(&self.entry.device, threads, self.dynamic_shared as usize)
    }

    /// How many blocks of `threads` threads, with the dynamic shared memory of this handle, a multiprocessor runs at a
    /// time (`cuOccupancyMaxActiveBlocksPerMultiprocessor`).
    ///
    /// # Errors
    /// If the driver fails.
    pub fn max_active_blocks_per_multiprocessor(&self, threads: u32) -> Result<u32> {
        let shared = self.dynamic_shared as usize;
        self.entry.kernel.max_active_blocks_per_multiprocessor(&self.entry.device, threads, shared)
    }

    /// The block size, of at most `limit` threads, with which most threads are on a multiprocessor
    /// (`cuOccupancyMaxPotentialBlockSize`). `dynamic_shared` gives the bytes of dynamic shared memory of a block of a
    /// number of threads, whatever this handle has.
    ///
    /// # Errors
    /// [`LaunchError::NoBlockFits`](crate::LaunchError::NoBlockFits) if not even one warp fits; or if the
    /// driver fails.
    pub fn max_potential_block_size(
        &self,
        dynamic_shared: impl Fn(u32) -> usize,
        limit: Option<u32>,
    ) -> Result<BlockSuggestion> {
        self.entry.kernel.max_potential_block_size(&self.entry.device, dynamic_shared, limit)
    }

    /// The bytes of dynamic shared memory that each block may have so that `blocks` blocks of `threads` threads are still
    /// on a multiprocessor at a time (`cuOccupancyAvailableDynamicSMemPerBlock`).
    ///
    /// # Errors
    /// If the driver fails: that many blocks do not fit even with none.
    pub fn available_dynamic_shared_memory_per_block(&self, blocks: u32, threads: u32) -> Result<usize> {
        self.entry.kernel.available_dynamic_shared_memory_per_block(&self.entry.device, blocks, threads)
    }

    /// How many clusters of `cluster` blocks of `block` threads, with the dynamic shared memory of this handle, the device
    /// runs at a time (`cuOccupancyMaxActiveClusters`).
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let stencil = Device::cuda(0)?.load_file("stencil.ptx")?.function("stencil")?;
    /// let most = stencil.max_potential_cluster_size(256)?.min(8);
    /// println!("{} clusters of {most} blocks at a time", stencil.max_active_clusters(most, 256)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) before compute capability 9.0; the driver's error for a shape
    /// that it cannot launch.
    pub fn max_active_clusters<const R: usize>(
        &self,
        cluster: impl Dimensions<R>,
        block: impl Dimensions<R>,
    ) -> Result<u32> {
        self.entry.kernel.max_active_clusters(&self.entry.device, cluster, block, self.dynamic_shared)
    }

    /// The most blocks of `block` threads, with the dynamic shared memory of this handle, that a cluster can have
    /// (`cuOccupancyMaxPotentialClusterSize`).
    ///
    /// # Errors
    /// As [`ForeignFunction::max_active_clusters`].
    pub fn max_potential_cluster_size<const R: usize>(&self, block: impl Dimensions<R>) -> Result<u32> {
        self.entry.kernel.max_potential_cluster_size(&self.entry.device, block, self.dynamic_shared)
    }

    /// Sets the preferred split between L1 cache and shared memory (`cuFuncSetCacheConfig`). The driver may choose
    /// otherwise.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn set_cache_config(&self, config: CacheConfig) -> Result<()> {
        self.entry.kernel.set_cache_config(&self.entry.device, config)
    }

    /// Sets the preferred share of the L1 cache for shared memory, in per cent
    /// (`CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`); `None` leaves it to the driver.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let scan = Device::cuda(0)?.load_file("scan.ptx")?.function("scan")?;
    /// scan.set_preferred_shared_memory_carveout(Some(100))?;
    /// assert_eq!(scan.attributes()?.preferred_shared_memory_carveout, Some(100));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The driver's error for more than 100.
    pub fn set_preferred_shared_memory_carveout(&self, percent: Option<u32>) -> Result<()> {
        self.entry.kernel.set_preferred_shared_memory_carveout(&self.entry.device, percent)
    }

    /// Allows launches up to `bytes` of dynamic shared memory
    /// (`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`): for other libraries that launch the same function. Its own
    /// launches take what [`ForeignFunction::with_dynamic_shared_memory`] says, and need no such call.
    ///
    /// # Errors
    /// The driver's error for more than the device has.
    pub fn set_max_dynamic_shared_size_bytes(&self, bytes: u32) -> Result<()> {
        self.entry.kernel.set_max_dynamic_shared_size_bytes(&self.entry.device, bytes)
    }
}
