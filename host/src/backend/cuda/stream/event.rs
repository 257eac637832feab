//! Events of CUDA streams.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cudarc::driver::sys::{CUevent, CUevent_flags, CUstream};

use super::callback;
use crate::backend::cuda::device::{CudaDevice, Handle};
use crate::backend::cuda::driver::Code;
use crate::backend::event::{BackendEvent, EventOptions};
use crate::backend::signal::Signal;
use crate::error::{Error, Result};

/// Cheaper, for order only.
pub(crate) const UNTIMED: u32 = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
/// A thread that waits sleeps.
const BLOCKING_SYNC: u32 = CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;

/// Other processes may open it; it must be untimed.
const INTERPROCESS: u32 = CUevent_flags::CU_EVENT_INTERPROCESS as u32;

/// Why launches cannot record an event.
pub(crate) const TIMED: &str = "it has timing; make it with `EventOptions::without_timing`";

/// An event of a CUDA device.
pub(crate) struct CudaEvent {
    device: &'static CudaDevice,
    raw: Handle<CUevent>,
    timing: bool,
    /// Whether it was made for other processes, or may have been.
    interprocess: bool,
    recorded: AtomicBool,
    /// Whether it is destroyed with this handle.
    owned: bool,
}

/// A new event; its device's context must be bound.
pub(crate) fn create(device: &CudaDevice, flags: u32) -> Result<CUevent> {
    // SAFETY: `to` is valid for the call.
    device.get("", |driver, to| unsafe { driver.event_create(to, flags) })
}

impl CudaEvent {
    pub(crate) fn new(device: &'static CudaDevice, options: EventOptions) -> Result<Self> {
        device.bind()?;
        let EventOptions { timing, blocking_sync, interprocess } = options;
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags =
            flag(!timing, UNTIMED) | flag(blocking_sync, BLOCKING_SYNC) | flag(interprocess, INTERPROCESS);
        let (raw, recorded) = (Handle(create(device, flags)?), AtomicBool::new(false));
        Ok(CudaEvent { device, raw, timing, interprocess, recorded, owned: true })
    }

    /// An event that another process has made, opened here.
    pub(crate) fn of_another_process(device: &'static CudaDevice, raw: CUevent) -> Self {
        let recorded = AtomicBool::new(false);
        CudaEvent { device, raw: Handle(raw), timing: false, interprocess: false, recorded, owned: true }
    }

    /// An event of another library. Of its flags, and whether it was recorded, only the driver knows.
    ///
    /// # Safety
    /// It is one of `device`, and stays so as long as this handle.
    pub(crate) unsafe fn foreign(device: &'static CudaDevice, raw: *mut c_void) -> Self {
        let (raw, recorded) = (Handle(raw.cast()), AtomicBool::new(true));
        CudaEvent { device, raw, timing: true, interprocess: true, recorded, owned: false }
    }

    pub(crate) fn ordinal(&self) -> usize {
        self.device.ordinal()
    }

    pub(crate) fn is_interprocess(&self) -> bool {
        self.interprocess
    }

    pub(crate) fn device(&self) -> &'static CudaDevice {
        self.device
    }

    /// Records the event at the tail of `stream`, which is of the same device; if it is a default stream, the
    /// context is bound.
    #[inline]
    pub(crate) fn record(&self, stream: CUstream) -> Result<()> {
        // SAFETY: both handles are live, and of the same context.
        let code =
            self.device.call_unbound(|| unsafe { self.device.driver().event_record(self.raw(), stream) })?;
        self.device.check(code, "")?;
        self.note_recorded();
        Ok(())
    }

    /// To be called when it has been recorded, here or by a graph.
    pub(crate) fn note_recorded(&self) {
        self.recorded.store(true, Ordering::Relaxed);
    }

    pub(crate) fn raw(&self) -> CUevent {
        self.raw.0
    }

    /// The driver's `CUevent`.
    pub(crate) fn as_raw(&self) -> *mut c_void {
        self.raw.0.cast()
    }

    /// The time since `start`; both must be complete.
    pub(crate) fn elapsed_since(&self, start: &CudaEvent) -> Result<Duration> {
        Duration::try_from_secs_f64(self.seconds_since(start)?)
            .map_err(|_| Error::EventTime { reason: "the one given as earlier came later" })
    }

    /// The seconds since `start`, less than 0 if that came later; both must be complete.
    pub(crate) fn seconds_since(&self, start: &CudaEvent) -> Result<f64> {
        if !std::ptr::eq(self.device, start.device) {
            return Err(Error::EventTime { reason: "they are of different devices" });
        }
        for event in [self, start] {
            event.has_time()?;
        }
        let milliseconds = Cell::new(0.0_f32);
        // SAFETY: both events are live and were recorded with timing.
        let code = self.device.call_unbound(|| unsafe {
            self.device.driver().event_elapsed(milliseconds.as_ptr(), start.raw(), self.raw())
        })?;
        self.device.check(code, "")?;
        Ok(f64::from(milliseconds.get()) / 1e3)
    }

    fn has_time(&self) -> Result<()> {
        if !self.timing {
            return Err(Error::EventTime { reason: "timing is off for one of them" });
        }
        if !self.recorded.load(Ordering::Relaxed) {
            return Err(Error::EventTime { reason: "one of them has not been recorded" });
        }
        Ok(())
    }
}

impl BackendEvent for CudaEvent {
    /// Only the driver knows that of events of other libraries.
    fn launch_event_refusal(&self) -> Option<&'static str> {
        match self {
            CudaEvent { owned: false, .. } => None,
            CudaEvent { timing: true, .. } => Some(TIMED),
            CudaEvent { interprocess: true, .. } => Some("it is shared with other processes"),
            _ => None,
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.wait_unreported()?;
        self.device.show_output()
    }

    fn wait_unreported(&self) -> Result<()> {
        // SAFETY: the event is live.
        let code =
            self.device.call_unbound(|| unsafe { self.device.driver().event_synchronize(self.raw()) })?;
        self.device.check(code, "")
    }

    fn is_complete(&self) -> Result<bool> {
        // SAFETY: the event is live.
        let code = self.device.call_unbound(|| unsafe { self.device.driver().event_query(self.raw()) })?;
        if code == Code::NOT_READY {
            return Ok(false);
        }
        self.device.check(code, "")?;
        Ok(true)
    }

    fn notify(&self, signal: Arc<Signal>) -> Result<()> {
        self.device.bind()?;
        callback::notify(self.device, self.raw(), signal)
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: the event is live and not used again; the driver waits where it must.
            self.device.release(|driver| unsafe { driver.event_destroy(self.raw()) });
        }
    }
}
