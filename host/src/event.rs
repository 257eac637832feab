//! Events: points in a stream's work that can be waited for and timed. It must not know how a
//! backend marks them.

use std::fmt;
use std::time::Duration;

use crate::backend::EventBackend;
use crate::error::{Error, Result};

/// A point in the work of a stream, made by [`Stream::record`](crate::Stream::record).
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// let stream = ferrogrid_host::Device::cpu().new_stream()?;
/// let start = stream.record()?;
/// let _ones = stream.fill(1_u32, 1000)?;
/// let end = stream.record()?;
/// end.synchronize()?;
/// println!("{:?}", end.elapsed_since(&start)?);
/// # Ok(()) }
/// ```
pub struct Event {
    backend: EventBackend,
}

impl Event {
    pub(crate) fn new(backend: EventBackend) -> Self {
        Event { backend }
    }

    /// Waits until the work before the event has run (`cuEventSynchronize`).
    ///
    /// # Errors
    /// If the device has failed. Failures of kernels on the CPU device are reported by their stream.
    pub fn synchronize(&self) -> Result<()> {
        self.backend.synchronize()
    }

    /// Whether the work before the event has run (`cuEventQuery`).
    ///
    /// # Errors
    /// If the device has failed.
    pub fn is_complete(&self) -> Result<bool> {
        match &self.backend {
            EventBackend::Cuda(event) => event.is_complete(),
            EventBackend::Cpu(event) => Ok(event.completed().is_some()),
        }
    }

    /// The time from `earlier` to this event (`cuEventElapsedTime`; half a microsecond of
    /// resolution on a GPU). Waits for both.
    ///
    /// # Errors
    /// [`Error::EventTime`] if the events are of different devices, or `earlier` came later.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration> {
        self.synchronize()?;
        earlier.synchronize()?;
        match (&self.backend, &earlier.backend) {
            (EventBackend::Cuda(end), EventBackend::Cuda(start)) => end.elapsed_since(start),
            (EventBackend::Cpu(end), EventBackend::Cpu(start)) => end
                .completed()
                .zip(start.completed())
                .and_then(|(end, start)| end.checked_duration_since(start))
                .ok_or(Error::EventTime { reason: "the one given as earlier came later" }),
            _ => Err(Error::EventTime { reason: "they are of different devices" }),
        }
    }

    pub(crate) fn backend(&self) -> &EventBackend {
        &self.backend
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("complete", &self.is_complete().ok()).finish()
    }
}
