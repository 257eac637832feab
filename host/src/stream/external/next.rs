//! The next work of a burst, which takes the short way: between two calls of a library that each take 10 us and leave the caches to others,
//! each line of code and data that is read costs some nanoseconds.

use std::ffi::c_void;
use std::sync::Arc;

use super::{PendingWork, WorkLine};
use crate::error::Result;
use crate::memory::access::Access;
use crate::stream::Stream;

/// The memory that a work uses.
type Accesses<'a> = [Option<Access<'a>>; 2];

impl WorkLine {
    /// The driver's handle of `stream`, as [`ExternalWork::handle`](super::ExternalWork::handle), if a library may enqueue the next work
    /// of the line there without more ado: it goes on with the burst, and its memory is that stream's alone, and names the burst where
    /// the work writes. Else `None`, and nothing has been done.
    ///
    /// The views behind `accesses` stay borrowed until [`WorkLine::add`] or [`WorkLine::watch_next`]. So no other work takes the memory in
    /// between, and none writes what it holds.
    #[inline]
    pub fn next_handle(&self, stream: &Stream, accesses: &Accesses<'_>) -> Option<*mut c_void> {
        let inner = stream.inner();
        // A burst is on a stream that has taken work of a library: it is no recording, and no default stream.
        let (last, burst) = self.last.as_ref()?;
        if *last != inner.id || !burst.takes_more() {
            return None;
        }
        let outcome = Arc::as_ptr(burst.outcome());
        if !accesses.iter().flatten().all(|access| access.goes_on(inner.id, outcome)) {
            return None;
        }
        inner.backend().handle_if_current()
    }

    /// To be called when a library has enqueued a work on the handle that [`WorkLine::next_handle`] gave. False if the burst has
    /// been closed meanwhile: then [`WorkLine::watch_next`] follows.
    #[inline]
    pub fn add(&self) -> bool {
        self.last.as_ref().is_some_and(|(_, burst)| burst.add())
    }

    /// As [`ExternalWork::watch`](super::ExternalWork::watch), for a work on a handle that [`WorkLine::next_handle`] gave.
    ///
    /// # Errors
    /// If the stream takes no such work.
    #[cold]
    pub fn watch_next(&mut self, stream: &Stream, accesses: &Accesses<'_>) -> Result<Option<PendingWork>> {
        self.watch(stream.inner(), accesses.iter().flatten().map(Access::effect))
    }
}
