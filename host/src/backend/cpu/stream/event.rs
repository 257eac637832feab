//! Events of the CPU device: marks in queues that worker threads reach, with time stamps.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::backend::cpu::execute::mark::Mark;
use crate::backend::cuda::TIMED;
use crate::backend::event::BackendEvent;
use crate::backend::failure::{Failure, Fault};
use crate::backend::signal::Signal;
use crate::error::{Error, Result};
use crate::sync::lock;

/// An event: the mark where it was last recorded.
pub(crate) struct CpuEvent {
    mark: Mutex<Option<CpuMark>>,
    timing: bool,
}

/// A point in the queue of a CPU stream, reached once.
#[derive(Clone)]
pub(crate) struct CpuMark(Mark<Reached>);

/// When it was reached, and what the stream had failed with by then.
#[derive(Clone)]
struct Reached {
    at: Instant,
    /// How many failures there had been.
    failed: u64,
    /// The unreported ones among them.
    faults: Vec<Arc<Fault>>,
}

impl CpuEvent {
    pub(crate) fn new(timing: bool) -> Self {
        CpuEvent { mark: Mutex::new(None), timing }
    }

    /// Makes the event stand for `mark` from now on.
    pub(crate) fn set(&self, mark: CpuMark) {
        *lock(&self.mark) = Some(mark);
    }

    /// Where it was last recorded.
    pub(crate) fn mark(&self) -> Option<CpuMark> {
        lock(&self.mark).clone()
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
        let reached = mark.reached().ok_or(Error::EventTime { reason: "one of them was recorded again" })?;
        Ok(reached.at)
    }
}

impl BackendEvent for CpuEvent {
    fn launch_event_refusal(&self) -> Option<&'static str> {
        self.timing.then_some(TIMED)
    }

    fn synchronize(&self) -> Result<()> {
        if let Some(mark) = self.mark() {
            mark.wait();
        }
        Ok(())
    }

    fn is_complete(&self) -> Result<bool> {
        Ok(self.mark().is_none_or(|mark| mark.is_reached()))
    }

    fn notify(&self, signal: Arc<Signal>) -> Result<()> {
        match self.mark() {
            Some(mark) => mark.notify(signal),
            None => signal.raise(),
        }
        Ok(())
    }

    /// If it tells times, and the work before it has run.
    fn host_time(&self) -> Option<Instant> {
        self.reached_at().ok()
    }
}

impl CpuMark {
    pub(crate) fn new() -> Self {
        CpuMark(Mark::new())
    }

    /// Notes that the mark has been reached; `failure` is what the stream has failed with.
    pub(crate) fn reach(&self, failure: &Failure) {
        let (failed, faults) = (failure.position(), failure.pending());
        self.0.reach(Reached { at: Instant::now(), failed, faults });
    }

    /// As `reach`, in a launch of a graph: what has failed is what `stream` had failed with before, and then `own`.
    pub(crate) fn reach_in(&self, stream: &Failure, own: &Failure) {
        let faults = [stream.pending(), own.pending()].concat();
        self.0.reach(Reached { at: Instant::now(), failed: stream.position(), faults });
    }

    /// Waits for the mark; returns its stream's number of failures by then.
    pub(crate) fn wait(&self) -> u64 {
        self.0.wait().failed
    }

    /// Waits for the mark; the failures that its stream had not reported by then.
    pub(crate) fn faults(&self) -> Vec<Arc<Fault>> {
        self.0.wait().faults
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.0.reached().is_some()
    }

    fn reached(&self) -> Option<Reached> {
        self.0.reached()
    }

    fn notify(&self, signal: Arc<Signal>) {
        self.0.notify(move || signal.raise());
    }
}
