//! Calls that announce buffers to a recording before they add a node, and that may fail in between.

use crate::backend::recording::RecordingStream;
use crate::stream::StreamInner;

/// A call that orders memory on a stream and then enqueues. When it ends, nothing that it has announced to a recording
/// remains. So a call that is refused, or has nothing to do, leaves no trace in the graph.
pub(crate) struct Announcing<'a>(Option<&'a RecordingStream>);

impl<'a> Announcing<'a> {
    /// Held while uses of memory are announced to `stream`, and until the node is added.
    pub(crate) fn on(stream: &'a StreamInner) -> Self {
        Announcing(stream.recording())
    }

    /// What the uses are announced to.
    pub(crate) fn recording(&self) -> Option<&'a RecordingStream> {
        self.0
    }
}

impl Drop for Announcing<'_> {
    fn drop(&mut self) {
        if let Some(recording) = self.0 {
            recording.retract();
        }
    }
}
