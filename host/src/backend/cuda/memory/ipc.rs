//! Memory and events of CUDA devices that processes share.

use std::ffi::c_uint;
use std::ptr::with_exposed_provenance_mut;

use bytemuck::Zeroable;
use cudarc::driver::sys::CUipcMem_flags;

use crate::backend::cuda::device::{CudaDevice, address};
use crate::backend::cuda::stream::event::CudaEvent;
use crate::backend::operation::Fill;
use crate::backend::stream::{BackendStream, StreamMemory};
use crate::error::Result;

/// The driver's `CUipcMemHandle` and `CUipcEventHandle`, which it takes by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct IpcHandle(pub(crate) [u8; 64]);

// SAFETY: it is bytes.
unsafe impl Zeroable for IpcHandle {}

/// The driver shares what was allocated together: whole blocks of this size are shared with nothing else.
const GRANULARITY: usize = 2 << 20;

/// The only flag, which must be given.
const LAZY_ENABLE_PEER_ACCESS: c_uint = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as c_uint;

/// Memory that was allocated here for other processes, or opened here.
pub(crate) struct IpcMemory {
    device: &'static CudaDevice,
    start: *mut u8,
    opened: bool,
}

// SAFETY: an address, which only its owner frees or closes; the driver may be called from any thread.
unsafe impl Send for IpcMemory {}

impl IpcMemory {
    pub(crate) fn allocate(device: &'static CudaDevice, bytes: usize) -> Result<(Self, [u8; 64])> {
        device.bind()?;
        let rounded = bytes.checked_next_multiple_of(GRANULARITY).unwrap_or(bytes);
        // SAFETY: `to` is valid for the call, and the context is bound.
        let start = device.get_memory(bytes, |driver, to| unsafe { driver.allocate(to, rounded) })?;
        let memory = IpcMemory { device, start: with_exposed_provenance_mut(start as usize), opened: false };
        let watcher = device.new_stream(false, 0)?;
        // SAFETY: the memory has just been allocated with that many bytes.
        unsafe { watcher.fill(Fill::new(memory.start, &[0], rounded))? };
        watcher.drain()?;
        // SAFETY: `to` is valid for the call, and the memory was allocated by `cuMemAlloc`.
        let handle = device.get(&format_args!("{bytes} bytes"), |driver, to| unsafe {
            driver.ipc_memory_handle(to, start)
        })?;
        Ok((memory, handle.0))
    }

    pub(crate) fn open(device: &'static CudaDevice, handle: &[u8; 64]) -> Result<Self> {
        device.bind()?;
        // SAFETY: `to` is valid for the call; the driver checks the handle.
        let start = device.get(&format_args!("{device}"), |driver, to| unsafe {
            driver.ipc_open_memory(to, IpcHandle(*handle), LAZY_ENABLE_PEER_ACCESS)
        })?;
        Ok(IpcMemory { device, start: with_exposed_provenance_mut(start as usize), opened: true })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for IpcMemory {
    fn drop(&mut self) {
        let start = address(self.start);
        // SAFETY: allocated or opened once, and not used any more.
        self.device.release(|driver| unsafe {
            if self.opened { driver.ipc_close_memory(start) } else { Ok(driver.free(start)) }
        });
    }
}

impl CudaEvent {
    pub(crate) fn ipc_handle(&self) -> Result<[u8; 64]> {
        let device = self.device();
        device.bind()?;
        // SAFETY: `to` is valid for the call, and the event is live.
        let handle = device.get("", |driver, to| unsafe { driver.ipc_event_handle(to, self.raw()) })?;
        Ok(handle.0)
    }

    pub(crate) fn ipc_open(device: &'static CudaDevice, handle: &[u8; 64]) -> Result<Self> {
        device.bind()?;
        // SAFETY: `to` is valid for the call; the driver checks the handle.
        let raw =
            device.get(device, |driver, to| unsafe { driver.ipc_open_event(to, IpcHandle(*handle)) })?;
        Ok(CudaEvent::of_another_process(device, raw))
    }
}
