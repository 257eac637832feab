//! Events of the CPU device: a flag that a worker thread raises, with the time. It must not know
//! what stands before or after it in a queue.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::error::Error;

/// A point in the work of a CPU stream.
#[derive(Clone)]
pub(crate) struct CpuEvent {
    state: Arc<State>,
}

struct State {
    completed: Mutex<Option<Completed>>,
    changed: Condvar,
}

#[derive(Clone)]
struct Completed {
    at: Instant,
    failure: Option<Error>,
}

impl CpuEvent {
    pub(super) fn new() -> Self {
        CpuEvent { state: Arc::new(State { completed: Mutex::new(None), changed: Condvar::new() }) }
    }

    /// Raises the event; `failure` is what the stream had failed with by then.
    pub(super) fn complete(&self, failure: Option<Error>) {
        *self.lock() = Some(Completed { at: Instant::now(), failure });
        self.state.changed.notify_all();
    }

    /// Waits for the event; tells what the stream had failed with by then.
    pub(crate) fn wait(&self) -> Option<Error> {
        let waiting = |completed: &mut Option<Completed>| completed.is_none();
        let completed = self.state.changed.wait_while(self.lock(), waiting);
        let completed = completed.unwrap_or_else(PoisonError::into_inner);
        completed.as_ref().and_then(|completed| completed.failure.clone())
    }

    /// When the event was raised, if it has been.
    pub(crate) fn completed(&self) -> Option<Instant> {
        self.lock().as_ref().map(|completed| completed.at)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Completed>> {
        self.state.completed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
