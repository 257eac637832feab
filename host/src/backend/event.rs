//! An event of a backend, or of a recording.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::recording::RecordedEvent;
use super::recording::refusal::waiting;
use super::{DeviceBackend, Signal, cpu, cuda};
use crate::error::{Error, Result};
use crate::stream::event::EventOptions;

/// An event of either backend.
pub(crate) enum EventBackend {
    Cuda(cuda::CudaEvent),
    Cpu(cpu::CpuEvent),
    /// A point in a recording; it never happens.
    Recorded(RecordedEvent),
}

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
            DeviceBackend::Cpu(_) => Ok(EventBackend::Cpu(cpu::CpuEvent::new(options))),
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

    /// Why launches cannot record it.
    pub(crate) fn launch_event_refusal(&self) -> Option<&'static str> {
        match self {
            EventBackend::Cuda(event) => event.launch_event_refusal(),
            EventBackend::Cpu(event) => event.has_timing().then_some(cuda::TIMED),
            EventBackend::Recorded(_) => Some("it is of a recording"),
        }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        match self {
            EventBackend::Cuda(event) => event.synchronize(),
            EventBackend::Cpu(event) => {
                event.wait();
                Ok(())
            }
            EventBackend::Recorded(_) => Err(waiting("to wait for an event")),
        }
    }

    /// Waits; leaves what kernels have to say, and failures of streams, to the next who asks.
    pub(crate) fn wait_unreported(&self) -> Result<()> {
        match self {
            EventBackend::Cuda(event) => event.wait_unreported(),
            EventBackend::Cpu(event) => {
                event.wait();
                Ok(())
            }
            EventBackend::Recorded(_) => Err(waiting("to wait for an event")),
        }
    }

    /// When it happened by the host's clock, if that is the device's, too.
    pub(crate) fn host_time(&self) -> Option<Instant> {
        match self {
            EventBackend::Cpu(event) => event.host_time(),
            _ => None,
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

    #[inline]
    pub(crate) fn is_complete(&self) -> Result<bool> {
        match self {
            EventBackend::Cuda(event) => event.is_complete(),
            EventBackend::Cpu(event) => Ok(event.is_complete()),
            EventBackend::Recorded(_) => Err(waiting("to ask for an event")),
        }
    }

    /// Raises `signal` when the event is complete, or the device has failed.
    pub(crate) fn notify(&self, signal: Arc<Signal>) -> Result<()> {
        match self {
            EventBackend::Cuda(event) => event.notify(signal),
            EventBackend::Cpu(event) => {
                event.notify(signal);
                Ok(())
            }
            EventBackend::Recorded(_) => Err(waiting("to wait for an event")),
        }
    }
}
