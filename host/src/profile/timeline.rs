//! The handle of a running timeline.

use std::sync::Arc;

use super::active;
use super::recorder::Recorder;
use super::trace::Trace;
use crate::device::Device;
use crate::error::Result;

/// A recording of what a device does, of all its streams and from all threads, until
/// [`Timeline::finish`].
///
/// Each kernel, copy, fill, graph and host function in a stream gets an event before and one after it
/// (`cuEventRecord`), so its times are the device's own: half a microsecond of resolution on a GPU. If the
/// stream was idle, a span includes the time that the host needs to enqueue the work after the first event: 5 to 30
/// microseconds on an H200.
/// Calls are recorded, too, by the host's clock. The two clocks are aligned at the start, to some microseconds on a GPU.
///
/// Several timelines of a device may be recorded at the same time. A dropped timeline returns nothing.
/// The nodes of a graph are one span. Work that is only recorded into a graph has no span.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::profile::{SpanKind, Timeline};
///
/// let device = Device::cpu();
/// let stream = device.new_stream()?;
/// let timeline = Timeline::start(&device)?;
/// assert_eq!(timeline.device(), &device);
/// let ones = stream.fill(1_u32, 1000)?;
/// let trace = timeline.finish(); // waits for the fill
/// let fill = trace.device_spans().find(|span| span.kind == SpanKind::Fill).unwrap();
/// println!("{} bytes in {:?}", fill.bytes.unwrap(), fill.duration);
/// # drop(ones);
/// # Ok(()) }
/// ```
pub struct Timeline {
    recorder: Arc<Recorder>,
}

impl Timeline {
    /// Begins to record what `device` does from now on.
    ///
    /// # Errors
    /// If the device cannot be opened, or fails.
    pub fn start(device: &Device) -> Result<Timeline> {
        let recorder = Arc::new(Recorder::new(device)?);
        active::register(recorder.clone());
        Ok(Timeline { recorder })
    }

    /// Ends the recording, waits until the work that was recorded has run, and returns its spans. Failures of
    /// kernels are left to [`Stream::synchronize`](crate::Stream::synchronize).
    pub fn finish(self) -> Trace {
        active::unregister(&self.recorder);
        self.recorder.trace()
    }

    /// The device whose work is recorded.
    pub fn device(&self) -> &Device {
        self.recorder.device()
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        active::unregister(&self.recorder);
    }
}

debug_by_methods!(Timeline { device });
