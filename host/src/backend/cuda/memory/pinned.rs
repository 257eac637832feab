//! Page-locked host memory, which devices copy from and to asynchronously.

use std::ffi::{c_uint, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::Ordering;

use cudarc::driver::sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_WRITECOMBINED, CUdevice_attribute,
};

use crate::backend::cuda::device::{CudaDevice, attribute_of};
use crate::backend::cuda::driver::Code;
use crate::error::{Error, Result};

/// Page-locked for all contexts, and mapped for devices; for registered memory the numbers are the same. If a device cannot
/// map it, only `mapped_address` says so.
pub(crate) const PORTABLE_AND_MAPPED: c_uint = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;

impl CudaDevice {
    /// `bytes` (not 0) of page-locked memory.
    pub(crate) fn host_allocate(&self, bytes: usize, write_combined: bool) -> Result<*mut u8> {
        self.bind()?;
        let flags = PORTABLE_AND_MAPPED | if write_combined { CU_MEMHOSTALLOC_WRITECOMBINED } else { 0 };
        let mut pointer: *mut c_void = null_mut();
        // SAFETY: `pointer` is valid for the call, and the context is bound.
        let code = unsafe { self.driver().host_allocate(&mut pointer, bytes, flags) };
        if code == Code::OUT_OF_MEMORY {
            let device = "the host (page-locked memory)".into();
            return Err(Error::OutOfMemory { device, requested: bytes as u64, free: None, total: None });
        }
        self.check(code, "cuMemHostAlloc", &format!("{bytes} bytes"))?;
        self.pinned().fetch_add(1, Ordering::Relaxed);
        Ok(pointer.cast())
    }

    /// # Safety
    /// `pointer` is from `host_allocate`, is freed once, and nothing uses it any more.
    pub(crate) unsafe fn host_free(&self, pointer: *mut u8) {
        self.pinned().fetch_sub(1, Ordering::Release);
        if self.bind().is_ok() {
            // SAFETY: the caller vouches for it. A failure means that the driver is gone, and its memory
            // with it.
            let _ = unsafe { self.driver().host_free(pointer.cast()) };
        }
    }

    /// Where this device finds page-locked memory; `None` if it cannot use any.
    ///
    /// # Safety
    /// `pointer` is page-locked.
    pub(crate) unsafe fn mapped_address(&self, pointer: *mut u8) -> Result<Option<*mut u8>> {
        let can_map = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY;
        if attribute_of(self.driver(), self.handle(), can_map)? == 0 {
            return Ok(None);
        }
        self.bind()?;
        let mut address = 0;
        // SAFETY: the caller vouches for the memory; `address` is valid for the call.
        let code = unsafe { self.driver().host_address(&mut address, pointer.cast(), 0) };
        self.check(code, "cuMemHostGetDevicePointer", "")?;
        Ok(Some(with_exposed_provenance_mut(address as usize)))
    }

    /// Page-locks `bytes` (not 0) of memory that is there.
    ///
    /// # Safety
    /// They stay where they are until `host_unregister`.
    pub(crate) unsafe fn host_register(&self, pointer: *mut u8, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for the memory.
        let code = unsafe { self.driver().host_register(pointer.cast(), bytes, PORTABLE_AND_MAPPED) };
        self.check(code, "cuMemHostRegister", &format!("{bytes} bytes"))
    }

    /// # Safety
    /// `pointer` is registered, and no copy uses it.
    pub(crate) unsafe fn host_unregister(&self, pointer: *mut u8) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for it.
        let code = unsafe { self.driver().host_unregister(pointer.cast()) };
        self.check(code, "cuMemHostUnregister", "")
    }
}
