//! Work of neighbouring crates as nodes of graphs.

use std::ffi::c_void;
use std::sync::Arc;

use super::ExternalWork;
use crate::backend::cuda::Capturing;
use crate::backend::operation::external::NodeWork;
use crate::backend::operation::{ExternalNode, Operation, Participant};
use crate::backend::recording::RecordingStream;
use crate::device::context::gpu;
use crate::error::Result;
use crate::stream::announcing::Announcing;

/// What a library enqueues now, to become a node.
#[doc(hidden)]
pub struct CapturedWork<'a> {
    work: ExternalWork<'a>,
    capturing: Capturing,
}

impl<'a> ExternalWork<'a> {
    /// Adds a node that calls, at each launch of the graph, the function that `make` returns when the launch is enqueued. If that
    /// fails, so does the launch.
    ///
    /// # Errors
    /// If the recording has ended, or another thread records.
    ///
    /// # Safety
    /// As for [`ExternalWork::run`], for each of these functions.
    ///
    /// # Panics
    /// If its streams are none of a recording.
    pub unsafe fn record(
        self,
        label: String,
        participants: Vec<Arc<dyn Participant>>,
        make: impl Fn() -> Box<dyn FnOnce() -> Result<()> + Send> + Send + Sync + 'static,
    ) -> Result<()> {
        self.add(ExternalNode { work: NodeWork::Calls(Box::new(make)), label, participants })
    }

    /// Begins to capture what a library enqueues on a stream of the same device.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) for other devices than GPUs; or if the device fails.
    pub fn capture(self) -> Result<CapturedWork<'a>> {
        let device = gpu(self.stream.device(), "ExternalWork::capture")?;
        Ok(CapturedWork { capturing: Capturing::begin(device)?, work: self })
    }

    fn add(self, node: ExternalNode) -> Result<()> {
        let streams: Vec<&RecordingStream> =
            self.announcing.iter().filter_map(Announcing::recording).collect();
        RecordingStream::add_on_all(&streams, Operation::External(node)).map(drop)
    }
}

impl CapturedWork<'_> {
    /// The driver's handle of the stream that is captured, a `CUstream`.
    pub fn handle(&self) -> *mut c_void {
        self.capturing.handle()
    }

    /// Adds what has been enqueued as a node. Graphs with it hold the participants until the driver has destroyed theirs.
    ///
    /// # Errors
    /// If the capture has failed; and as [`ExternalWork::record`].
    pub fn finish(self, label: String, participants: Vec<Arc<dyn Participant>>) -> Result<()> {
        let work = NodeWork::Captured(self.capturing.end()?);
        self.work.add(ExternalNode { work, label, participants })
    }
}
