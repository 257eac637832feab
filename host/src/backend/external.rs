//! Work that a neighbouring crate gives a stream: by a library that enqueues on the stream's handle, or as a function of the
//! host whose failure is that of the stream.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use super::Fault;
use super::cuda::Burst;
use super::host_fn;
use super::recording::refusal::not_recordable;
use super::writers::{Flow, Line, Sources};
use crate::error::{Error, Result};
use crate::sync::lock;

/// Work on the host; what it returns is how it ended.
pub(crate) type ExternalFn = Box<dyn FnOnce() -> Result<()> + Send>;

/// Work of other crates, of which each kind of stream takes one form.
pub(crate) trait ExternalStream {
    /// Calls `work` in stream order. What it fails with is a failure of the stream, and of all that is named in `flow`.
    fn run_external(&self, _work: ExternalFn, _flow: Flow) -> Result<()> {
        Err(refused())
    }

    /// The driver's handle, for a library that enqueues the next work of a line on it from any thread; the stream's context is
    /// current. The work is to extend the stream's burst, or else ends that.
    fn external_handle(&self, _extends_burst: bool) -> Result<*mut c_void> {
        Err(refused())
    }

    /// To be called when a library has enqueued the next work in `line`. Gives a burst that begins with it.
    fn begin_burst(&self, _line: &Line) -> Result<Arc<Burst>> {
        Err(refused())
    }

    /// Lets later work be of another burst.
    fn end_burst(&self) {}

    /// Whether a burst that was enqueued here has run.
    fn has_ended(&self, _burst: &Burst) -> Result<bool> {
        Err(refused())
    }

    /// Makes waits for the stream return the failures of `sources`, on which work that a library enqueues here rests.
    fn rest_external(&self, _sources: &Sources) {}

    /// Notes a failure of such work.
    fn note_external(&self, _fault: &Arc<Fault>) {}
}

/// Runs `work`; what it failed with.
pub(super) fn run(work: ExternalFn) -> Option<Error> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.err(),
        Err(payload) => Some(Error::HostFnPanic { message: host_fn::text(payload) }),
    }
}

/// Held while functions are made that have an order among all streams, until they are in their streams.
pub(crate) fn in_order() -> MutexGuard<'static, ()> {
    static ORDER: Mutex<()> = Mutex::new(());
    lock(&ORDER)
}

/// Streams of the other form have no such work.
#[cold]
fn refused() -> Error {
    not_recordable("work of another crate", "it is recorded in another way")
}
