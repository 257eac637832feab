//! Pools that processes share, by file descriptors (Unix).

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{from_mut, with_exposed_provenance_mut, without_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ipc::IpcHandle;
use super::own_pool::OwnPool;
use super::pool::{self, RawPool};
use crate::backend::PoolKind;
use crate::backend::cuda::device::{CudaDevice, address};
use crate::error::Result;

impl OwnPool {
    /// A descriptor that other processes open the pool by.
    pub(crate) fn share(&self) -> Result<OwnedFd> {
        self.device.bind()?;
        let mut descriptor: c_int = -1;
        let to = from_mut(&mut descriptor).cast();
        // SAFETY: for this kind of handle the driver writes an `int`.
        let code =
            unsafe { self.device.driver().pool_export(to, self.handle.as_raw(), pool::FILE_DESCRIPTOR, 0)? };
        self.device.check(code, self.device)?;
        self.is_shared.store(true, Ordering::Release);
        // SAFETY: it has just been opened for us.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// The pool of another process, to open buffers of.
    pub(crate) fn open(device: &'static CudaDevice, descriptor: BorrowedFd<'_>) -> Result<Self> {
        let import = || {
            // The driver takes the descriptor as an address, and that of the standard input, 0, for none: it gets a copy,
            // which is never 0. Where there can be none it refuses the 0.
            let copy = descriptor.try_clone_to_owned().ok();
            let descriptor = copy.as_ref().map_or(descriptor, AsFd::as_fd);
            let raw = without_provenance_mut(descriptor.as_raw_fd().unsigned_abs() as usize);
            // SAFETY: `to` is valid for the call, and the descriptor is open; the driver checks what it is of.
            let pool = device
                .get(device, |driver, to| unsafe { driver.pool_import(to, raw, pool::FILE_DESCRIPTOR, 0) })?;
            Ok(RawPool::new(pool))
        };
        OwnPool::made(device, PoolKind::Device, import)
    }

    /// What names the memory at `start`, which is of this pool, to other processes.
    pub(crate) fn export(&self, start: *mut u8) -> Result<[u8; 64]> {
        // Before the pool itself has been exported the driver exports nothing of it.
        if !self.is_shared.load(Ordering::Acquire) {
            self.share()?;
        }
        self.device.bind()?;
        // SAFETY: `to` is valid for the call, and the memory is of the pool.
        let data = self
            .device
            .get(self.device, |driver, to| unsafe { driver.pool_export_pointer(to, address(start)) })?;
        Ok(data.0)
    }
}

/// Memory of a pool of another process.
pub(crate) struct OpenedMemory {
    pool: Arc<OwnPool>,
    start: *mut u8,
}

// SAFETY: an address, which only its owner closes; the driver may be called from any thread.
unsafe impl Send for OpenedMemory {}

impl OpenedMemory {
    pub(crate) fn open(pool: &Arc<OwnPool>, data: &[u8; 64]) -> Result<Self> {
        let device = pool.device;
        device.bind()?;
        let (mut start, mut data) = (0, IpcHandle(*data));
        // SAFETY: both are valid for the call, and the pool is live; the driver checks the data.
        let code =
            unsafe { device.driver().pool_import_pointer(&mut start, pool.handle.as_raw(), &mut data)? };
        device.check(code, device)?;
        Ok(OpenedMemory { pool: pool.clone(), start: with_exposed_provenance_mut(start as usize) })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for OpenedMemory {
    fn drop(&mut self) {
        let device = self.pool.device;
        // SAFETY: opened once, and not used any more. A failure means that the context is gone.
        device.release(|driver| unsafe { driver.free(address(self.start)) });
    }
}
