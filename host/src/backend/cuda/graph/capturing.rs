//! What a library enqueues becomes a graph: a stream of its own that is being captured.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

use cudarc::driver::sys::{CUstream, CUstreamCaptureMode};

use super::memory::OwnGraph;
use crate::backend::cuda::device::{CudaDevice, Handle};
use crate::backend::cuda::stream::NON_BLOCKING;
use crate::error::Result;

/// No call is refused, of this thread or of another: a library allocates while it is captured.
const RELAXED: c_uint = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as c_uint;

/// A stream that is being captured, for the calls of a library.
pub(crate) struct Capturing {
    device: &'static CudaDevice,
    stream: Handle<CUstream>,
    has_ended: bool,
}

impl Capturing {
    /// Begins.
    pub(crate) fn begin(device: &'static CudaDevice) -> Result<Self> {
        device.bind()?;
        // SAFETY: `to` is valid for the call.
        let stream = device.get(device, |driver, to| unsafe { driver.stream_create(to, NON_BLOCKING, 0) })?;
        let mut capturing = Capturing { device, stream: Handle(stream), has_ended: true };
        // SAFETY: the stream is live, and of the bound context.
        let code = unsafe { device.driver().stream_begin_capture(stream, RELAXED) };
        device.check(code, "the capture of a library's work")?;
        capturing.has_ended = false;
        Ok(capturing)
    }

    /// The driver's handle of the stream; its context is current on the thread that began.
    pub(crate) fn handle(&self) -> *mut c_void {
        self.stream.0.cast()
    }

    /// What has been enqueued.
    pub(crate) fn end(mut self) -> Result<OwnGraph> {
        self.device.bind()?;
        self.finish()
    }

    fn finish(&mut self) -> Result<OwnGraph> {
        self.has_ended = true;
        let mut graph = null_mut();
        // SAFETY: the stream is live and captured, and `graph` valid for the call.
        let code = unsafe { self.device.driver().stream_end_capture(self.stream.0, &mut graph) };
        self.device.check(code, "the capture of a library's work")?;
        Ok(OwnGraph::of(self.device, graph))
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        if !self.has_ended && self.device.bind().is_ok() {
            // What was enqueued is not wanted.
            drop(self.finish());
        }
        // SAFETY: the stream is live and not used again.
        self.device.release(|driver| unsafe { driver.stream_destroy(self.stream.0) });
    }
}
