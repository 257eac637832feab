//! Which work of a stream may have panicked. The record of a panic is the device's, and names no launch. So the launches
//! of a stream that may panic, from one wait for the stream to the next, are an interval with one outcome. A panic that
//! is found is that of every interval of the device that is not known to have ended well; the memory that an interval
//! wrote names it (`crate::writers`).
//!
//! An interval has ended well if a wait for its stream has come to its end, and there is no panic then that nobody has
//! found. Launches that other threads enqueue meanwhile are no part of it: those under way are counted, and the interval
//! is only ended while there are none (`interval.rs`).

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::event::CudaEvent;
use super::interval::{Intervals, Search};
use super::recent::Recent;
use super::stream::CudaStream;
use crate::access::Access;
use crate::backend::failure::{Failure, Fault};
use crate::backend::{Prepared, look_for_panics};
use crate::error::{Error, Result};
use crate::grid::LaunchShape;
use crate::kernel::Kernel;
use crate::writers::{Effect, Outcome, are_named, name};

/// The most streams that are gone and whose failures nobody was told of, and panics of no known stream, that a device
/// remembers.
const KEPT: usize = 64;

/// What a stream has launched, as far as it may have failed.
pub(super) struct Watch {
    intervals: Intervals<Outcome>,
    recent: Recent,
    failure: Arc<Failure>,
    /// The intervals of other streams on which this one's work rests.
    inherited: Mutex<Vec<Arc<Outcome>>>,
}

/// What a wait for a stream finds the outcome of.
#[derive(Default)]
pub(super) struct Ended {
    intervals: Vec<Arc<Outcome>>,
    inherited: Vec<Arc<Outcome>>,
}

/// A launch that may panic, and is being enqueued.
pub(crate) struct Launching<'a> {
    watch: &'a Watch,
    outcome: *const Outcome,
}

impl Drop for Launching<'_> {
    fn drop(&mut self) {
        self.watch.intervals.done();
    }
}

impl Watch {
    pub(super) fn new() -> Self {
        Watch {
            intervals: Intervals::new(),
            recent: Recent::new(),
            failure: Arc::default(),
            inherited: Mutex::default(),
        }
    }

    pub(super) fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Where failures of host functions are noted, and those of the stream's kernels once they are found.
    pub(super) fn failure(&self) -> &Arc<Failure> {
        &self.failure
    }

    /// To be held until a launch that may panic has been enqueued, and what it writes named.
    #[inline]
    pub(super) fn begin(&self) -> Launching<'_> {
        Launching { watch: self, outcome: self.intervals.begin() }
    }

    /// To be called when a launch has been enqueued: names what it rests on in all that it writes.
    pub(super) fn name<'e>(
        &self,
        effects: impl Iterator<Item = Effect<'e>> + Clone,
        launching: Option<&Launching<'_>>,
    ) {
        let current = match launching {
            Some(launching) => launching.outcome,
            None => self.intervals.current(),
        };
        if are_named(effects.clone(), current, launching.is_some()) {
            return;
        }
        let own = launching.and_then(|launching| self.intervals.find(launching.outcome));
        let sources = name(effects, own);
        self.inherit(sources.iter());
    }

    fn inherit<'s>(&self, sources: impl Iterator<Item = &'s Arc<Outcome>>) {
        let own = self.intervals.open().clone();
        let mut inherited = lock(&self.inherited);
        for source in sources {
            if !own.iter().chain(inherited.iter()).any(|known| Arc::ptr_eq(known, source)) {
                inherited.push(source.clone());
            }
        }
    }

    /// As `inherit`, of all that the stream of `earlier` holds, which nobody was told of.
    pub(super) fn join(&self, earlier: &Watch) {
        earlier.failure.pending().iter().for_each(|fault| self.failure.note_shared(fault));
        let intervals = earlier.intervals.open().clone();
        self.inherit(intervals.iter().filter(|interval| !interval.is_settled()));
    }

    /// To be called before a wait for the stream: ends the interval.
    pub(super) fn end_interval(&self) -> Ended {
        let inherited = std::mem::take(&mut *lock(&self.inherited));
        Ended { intervals: self.intervals.end(), inherited }
    }

    /// To be called after it, when a panic has been looked for.
    pub(super) fn forget(&self, ended: Ended) {
        self.intervals.forget(&ended.intervals);
        self.note(&ended.inherited);
    }

    /// Notes the failures of others on which the stream's work rests.
    pub(super) fn note_inherited(&self) {
        let mut inherited = lock(&self.inherited);
        self.note(&inherited);
        inherited.retain(|source| !source.is_settled());
    }

    fn note(&self, inherited: &[Arc<Outcome>]) {
        // A device that cannot be asked says so to those who wait for it.
        let _asked = look_for_panics(inherited);
        inherited
            .iter()
            .filter_map(|source| source.fault())
            .for_each(|fault| self.failure.note_shared(fault));
    }

    /// Settles what is open as failed with `fault`; whether there was anything.
    fn fail(&self, fault: &Arc<Fault>) -> bool {
        let is_any = self.intervals.fail(|interval| interval.settle(Some(fault.clone())));
        if is_any {
            self.failure.note_shared(fault);
        }
        is_any
    }

    fn is_settled(&self) -> bool {
        self.intervals.open().iter().all(|interval| interval.is_settled())
    }
}

impl Ended {
    pub(super) fn intervals(&self) -> &[Arc<Outcome>] {
        &self.intervals
    }
}

impl CudaStream {
    /// To be called before a launch, and held until it has been enqueued and named.
    #[inline]
    pub(crate) fn begin_launch(&self, may_panic: bool) -> Option<Launching<'_>> {
        may_panic.then(|| self.watch().begin())
    }

    /// To be called when a launch with these effects has been enqueued.
    #[inline]
    pub(crate) fn name_writers<'e>(
        &self,
        effects: impl Iterator<Item = Effect<'e>> + Clone,
        launching: Option<Launching<'_>>,
    ) {
        self.watch().name(effects, launching.as_ref());
    }

    pub(crate) fn end_interval(&self) -> Vec<Arc<Outcome>> {
        self.watch().intervals.end()
    }

    /// Waits for `event`, recorded here when `ended` had been ended, and reports as `synchronize` does.
    pub(crate) fn finish(&self, event: &CudaEvent, ended: &[Arc<Outcome>]) -> Result<()> {
        event.wait_unheard()?;
        self.device().look_for_panic(ended)?;
        self.watch().intervals.forget(ended);
        self.report()
    }

    /// As `run_after`; what has failed there has failed here, too.
    pub(crate) fn join(&self, earlier: &CudaStream) -> Result<()> {
        self.run_after(earlier)?;
        if !Arc::ptr_eq(self.watch(), earlier.watch()) {
            self.watch().join(earlier.watch());
        }
        Ok(())
    }

    /// As `launch`, of a kernel that may panic, or that uses memory that names writers: names them in all that it writes.
    ///
    /// # Safety
    /// As for `launch`; `accesses` are those of the parameters.
    #[inline(never)]
    pub(crate) unsafe fn launch_watched(
        &self,
        prepared: Prepared,
        kernel: &'static Kernel,
        shape: &LaunchShape,
        params: &[*const c_void],
        accesses: &[Access<'_>],
    ) -> Result<()> {
        let launching = self.begin_launch(prepared.may_panic);
        // SAFETY: passed on.
        unsafe { self.launch(prepared.function, kernel, shape, params)? };
        self.name_writers(accesses.iter().map(Access::effect), launching);
        Ok(())
    }
}

/// The watches of a device's streams.
pub(super) struct Watches {
    live: Mutex<Vec<Weak<Watch>>>,
    /// Of streams that are gone, each with a way to ask whether its work has run.
    gone: Mutex<Vec<Gone>>,
    /// Panics of which no stream is known.
    unknown: Mutex<Vec<Arc<Fault>>>,
    search: Search,
}

struct Gone {
    watch: Arc<Watch>,
    has_run: Box<dyn Fn() -> bool + Send>,
}

impl Watches {
    pub(super) fn new() -> Self {
        let (live, gone, unknown) = Default::default();
        Watches { live, gone, unknown, search: Search::new() }
    }

    pub(super) fn add(&self, watch: &Arc<Watch>) {
        let mut live = lock(&self.live);
        live.retain(|watch| watch.strong_count() > 0);
        live.push(Arc::downgrade(watch));
    }

    /// Those of all streams, and of those that are gone as far as there is something to tell.
    pub(super) fn all(&self) -> Vec<Arc<Watch>> {
        lock(&self.live).iter().filter_map(Weak::upgrade).collect()
    }

    /// Keeps the watch of a stream that is gone, if anything is left of it.
    pub(super) fn keep(&self, watch: &Arc<Watch>, has_run: impl FnOnce() -> Box<dyn Fn() -> bool + Send>) {
        if watch.is_settled() && watch.failure.pending().is_empty() {
            return;
        }
        let mut gone = lock(&self.gone);
        if gone.len() >= KEPT {
            gone.retain(|gone| !gone.watch.is_settled());
        }
        gone.push(Gone { watch: watch.clone(), has_run: has_run() });
    }

    /// Ends the intervals of streams that are gone, whose work has run.
    pub(super) fn end_gone(&self) -> Vec<(Arc<Watch>, Ended)> {
        let gone = lock(&self.gone);
        let run = gone.iter().filter(|gone| !gone.watch.is_settled() && (gone.has_run)());
        run.map(|gone| (gone.watch.clone(), gone.watch.end_interval())).collect()
    }

    /// Forgets streams that are gone and of which everything has been told.
    pub(super) fn forget_gone(&self) {
        lock(&self.gone).retain(|gone| {
            gone.watch.failure.forget_told_by_device();
            !gone.watch.is_settled() || !gone.watch.failure.pending().is_empty()
        });
    }

    pub(super) fn search(&self) -> &Search {
        &self.search
    }

    /// Looks for a panic with `take`, which takes it out of the record; if there is one, it is that of all that is open.
    /// Then settles the rest of `ended` as good.
    pub(super) fn look(
        &self,
        ended: &[Arc<Outcome>],
        take: impl FnOnce() -> Result<Option<Error>>,
    ) -> Result<()> {
        let settle = || {
            for interval in ended {
                interval.settle(None);
            }
        };
        self.search.search(take, |error| self.fail(Arc::new(Fault::new(error))), settle)
    }

    fn fail(&self, fault: Arc<Fault>) {
        let failed = self.all().iter().filter(|watch| watch.fail(&fault)).count();
        let mut unknown = lock(&self.unknown);
        if failed == 0 && unknown.len() < KEPT {
            unknown.push(fault);
        }
    }

    /// Tells of a failure that no synchronisation of the device has told of.
    pub(super) fn tell(&self, watches: &[Arc<Watch>]) -> Option<Error> {
        let unknown = lock(&self.unknown).pop();
        let of_streams = || watches.iter().flat_map(|watch| watch.failure.pending());
        unknown.into_iter().chain(of_streams()).find_map(|fault| fault.tell_device())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
