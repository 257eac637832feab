//! The memory pool of a device as the user sees it: its figures, its limit, and giving memory back. It
//! must not know how the driver keeps it.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use crate::account::Account;
use crate::backend::DeviceBackend;
use crate::backend::cuda::{CudaDevice, RawPool};
use crate::context::{gpu, not_null};
use crate::device::Device;
use crate::error::Result;

/// The pool that buffers of a device are allocated from, in stream order. A cheap handle, from
/// [`Device::memory_pool`].
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// let device = ferrogrid_host::Device::cpu();
/// let stream = device.new_stream()?;
/// let pool = device.memory_pool();
/// let buffer = stream.zeros::<u64>(1000)?;
/// assert!(pool.statistics()?.used >= buffer.byte_len() as u64);
/// pool.trim(0)?;
/// # Ok(()) }
/// ```
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::cpu_with(ferrogrid::CpuOptions::new())?; // a device of its own, for the figures' sake
/// let (stream, pool) = (device.new_stream()?, device.memory_pool());
/// pool.set_release_threshold(64 << 20)?; // on a GPU: up to 64 MiB stay for the next buffers
/// drop(stream.zeros::<u8>(5000)?);
/// let kept = stream.zeros::<u8>(1000)?;
/// stream.synchronize()?;
/// let statistics = pool.statistics()?;
/// assert!(statistics.used >= 1000 && statistics.used_high >= 5000);
///
/// pool.reset_statistics()?; // how much does the next stage need?
/// let more = stream.zeros::<u8>(2000)?;
/// assert!(pool.statistics()?.used_high < 5000);
/// assert_eq!(pool.limit(), None); // nobody has set one
/// # drop((kept, more));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct MemoryPool {
    device: Device,
    account: Arc<Account>,
    /// The pool of somebody else; `None` for that of the device.
    foreign: Option<RawPool>,
}

/// The figures of a memory pool, in bytes.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let pool = stream.device().memory_pool();
/// let before = pool.statistics()?;
/// let _buffer = stream.zeros::<u8>(1 << 16)?;
/// let now = pool.statistics()?;
/// println!("{} bytes in use, {} at most so far", now.used, now.used_high);
/// assert!(now.used <= now.reserved && before.used_high <= now.used_high);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStatistics {
    /// Used by buffers now; a buffer that is dropped counts until the stream has freed it
    /// (`CU_MEMPOOL_ATTR_USED_MEM_CURRENT`).
    pub used: u64,
    /// The most that was used since [`MemoryPool::reset_statistics`] (`CU_MEMPOOL_ATTR_USED_MEM_HIGH`).
    pub used_high: u64,
    /// Held by the pool now (`CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`).
    pub reserved: u64,
    /// The most that was held since [`MemoryPool::reset_statistics`]
    /// (`CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH`).
    pub reserved_high: u64,
}

impl Device {
    /// The pool that buffers of this device are allocated from: one of this crate's own (`cuMemPoolCreate`), not the
    /// device's default pool. On the CPU device, and on a GPU without pools, it is the system's allocator.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let (stream, pool) = (Device::cpu().new_stream()?, Device::cpu().memory_pool());
    /// let _buffer = stream.zeros::<u8>(1000)?;
    /// assert!(pool.statistics()?.used >= 1000); // all streams of a device share it
    /// # Ok(()) }
    /// ```
    pub fn memory_pool(&self) -> MemoryPool {
        MemoryPool { device: self.clone(), account: Account::of(self), foreign: None }
    }
}

impl MemoryPool {
    /// How much it holds, and how much of that is in use (`cuMemPoolGetAttribute`).
    ///
    /// # Errors
    /// If the device fails.
    pub fn statistics(&self) -> Result<PoolStatistics> {
        if let Some(device) = self.pools() {
            let [reserved, reserved_high, used, used_high] = device.pool_statistics(self.foreign)?;
            return Ok(PoolStatistics { used, used_high, reserved, reserved_high });
        }
        let (used, used_high) = (self.account.used(), self.account.high());
        Ok(PoolStatistics { used, used_high, reserved: used, reserved_high: used_high })
    }

    /// Lets the highest figures start anew from what there is now (`cuMemPoolSetAttribute`).
    ///
    /// # Errors
    /// If the device fails.
    pub fn reset_statistics(&self) -> Result<()> {
        if self.foreign.is_none() {
            self.account.reset_high();
        }
        self.pools().map_or(Ok(()), |device| device.reset_pool_statistics(self.foreign))
    }

    /// Gives back to the driver what no buffer uses, but for `keep` bytes (`cuMemPoolTrimTo`), so that
    /// other programs can have it.
    ///
    /// # Errors
    /// If the device has failed.
    pub fn trim(&self, keep: usize) -> Result<()> {
        match (self.pools(), self.foreign) {
            (Some(device), Some(_)) => device.trim_pool(self.foreign, keep),
            _ => self.device.trim_memory(keep),
        }
    }

    /// How many free bytes the pool keeps at a synchronisation
    /// (`CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`); at first all. Nothing to set on the CPU device.
    ///
    /// # Errors
    /// If the device fails.
    pub fn set_release_threshold(&self, bytes: u64) -> Result<()> {
        self.pools().map_or(Ok(()), |device| device.set_release_threshold(self.foreign, bytes))
    }

    /// The GPU, if it has pools.
    fn pools(&self) -> Option<&'static CudaDevice> {
        match self.device.backend() {
            DeviceBackend::Cuda(device) if device.has_pools() => Some(device),
            _ => None,
        }
    }

    /// The driver's handle (`CUmemoryPool`), for other libraries: for `cuMemAllocFromPoolAsync`, for example. `None` on
    /// the CPU device, and on a GPU without pools.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::MemoryPool;
    ///
    /// let device = Device::best()?;
    /// if let Some(raw) = device.memory_pool().as_raw()? {
    ///     // SAFETY: it is a pool of this device, and stays until the process ends.
    ///     let same = unsafe { MemoryPool::from_raw(&device, raw)? };
    ///     println!("{} bytes in use", same.statistics()?.used);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device fails: the pool is made at its first use.
    pub fn as_raw(&self) -> Result<Option<*mut c_void>> {
        let pool = self.pools().map(|device| device.pool_or(self.foreign)).transpose()?;
        Ok(pool.map(RawPool::as_raw))
    }

    /// The pool of another library: `raw` is its `CUmemoryPool`, such as what `cuDeviceGetDefaultMemPool` gives. It is
    /// asked and trimmed like the device's own, and not destroyed. Buffers of this crate are not allocated from it, and
    /// [`MemoryPool::set_limit`] is about those, whichever handle it is called on.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) on the CPU device;
    /// [`Error::InvalidPointer`](crate::Error::InvalidPointer) if `raw` is null.
    ///
    /// # Safety
    /// `raw` is a pool of `device`, and is not destroyed before this handle and its clones are dropped.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<MemoryPool> {
        gpu(device, "MemoryPool::from_raw")?;
        let foreign = Some(RawPool::new(not_null(raw)?));
        Ok(MemoryPool { device: device.clone(), account: Account::of(device), foreign })
    }

    /// The most bytes that buffers may use; `None` if there is no limit.
    pub fn limit(&self) -> Option<u64> {
        self.account.limit()
    }

    /// Sets the most bytes that buffers of this device may use in this process: an allocation over it is
    /// [`Error::MemoryLimit`](crate::Error::MemoryLimit). Managed buffers and those for several processes
    /// count as well. Buffers that are there stay.
    ///
    /// On the CPU device a buffer that is dropped counts until the work before that has run: to have its room for
    /// sure, synchronise first. On a GPU it no longer counts, because the pool gives its memory to the next
    /// allocation on that stream without waiting.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu_with(ferrogrid::CpuOptions::new())?;
    /// let pool = device.memory_pool();
    /// pool.set_limit(Some(1 << 20));
    /// let stream = device.new_stream()?;
    /// assert!(matches!(stream.zeros::<u8>(2 << 20), Err(Error::MemoryLimit { .. })));
    /// pool.set_limit(None);
    /// assert_eq!(stream.zeros::<u8>(2 << 20)?.len(), 2 << 20);
    /// # Ok(()) }
    /// ```
    pub fn set_limit(&self, limit: Option<u64>) {
        self.account.set_limit(limit);
    }
}

impl fmt::Debug for MemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryPool").field("device", &self.device).field("account", &self.account).finish()
    }
}
