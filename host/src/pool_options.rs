//! How a memory pool is to be made. It must not know which backend makes it.

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
    pub(crate) release_threshold: u64,
    pub(crate) max_size: Option<u64>,
    pub(crate) reuse_follow_event_dependencies: bool,
    pub(crate) reuse_allow_opportunistic: bool,
    pub(crate) reuse_allow_internal_dependencies: bool,
}

impl PoolOptions {
    /// A pool of any size that keeps what is freed, and gives it out again in every way that CUDA knows.
    pub const fn new() -> Self {
        PoolOptions {
            release_threshold: u64::MAX,
            max_size: None,
            reuse_follow_event_dependencies: true,
            reuse_allow_opportunistic: true,
            reuse_allow_internal_dependencies: true,
        }
    }

    /// How many free bytes the pool keeps at a synchronisation (`CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`); at first all.
    #[must_use]
    pub const fn with_release_threshold(self, bytes: u64) -> Self {
        PoolOptions { release_threshold: bytes, ..self }
    }

    /// The most bytes that buffers of the pool may use: an allocation over it is
    /// [`Error::MemoryLimit`](crate::Error::MemoryLimit). At first there is no such limit.
    /// [`MemoryPool::set_limit`](crate::MemoryPool::set_limit) changes it.
    #[must_use]
    pub const fn with_max_size(self, bytes: u64) -> Self {
        PoolOptions { max_size: Some(bytes), ..self }
    }

    /// Whether memory that was freed on a stream may be given to another that waits for an event after that
    /// (`CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES`).
    #[must_use]
    pub const fn with_reuse_follow_event_dependencies(self, allowed: bool) -> Self {
        PoolOptions { reuse_follow_event_dependencies: allowed, ..self }
    }

    /// Whether memory may be given to another stream when it is seen that the free has run
    /// (`CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC`). Without it, what is reused does not depend on chance.
    #[must_use]
    pub const fn with_reuse_allow_opportunistic(self, allowed: bool) -> Self {
        PoolOptions { reuse_allow_opportunistic: allowed, ..self }
    }

    /// Whether the driver may make a stream wait for another to reuse what that has freed
    /// (`CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES`).
    #[must_use]
    pub const fn with_reuse_allow_internal_dependencies(self, allowed: bool) -> Self {
        PoolOptions { reuse_allow_internal_dependencies: allowed, ..self }
    }
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions::new()
    }
}
