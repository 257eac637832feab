//! The driver's linker: several images into one cubin.

use std::ffi::{CString, c_uint};
use std::ptr::null_mut;

use cudarc::driver::sys::{CUjitInputType as Kind, CUlinkState};

use super::jit::Jit;
use crate::backend::cuda::device::{CudaDevice, Handle};
use crate::backend::cuda::driver::Returned;
use crate::error::Result;
use crate::error::foreign::ForeignError;
use crate::image::{CodeType, Image, JitOptions};

/// A link in progress.
pub(crate) struct CudaLinker<'d> {
    device: &'d CudaDevice,
    raw: Handle<CUlinkState>,
    /// The driver writes its logs here until the link is destroyed.
    jit: Jit,
}

// SAFETY: the driver's handle may be used from any thread; `jit` is owned, and written to only in calls
// that take `&mut self`.
unsafe impl Send for CudaLinker<'_> {}

impl<'d> CudaLinker<'d> {
    pub(crate) fn new(device: &'d CudaDevice, options: &JitOptions) -> Result<Self> {
        device.bind()?;
        let mut jit = Jit::new(options);
        let (count, keys, values) = jit.arguments();
        // SAFETY: keys and values are as many as stated; they and the logs live until the link is destroyed.
        let raw = device
            .get(&device.to_string(), |driver, to| unsafe { driver.link_create(count, keys, values, to) })?;
        Ok(CudaLinker { device, raw: Handle(raw), jit })
    }

    pub(crate) fn add(&mut self, name: &str, image: &Image) -> Result<()> {
        let (kind, bytes) = match image.kind() {
            // The driver counts the final 0 of a text.
            CodeType::Ptx => (Kind::CU_JIT_INPUT_PTX, image.len() + 1),
            CodeType::Cubin => (Kind::CU_JIT_INPUT_CUBIN, image.len()),
            CodeType::Fatbin => (Kind::CU_JIT_INPUT_FATBINARY, image.len()),
            CodeType::Object => (Kind::CU_JIT_INPUT_OBJECT, image.len()),
            CodeType::Library => (Kind::CU_JIT_INPUT_LIBRARY, image.len()),
            CodeType::LtoIr => (Kind::CU_JIT_INPUT_NVVM, image.len()),
        };
        let c_name = CString::new(name.replace('\0', "\u{fffd}")).unwrap_or_default();
        self.device.bind()?;
        // SAFETY: the input has that many bytes for the call, which copies what it keeps; the name ends in
        // 0; there are no options of this input.
        let code = unsafe {
            self.device.driver().link_add(
                self.raw.0,
                kind as c_uint,
                image.start().cast(),
                bytes,
                c_name.as_ptr(),
                0,
                null_mut(),
                null_mut(),
            )
        };
        self.check(code, &format!("`{name}`"))
    }

    /// The linked cubin, and the driver's information log.
    pub(crate) fn complete(mut self) -> Result<(Vec<u8>, String)> {
        self.device.bind()?;
        let (mut start, mut bytes) = (null_mut(), 0);
        // SAFETY: both are valid for the call.
        let code = unsafe { self.device.driver().link_complete(self.raw.0, &mut start, &mut bytes) };
        self.check(code, "the program")?;
        // SAFETY: on success the driver gives as many bytes, which live until the link is destroyed.
        let cubin = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), bytes) }.to_vec();
        // SAFETY: the call has returned.
        let log = unsafe { self.jit.information() };
        Ok((cubin, log))
    }

    fn check(&mut self, returned: Returned, input: &str) -> Result<()> {
        let Err(error) = self.device.check(returned, "") else { return Ok(()) };
        // SAFETY: the call has returned.
        let log = unsafe { self.jit.explain(&error.to_string()) }.into();
        Err(ForeignError::Link { linker: "the driver's linker", input: input.into(), log }.into())
    }
}

impl Drop for CudaLinker<'_> {
    fn drop(&mut self) {
        // SAFETY: the link is live and not used again. A failure means that the context is gone.
        self.device.release(|driver| unsafe { driver.link_destroy(self.raw.0) });
    }
}
