//! Options of new memory pools.

/// Settings of a new memory pool, for [`Device::new_memory_pool`](crate::Device::new_memory_pool): those of
/// `cuMemPoolCreate` and `cuMemPoolSetAttribute`. On the CPU device only the size has a meaning.
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// use ferrogrid_host::{Device, Error, PoolOptions};
///
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// // For what one request needs: at most 1 MiB; what is free goes back to the driver at each synchronisation.
/// let options = PoolOptions::new().with_max_size(1 << 20).with_release_threshold(0);
/// let pool = device.new_memory_pool(options)?;
/// let numbers = pool.zeros::<u32>(&stream, 1000)?;
/// assert_eq!(pool.statistics()?.used, numbers.byte_len() as u64);
/// let error = pool.zeros::<u8>(&stream, 1 << 20).unwrap_err();
/// assert!(matches!(error, Error::MemoryLimit { used: 4000, limit: 0x10_0000, .. }), "{error}");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolOptions {
    pub(crate) kind: PoolKind,
    pub(crate) shareable: bool,
    pub(crate) release_threshold: u64,
    pub(crate) max_size: Option<u64>,
    pub(crate) reuse_follow_event_dependencies: bool,
    pub(crate) reuse_allow_opportunistic: bool,
    pub(crate) reuse_allow_internal_dependencies: bool,
}

impl PoolOptions {
    /// A pool of any size that keeps freed memory, and reuses it in every way that CUDA supports.
    pub const fn new() -> Self {
        PoolOptions {
            kind: PoolKind::Device,
            shareable: false,
            release_threshold: u64::MAX,
            max_size: None,
            reuse_follow_event_dependencies: true,
            reuse_allow_opportunistic: true,
            reuse_allow_internal_dependencies: true,
        }
    }

    /// Whether memory is reused by event dependencies, opportunistically, and by dependencies that the driver adds.
    pub(crate) fn reuse(&self) -> [bool; 3] {
        [
            self.reuse_follow_event_dependencies,
            self.reuse_allow_opportunistic,
            self.reuse_allow_internal_dependencies,
        ]
    }
}

setters! { PoolOptions:
    /// Which memory the pool has; at first the device's own.
    pub const fn with_kind(kind: PoolKind): kind = kind;

    /// Allows other processes to open the pool, and buffers of it
    /// (`CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`): see [`MemoryPool::share`](crate::MemoryPool::share). For memory of
    /// the device only.
    pub const fn shareable(): shareable = true;

    /// How many free bytes the pool keeps at a synchronisation (`CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`); at first all.
    pub const fn with_release_threshold(bytes: u64): release_threshold = bytes;

    /// The most bytes that buffers of the pool may use: an allocation over it is
    /// [`Error::MemoryLimit`](crate::Error::MemoryLimit). At first there is no such limit.
    /// [`MemoryPool::set_limit`](crate::MemoryPool::set_limit) changes it.
    pub const fn with_max_size(bytes: u64): max_size = Some(bytes);

    /// Whether memory that was freed on a stream may be given to another that waits for an event after that
    /// (`CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES`).
    pub const fn with_reuse_follow_event_dependencies(allowed: bool): reuse_follow_event_dependencies = allowed;

    /// Whether memory may be given to another stream when the free has been observed to have run
    /// (`CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC`). Without it, reuse is deterministic.
    pub const fn with_reuse_allow_opportunistic(allowed: bool): reuse_allow_opportunistic = allowed;

    /// Whether the driver may make a stream wait for another to reuse what that has freed
    /// (`CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES`).
    pub const fn with_reuse_allow_internal_dependencies(allowed: bool): reuse_allow_internal_dependencies = allowed;
}

/// Which memory a pool has (`CUmemPoolProps`): for [`PoolOptions::with_kind`].
///
/// Buffers of all but [`PoolKind::Device`] can be used by the host, too:
/// [`MemoryPool::managed_zeros`](crate::MemoryPool::managed_zeros). On the CPU device all is the host's memory.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{PoolKind, PoolOptions};
///
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// for kind in [PoolKind::Managed, PoolKind::Host, PoolKind::HostNuma(0)] {
///     let pool = device.new_memory_pool(PoolOptions::new().with_kind(kind))?;
///     let mut numbers = pool.managed_copy(&stream, &[1_u32, 2, 3])?;
///     stream.fill_into(9, numbers.slice_mut(2..)?)?; // the device writes ...
///     numbers.write()?[0] = 7; // ... and the host, after that
///     assert_eq!(numbers.read()?, [7, 2, 9]);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PoolKind {
    /// Memory of the device.
    #[default]
    Device,
    /// Managed memory, which migrates to the processor that touches it (`CU_MEM_ALLOCATION_TYPE_MANAGED`). The driver must be for CUDA
    /// 13.0 or newer.
    Managed,
    /// Page-locked memory of the host (`CU_MEM_LOCATION_TYPE_HOST`), which the device uses over the bus.
    Host,
    /// The same, of the memory that is near one node of processors (`CU_MEM_LOCATION_TYPE_HOST_NUMA`): its number, as the
    /// system counts them.
    HostNuma(u16),
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions::new()
    }
}
