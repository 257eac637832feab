//! Which work of a stream may have panicked. The record of a panic is the device's, and names no launch. So the launches
//! of a stream that may panic, from one wait for the stream to the next, are an interval with one outcome. A panic that
//! is found is that of every interval of the device that is not known to have ended well; the memory that an interval
//! wrote names it (`crate::writers`).
//!
//! An interval has ended well if a wait for its stream has come to its end, and there is no panic then that nobody has
//! found. Launches that other threads enqueue meanwhile are no part of it: `launching` counts those under way, and the
//! interval is only ended while there are none.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::recent::Recent;
use super::stream::CudaStream;
use crate::access::Access;
use crate::backend::Prepared;
use crate::backend::failure::{Failure, Fault};
use crate::error::{Error, Result};
use crate::grid::LaunchShape;
use crate::kernel::Kernel;
use crate::writers::{Effect, Outcome, Sources, are_named, name};

/// The most streams that are gone and whose failures nobody was told of, and panics of no known stream, that a device
/// remembers.
const KEPT: usize = 64;

/// What a stream has launched, as far as it may have failed.
pub(super) struct Watch {
    /// The outcome of the interval that goes on, null if there is none; it is among `open`, too.
    current: AtomicPtr<Outcome>,
    /// The launches that may panic and are being enqueued.
    launching: AtomicUsize,
    recent: Recent,
    failure: Arc<Failure>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// Those that are not known to have ended well.
    intervals: Vec<Arc<Outcome>>,
    /// Those of other streams on which this one's work rests.
    inherited: Vec<Arc<Outcome>>,
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
        self.watch.launching.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Watch {
    pub(super) fn new() -> Self {
        Watch {
            current: AtomicPtr::new(null_mut()),
            launching: AtomicUsize::new(0),
            recent: Recent::new(),
            failure: Arc::default(),
            open: Mutex::default(),
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
        // Before the load: whoever ends an interval first makes `current` null, and then looks at the count.
        self.launching.fetch_add(1, Ordering::SeqCst);
        let current = self.current.load(Ordering::SeqCst);
        let outcome = if current.is_null() { self.begin_interval() } else { current };
        Launching { watch: self, outcome }
    }

    #[cold]
    fn begin_interval(&self) -> *mut Outcome {
        let mut open = self.open();
        let current = self.current.load(Ordering::SeqCst);
        if !current.is_null() {
            return current;
        }
        let outcome = Arc::<Outcome>::default();
        let address = Arc::as_ptr(&outcome).cast_mut();
        open.intervals.push(outcome);
        self.current.store(address, Ordering::SeqCst);
        address
    }

    /// To be called when a launch has been enqueued: names what it rests on in all that it writes.
    pub(super) fn name<'e>(
        &self,
        effects: impl Iterator<Item = Effect<'e>> + Clone,
        launching: Option<&Launching<'_>>,
    ) {
        let current = match launching {
            Some(launching) => launching.outcome,
            None => self.current.load(Ordering::Relaxed),
        };
        if are_named(effects.clone(), current, launching.is_some()) {
            return;
        }
        let own = launching.and_then(|launching| self.interval(launching.outcome));
        let sources = name(effects, own);
        self.inherit(&sources);
    }

    fn interval(&self, outcome: *const Outcome) -> Option<Arc<Outcome>> {
        self.open().intervals.iter().find(|interval| Arc::as_ptr(interval) == outcome).cloned()
    }

    fn inherit(&self, sources: &Sources) {
        let mut open = self.open();
        for source in sources.iter() {
            open.inherit(source);
        }
    }

    /// As `inherit`, of all that the stream of `earlier` holds, which nobody was told of.
    pub(super) fn join(&self, earlier: &Watch) {
        earlier.failure.pending().iter().for_each(|fault| self.failure.note_shared(fault));
        let intervals = earlier.open().intervals.clone();
        let mut open = self.open();
        intervals.iter().filter(|interval| !interval.is_settled()).for_each(|it| open.inherit(it));
    }

    /// To be called before a wait for the stream: ends the interval.
    pub(super) fn end_interval(&self) -> Ended {
        let mut open = self.open();
        let inherited = std::mem::take(&mut open.inherited);
        let current = self.current.swap(null_mut(), Ordering::SeqCst);
        if self.launching.load(Ordering::SeqCst) > 0 {
            // A launch may be enqueued after what is waited for, and be part of it.
            self.current.store(current, Ordering::SeqCst);
            return Ended { intervals: Vec::new(), inherited };
        }
        Ended { intervals: open.intervals.clone(), inherited }
    }

    /// To be called after it, when a panic has been looked for.
    pub(super) fn forget(&self, ended: Ended) {
        let mut open = self.open();
        open.intervals.retain(|interval| !ended.intervals.iter().any(|it| Arc::ptr_eq(it, interval)));
        drop(open);
        self.note(&ended.inherited);
    }

    /// Notes the failures of others on which the stream's work rests.
    pub(super) fn note_inherited(&self) {
        let inherited = std::mem::take(&mut self.open().inherited);
        self.note(&inherited);
        let unknown = inherited.into_iter().filter(|source| !source.is_settled());
        self.open().inherited.extend(unknown);
    }

    fn note(&self, inherited: &[Arc<Outcome>]) {
        inherited
            .iter()
            .filter_map(|source| source.fault())
            .for_each(|fault| self.failure.note_shared(fault));
    }

    /// Settles what is open as failed with `fault`; whether there was anything.
    fn fail(&self, fault: &Arc<Fault>) -> bool {
        let open = self.open();
        self.current.store(null_mut(), Ordering::SeqCst);
        // All of them, so no shortcut.
        let settled = open.intervals.iter().filter(|interval| interval.settle(Some(fault.clone()))).count();
        drop(open);
        if settled > 0 {
            self.failure.note_shared(fault);
        }
        settled > 0
    }

    fn is_settled(&self) -> bool {
        self.open().intervals.iter().all(|interval| interval.is_settled())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        lock(&self.open)
    }
}

impl Open {
    fn inherit(&mut self, source: &Arc<Outcome>) {
        let known = self.intervals.iter().chain(&self.inherited).any(|known| Arc::ptr_eq(known, source));
        if !known {
            self.inherited.push(source.clone());
        }
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
    /// Held by whoever looks for a panic.
    looking: Mutex<()>,
    /// Whether a panic has been taken out of the record, and is not yet that of every interval.
    is_spreading: AtomicBool,
}

struct Gone {
    watch: Arc<Watch>,
    has_run: Box<dyn Fn() -> bool + Send>,
}

impl Watches {
    pub(super) fn new() -> Self {
        let (live, gone, unknown, looking) = Default::default();
        Watches { live, gone, unknown, looking, is_spreading: AtomicBool::new(false) }
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

    /// Whether a panic is being looked for by another thread, which may have found one.
    #[inline]
    pub(super) fn is_spreading(&self) -> bool {
        self.is_spreading.load(Ordering::SeqCst)
    }

    /// Looks for a panic with `take`, which takes it out of the record; if there is one, it is that of all that is open.
    /// Then settles the rest of `ended` as good.
    pub(super) fn look(
        &self,
        ended: &[Arc<Outcome>],
        take: impl FnOnce() -> Result<Option<Error>>,
    ) -> Result<()> {
        let _alone = lock(&self.looking);
        // Before the record is free again: who finds it free must not take what has failed for good.
        self.is_spreading.store(true, Ordering::SeqCst);
        let taken = take();
        if let Ok(Some(error)) = &taken {
            self.fail(Arc::new(Fault::new(error.clone())));
        }
        self.is_spreading.store(false, Ordering::SeqCst);
        taken?;
        ended.iter().for_each(|interval| {
            interval.settle(None);
        });
        Ok(())
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
