//! Reset of a GPU: the primary context is destroyed and created again, for a new [`CudaDevice`]. The old
//! one, to which all earlier handles refer, refuses every call from then on.

use std::ffi::c_int;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::{CudaDevice, devices, replace_device};
use crate::backend::cuda::driver::Code;
use crate::error::{Error, Result};
use crate::sync::lock;

impl CudaDevice {
    /// Whether the context of its handles is gone.
    #[inline]
    pub(crate) fn has_been_reset(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// To be asked before handles are given to the driver.
    #[inline]
    pub(crate) fn check_not_reset(&self) -> Result<()> {
        if self.has_been_reset() { Err(self.was_reset()) } else { Ok(()) }
    }

    #[cold]
    pub(crate) fn was_reset(&self) -> Error {
        Error::DeviceReset { device: self.to_string().into() }
    }

    /// Lets all work run to its end, so that objects kept until then can be freed, and host functions are called while
    /// the context exists. A failed context returns its error at once.
    pub(crate) fn wait_before_reset(&self) {
        if self.has_context() && self.bind().is_ok() {
            // SAFETY: the context is bound.
            let _failed = unsafe { self.driver().context_synchronize() };
        }
    }

    /// Destroys the primary context, and gives the device with the next one.
    ///
    /// # Safety
    /// As for `Device::reset`.
    pub(crate) unsafe fn reset(&'static self) -> Result<&'static CudaDevice> {
        static RESETTING: Mutex<()> = Mutex::new(());
        let _alone = lock(&RESETTING);
        // After a reset that failed the old one is still there, and it may be tried again.
        if !devices()?.iter().any(|device| ptr::eq(*device, self)) {
            return Err(self.was_reset());
        }
        if !self.has_been_reset() {
            if !self.has_context() {
                return Ok(self);
            }
            self.end()?;
            // SAFETY: retained once; from here on the context is not used through it.
            let _released = unsafe { self.driver().primary_context_release(self.handle)? };
        }
        // What it returns may be the failure that it is to end, so the next call decides.
        // SAFETY: no handle of this crate gets to the driver any more, and the caller vouches for those of others.
        let _code = unsafe { self.driver().primary_context_reset(self.handle)? };
        let fresh: &'static CudaDevice =
            Box::leak(Box::new(CudaDevice::query(self.driver, self.ordinal as c_int)?));
        match fresh.bind() {
            Err(Error::Driver { code, .. }) if Code(code).is_kernel_failure() => {
                return Err(self.cannot_recover());
            }
            bound => bound?,
        }
        // SAFETY: a context is bound.
        let code = unsafe { fresh.driver().context_synchronize() };
        fresh.check(code, "the context after a reset")?;
        replace_device(fresh);
        Ok(fresh)
    }

    #[cold]
    fn cannot_recover(&self) -> Error {
        let reason =
            "the driver makes no new context in a process in which a kernel has failed: it must be ended";
        Error::unsupported("a reset after a kernel has failed", self, reason)
    }

    /// Ends all that refers to the context, if nothing of it is in the host's hands.
    fn end(&'static self) -> Result<()> {
        let [pinned, managed] = [&self.pinned, &self.managed].map(|memory| memory.load(Ordering::Acquire));
        if pinned + managed > 0 {
            return Err(Error::HostMemoryInUse { device: self.to_string().into(), pinned, managed });
        }
        self.ended.store(true, Ordering::Relaxed);
        self.forget_modules();
        for other in devices()? {
            other.peers.remove(self);
        }
        Ok(())
    }
}
