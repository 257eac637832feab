//! A value that only its creating thread changes, until it ends. Depends on nothing but its locks:
//! `host/tests/loom/graphs.rs` includes it by path and explores all interleavings.

use std::sync::PoisonError;

use crate::sync::thread::{self, ThreadId};
use crate::sync::{Mutex, MutexGuard};

/// A state that is bound to a thread.
pub(crate) struct Bound<S> {
    thread: ThreadId,
    /// `None` once it has ended.
    state: Mutex<Option<S>>,
}

/// Why a state is not accessible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    OtherThread,
    Ended,
}

impl<S> Bound<S> {
    /// Binds a state to this thread.
    pub(crate) fn new(state: S) -> Self {
        Bound { thread: thread::current().id(), state: Mutex::new(Some(state)) }
    }

    /// Calls `work` with the state. Other threads get an error without waiting.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut S) -> R) -> Result<R, Refused> {
        if thread::current().id() != self.thread {
            return Err(Refused::OtherThread);
        }
        self.lock().as_mut().map(work).ok_or(Refused::Ended)
    }

    /// Ends it, from any thread. The first call returns the state.
    pub(crate) fn end(&self) -> Option<S> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
