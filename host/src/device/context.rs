//! The primary context of a GPU, for code that also calls the driver directly.

use std::ffi::c_void;

use crate::backend::DeviceBackend;
use crate::backend::cuda::CudaDevice;
use crate::device::Device;
use crate::error::{Error, Result};

/// The primary context of a GPU (`CUcontext`): the one that this crate, CUDA's runtime and most libraries use, from
/// [`Device::context`].
///
/// Other code can also make any driver call: it makes the context current, and takes handles by `as_raw`
/// ([`Stream`](crate::Stream::as_raw), [`Event`](crate::Event::as_raw), [`MemoryPool`](crate::MemoryPool::as_raw),
/// [`Kernel`](crate::Kernel::as_raw), [`ForeignModule`](crate::ForeignModule::as_raw),
/// [`ForeignFunction`](crate::ForeignFunction::as_raw), [`ExecutableGraph`](crate::ExecutableGraph::as_raw)). What it
/// makes comes in by `from_raw` of the same types, and memory by [`DeviceBuffer::from_raw`](crate::DeviceBuffer::from_raw).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::Context;
///
/// let device = Device::best()?;
/// let context = match device.context() {
///     Err(Error::Unsupported { .. }) => return Ok(()), // the CPU device has none
///     context => context?,
/// };
/// context.set_current()?; // from here on `cuMemAlloc`, `cublasCreate` and the like work in it, on this thread
/// // SAFETY: it is a context.
/// let same = unsafe { Context::from_raw(context.as_raw())? };
/// assert_eq!(same.device(), &device);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Context {
    device: Device,
    /// The handle's address: it is a name for the driver, and nothing is read through it here.
    address: usize,
}

impl Context {
    /// The primary context with the handle `raw`, of any GPU.
    ///
    /// # Errors
    /// [`Error::ForeignContext`] if it is another than the primary context of its device; what the driver says of it; or
    /// if there is no GPU.
    ///
    /// # Safety
    /// `raw` is a context that is not destroyed while this runs. From CUDA 12 on the driver checks the handle, and
    /// a handle that it never gave out may end the process all the same.
    pub unsafe fn from_raw(raw: *mut c_void) -> Result<Context> {
        not_null(raw)?;
        // SAFETY: passed on.
        let device = unsafe { DeviceBackend::cuda_of_context(raw)? };
        Ok(Context { device: Device::from(device), address: raw.expose_provenance() })
    }

    /// The driver's handle. It is valid until the process ends, or the device is [reset](Device::reset).
    pub fn as_raw(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    /// The GPU that it is of.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Makes it the calling thread's current context (`cuCtxSetCurrent`), which many driver calls ask for. This crate
    /// needs no such call: it works whichever context is current, and may leave its own current.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn set_current(&self) -> Result<()> {
        gpu(&self.device, "Context::set_current")?.bind()
    }
}

impl Device {
    /// The primary context (`cuDevicePrimaryCtxRetain`), retained until the process ends or the device is reset.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on the CPU device, or if the context cannot be made.
    pub fn context(&self) -> Result<Context> {
        let raw: *mut c_void = gpu(self, "Device::context")?.context()?.cast();
        Ok(Context { device: self.clone(), address: raw.expose_provenance() })
    }

    /// The driver's handle (`CUdevice`), for calls such as `cuDeviceGetAttribute`. `None` for the CPU device.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::Device;
    ///
    /// assert_eq!(Device::cpu().as_raw(), None);
    /// if let Some(raw) = Device::best()?.as_raw() {
    ///     assert_eq!(Device::from_raw(raw)?, Device::best()?);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn as_raw(&self) -> Option<i32> {
        self.backend().as_cuda().map(CudaDevice::as_raw)
    }

    /// The GPU with the handle `raw` (`CUdevice`), which is compared with those of all GPUs.
    ///
    /// # Errors
    /// [`Error::InvalidDevice`] if no GPU has it; else as [`Device::cuda`].
    pub fn from_raw(raw: i32) -> Result<Device> {
        DeviceBackend::cuda_of_handle(raw).map(Device::from)
    }
}

/// The GPU, or that `operation` needs one.
pub(crate) fn gpu(device: &Device, operation: &'static str) -> Result<&'static CudaDevice> {
    device.backend().as_cuda().ok_or_else(|| Error::unsupported(operation, device, NO_HANDLES))
}

const NO_HANDLES: &str = "it has no handles of CUDA's driver";

/// `raw`, which is no handle if it is null.
pub(crate) fn not_null(raw: *mut c_void) -> Result<*mut c_void> {
    if raw.is_null() {
        return Err(Error::InvalidPointer { address: 0, reason: "it is null" });
    }
    Ok(raw)
}
