//! Streams of CUDA devices, and what can be enqueued on them. It must not know what orders streams,
//! or how modules are loaded.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::Arc;

use cudarc::driver::sys::{CUcontext, CUevent, CUfunction, CUstream};

use super::device::{CudaDevice, Handle, address, bind};
use super::driver::{Code, Driver};
use super::event::{self, CudaEvent, UNTIMED};
use super::module;
use super::recent::Recent;
use crate::error::{Error, Result};
use crate::grid::LaunchShape;
use crate::kernel::Kernel;
use crate::memory::Contents;

/// `CU_STREAM_NON_BLOCKING`: no implicit order with the legacy default stream.
const NON_BLOCKING: c_uint = 1;

/// `CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK`.
const MAX_THREADS_PER_BLOCK: c_uint = 0;

/// A stream of a CUDA device. Dropping it does not wait; the driver lets its work run to the end.
pub(crate) struct CudaStream {
    device: &'static CudaDevice,
    driver: &'static Driver,
    context: Handle<CUcontext>,
    raw: Handle<CUstream>,
    recent: Arc<Recent>,
}

impl CudaStream {
    /// A new stream in `context`, which is that of `device`.
    pub(super) fn new(device: &'static CudaDevice, context: CUcontext) -> Result<Self> {
        let driver = device.driver();
        bind(driver, context)?;
        let mut raw = null_mut();
        // SAFETY: `raw` is valid for the call, and the context is bound.
        let code = unsafe { driver.stream_create(&mut raw, NON_BLOCKING) };
        device.check(code, "cuStreamCreate", &device.to_string())?;
        let recent = Arc::new(Recent::new());
        Ok(CudaStream { device, driver, context: Handle(context), raw: Handle(raw), recent })
    }

    pub(super) fn recent(&self) -> &Arc<Recent> {
        &self.recent
    }

    pub(super) fn raw(&self) -> CUstream {
        self.raw.0
    }

    #[inline]
    pub(super) fn bind(&self) -> Result<()> {
        bind(self.driver, self.context.0)
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the stream is live.
        let code = unsafe { self.driver.stream_synchronize(self.raw.0) };
        self.device.check(code, "cuStreamSynchronize", "")?;
        self.recent.clear();
        Ok(())
    }

    pub(crate) fn record_timed(&self) -> Result<CudaEvent> {
        self.bind()?;
        CudaEvent::record(self.device, self.raw.0)
    }

    pub(crate) fn wait(&self, event: &CudaEvent) -> Result<()> {
        self.bind()?;
        self.wait_raw(event.raw())
    }

    /// Makes later work here start after all that `earlier`, of the same device, holds so far.
    pub(crate) fn run_after(&self, earlier: &CudaStream) -> Result<()> {
        self.bind()?;
        let spare = self.device.spare_events().pop();
        let event = match spare {
            Some(event) => event,
            None => Handle(event::create(self.device, UNTIMED)?),
        };
        // SAFETY: the handles are live, and of the bound context.
        let code = unsafe { self.driver.event_record(event.0, earlier.raw.0) };
        let recorded = self.device.check(code, "cuEventRecord", "");
        let waits = recorded.and_then(|()| self.wait_raw(event.0));
        // A wait keeps what the event stood for when it was asked for, so the event is free again.
        self.device.spare_events().push(event);
        waits
    }

    fn wait_raw(&self, event: CUevent) -> Result<()> {
        // SAFETY: both handles are live, and the context is bound.
        let code = unsafe { self.driver.stream_wait(self.raw.0, event, 0) };
        self.device.check(code, "cuStreamWaitEvent", "")
    }

    /// `bytes` (not 0) of fresh memory, in the order of this stream.
    pub(crate) fn allocate(&self, bytes: usize, contents: Contents) -> Result<*mut u8> {
        self.bind()?;
        let mut start = 0;
        let (code, operation) = if self.device.has_pools() {
            let pool = self.device.pool()?.0;
            // SAFETY: `start` is valid for the call, and stream and pool are live.
            let code = unsafe { self.driver.allocate_from_pool(&mut start, bytes, pool, self.raw.0) };
            (code, "cuMemAllocFromPoolAsync")
        } else {
            // SAFETY: `start` is valid for the call, and the context is bound.
            (unsafe { self.driver.allocate(&mut start, bytes) }, "cuMemAlloc")
        };
        if code == Code::OUT_OF_MEMORY {
            return Err(self.device.out_of_memory(bytes));
        }
        self.device.check(code, operation, &format!("{bytes} bytes"))?;
        let pointer = with_exposed_provenance_mut(start as usize);
        if contents == Contents::Zeroed {
            // SAFETY: the memory has just been allocated with that many bytes.
            let zeroed = unsafe { self.fill(pointer, &[0], bytes) };
            if let Err(error) = zeroed {
                // SAFETY: nothing uses it after the fill, which comes before in this stream.
                unsafe { self.free(pointer) };
                return Err(error);
            }
        }
        Ok(pointer)
    }

    /// # Safety
    /// As for `StreamInner::free`.
    pub(crate) unsafe fn free(&self, pointer: *mut u8) {
        if self.bind().is_err() {
            return;
        }
        // A failure means that the context is gone, and its memory with it.
        if self.device.has_pools() {
            // SAFETY: the caller vouches for the memory, and that its uses come before on this stream.
            let _ = unsafe { self.driver.free_async(address(pointer), self.raw.0) };
            return;
        }
        // SAFETY: the stream is live; after it has been waited for, nothing uses the memory.
        let _ = unsafe {
            let waited = self.driver.stream_synchronize(self.raw.0);
            if waited.is_success() { self.driver.free(address(pointer)) } else { waited }
        };
    }

    /// Pageable host memory may be read after the copy call returns (the driver stages it, or the GPU
    /// reads it in place), so this waits for the copy.
    ///
    /// # Safety
    /// As for `StreamInner::copy_from_host`.
    pub(crate) unsafe fn copy_from_host(
        &self,
        target: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for both; `synchronize` below outlasts the use of `source`.
        let code = unsafe { self.driver.copy_to_device(address(target), source.cast(), bytes, self.raw.0) };
        self.device.check(code, "cuMemcpyHtoDAsync", &format!("{bytes} bytes"))?;
        self.synchronize()
    }

    /// # Safety
    /// As for `StreamInner::copy_to_host`.
    pub(crate) unsafe fn copy_to_host(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for both; `synchronize` below outlasts the use of `target`.
        let code = unsafe { self.driver.copy_to_host(target.cast(), address(source), bytes, self.raw.0) };
        self.device.check(code, "cuMemcpyDtoHAsync", &format!("{bytes} bytes"))?;
        self.synchronize()
    }

    /// # Safety
    /// As for `StreamInner::copy`.
    pub(crate) unsafe fn copy(&self, target: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for both.
        let code = unsafe { self.driver.copy_on_device(address(target), address(source), bytes, self.raw.0) };
        self.device.check(code, "cuMemcpyDtoDAsync", &format!("{bytes} bytes"))
    }

    /// # Safety
    /// As for `StreamInner::fill`.
    pub(crate) unsafe fn fill(&self, target: *mut u8, pattern: &[u8], count: usize) -> Result<()> {
        self.bind()?;
        let (start, stream) = (address(target), self.raw.0);
        // SAFETY: the caller vouches for the room, its alignment, and the order.
        let (code, operation) = unsafe {
            match *pattern {
                [a] => (self.driver.fill_8(start, a, count, stream), "cuMemsetD8Async"),
                [a, b] => {
                    let value = u16::from_ne_bytes([a, b]);
                    (self.driver.fill_16(start, value, count, stream), "cuMemsetD16Async")
                }
                [a, b, c, d] => {
                    let value = u32::from_ne_bytes([a, b, c, d]);
                    (self.driver.fill_32(start, value, count, stream), "cuMemsetD32Async")
                }
                _ => {
                    let repeated = pattern.repeat(count);
                    return self.copy_from_host(target, repeated.as_ptr(), repeated.len());
                }
            }
        };
        self.device.check(code, operation, &format!("{count} elements"))
    }

    /// The function of `kernel` on this device, loaded at the first call.
    #[inline]
    pub(crate) fn prepare(&self, kernel: &'static Kernel) -> Result<*mut c_void> {
        let function = kernel.function(self.device.ordinal());
        if !function.is_null() {
            return Ok(function);
        }
        self.load(kernel)
    }

    #[cold]
    fn load(&self, kernel: &'static Kernel) -> Result<*mut c_void> {
        self.bind()?;
        let function = module::function(self.device, kernel)?.cast();
        kernel.set_function(self.device.ordinal(), function);
        Ok(function)
    }

    /// # Safety
    /// As for `StreamInner::launch`; `function` is from `prepare`.
    #[inline]
    pub(crate) unsafe fn launch(
        &self,
        function: *mut c_void,
        kernel: &'static Kernel,
        shape: LaunchShape,
        params: &[*const c_void],
    ) -> Result<()> {
        self.bind()?;
        let (grid, block) = (shape.grid, shape.block);
        let params = params.as_ptr().cast_mut().cast();
        if shape.cooperative {
            // SAFETY: passed on.
            unsafe { self.launch_cooperative(function.cast(), kernel, shape, params)? };
            self.recent.note(kernel);
            return Ok(());
        }
        // SAFETY: the function and the stream are of the bound context; the caller vouches for the
        // parameters, which the driver copies (it does not write through them).
        let code = unsafe {
            self.driver.launch_kernel(
                function.cast(),
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                // Within the device's limit.
                shape.shared_bytes as c_uint,
                self.raw.0,
                params,
                null_mut(),
            )
        };
        if !code.is_success() {
            return Err(self.launch_error(code, function.cast(), kernel, block));
        }
        self.recent.note(kernel);
        Ok(())
    }

    /// # Safety
    /// As for `launch`.
    unsafe fn launch_cooperative(
        &self,
        function: CUfunction,
        kernel: &'static Kernel,
        shape: LaunchShape,
        params: *mut *mut c_void,
    ) -> Result<()> {
        let ([grid_x, grid_y, grid_z], [x, y, z]) = (shape.grid, shape.block);
        let (shared, stream) = (shape.shared_bytes as c_uint, self.raw.0);
        // SAFETY: as for `launch`.
        let code = unsafe {
            self.driver.launch_cooperative(function, grid_x, grid_y, grid_z, x, y, z, shared, stream, params)
        };
        if code.is_success() {
            return Ok(());
        }
        if code == Code::COOPERATIVE_LAUNCH_TOO_LARGE {
            return Err(self.too_many_blocks(function, kernel, shape));
        }
        Err(self.launch_error(code, function, kernel, shape.block))
    }

    /// A cooperative launch has more blocks than fit on the device at the same time.
    #[cold]
    fn too_many_blocks(&self, function: CUfunction, kernel: &'static Kernel, shape: LaunchShape) -> Error {
        let threads: u32 = shape.block.iter().product();
        let mut on_each = 0;
        // SAFETY: `on_each` is valid for the call, and the function is loaded.
        let code = unsafe {
            self.driver.occupancy_blocks(&mut on_each, function, threads as c_int, shape.shared_bytes)
        };
        let on_each = if code.is_success() { on_each.unsigned_abs() } else { 0 };
        Error::TooManyResidentBlocks {
            kernel: kernel.name(),
            device: self.device.to_string().into(),
            blocks: shape.grid.iter().copied().map(u64::from).product(),
            threads,
            limit: u64::from(on_each) * u64::from(self.device.multiprocessors()),
        }
    }

    /// Why a launch was refused; a kernel may take fewer threads than the device, by its registers.
    #[cold]
    pub(super) fn launch_error(
        &self,
        code: Code,
        function: CUfunction,
        kernel: &'static Kernel,
        block: [u32; 3],
    ) -> Error {
        let threads: u64 = block.iter().copied().map(u64::from).product();
        if code == Code::LAUNCH_OUT_OF_RESOURCES {
            let mut limit = 0;
            // SAFETY: `limit` is valid for the call, and the function is loaded.
            let asked =
                unsafe { self.driver.function_attribute(&mut limit, MAX_THREADS_PER_BLOCK, function) };
            let limit = limit.unsigned_abs();
            if asked.is_success() && threads > u64::from(limit) {
                return Error::TooManyThreads { kernel: kernel.name(), block, threads, limit };
            }
        }
        let object = format!("kernel `{}`", kernel.name());
        match self.device.check(code, "cuLaunchKernel", &object) {
            Err(error) => error,
            Ok(()) => self.driver.error(code, "cuLaunchKernel", &object),
        }
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        if self.bind().is_ok() {
            // SAFETY: the stream is live and not used again; the driver lets its work finish.
            let _ = unsafe { self.driver.stream_destroy(self.raw.0) };
        }
    }
}
