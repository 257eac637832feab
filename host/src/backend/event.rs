//! An event of a backend, or of a recording. [`BackendEvent`] has the operations of each; those with two objects are
//! dispatched here.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::recording::RecordedEvent;
use super::{DeviceBackend, Signal, cpu, cuda};
use crate::error::{Error, Result};

/// An event of either backend.
pub(crate) enum EventBackend {
    Cuda(cuda::CudaEvent),
    Cpu(cpu::CpuEvent),
    /// A point in a recording; it never happens.
    Recorded(RecordedEvent),
}

/// Flags of a new event, for [`Device::new_event`](crate::Device::new_event) (those of `cuEventCreate`). They can be combined.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::EventOptions;
///
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// // For order alone, waited for without the processor's time.
/// let event = device.new_event(EventOptions::new().without_timing().blocking_sync())?;
/// stream.record_into(&event)?;
/// event.synchronize()?;
/// assert!(event.elapsed_since(&event).is_err()); // it has no time
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventOptions {
    pub(crate) timing: bool,
    pub(crate) blocking_sync: bool,
    pub(crate) interprocess: bool,
}

impl EventOptions {
    /// For order only.
    pub(crate) const UNTIMED: Self = EventOptions::new().without_timing();

    /// With timing, and waited for by spinning (`CU_EVENT_DEFAULT`).
    pub const fn new() -> Self {
        EventOptions { timing: true, blocking_sync: false, interprocess: false }
    }
}

setters! { EventOptions:
    /// Without timing, which is cheaper (`CU_EVENT_DISABLE_TIMING`).
    pub const fn without_timing(): timing = false;

    /// Waiting threads sleep, which uses no processor time but takes longer to wake up
    /// (`CU_EVENT_BLOCKING_SYNC`). On the CPU device it always sleeps.
    pub const fn blocking_sync(): blocking_sync = true;

    /// Lets other processes open it: see [`Event::ipc_handle`](crate::Event::ipc_handle) (`CU_EVENT_INTERPROCESS`). Such an event has no
    /// timing (`CU_EVENT_DISABLE_TIMING`). The CPU device has none.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::EventOptions;
    ///
    /// match Device::best()?.new_event(EventOptions::new().interprocess()) {
    ///     Ok(event) => assert!(event.elapsed_since(&event).is_err()), // it has no time
    ///     Err(Error::Unsupported { .. }) => println!("events of the CPU device live in one process"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(()) }
    /// ```
    pub const fn interprocess(): interprocess = true, timing = false;
}

impl Default for EventOptions {
    fn default() -> Self {
        EventOptions::new()
    }
}

/// What an event is asked.
pub(crate) trait BackendEvent {
    /// Why launches cannot record it.
    fn launch_event_refusal(&self) -> Option<&'static str>;

    /// Waits for the work before it.
    fn synchronize(&self) -> Result<()>;

    /// Waits; leaves what kernels have to say, and failures of streams, to the next who asks.
    fn wait_unreported(&self) -> Result<()> {
        self.synchronize()
    }

    /// Whether the work before it has run; so it has if the event was never recorded.
    fn is_complete(&self) -> Result<bool>;

    /// Raises `signal` when the event is complete, or the device has failed.
    fn notify(&self, signal: Arc<Signal>) -> Result<()>;

    /// When it happened by the host's clock, if that is the device's, too.
    fn host_time(&self) -> Option<Instant> {
        None
    }
}

deref_to_trait!(EventBackend: BackendEvent { Cuda, Cpu, Recorded });

impl From<RecordedEvent> for EventBackend {
    fn from(event: RecordedEvent) -> Self {
        EventBackend::Recorded(event)
    }
}

impl EventBackend {
    /// An event of `device` that has not been recorded.
    pub(crate) fn new(device: DeviceBackend, options: EventOptions) -> Result<Self> {
        match device {
            DeviceBackend::Cuda(device) => cuda::CudaEvent::new(device, options).map(EventBackend::Cuda),
            DeviceBackend::Cpu(_) => Ok(EventBackend::Cpu(cpu::CpuEvent::new(options.timing))),
        }
    }

    /// An event that another library made.
    ///
    /// # Safety
    /// `raw` is an event of `device`, and stays live as long as this.
    pub(crate) unsafe fn foreign(device: &'static cuda::CudaDevice, raw: *mut c_void) -> Self {
        // SAFETY: passed on.
        EventBackend::Cuda(unsafe { cuda::CudaEvent::foreign(device, raw) })
    }

    /// The event of another process; `None` where there is no such thing.
    pub(crate) fn ipc_open(device: DeviceBackend, handle: &[u8; 64]) -> Result<Option<Self>> {
        let open = |device| cuda::CudaEvent::ipc_open(device, handle).map(EventBackend::Cuda);
        device.as_cuda().map(open).transpose()
    }

    /// That of the driver, for what only GPUs have.
    pub(crate) fn as_cuda(&self) -> Option<&cuda::CudaEvent> {
        match self {
            EventBackend::Cuda(event) => Some(event),
            EventBackend::Cpu(_) | EventBackend::Recorded(_) => None,
        }
    }

    /// Whether it is of a recording, so that it never happens.
    pub(crate) fn is_recorded(&self) -> bool {
        matches!(self, EventBackend::Recorded(_))
    }

    pub(crate) fn is_of(&self, device: DeviceBackend) -> bool {
        match (self, device) {
            (EventBackend::Cuda(event), DeviceBackend::Cuda(device)) => event.ordinal() == device.ordinal(),
            // All are the host's.
            (EventBackend::Cpu(_), DeviceBackend::Cpu(_)) => true,
            _ => false,
        }
    }

    /// The time from `earlier` to this event; both are complete. `same_device` says whether both are of one.
    pub(crate) fn elapsed_since(&self, earlier: &EventBackend, same_device: bool) -> Result<Duration> {
        match (self, earlier) {
            (EventBackend::Cuda(end), EventBackend::Cuda(start)) => end.elapsed_since(start),
            (EventBackend::Cpu(end), EventBackend::Cpu(start)) if same_device => end.elapsed_since(start),
            _ => Err(Error::EventTime { reason: "they are of different devices" }),
        }
    }

    /// The seconds from `earlier` to this event, less than 0 if it came later; both are complete.
    pub(crate) fn seconds_since(&self, earlier: &EventBackend) -> Result<f64> {
        match (self, earlier) {
            (EventBackend::Cuda(end), EventBackend::Cuda(start)) => end.seconds_since(start),
            (EventBackend::Cpu(end), EventBackend::Cpu(start)) => end.seconds_since(start),
            _ => Err(Error::EventTime { reason: "they are of different devices" }),
        }
    }
}
