//! Events: points in a stream's work that can be waited for and timed.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::cuda::CudaEvent;
use crate::backend::recording::RecordedEvent;
use crate::backend::recording::refusal::not_recordable;
use crate::backend::{EventBackend, EventOptions};
use crate::device::Device;
use crate::device::context::{gpu, not_null};
use crate::error::{Error, Result};
use crate::profile::{self, Work};
use crate::stream::Stream;

/// A point in the work of a stream, made by [`Stream::record`], or by [`Device::new_event`] and recorded
/// later.
///
/// An event can be awaited: `(&event).await` waits as [`Event::synchronize`] does, without a thread.
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
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let (ones, filled) = (stream.fill(1_u32, 1000)?, stream.record()?);
/// assert_eq!(filled.device(), stream.device());
/// while !filled.is_complete()? {
///     std::thread::yield_now(); // the host does something else
/// }
/// // For `cudaStreamWaitEvent` of another library; the CPU device has no handles.
/// assert_eq!(filled.as_raw().is_some(), stream.device().is_cuda());
/// # drop(ones);
/// # Ok(()) }
/// ```
pub struct Event {
    device: Device,
    backend: Arc<EventBackend>,
}

impl Device {
    /// A new event, to be recorded by [`Stream::record_into`] (`cuEventCreate`). Until then it is complete.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::{Device, EventOptions};
    ///
    /// let device = Device::cpu();
    /// let stream = device.new_stream()?;
    /// let event = device.new_event(EventOptions::new().without_timing().blocking_sync())?;
    /// for _ in 0..3 {
    ///     stream.record_into(&event)?; // one event, recorded again and again
    ///     event.synchronize()?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device cannot be opened; [`Error::Unsupported`] for an interprocess event of the CPU device.
    pub fn new_event(&self, options: EventOptions) -> Result<Event> {
        if options.interprocess && !self.is_cuda() {
            return Err(no_events(self));
        }
        Ok(Event { device: self.clone(), backend: Arc::new(EventBackend::new(self.backend(), options)?) })
    }
}

impl Stream {
    /// An event with timing after all work enqueued so far (`cuEventCreate`, `cuEventRecord`).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let start = stream.record()?;
    /// let _work = stream.fill(1_u8, 1 << 20)?;
    /// let end = stream.record()?;
    /// println!("it took {:?}", end.elapsed_since(&start)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device fails.
    pub fn record(&self) -> Result<Event> {
        self.record_with(EventOptions::new())
    }

    /// An event with `options` after all work enqueued so far: [`Device::new_event`] and [`record_into`](Self::record_into)
    /// in one (cuda.core's `stream.record(options=..)`). In a recording it is a mark of order, whatever the options.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::EventOptions;
    ///
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let _work = stream.fill(1_u8, 1 << 20)?;
    /// let done = stream.record_with(EventOptions::new().without_timing().blocking_sync())?;
    /// done.synchronize()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Device::new_event`]; [`GraphError::NotRecordable`](crate::GraphError::NotRecordable) for an event for other processes in a recording; and if the
    /// device fails.
    pub fn record_with(&self, options: EventOptions) -> Result<Event> {
        if options.interprocess && self.inner().recording().is_some() {
            return Err(not_recordable(
                "an event for other processes",
                "record it after the launch of the graph",
            ));
        }
        let event = match self.inner().recording() {
            None => self.device().new_event(options)?,
            Some(recording) => {
                let backend = Arc::new(RecordedEvent::new(recording).into());
                Event { device: self.device().clone(), backend }
            }
        };
        self.record_into(&event)?;
        Ok(event)
    }

    /// Records `event` at the end of all work enqueued here so far (`cuEventRecord`), in place of the point
    /// recorded before. Waits that have begun still wait for the earlier point.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let device = Device::cpu();
    /// let stream = device.new_stream()?;
    /// let event = device.new_event(ferrogrid::EventOptions::new())?;
    /// for step in 0..3 {
    ///     let _work = stream.fill(step, 1000)?;
    ///     stream.record_into(&event)?; // the same event in each round
    /// }
    /// event.synchronize()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::EventDevice`] if it is an event of another device; or if the device fails.
    pub fn record_into(&self, event: &Event) -> Result<()> {
        if event.device != *self.device() {
            let mut devices = [&event.device, self.device()].into_iter();
            if let Some(error) = devices.find_map(|device| device.backend().was_reset()) {
                return Err(error);
            }
            let (event, stream) = (event.device.to_string().into(), self.device().to_string().into());
            return Err(Error::EventDevice { event, stream });
        }
        self.inner().backend().record(&event.backend)
    }

    /// Makes work enqueued here from now on start after `event`, of any stream or device
    /// (`cuStreamWaitEvent`). Buffers need no such call: their work is ordered anyway.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let device = ferrogrid_host::Device::cpu();
    /// let (first, second) = (device.new_stream()?, device.new_stream()?);
    /// let half_way = first.record()?;
    /// second.wait(&half_way)?; // what second does from here on begins after that
    /// second.synchronize()?;
    /// assert!(half_way.is_complete()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the device fails.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.inner().backend().wait(&event.backend)
    }
}

impl Event {
    /// Waits until the work before the event has run (`cuEventSynchronize`).
    ///
    /// # Errors
    /// If the device has failed. Failures of kernels are reported by their stream.
    pub fn synchronize(&self) -> Result<()> {
        let waited = profile::observe_host(&self.device, Work::Synchronize, || self.backend.synchronize());
        self.device.deliver_output();
        waited
    }

    /// Whether the work before the event has run (`cuEventQuery`).
    ///
    /// # Errors
    /// If the device has failed. Not to be ready is no error.
    pub fn is_complete(&self) -> Result<bool> {
        let complete = self.backend.is_complete();
        self.device.deliver_output();
        complete
    }

    /// The time from `earlier` to this event (`cuEventElapsedTime`; half a microsecond of
    /// resolution on a GPU). Waits for both.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// let stream = Device::cpu().new_stream()?;
    /// let start = stream.record()?;
    /// let _ones = stream.fill(1_u32, 1000)?;
    /// let end = stream.record()?;
    /// println!("{} ms", end.elapsed_since(&start)?.as_secs_f64() * 1e3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::EventTime`] if timing is off for one of them, one was never recorded, they are of
    /// different devices, or `earlier` came later.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration> {
        self.synchronize()?;
        earlier.synchronize()?;
        self.backend.elapsed_since(&earlier.backend, self.device == earlier.device)
    }

    /// The device of the streams that may record it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// An event that another library made on `device`: `raw` is its `CUevent` (a `cudaEvent_t` is the same). It is
    /// waited for, recorded and timed like any other, and not destroyed when this handle is dropped.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::Event;
    ///
    /// let stream = Device::best()?.new_stream()?;
    /// let theirs = stream.record()?; // as if another library had recorded it
    /// if let Some(raw) = theirs.as_raw() {
    ///     // SAFETY: it is an event of this device, and lives longer.
    ///     let event = unsafe { Event::from_raw(stream.device(), raw)? };
    ///     stream.wait(&event)?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] on the CPU device; [`Error::InvalidPointer`] if `raw` is null.
    ///
    /// # Safety
    /// `raw` is an event of the primary context of `device`, and is not destroyed before this handle is dropped.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<Event> {
        let (cuda, raw) = (gpu(device, "Event::from_raw")?, not_null(raw)?);
        // SAFETY: passed on.
        let backend = unsafe { EventBackend::foreign(cuda, raw) };
        Ok(Event::new(device.clone(), backend))
    }

    /// The driver's handle (`CUevent`), for other libraries; valid while this event is. `None` on the CPU
    /// device.
    pub fn as_raw(&self) -> Option<*mut c_void> {
        self.cuda().map(CudaEvent::as_raw)
    }

    /// The event of a GPU, if it is one.
    pub(crate) fn cuda(&self) -> Option<&CudaEvent> {
        self.backend.as_cuda()
    }

    pub(crate) fn new(device: Device, backend: EventBackend) -> Self {
        Event { device, backend: Arc::new(backend) }
    }

    pub(crate) fn backend(&self) -> &EventBackend {
        &self.backend
    }

    pub(crate) fn shared(&self) -> &Arc<EventBackend> {
        &self.backend
    }
}

pub(crate) fn no_events(device: &Device) -> Error {
    Error::unsupported("an event for several processes", device, "its events live in one process")
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("complete", &self.backend.is_complete().ok()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_independent() {
        let all = EventOptions::new().blocking_sync().without_timing();
        assert!(all.blocking_sync && !all.timing && !all.interprocess);
        let plain = EventOptions::new();
        assert!(plain.timing && !plain.blocking_sync);
        let shared = EventOptions::new().interprocess().blocking_sync();
        assert!(shared.interprocess && shared.blocking_sync && !shared.timing);
    }
}
