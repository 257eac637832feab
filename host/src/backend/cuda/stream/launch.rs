//! Launches of kernels on CUDA streams: the call of every launch, the errors when the driver refuses it, and launches
//! on default streams.

use std::ffi::c_uint;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use cudarc::driver::sys::CUfunction_attribute;

use super::CudaStream;
use crate::backend::cuda::driver::Code;
use crate::backend::{Launch, LaunchConfig};
use crate::error::{Error, LaunchError, Result};
use crate::kernel::{Kernel, Loaded};

const MAX_THREADS_PER_BLOCK: CUfunction_attribute =
    CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;

impl CudaStream {
    /// The function of `kernel` on this device, if it is loaded.
    #[inline]
    pub(crate) fn loaded(&self, kernel: &'static Kernel) -> Option<Loaded> {
        kernel.loaded(self.device.ordinal())
    }

    /// The function of `kernel` on this device, loaded at the first call.
    pub(crate) fn prepare(&self, kernel: &'static Kernel) -> Result<Loaded> {
        self.loaded(kernel).map_or_else(|| self.device.prepare(kernel), Ok)
    }

    /// # Safety
    /// As for `StreamInner::launch`.
    #[inline(always)] // Watched launches have a separate copy.
    pub(crate) unsafe fn launch(&self, launch: Launch<'_>) -> Result<()> {
        self.device.check_not_reset()?;
        if self.is_default | self.has_burst.load(Ordering::Relaxed) || launch.config.attributes.is_some() {
            // SAFETY: passed on.
            return unsafe { self.launch_slow(launch) };
        }
        // SAFETY: passed on.
        let code = unsafe { self.launch_now(launch) };
        if !code.is_success() {
            // SAFETY: passed on.
            return unsafe { self.retry_launch(code, launch) };
        }
        self.watch.recent().note(launch.kernel, launch.config.site);
        Ok(())
    }

    /// # Safety
    /// As for `launch`.
    #[inline]
    unsafe fn launch_now(&self, launch: Launch<'_>) -> Code {
        let LaunchConfig { grid: [grid_x, grid_y, grid_z], block: [x, y, z], shared_bytes, .. } =
            *launch.config;
        let (function, stream) = (launch.prepared.function.cast(), self.raw.0);
        // Within the device's limit.
        let shared = shared_bytes as c_uint;
        let params = launch.params.as_ptr().cast_mut().cast();
        // SAFETY: the function and the stream are of the same context; the caller vouches for the
        // parameters, which the driver copies (it does not write through them).
        unsafe {
            let extra = null_mut();
            self.driver
                .launch_kernel(function, grid_x, grid_y, grid_z, x, y, z, shared, stream, params, extra)
                .code
        }
    }

    /// After a launch that the driver refused with `code`: once more if it wants a context.
    ///
    /// # Safety
    /// As for `launch`.
    #[cold]
    unsafe fn retry_launch(&self, mut code: Code, launch: Launch<'_>) -> Result<()> {
        if code.may_lack_context() {
            self.bind()?;
            // SAFETY: passed on.
            code = unsafe { self.launch_now(launch) };
        }
        self.finish_launch(code, launch)
    }

    /// Notes a launch that the driver took, or says why it did not.
    #[cold]
    pub(super) fn finish_launch(&self, code: Code, launch: Launch<'_>) -> Result<()> {
        match code {
            Code::SUCCESS => {
                self.watch.recent().note(launch.kernel, launch.config.site);
                Ok(())
            }
            Code::COOPERATIVE_LAUNCH_TOO_LARGE => Err(self.too_many_blocks(launch)),
            Code::INVALID_CLUSTER_SIZE => Err(self.cluster_too_large(launch)),
            code => Err(self.launch_error(code, launch)),
        }
    }

    /// A launch on a default stream, behind a burst, or with attributes.
    ///
    /// # Safety
    /// As for `launch`.
    #[inline(never)]
    unsafe fn launch_slow(&self, launch: Launch<'_>) -> Result<()> {
        if launch.config.attributes.is_some() {
            // SAFETY: passed on.
            return unsafe { self.launch_with_attributes(launch) };
        }
        self.bind()?;
        let _marked = self.enter()?;
        // SAFETY: passed on.
        let code = unsafe { self.launch_now(launch) };
        self.finish_launch(code, launch)
    }

    /// A cooperative launch has more blocks than fit on the device at the same time.
    fn too_many_blocks(&self, Launch { kernel, prepared, config, .. }: Launch<'_>) -> Error {
        let threads: u32 = config.block.iter().product();
        // If the driver does not report it, none fits.
        let asked = self.device.max_active_blocks(prepared.function.cast(), threads, config.shared_bytes);
        Error::Launch(LaunchError::TooManyResidentBlocks {
            kernel: kernel.name(),
            device: self.device.to_string().into(),
            blocks: config.grid.iter().copied().map(u64::from).product(),
            threads,
            limit: u64::from(asked.unwrap_or(0)) * u64::from(self.device.multiprocessors()),
        })
    }

    /// A cluster has more blocks than the device takes of this kernel.
    fn cluster_too_large(&self, launch: Launch<'_>) -> Error {
        let Launch { kernel, prepared, config: LaunchConfig { grid, block, cluster, .. }, .. } = launch;
        let (function, shared) = (prepared.function.cast(), launch.config.shared_bytes as c_uint);
        match self.device.max_potential_cluster_size(function, *grid, *block, shared) {
            Ok(limit) => Error::Launch(LaunchError::ClusterTooLarge {
                kernel: kernel.name(),
                device: self.device.to_string().into(),
                cluster: *cluster,
                limit,
            }),
            Err(_) => self.launch_error(Code::INVALID_CLUSTER_SIZE, launch),
        }
    }

    /// Why a launch was refused; a kernel may take fewer threads than the device, by its registers.
    fn launch_error(&self, code: Code, Launch { kernel, prepared, config, .. }: Launch<'_>) -> Error {
        let (kernel, block) = (kernel.name(), config.block);
        let threads: u64 = block.iter().copied().map(u64::from).product();
        // If the driver does not report it, the reason is another.
        if code == Code::LAUNCH_OUT_OF_RESOURCES
            && let Ok(limit) = self.device.function_attribute(prepared.function.cast(), MAX_THREADS_PER_BLOCK)
            && threads > u64::from(limit.unsigned_abs())
        {
            let limit = limit.unsigned_abs();
            return Error::Launch(LaunchError::TooManyThreads { kernel, block, threads, limit });
        }
        let object = format!("kernel `{kernel}`");
        let returned = code.of_function("cuLaunchKernel");
        match self.device.check(returned, &object) {
            Err(error) => error,
            Ok(()) => self.driver.error(returned, &object),
        }
    }
}
