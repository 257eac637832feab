//! The handles of memory pools, of devices' own pools and others: buffers, figures, limits and trimming. `options` has the
//! options of new pools, `shared` shares one between processes.

#[cfg(unix)]
pub(crate) mod shared;

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use bytemuck::{NoUninit, Zeroable};
use ferrogrid_device::DeviceCopy;

use crate::backend::cuda::{CudaDevice, OwnPool, RawPool};
use crate::backend::{Account, Contents, PoolKind, PoolOptions};
use crate::device::Device;
use crate::device::context::{gpu, not_null};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::memory::buffer::DeviceBuffer;
use crate::memory::managed::ManagedBuffer;
use crate::stream::Stream;

/// A pool that buffers of a device are allocated from, in stream order: that of the device
/// ([`Device::memory_pool`]), or a separate one ([`Device::new_memory_pool`]). A cheap handle.
///
/// A separate pool lives as long as a handle or a buffer of it.
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
/// let device = Device::cpu_with(ferrogrid::CpuOptions::new())?; // a separate device, so that the figures are exact
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
/// assert_eq!(pool.limit(), None); // none is set
/// # drop((kept, more));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct MemoryPool {
    device: Device,
    account: Arc<Account>,
    which: Which,
    kind: PoolKind,
    shareable: bool,
}

/// Whose pool it is.
#[derive(Clone)]
enum Which {
    OfDevice,
    /// A user's; there is nothing to hold on the CPU device.
    Own(Option<Arc<OwnPool>>),
    /// Another library's.
    Foreign(RawPool),
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
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
        MemoryPool::new(self, Account::of(self.backend()), Which::OfDevice)
    }

    /// A new pool, beside that of the device (`cuMemPoolCreate`): for a part of the program that is to have a limit,
    /// separate figures and settings. The bytes of its buffers count for the device as well.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::{Device, PoolOptions};
    ///
    /// let device = Device::cpu();
    /// let stream = device.new_stream()?;
    /// let pool = device.new_memory_pool(PoolOptions::new().with_max_size(1 << 20))?;
    /// let mut buffer = pool.upload(&stream, &[1_u32, 2, 3])?; // a buffer like any other
    /// stream.fill_into(7, buffer.slice_mut(1..)?)?;
    /// assert_eq!(stream.download(&buffer)?, [1, 7, 7]);
    /// assert_eq!(pool.statistics()?.used, 12);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] on a GPU without pools, or without such; or a failure of the device.
    pub fn new_memory_pool(&self, options: PoolOptions) -> Result<MemoryPool> {
        let own = match self.backend().as_cuda() {
            Some(device) => Some(Arc::new(OwnPool::new(device, &options)?)),
            None if options.shareable => {
                return Err(Error::unsupported("a shareable pool", self, "its memory is the host's"));
            }
            None => None,
        };
        let account = Account::of_pool(self.backend(), options.max_size);
        let (kind, shareable) = (options.kind, options.shareable);
        Ok(MemoryPool { kind, shareable, ..MemoryPool::new(self, account, Which::Own(own)) })
    }
}

impl MemoryPool {
    fn new(device: &Device, account: Arc<Account>, which: Which) -> Self {
        MemoryPool { device: device.clone(), account, which, kind: PoolKind::Device, shareable: false }
    }

    /// A new buffer of `len` elements whose bytes are all 0, as [`Stream::zeros`], from this pool
    /// (`cuMemAllocFromPoolAsync`).
    ///
    /// # Errors
    /// [`Error::MemoryLimit`], [`Error::DeviceMismatch`] for a stream of another device, and those of
    /// [`Stream::zeros`].
    pub fn zeros<T: DeviceCopy + Zeroable>(&self, stream: &Stream, len: usize) -> Result<DeviceBuffer<T>> {
        self.allocate(stream, len, Contents::Zeroed)
    }

    /// A new buffer with a copy of `data`, as [`Stream::upload`], from this pool.
    ///
    /// # Errors
    /// As [`MemoryPool::zeros`].
    pub fn upload<T: DeviceCopy>(&self, stream: &Stream, data: &[T]) -> Result<DeviceBuffer<T>> {
        stream.initialised(self.allocate(stream, data.len(), Contents::Uninitialised)?, data)
    }

    /// A new buffer of `len` elements, each `value`, as [`Stream::fill`], from this pool.
    ///
    /// # Errors
    /// As [`MemoryPool::zeros`].
    pub fn fill<T: DeviceCopy + NoUninit>(
        &self,
        stream: &Stream,
        value: T,
        len: usize,
    ) -> Result<DeviceBuffer<T>> {
        let mut buffer = self.allocate(stream, len, Contents::Uninitialised)?;
        stream.fill_into(value, &mut buffer)?;
        Ok(buffer)
    }

    /// A new buffer of `len` uninitialised elements, as [`Stream::uninit`], from this pool.
    ///
    /// # Errors
    /// As [`MemoryPool::zeros`].
    pub fn uninit<T: DeviceCopy>(&self, stream: &Stream, len: usize) -> Result<DeviceBuffer<MaybeUninit<T>>> {
        self.allocate(stream, len, Contents::Uninitialised)
    }

    /// A new buffer of `len` elements whose bytes are all 0 that the host can use, too: of a pool of managed or of
    /// page-locked memory ([`PoolKind`](crate::PoolKind)). It is allocated and freed in stream order, as those of
    /// [`Stream::managed_zeros`] are not. (Prefetches and advice are for managed memory; the driver refuses others.)
    ///
    /// # Errors
    /// [`Error::Unsupported`] of a pool of the device's own memory; those of [`MemoryPool::zeros`].
    pub fn managed_zeros<T: DeviceCopy + Zeroable>(
        &self,
        stream: &Stream,
        len: usize,
    ) -> Result<ManagedBuffer<T>> {
        self.check_host_can_use()?;
        Ok(ManagedBuffer::of(self.zeros(stream, len)?))
    }

    /// A new buffer with a copy of `data`, as [`MemoryPool::managed_zeros`].
    ///
    /// # Errors
    /// As [`MemoryPool::managed_zeros`].
    pub fn managed_copy<T: DeviceCopy>(&self, stream: &Stream, data: &[T]) -> Result<ManagedBuffer<T>> {
        self.check_host_can_use()?;
        Ok(ManagedBuffer::of(self.upload(stream, data)?))
    }

    /// Which memory it has. Of a pool that came in by [`MemoryPool::from_raw`] that is not known, and this says the
    /// device's.
    pub fn kind(&self) -> PoolKind {
        self.kind
    }

    /// Whether the host can use its memory.
    pub(crate) fn is_of_host(&self) -> bool {
        self.kind != PoolKind::Device
    }

    fn check_host_can_use(&self) -> Result<()> {
        if self.is_of_host() {
            return Ok(());
        }
        let reason =
            "the pool is of the device's own memory: make one with `PoolKind::Managed` or `PoolKind::Host`";
        Err(Error::unsupported("managed memory of a pool", &self.device, reason))
    }

    fn allocate<T: DeviceCopy>(
        &self,
        stream: &Stream,
        len: usize,
        contents: Contents,
    ) -> Result<DeviceBuffer<T>> {
        self.device.check_is(stream.device())?;
        let pool = (!matches!(self.which, Which::OfDevice)).then_some(self);
        DeviceBuffer::in_memory(len, |bytes| Memory::allocate(stream.inner(), pool, bytes, contents))
    }

    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// The driver's, of a pool that is not the device's.
    pub(crate) fn raw(&self) -> Option<RawPool> {
        match &self.which {
            Which::OfDevice => None,
            Which::Own(own) => own.as_ref().map(|own| own.handle),
            Which::Foreign(pool) => Some(*pool),
        }
    }

    /// The device that the memory is of.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How much it holds, and how much of that is in use (`cuMemPoolGetAttribute`).
    ///
    /// # Errors
    /// If the device fails.
    pub fn statistics(&self) -> Result<PoolStatistics> {
        if let Some(device) = self.pools() {
            let [reserved, reserved_high, used, used_high] = device.pool_statistics(self.raw())?;
            return Ok(PoolStatistics { used, used_high, reserved, reserved_high });
        }
        let (used, used_high) = (self.account.balance.used(), self.account.balance.high());
        Ok(PoolStatistics { used, used_high, reserved: used, reserved_high: used_high })
    }

    /// Resets the highest figures to the current ones (`cuMemPoolSetAttribute`).
    ///
    /// # Errors
    /// If the device fails.
    pub fn reset_statistics(&self) -> Result<()> {
        self.account.balance.reset_high();
        self.pools().map_or(Ok(()), |device| device.reset_pool_statistics(self.raw()))
    }

    /// Returns unused memory to the driver, except `keep` bytes (`cuMemPoolTrimTo`), so that
    /// other programs can have it.
    ///
    /// # Errors
    /// If the device has failed.
    pub fn trim(&self, keep: usize) -> Result<()> {
        match (self.pools(), self.raw()) {
            (Some(device), Some(pool)) => device.trim_pool(Some(pool), keep),
            _ => self.device.trim_memory(keep),
        }
    }

    /// How many free bytes the pool keeps at a synchronisation
    /// (`CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`); at first all. No effect on the CPU device.
    ///
    /// # Errors
    /// If the device fails.
    pub fn set_release_threshold(&self, bytes: u64) -> Result<()> {
        self.pools().map_or(Ok(()), |device| device.set_release_threshold(self.raw(), bytes))
    }

    /// The GPU, if it has pools.
    fn pools(&self) -> Option<&'static CudaDevice> {
        self.device.backend().as_cuda().filter(|device| device.has_pools())
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
        let pool = self.pools().map(|device| device.pool_or(self.raw())).transpose()?;
        Ok(pool.map(RawPool::as_raw))
    }

    /// The pool of another library: `raw` is its `CUmemoryPool`, such as the result of `cuDeviceGetDefaultMemPool`. It is
    /// used like one made here, and not destroyed.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) on the CPU device;
    /// [`Error::InvalidPointer`](crate::Error::InvalidPointer) if `raw` is null.
    ///
    /// # Safety
    /// `raw` is a pool of `device`, and is not destroyed before this handle, its clones and all buffers of it are dropped.
    /// Other devices that use such buffers have been given access to it.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<MemoryPool> {
        gpu(device, "MemoryPool::from_raw")?;
        let which = Which::Foreign(RawPool::new(not_null(raw)?));
        Ok(MemoryPool::new(device, Account::of_pool(device.backend(), None), which))
    }

    /// The most bytes that buffers may use; `None` if there is no limit.
    pub fn limit(&self) -> Option<u64> {
        self.account.balance.limit()
    }

    /// Sets the most bytes that buffers of this pool may use: an allocation over it is [`Error::MemoryLimit`]. Buffers that
    /// are there stay. For the pool of the device all buffers of the device in this process count: those of other pools,
    /// managed ones and those for several processes as well.
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
        self.account.balance.set_limit(limit);
    }
}

debug_by_methods!(MemoryPool { device, kind, limit });
