//! Events of the CPU device: marks in queues that worker threads raise, with the time. It must not
//! know what stands before or after a mark.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::spin;
use crate::backend::signal::Signal;
use crate::error::{Error, Result};
use crate::event::EventOptions;

/// An event: the mark where it was last recorded.
pub(crate) struct CpuEvent {
    mark: Mutex<Option<CpuMark>>,
    timing: bool,
}

/// A point in the queue of a CPU stream, reached once.
#[derive(Clone)]
pub(crate) struct CpuMark {
    state: Arc<State>,
}

struct State {
    /// Whether the mark has been reached, for those who look without waiting.
    reached: AtomicBool,
    progress: Mutex<Progress>,
    changed: Condvar,
}

enum Progress {
    /// Not yet reached; these are to be raised then.
    Ahead(Vec<Arc<Signal>>),
    Reached(Reached),
}

#[derive(Clone)]
struct Reached {
    at: Instant,
    failure: Option<Error>,
}

impl CpuEvent {
    pub(crate) fn new(options: EventOptions) -> Self {
        CpuEvent { mark: Mutex::new(None), timing: options.has_timing() }
    }

    /// Makes the event stand for `mark` from now on.
    pub(super) fn set(&self, mark: CpuMark) {
        *self.lock() = Some(mark);
    }

    /// Where it was last recorded.
    pub(super) fn mark(&self) -> Option<CpuMark> {
        self.lock().clone()
    }

    /// Waits for the work before the event; tells what its stream had failed with by then.
    pub(crate) fn wait(&self) -> Option<Error> {
        self.mark()?.wait()
    }

    /// Whether the work before the event has run; so it has if the event was never recorded.
    pub(crate) fn is_complete(&self) -> bool {
        self.mark().is_none_or(|mark| mark.reached().is_some())
    }

    /// Raises `signal` when the work before the event has run.
    pub(crate) fn notify(&self, signal: Arc<Signal>) {
        match self.mark() {
            Some(mark) => mark.notify(signal),
            None => signal.raise(),
        }
    }

    /// The time since `start`; both must be complete.
    pub(crate) fn elapsed_since(&self, start: &CpuEvent) -> Result<Duration> {
        let (start, end) = (start.reached_at()?, self.reached_at()?);
        let elapsed = end.checked_duration_since(start);
        elapsed.ok_or(Error::EventTime { reason: "the one given as earlier came later" })
    }

    /// The seconds since `start`, less than 0 if that came later; both must be complete.
    pub(crate) fn seconds_since(&self, start: &CpuEvent) -> Result<f64> {
        let (start, end) = (start.reached_at()?, self.reached_at()?);
        let later = end.saturating_duration_since(start).as_secs_f64();
        Ok(later - start.saturating_duration_since(end).as_secs_f64())
    }

    fn reached_at(&self) -> Result<Instant> {
        if !self.timing {
            return Err(Error::EventTime { reason: "timing is off for one of them" });
        }
        let mark = self.mark().ok_or(Error::EventTime { reason: "one of them has not been recorded" })?;
        let reached = mark.reached().ok_or(Error::EventTime { reason: "one of them was recorded anew" })?;
        Ok(reached.at)
    }

    fn lock(&self) -> MutexGuard<'_, Option<CpuMark>> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CpuMark {
    pub(super) fn new() -> Self {
        let progress = Mutex::new(Progress::Ahead(Vec::new()));
        let reached = AtomicBool::new(false);
        CpuMark { state: Arc::new(State { reached, progress, changed: Condvar::new() }) }
    }

    /// Notes that the mark has been reached; `failure` is what the stream had failed with by then.
    pub(super) fn reach(&self, failure: Option<Error>) {
        let reached = Progress::Reached(Reached { at: Instant::now(), failure });
        let before = std::mem::replace(&mut *self.lock(), reached);
        self.state.reached.store(true, Ordering::Release);
        self.state.changed.notify_all();
        if let Progress::Ahead(signals) = before {
            signals.iter().for_each(|signal| signal.raise());
        }
    }

    /// Waits for the mark; tells what the stream had failed with by then.
    pub(super) fn wait(&self) -> Option<Error> {
        spin::until(|| self.state.reached.load(Ordering::Acquire).then_some(()));
        let ahead = |progress: &mut Progress| matches!(progress, Progress::Ahead(_));
        let progress = self.state.changed.wait_while(self.lock(), ahead);
        match &*progress.unwrap_or_else(PoisonError::into_inner) {
            Progress::Ahead(_) => None,
            Progress::Reached(reached) => reached.failure.clone(),
        }
    }

    fn reached(&self) -> Option<Reached> {
        match &*self.lock() {
            Progress::Ahead(_) => None,
            Progress::Reached(reached) => Some(reached.clone()),
        }
    }

    fn notify(&self, signal: Arc<Signal>) {
        if let Progress::Ahead(signals) = &mut *self.lock() {
            signals.push(signal);
            return;
        }
        signal.raise();
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.state.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
