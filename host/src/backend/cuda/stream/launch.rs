//! Launches of kernels on CUDA streams: the call that every launch is, what follows when the driver refuses it, and launches
//! on default streams.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use cudarc::driver::sys::{CUfunction, CUfunction_attribute};

use super::CudaStream;
use crate::backend::LaunchConfig;
use crate::backend::cuda::driver::Code;
use crate::error::{Error, LaunchError, Result};
use crate::kernel::{Kernel, Loaded};

const MAX_THREADS_PER_BLOCK: c_uint = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK as c_uint;

impl CudaStream {
    /// The function of `kernel` on this device, loaded at the first call.
    #[inline]
    pub(crate) fn prepare(&self, kernel: &'static Kernel) -> Result<Loaded> {
        let function = kernel.quiet_function(self.device.ordinal());
        if !function.is_null() {
            return Ok(Loaded { function, may_panic: false });
        }
        self.load(kernel)
    }

    /// As `prepare`, for a kernel that may panic or is not loaded.
    #[inline(never)]
    fn load(&self, kernel: &'static Kernel) -> Result<Loaded> {
        match kernel.loaded(self.device.ordinal()) {
            Some(loaded) => Ok(loaded),
            None => self.device.prepare(kernel),
        }
    }

    /// # Safety
    /// As for `StreamInner::launch`; `function` is from `prepare`.
    #[inline(always)] // Launches that are watched have a copy of their own.
    pub(crate) unsafe fn launch(
        &self,
        function: *mut c_void,
        kernel: &'static Kernel,
        shape: &LaunchConfig,
        params: &[*const c_void],
    ) -> Result<()> {
        self.device.check_not_reset()?;
        if self.is_default || shape.attributes.is_some() {
            // SAFETY: passed on.
            return unsafe { self.launch_slow(function.cast(), kernel, shape, params) };
        }
        // SAFETY: passed on.
        let code = unsafe { self.launch_now(function.cast(), shape, params) };
        if !code.is_success() {
            // SAFETY: passed on.
            return unsafe { self.retry_launch(code, function.cast(), kernel, shape, params) };
        }
        self.watch.recent().note(kernel, shape.site);
        Ok(())
    }

    /// # Safety
    /// As for `launch`.
    #[inline]
    unsafe fn launch_now(
        &self,
        function: CUfunction,
        shape: &LaunchConfig,
        params: &[*const c_void],
    ) -> Code {
        let ([grid_x, grid_y, grid_z], [x, y, z]) = (shape.grid, shape.block);
        // Within the device's limit.
        let (shared, stream) = (shape.shared_bytes as c_uint, self.raw.0);
        let params = params.as_ptr().cast_mut().cast();
        // SAFETY: the function and the stream are of the same context; the caller vouches for the
        // parameters, which the driver copies (it does not write through them).
        unsafe {
            let extra = null_mut();
            self.driver
                .launch_kernel(function, grid_x, grid_y, grid_z, x, y, z, shared, stream, params, extra)
        }
    }

    /// After a launch that the driver refused with `code`: once more if it wants a context.
    ///
    /// # Safety
    /// As for `launch`.
    #[cold]
    unsafe fn retry_launch(
        &self,
        code: Code,
        function: CUfunction,
        kernel: &'static Kernel,
        shape: &LaunchConfig,
        params: &[*const c_void],
    ) -> Result<()> {
        let mut code = code;
        if code.may_lack_context() {
            self.bind()?;
            // SAFETY: passed on.
            code = unsafe { self.launch_now(function, shape, params) };
        }
        self.finish_launch(code, function, kernel, shape)
    }

    /// Notes a launch that the driver took, or says why it did not.
    #[cold]
    pub(super) fn finish_launch(
        &self,
        code: Code,
        function: CUfunction,
        kernel: &'static Kernel,
        shape: &LaunchConfig,
    ) -> Result<()> {
        match code {
            Code::SUCCESS => {
                self.watch.recent().note(kernel, shape.site);
                Ok(())
            }
            Code::COOPERATIVE_LAUNCH_TOO_LARGE => Err(self.too_many_blocks(function, kernel, shape)),
            Code::INVALID_CLUSTER_SIZE => Err(self.cluster_too_large(function, kernel, shape)),
            code => Err(self.launch_error(code, function, kernel, shape.block)),
        }
    }

    /// A launch on a default stream, or with attributes.
    ///
    /// # Safety
    /// As for `launch`.
    #[inline(never)]
    unsafe fn launch_slow(
        &self,
        function: CUfunction,
        kernel: &'static Kernel,
        shape: &LaunchConfig,
        params: &[*const c_void],
    ) -> Result<()> {
        if shape.attributes.is_some() {
            // SAFETY: passed on.
            return unsafe { self.launch_with_attributes(function, kernel, shape, params) };
        }
        self.bind()?;
        let _marked = self.enter()?;
        // SAFETY: passed on.
        let code = unsafe { self.launch_now(function, shape, params) };
        self.finish_launch(code, function, kernel, shape)
    }

    /// A cooperative launch has more blocks than fit on the device at the same time.
    fn too_many_blocks(&self, function: CUfunction, kernel: &'static Kernel, shape: &LaunchConfig) -> Error {
        let threads: u32 = shape.block.iter().product();
        let mut on_each = 0;
        // Where it cannot be bound, the driver refuses to tell.
        let _ = self.bind();
        // SAFETY: `on_each` is valid for the call, and the function is loaded.
        let code = unsafe {
            self.driver.occupancy_blocks(&mut on_each, function, threads as c_int, shape.shared_bytes)
        };
        let on_each = if code.is_success() { on_each.unsigned_abs() } else { 0 };
        Error::Launch(LaunchError::TooManyResidentBlocks {
            kernel: kernel.name(),
            device: self.device.to_string().into(),
            blocks: shape.grid.iter().copied().map(u64::from).product(),
            threads,
            limit: u64::from(on_each) * u64::from(self.device.multiprocessors()),
        })
    }

    /// A cluster has more blocks than the device takes of this kernel.
    fn cluster_too_large(
        &self,
        function: CUfunction,
        kernel: &'static Kernel,
        shape: &LaunchConfig,
    ) -> Error {
        let shared = shape.shared_bytes as c_uint;
        match self.device.max_potential_cluster_size(function, shape.grid, shape.block, shared) {
            Ok(limit) => Error::Launch(LaunchError::ClusterTooLarge {
                kernel: kernel.name(),
                device: self.device.to_string().into(),
                cluster: shape.cluster,
                limit,
            }),
            Err(_) => self.launch_error(Code::INVALID_CLUSTER_SIZE, function, kernel, shape.block),
        }
    }

    /// Why a launch was refused; a kernel may take fewer threads than the device, by its registers.
    fn launch_error(
        &self,
        code: Code,
        function: CUfunction,
        kernel: &'static Kernel,
        block: [u32; 3],
    ) -> Error {
        let threads: u64 = block.iter().copied().map(u64::from).product();
        if code == Code::LAUNCH_OUT_OF_RESOURCES {
            let mut limit = 0;
            // Where it cannot be bound, the driver refuses to tell.
            let _ = self.bind();
            // SAFETY: `limit` is valid for the call, and the function is loaded.
            let asked =
                unsafe { self.driver.function_attribute(&mut limit, MAX_THREADS_PER_BLOCK, function) };
            let limit = limit.unsigned_abs();
            if asked.is_success() && threads > u64::from(limit) {
                return Error::Launch(LaunchError::TooManyThreads {
                    kernel: kernel.name(),
                    block,
                    threads,
                    limit,
                });
            }
        }
        let object = format!("kernel `{}`", kernel.name());
        match self.device.check(code, "cuLaunchKernel", &object) {
            Err(error) => error,
            Ok(()) => self.driver.error(code, "cuLaunchKernel", &object),
        }
    }
}
