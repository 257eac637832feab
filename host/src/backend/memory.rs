//! Memory of either backend that is not allocated in stream order: page-locked and managed memory, and the figures
//! of pools.

use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use super::{DeviceBackend, cpu};
use crate::error::Result;
use crate::memory::Contents;

impl DeviceBackend {
    /// `bytes` of page-locked memory of the host, of unknown content; null for none.
    pub(crate) fn allocate_host(self, bytes: usize, write_combined: bool) -> Result<*mut u8> {
        match self {
            _ if bytes == 0 => Ok(null_mut()),
            DeviceBackend::Cuda(device) => device.host_allocate(bytes, write_combined),
            DeviceBackend::Cpu(device) => cpu::allocate(device, bytes, Contents::Uninitialised),
        }
    }

    /// # Safety
    /// `start` is `bytes` from `allocate_host` here, and nothing uses them.
    pub(crate) unsafe fn free_host(self, start: *mut u8, bytes: usize) {
        match self {
            // SAFETY: passed on.
            DeviceBackend::Cuda(device) => unsafe { device.host_free(start) },
            // SAFETY: passed on.
            DeviceBackend::Cpu(_) => unsafe { cpu::free(start, bytes) },
        }
    }

    /// Locks pages of memory that was not allocated here.
    ///
    /// # Safety
    /// `start` is `bytes` of live memory, not 0, which stays until `unlock_pages`.
    pub(crate) unsafe fn lock_pages(self, start: *mut u8, bytes: usize) -> Result<()> {
        match self {
            // SAFETY: passed on.
            DeviceBackend::Cuda(device) => unsafe { device.host_register(start, bytes) },
            DeviceBackend::Cpu(_) => Ok(()),
        }
    }

    /// # Safety
    /// `start` is locked by `lock_pages`, and no device uses it.
    pub(crate) unsafe fn unlock_pages(self, start: *mut u8) {
        if let DeviceBackend::Cuda(device) = self {
            // SAFETY: passed on. A failure means that the driver is gone, and its locks with it.
            let _ = unsafe { device.host_unregister(start) };
        }
    }

    /// The device's address of page-locked memory; `None` if the device cannot use it.
    ///
    /// # Safety
    /// `start` is page-locked.
    pub(crate) unsafe fn mapped_address(self, start: *mut u8) -> Result<Option<*mut u8>> {
        match self {
            // SAFETY: passed on.
            DeviceBackend::Cuda(device) => unsafe { device.mapped_address(start) },
            DeviceBackend::Cpu(_) => Ok(Some(start)),
        }
    }

    /// Whether `other` uses `bytes` of page-locked memory by the address `pointer`, as this device does.
    ///
    /// # Safety
    /// `start` is page-locked.
    pub(crate) unsafe fn maps_alike(
        self,
        other: DeviceBackend,
        start: *mut u8,
        pointer: *mut u8,
        bytes: usize,
    ) -> Result<bool> {
        match (self, other) {
            _ if self == other => Ok(true),
            (DeviceBackend::Cpu(_), DeviceBackend::Cpu(_)) => Ok(true),
            (DeviceBackend::Cuda(_), DeviceBackend::Cuda(_)) if bytes == 0 => Ok(true),
            // SAFETY: passed on.
            (DeviceBackend::Cuda(_), DeviceBackend::Cuda(other)) => unsafe {
                Ok(other.mapped_address(start)? == Some(pointer))
            },
            _ => Ok(false),
        }
    }

    /// Counts memory that the host uses in place, which some GPUs must be idle for.
    pub(crate) fn note_managed(self) {
        if let DeviceBackend::Cuda(device) = self {
            device.managed().fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The opposite of `note_managed`.
    pub(crate) fn forget_managed(self) {
        if let DeviceBackend::Cuda(device) = self {
            device.managed().fetch_sub(1, Ordering::Release);
        }
    }

    /// # Errors
    /// If the host may not use managed memory while the device works.
    pub(crate) fn check_managed(self) -> Result<()> {
        self.as_cuda().map_or(Ok(()), |device| device.check_managed())
    }

    /// `advice` is one of `CUmem_advise`.
    ///
    /// # Safety
    /// `start` is `bytes` of live managed memory, not 0.
    pub(crate) unsafe fn advise(self, start: *const u8, bytes: usize, advice: u32, host: bool) -> Result<()> {
        match self {
            // SAFETY: passed on.
            DeviceBackend::Cuda(device) => unsafe { device.advise(start, bytes, advice, host) },
            DeviceBackend::Cpu(_) => Ok(()),
        }
    }

    /// Gives unused memory back to the system, but for `keep` bytes.
    pub(crate) fn trim_memory(self, keep: usize) -> Result<()> {
        match self {
            DeviceBackend::Cuda(device) => device.trim_memory(keep),
            DeviceBackend::Cpu(_) => Ok(()),
        }
    }

    /// Reserved bytes of graphs now and at most, and used ones; `None` where the account of graphs has them.
    pub(crate) fn graph_memory(self) -> Result<Option<[u64; 4]>> {
        self.as_cuda().map(|device| device.graph_memory()).transpose()
    }

    /// Whether there are such figures to set back.
    pub(crate) fn reset_graph_memory(self) -> Result<bool> {
        let Some(device) = self.as_cuda() else { return Ok(false) };
        device.reset_graph_memory().map(|()| true)
    }

    pub(crate) fn trim_graph_memory(self) -> Result<()> {
        self.as_cuda().map_or(Ok(()), |device| device.trim_graph_memory())
    }
}
