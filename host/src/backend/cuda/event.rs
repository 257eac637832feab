//! Events of CUDA streams. It must not know what they are recorded for.

use std::ptr::null_mut;
use std::time::Duration;

use cudarc::driver::sys::{CUevent, CUstream};

use super::device::{CudaDevice, Handle};
use super::driver::Code;
use crate::error::{Error, Result};

/// `CU_EVENT_DEFAULT`: with timing.
pub(super) const TIMED: u32 = 0;
/// `CU_EVENT_DISABLE_TIMING`: cheaper, for order only.
pub(super) const UNTIMED: u32 = 2;

/// An event with timing.
pub(crate) struct CudaEvent {
    device: &'static CudaDevice,
    raw: Handle<CUevent>,
}

/// A new event; its device's context must be bound.
pub(super) fn create(device: &CudaDevice, flags: u32) -> Result<CUevent> {
    let mut raw = null_mut();
    // SAFETY: `raw` is valid for the call.
    let code = unsafe { device.driver().event_create(&mut raw, flags) };
    device.check(code, "cuEventCreate", "")?;
    Ok(raw)
}

impl CudaEvent {
    /// An event at the tail of `stream`, which is of `device`, whose context is bound.
    pub(super) fn record(device: &'static CudaDevice, stream: CUstream) -> Result<Self> {
        let event = CudaEvent { device, raw: Handle(create(device, TIMED)?) };
        // SAFETY: both handles are of the bound context.
        let code = unsafe { device.driver().event_record(event.raw(), stream) };
        device.check(code, "cuEventRecord", "")?;
        Ok(event)
    }

    pub(super) fn raw(&self) -> CUevent {
        self.raw.0
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        self.device.bind()?;
        // SAFETY: the event is live.
        let code = unsafe { self.device.driver().event_synchronize(self.raw()) };
        self.device.check(code, "cuEventSynchronize", "")?;
        self.device.hear()
    }

    pub(crate) fn is_complete(&self) -> Result<bool> {
        self.device.bind()?;
        // SAFETY: the event is live.
        let code = unsafe { self.device.driver().event_query(self.raw()) };
        if code == Code::NOT_READY {
            return Ok(false);
        }
        self.device.check(code, "cuEventQuery", "")?;
        Ok(true)
    }

    /// The time since `start`; both must be complete.
    pub(crate) fn elapsed_since(&self, start: &CudaEvent) -> Result<Duration> {
        if self.device.ordinal() != start.device.ordinal() {
            return Err(Error::EventTime { reason: "they are of different devices" });
        }
        self.device.bind()?;
        let mut milliseconds = 0.0_f32;
        // SAFETY: both events are live and were recorded with timing.
        let code = unsafe { self.device.driver().event_elapsed(&mut milliseconds, start.raw(), self.raw()) };
        self.device.check(code, "cuEventElapsedTime", "")?;
        Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3)
            .map_err(|_| Error::EventTime { reason: "the one given as earlier came later" })
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: the event is live and not used again; the driver waits where it must.
            let _ = unsafe { self.device.driver().event_destroy(self.raw()) };
        }
    }
}
