//! Bursts: works of a library that follow each other on a stream and end as one. An event behind each work would cost more than all
//! else that a small collective operation takes here. So a burst gets one only when other work is about to follow; until then the
//! burst has ended when the stream is idle.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::{CudaStream, Owner, Tail};
use crate::backend::stream::BackendStream;
use crate::backend::writers::{Line, Outcome};
use crate::error::Result;
use crate::sync::lock;

/// The most works of a burst. If one of them fails, so do all. Bursts of 128 works took the same time for each.
const MOST: usize = 32;

/// The bit of `Burst::works` that says that it takes no more.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// Works of one line that follow each other on a stream.
pub(crate) struct Burst {
    outcome: Arc<Outcome>,
    /// How many works it has, which one atomic addition counts: to lock the stream for each would cost several. A work is counted when
    /// it has been enqueued. So those that were counted before `CLOSED` was set come before what is enqueued after that.
    works: AtomicUsize,
    /// Whether it had not ended when that was asked.
    is_old: AtomicBool,
    /// Marks its end, once other work may have followed.
    end: OnceLock<Result<Tail>>,
}

impl Burst {
    fn new(outcome: Outcome) -> Self {
        let (works, is_old) = (AtomicUsize::new(1), AtomicBool::new(false));
        Burst { outcome: Arc::new(outcome), works, is_old, end: OnceLock::new() }
    }

    /// That of all of its works.
    #[inline]
    pub(crate) fn outcome(&self) -> &Arc<Outcome> {
        &self.outcome
    }

    /// Whether the next work of its line on its stream may be part of it.
    #[inline]
    pub(crate) fn takes_more(&self) -> bool {
        self.works.load(Ordering::Relaxed) < MOST && !self.is_old.load(Ordering::Relaxed)
    }

    /// Counts a work that has been enqueued right behind it, unless it has been closed since `takes_more`.
    #[inline]
    pub(crate) fn add(&self) -> bool {
        self.works.fetch_add(1, Ordering::AcqRel) & CLOSED == 0
    }

    /// From now on no work is added.
    fn close(&self) {
        self.works.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// As `close`, unless there is a work more than `works`.
    fn close_with(&self, works: usize) -> bool {
        self.works.compare_exchange(works, works | CLOSED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn end_at(&self, tail: Result<Tail>) {
        // Set once: the burst is no longer the stream's.
        let _ended_before = self.end.set(tail);
    }
}

impl CudaStream {
    /// To be called before other work than a burst's is enqueued.
    #[inline]
    pub(super) fn end_burst(&self) {
        if self.has_burst.load(Ordering::Relaxed) {
            self.end_burst_if(|_| true);
        }
    }

    #[cold]
    fn end_burst_if(&self, is_over: impl FnOnce(&Burst) -> bool) {
        let mut current = lock(&self.burst);
        if let Some(burst) = current.take_if(|burst| is_over(burst)) {
            // Before the event, so that this covers all that are counted.
            burst.close();
            burst.end_at(self.tail());
            self.has_burst.store(false, Ordering::Release);
        }
    }

    /// A burst for a work that has been enqueued, and is the next in `line`.
    #[cold]
    pub(super) fn begin_burst(&self, line: &Line) -> Arc<Burst> {
        let mut current = lock(&self.burst);
        if let Some(earlier) = current.take() {
            earlier.close();
            earlier.end_at(self.tail());
        }
        let burst = Arc::new(Burst::new(line.next()));
        let is_ours = matches!(self.owner, Owner::Us);
        if is_ours {
            *current = Some(burst.clone());
        } else {
            // Others enqueue work here, of which this crate is not told.
            burst.close();
            burst.end_at(self.tail());
        }
        self.has_burst.store(is_ours, Ordering::Release);
        burst
    }

    /// Whether a burst that was enqueued here has run. Does not wait; unless the answer is no, later work is not part of it.
    pub(super) fn has_ended(&self, burst: &Burst) -> Result<bool> {
        self.query_burst(burst).inspect_err(|_| self.end_this(burst))
    }

    fn query_burst(&self, burst: &Burst) -> Result<bool> {
        if let Some(end) = burst.end.get() {
            return end.as_ref().map_err(Clone::clone)?.is_complete();
        }
        if self.is_captured()? {
            return Ok(false); // A query would end the capture.
        }
        let works = burst.works.load(Ordering::Acquire);
        if !self.is_complete()? {
            self.note_old(burst);
            return Ok(false);
        }
        // Locked only now: queries may wait in the driver.
        let mut current = lock(&self.burst);
        if !burst.close_with(works) {
            return Ok(false);
        }
        if current.take_if(|current| std::ptr::eq(&**current, burst)).is_some() {
            self.has_burst.store(false, Ordering::Release);
        }
        Ok(true)
    }

    /// Notes that a burst has not ended: later work is of another one. Where others may enqueue work that this crate is not told of,
    /// the second note marks the end, so that what they enqueue from then on does not count.
    fn note_old(&self, burst: &Burst) {
        let was_old = burst.is_old.swap(true, Ordering::Relaxed);
        if was_old && self.is_handed_out.load(Ordering::Relaxed) {
            self.end_this(burst);
        }
    }

    fn end_this(&self, burst: &Burst) {
        self.end_burst_if(|current| std::ptr::eq(current, burst));
    }
}
