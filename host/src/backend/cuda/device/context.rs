//! Conversion between a device and the raw handle of its primary context.

use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::driver::sys::CUcontext;
#[cfg(feature = "cudarc-interop")]
use cudarc::driver::sys::CUresult;

use super::{CudaDevice, devices};
#[cfg(feature = "cudarc-interop")]
use crate::backend::cuda::driver::Code;
use crate::backend::cuda::driver::driver;
use crate::error::{Error, Result};

impl CudaDevice {
    /// The driver's `CUdevice`.
    pub(crate) fn as_raw(&self) -> i32 {
        self.handle
    }

    pub(crate) fn foreign_context(&self) -> Error {
        Error::ForeignContext { device: self.to_string().into() }
    }

    /// The error of a function of cudarc that returned `code`.
    #[cfg(feature = "cudarc-interop")]
    pub(crate) fn error_of(&self, function: &'static str, code: CUresult) -> Error {
        self.error(Code::of(code).of_function(function), self)
    }
}

/// The device whose primary context `raw` is.
///
/// # Safety
/// It is a context, and stays so for the call.
pub(crate) unsafe fn device_of_context(raw: *mut c_void) -> Result<&'static CudaDevice> {
    let devices = devices()?;
    // SAFETY: passed on.
    let handle = unsafe { device_handle(raw.cast())? };
    let found = devices.into_iter().find(|device| device.handle == handle).ok_or(Error::NoDevice)?;
    if found.context()? == raw.cast() { Ok(found) } else { Err(found.foreign_context()) }
}

/// The device of a context. The driver tells that of the current one only.
///
/// # Safety
/// `context` is one, and stays so for the call.
unsafe fn device_handle(context: CUcontext) -> Result<i32> {
    let driver = driver()?;
    let (mut before, mut handle) = (null_mut(), 0);
    // SAFETY: `before` is valid for the call.
    let code = unsafe { driver.context_current(&mut before) };
    driver.check(code, "")?;
    // SAFETY: the caller vouches for the context.
    let code = unsafe { driver.context_set(context) };
    driver.check(code, &format_args!("context {context:p}"))?;
    // SAFETY: `handle` is valid for the call.
    let found = unsafe { driver.context_device(&mut handle) };
    // SAFETY: it was current before.
    let restored = unsafe { driver.context_set(before) };
    driver.check(found, &format_args!("context {context:p}"))?;
    driver.check(restored, "the context that was current before")?;
    Ok(handle)
}
