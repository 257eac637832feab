//! Managed memory on CUDA devices: whether the host may use it at any time, and advice about its use.

use std::ffi::{c_int, c_uint};

use cudarc::driver::sys::{CUdevice, CUdevice_attribute};

use crate::backend::cuda::device::{CudaDevice, address, attribute_of};
use crate::error::{Error, Result};

/// `CU_DEVICE_CPU`.
const HOST: c_int = -1;

impl CudaDevice {
    /// Whether managed memory may be used by the host while the device works.
    ///
    /// # Errors
    /// `Error::Unsupported` if not.
    pub(crate) fn check_managed(&self) -> Result<()> {
        let concurrent = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
        if attribute_of(self.driver(), self.handle(), concurrent)? != 0 {
            return Ok(());
        }
        Err(Error::Unsupported {
            operation: "managed memory",
            device: self.to_string().into(),
            reason: "the host may not use it while the device works",
        })
    }

    /// The device, or the host, as the driver numbers them.
    pub(crate) fn location(&self, host: bool) -> CUdevice {
        if host { HOST } else { self.handle() }
    }

    /// # Safety
    /// `start` is `bytes` (not 0) of live managed memory.
    pub(crate) unsafe fn advise(
        &self,
        start: *const u8,
        bytes: usize,
        advice: c_uint,
        host: bool,
    ) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for the memory.
        let code = unsafe { self.driver().advise(address(start), bytes, advice, self.location(host)) };
        self.check(code, "cuMemAdvise", &format!("{bytes} bytes"))
    }
}
