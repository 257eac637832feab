//! Queries about a foreign kernel, and its preferences, as in [`Kernel`](crate::Kernel).

use super::ForeignFunction;
use crate::error::Result;
use crate::kernel::attributes::{CacheConfig, KernelAttributes};
use crate::kernel::dimensions::Dimensions;
use crate::kernel::occupancy::{BlockSuggestion, Occupancy};

/// Implements methods that [`Kernel`](crate::Kernel) has under the same names, which take the device and these values;
/// `$shared` is the dynamic shared memory of the handle.
macro_rules! questions {
    (ForeignFunction: |$shared:ident|
        $( $(#[$doc:meta])* pub fn $name:ident $(<$R:ident>)? ($($argument:ident: $ty:ty),*) -> $answer:ty =
            ($($value:expr),*); )*) => {
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
            $(
                $(#[$doc])*
                #[allow(unused_variables, reason = "some queries take no shared memory")]
                pub fn $name $(<const $R: usize>)? (&self, $($argument: $ty),*) -> Result<$answer> {
                    let (entry, $shared) = (self.entry, self.dynamic_shared);
                    entry.kernel.$name(&entry.device, $($value),*)
                }
            )*
        }
    };
}

questions! { ForeignFunction: |shared|
    /// Its attributes (`cuFuncGetAttribute`).
    ///
    /// # Errors
    /// If the driver fails.
    pub fn attributes() -> KernelAttributes = ();

    /// How many blocks of `threads` threads, with the dynamic shared memory of this handle, a multiprocessor runs at a
    /// time, and what limits that; see [`Device::occupancy`](crate::Device::occupancy).
    ///
    /// # Errors
    /// If the driver fails.
    pub fn occupancy(threads: u32) -> Occupancy = (threads, shared as usize);

    /// How many blocks of `threads` threads, with the dynamic shared memory of this handle, a multiprocessor runs at a
    /// time (`cuOccupancyMaxActiveBlocksPerMultiprocessor`).
    ///
    /// # Errors
    /// If the driver fails.
    pub fn max_active_blocks_per_multiprocessor(threads: u32) -> u32 = (threads, shared as usize);

    /// The block size, of at most `limit` threads, with which most threads are on a multiprocessor
    /// (`cuOccupancyMaxPotentialBlockSize`). `dynamic_shared` gives the bytes of dynamic shared memory of a block of a
    /// number of threads, whatever this handle has.
    ///
    /// # Errors
    /// [`LaunchError::NoBlockFits`](crate::LaunchError::NoBlockFits) if not even one warp fits; or if the
    /// driver fails.
    pub fn max_potential_block_size(dynamic_shared: impl Fn(u32) -> usize, limit: Option<u32>) -> BlockSuggestion =
        (dynamic_shared, limit);

    /// The bytes of dynamic shared memory that each block may have so that `blocks` blocks of `threads` threads are still
    /// on a multiprocessor at a time (`cuOccupancyAvailableDynamicSMemPerBlock`).
    ///
    /// # Errors
    /// If the driver fails: that many blocks do not fit even with none.
    pub fn available_dynamic_shared_memory_per_block(blocks: u32, threads: u32) -> usize = (blocks, threads);

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
    pub fn max_active_clusters<R>(cluster: impl Dimensions<R>, block: impl Dimensions<R>) -> u32 =
        (cluster, block, shared);

    /// The most blocks of `block` threads, with the dynamic shared memory of this handle, that a cluster can have
    /// (`cuOccupancyMaxPotentialClusterSize`).
    ///
    /// # Errors
    /// As [`ForeignFunction::max_active_clusters`].
    pub fn max_potential_cluster_size<R>(block: impl Dimensions<R>) -> u32 = (block, shared);

    /// Sets the preferred split between L1 cache and shared memory (`cuFuncSetCacheConfig`). The driver may choose
    /// otherwise.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn set_cache_config(config: CacheConfig) -> () = (config);

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
    pub fn set_preferred_shared_memory_carveout(percent: Option<u32>) -> () = (percent);

    /// Allows launches up to `bytes` of dynamic shared memory
    /// (`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`): for other libraries that launch the same function. Its own
    /// launches take what [`ForeignFunction::with_dynamic_shared_memory`] says, and need no such call.
    ///
    /// # Errors
    /// The driver's error for more than the device has.
    pub fn set_max_dynamic_shared_size_bytes(bytes: u32) -> () = (bytes);
}
