//! Memory of the host on CUDA devices: page-locked, which devices copy from and to on their own, and managed. Also the figures
//! of a device's memory.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::Ordering;

use cudarc::driver::sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_WRITECOMBINED, CUdevice,
    CUdevice_attribute,
};

use crate::backend::cuda::device::{CudaDevice, address, attribute_of};
use crate::backend::cuda::driver::Code;
use crate::backend::device::DeviceMemory;
use crate::error::{Error, Result};
use crate::properties::memory_info::MemoryInfo;

/// Page-locked for all contexts, and mapped for devices; for registered memory the numbers are the same. If a device cannot
/// map it, only `mapped_address` says so.
pub(crate) const PORTABLE_AND_MAPPED: c_uint = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;

/// `CU_DEVICE_CPU`.
const HOST: c_int = -1;

impl DeviceMemory for CudaDevice {
    fn memory_info(&self) -> Result<Option<MemoryInfo>> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are valid for the call.
        let code = unsafe { self.driver().memory_info(&mut free, &mut total) };
        self.check(code, self)?;
        Ok(Some(MemoryInfo { free: free as u64, total: total as u64 }))
    }

    /// Of its pool, if there is one by now.
    fn trim_memory(&self, keep: usize) -> Result<()> {
        match self.known_pool() {
            Some(pool) => self.trim_pool(Some(pool), keep),
            None => Ok(()),
        }
    }

    fn allocate_host(&self, bytes: usize, write_combined: bool) -> Result<*mut u8> {
        self.bind()?;
        let flags = PORTABLE_AND_MAPPED | if write_combined { CU_MEMHOSTALLOC_WRITECOMBINED } else { 0 };
        let mut pointer: *mut c_void = null_mut();
        // SAFETY: `pointer` is valid for the call, and the context is bound.
        let code = unsafe { self.driver().host_allocate(&mut pointer, bytes, flags) };
        if code == Code::OUT_OF_MEMORY {
            let device = "the host (page-locked memory)".into();
            return Err(Error::OutOfMemory { device, requested: bytes as u64, free: None, total: None });
        }
        self.check(code, &format_args!("{bytes} bytes"))?;
        self.pinned.fetch_add(1, Ordering::Relaxed);
        Ok(pointer.cast())
    }

    unsafe fn free_host(&self, start: *mut u8, _: usize) {
        self.pinned.fetch_sub(1, Ordering::Release);
        // SAFETY: the caller vouches for it. A failure means that the driver is gone, and its memory
        // with it.
        self.release(|driver| unsafe { driver.host_free(start.cast()) });
    }

    unsafe fn lock_pages(&self, start: *mut u8, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for the memory.
        let code = unsafe { self.driver().host_register(start.cast(), bytes, PORTABLE_AND_MAPPED) };
        self.check(code, &format_args!("{bytes} bytes"))
    }

    unsafe fn unlock_pages(&self, start: *mut u8) {
        // SAFETY: the caller vouches for it. A failure means that the driver is gone, and its locks with it.
        self.release(|driver| unsafe { driver.host_unregister(start.cast()) });
    }

    unsafe fn mapped_address(&self, start: *mut u8) -> Result<Option<*mut u8>> {
        let can_map = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY;
        if attribute_of(self.driver(), self.handle, can_map)? == 0 {
            return Ok(None);
        }
        self.bind()?;
        // SAFETY: the caller vouches for the memory; `to` is valid for the call.
        let address = self.get("", |driver, to| unsafe { driver.host_address(to, start.cast(), 0) })?;
        Ok(Some(with_exposed_provenance_mut(address as usize)))
    }

    fn note_managed(&self) {
        self.managed.fetch_add(1, Ordering::Relaxed);
    }

    fn forget_managed(&self) {
        self.managed.fetch_sub(1, Ordering::Release);
    }

    fn check_managed(&self) -> Result<()> {
        let concurrent = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
        if attribute_of(self.driver(), self.handle, concurrent)? != 0 {
            return Ok(());
        }
        Err(Error::unsupported("managed memory", self, "the host may not use it while the device works"))
    }

    unsafe fn advise(&self, start: *const u8, bytes: usize, advice: c_uint, host: bool) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for the memory.
        let code = unsafe { self.driver().advise(address(start), bytes, advice, self.location(host)) };
        self.check(code, &format_args!("{bytes} bytes"))
    }
}

impl CudaDevice {
    /// The device, or the host, as the driver numbers them.
    pub(crate) fn location(&self, host: bool) -> CUdevice {
        if host { HOST } else { self.handle }
    }
}
