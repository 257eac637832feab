//! Finds the work of a stream that has panicked. The launches of a stream that may panic, from one wait for the stream to the
//! next, are an interval with one outcome. They get a separate failure record, so a panic that is found
//! there is theirs alone; the memory that an interval wrote names it (`crate::backend::writers`).
//!
//! An interval has ended well if a wait for its stream has come to its end, and there is no panic in its record then.
//! Launches that other threads enqueue meanwhile are no part of it: those under way are counted, and the interval
//! is only ended while there are none (`interval.rs`).
//!
//! A graph has its own record, which each of its launches lends to the interval that it is part of. If two are on the
//! way, a panic there is that of both.

use std::ffi::c_void;
use std::ptr::{from_ref, null};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::CudaStream;
use super::event::CudaEvent;
use super::interval::{Ended, Intervals};
use super::recent::Recent;
use crate::backend::Launch;
use crate::backend::cuda::feedback::Lent;
use crate::backend::event::BackendEvent;
use crate::backend::failure::{Failure, Fault};
use crate::backend::writers::{Effect, Outcome, Sources, are_named, name};
use crate::error::{Error, Result};
use crate::sync::lock;

/// The most streams that are gone and whose unreported failures a device remembers.
const KEPT: usize = 64;

/// The parameters of a launch that need no allocation to be put before the record's address.
const FEW: usize = 31;

/// What a stream has launched, as far as it may have failed.
pub(crate) struct Watch {
    intervals: Intervals<Outcome>,
    recent: Recent,
    failure: Arc<Failure>,
    /// The intervals of other streams on which this one's work rests.
    inherited: Mutex<Vec<Arc<Outcome>>>,
}

/// What a wait for a stream finds the outcome of.
pub(crate) type EndedIntervals = Ended<Outcome>;

/// The failure records of an interval: its own, and those of the graphs that were launched in it.
pub(crate) struct Records {
    watch: Weak<Watch>,
    /// What its launches are given.
    address: u64,
    /// Until all of its work has run.
    lent: Mutex<Vec<Arc<Lent>>>,
}

impl Records {
    fn new(watch: &Arc<Watch>, own: Lent) -> Self {
        let address = own.address();
        Records { watch: Arc::downgrade(watch), address, lent: Mutex::new(vec![Arc::new(own)]) }
    }

    /// Settles `outcome`, which has these, as failed if there is a panic in one of them.
    pub(crate) fn look(&self, outcome: &Outcome) -> Result<()> {
        let lent = lock(&self.lent);
        // It ends when its failures can no longer be queried and none can follow.
        let Some(watch) = self.watch.upgrade() else { return Ok(()) };
        for lent in lent.iter() {
            let Some(fault) = lent.find(&watch.recent)? else { continue };
            // First, so that a thread that sees the outcome also sees the failure.
            watch.failure.note_shared(&fault);
            watch.intervals.leave(outcome);
            outcome.settle(Some(fault));
            break;
        }
        Ok(())
    }

    fn add(&self, graph: &Arc<Lent>) {
        let mut lent = lock(&self.lent);
        if !lent.iter().any(|known| Arc::ptr_eq(known, graph)) {
            lent.push(graph.clone());
        }
    }

    /// Gives back the records that were lent to it. The work has run, and its outcome is settled.
    fn release(&self) {
        lock(&self.lent).clear();
    }
}

impl Drop for Records {
    /// Work that was not waited for may still write to what it was lent.
    fn drop(&mut self) {
        let lent = self.lent.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(lent).into_iter().for_each(std::mem::forget);
    }
}

/// A launch that may panic, and is being enqueued.
pub(crate) struct Launching<'a> {
    watch: &'a Watch,
    outcome: *const Outcome,
}

impl Launching<'_> {
    fn records(&self) -> Option<&Records> {
        // SAFETY: an interval that a launch has begun in is open until it is done, and what is open is kept alive.
        unsafe { (*self.outcome).records() }
    }

    /// The address of the record, for the kernel.
    fn record(&self) -> u64 {
        self.records().map_or(0, |records| records.address)
    }

    /// To be called before a graph is launched that has this record.
    pub(crate) fn add(&self, graph: &Arc<Lent>) {
        if let Some(records) = self.records() {
            records.add(graph);
        }
    }
}

impl Drop for Launching<'_> {
    fn drop(&mut self) {
        self.watch.intervals.done();
    }
}

impl Watch {
    pub(crate) fn new() -> Self {
        Watch {
            intervals: Intervals::new(),
            recent: Recent::new(),
            failure: Arc::default(),
            inherited: Mutex::default(),
        }
    }

    pub(crate) fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Where failures of host functions are noted, and those of the stream's kernels once they are found.
    pub(crate) fn failure(&self) -> &Arc<Failure> {
        &self.failure
    }

    /// To be called when a launch has been enqueued: names what it rests on in all that it writes.
    pub(crate) fn name<'e>(
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

    /// To be called for work of a library, which rests on `sources`.
    pub(super) fn rest(&self, sources: &Sources) {
        // No wait for the stream need come for long.
        lock(&self.inherited).retain(|source| !source.is_settled() || source.fault().is_some());
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

    /// As `inherit`, of all that the stream of `earlier` holds unreported.
    pub(crate) fn join(&self, earlier: &Watch) {
        earlier.failure.pending().iter().for_each(|fault| self.failure.note_shared(fault));
        let intervals = earlier.intervals.open().clone();
        self.inherit(intervals.iter().filter(|interval| !interval.is_settled()));
    }

    /// To be called before a wait for the stream, or for a point in it (`must`: for the stream, and the wait comes now).
    pub(crate) fn end(&self, must: bool) -> EndedIntervals {
        self.intervals.end(must)
    }

    /// To be called after it: finds out how what had been ended has gone.
    pub(crate) fn settle(&self, ended: &EndedIntervals) -> Result<()> {
        ended.intervals.iter().try_for_each(|interval| interval.look())?;
        if !ended.come_before {
            return Ok(());
        }
        for interval in &ended.intervals {
            interval.settle(None);
            interval.records().into_iter().for_each(Records::release);
        }
        self.intervals.forget(&ended.intervals);
        Ok(())
    }

    /// The failures of intervals that began after those.
    fn faults_after(&self, ended: &EndedIntervals) -> Vec<Arc<Fault>> {
        let is_before = |interval: &Arc<Outcome>| ended.intervals.iter().any(|it| Arc::ptr_eq(it, interval));
        let open = self.intervals.open();
        open.iter().filter(|interval| !is_before(interval)).filter_map(|it| it.fault().cloned()).collect()
    }

    /// Notes the failures of others on which the stream's work rests; what has not run stays.
    pub(crate) fn note_inherited(&self) {
        let mut inherited = lock(&self.inherited);
        for source in inherited.iter() {
            // A device that cannot be asked says so to those who wait for it.
            let _asked = source.look();
            source.fault().into_iter().for_each(|fault| self.failure.note_shared(fault));
        }
        inherited.retain(|source| !source.is_settled());
    }

    /// Whether there is work that was not waited for.
    fn is_open(&self) -> bool {
        !self.intervals.open().is_empty()
    }
}

impl CudaStream {
    /// To be called before a launch, and held until it has been enqueued and named.
    #[inline]
    pub(crate) fn begin_launch(&self, may_panic: bool) -> Result<Option<Launching<'_>>> {
        if !may_panic {
            return Ok(None);
        }
        let watch = self.watch();
        let make = || Ok::<_, Error>(Outcome::of_records(Records::new(watch, Lent::new(self.device())?)));
        Ok(Some(Launching { watch, outcome: watch.intervals.begin(make)? }))
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

    /// Waits for `event`, recorded here when `ended` had been ended, and reports as `synchronize` does.
    pub(crate) fn finish(&self, event: &CudaEvent, ended: &EndedIntervals) -> Result<()> {
        event.synchronize()?;
        self.watch().settle(ended)?;
        self.report_except(&self.watch().faults_after(ended))
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
    /// As for `launch`; `effects` are those of the parameters.
    #[inline(never)]
    pub(crate) unsafe fn launch_watched<'e>(
        &self,
        launch: Launch<'_>,
        effects: impl Iterator<Item = Effect<'e>> + Clone,
    ) -> Result<()> {
        let launching = self.begin_launch(launch.prepared.may_panic)?;
        // SAFETY: passed on; a kernel that may panic takes the address of a record after its own parameters.
        let enqueue = |params: &[*const c_void]| unsafe { self.launch(Launch { params, ..launch }) };
        match &launching {
            Some(launching) => with_record(launch.params, &launching.record(), enqueue)?,
            None => enqueue(launch.params)?,
        }
        self.name_writers(effects, launching);
        Ok(())
    }
}

/// Calls `launch` with the parameters of a kernel that may panic: its own, and behind them the address of a record.
pub(crate) fn with_record<R>(
    params: &[*const c_void],
    record: &u64,
    launch: impl FnOnce(&[*const c_void]) -> R,
) -> R {
    let record: *const c_void = from_ref(record).cast();
    if params.len() > FEW {
        return launch(&[params, &[record]].concat());
    }
    let mut all = [null(); FEW + 1];
    all[..params.len()].copy_from_slice(params);
    all[params.len()] = record;
    launch(&all[..=params.len()])
}

/// The watches of a device's streams.
pub(crate) struct Watches {
    live: Mutex<Vec<Weak<Watch>>>,
    /// Of streams that are gone, each with a way to ask whether its work has run.
    gone: Mutex<Vec<Gone>>,
}

struct Gone {
    watch: Arc<Watch>,
    has_run: Box<dyn Fn() -> bool + Send>,
}

impl Watches {
    pub(crate) fn new() -> Self {
        Watches { live: Mutex::default(), gone: Mutex::default() }
    }

    pub(crate) fn add(&self, watch: &Arc<Watch>) {
        let mut live = lock(&self.live);
        live.retain(|watch| watch.strong_count() > 0);
        live.push(Arc::downgrade(watch));
    }

    /// Those of all streams, and of those that are gone as far as there is something to tell.
    pub(crate) fn all(&self) -> Vec<Arc<Watch>> {
        lock(&self.live).iter().filter_map(Weak::upgrade).collect()
    }

    /// Keeps the watch of a stream that is gone, if anything is left of it.
    pub(crate) fn keep(&self, watch: &Arc<Watch>, has_run: impl FnOnce() -> Box<dyn Fn() -> bool + Send>) {
        if !watch.is_open() && watch.failure.pending().is_empty() {
            return;
        }
        let mut gone = lock(&self.gone);
        if gone.len() >= KEPT {
            gone.retain(|gone| gone.watch.is_open());
        }
        gone.push(Gone { watch: watch.clone(), has_run: has_run() });
    }

    /// Settles the outcome of destroyed streams whose work has run, and removes those whose failures have all been
    /// reported.
    pub(crate) fn settle_closed_streams(&self) {
        lock(&self.gone).retain(|Gone { watch, has_run }| {
            if watch.is_open() && has_run() {
                // A device that cannot be asked says so to those who wait.
                let _asked = watch.settle(&watch.end(true));
            }
            watch.failure.forget_reported_by_device();
            watch.is_open() || !watch.failure.pending().is_empty()
        });
    }

    /// Reports a failure that no synchronisation of the device has reported.
    pub(crate) fn tell(watches: &[Arc<Watch>]) -> Option<Error> {
        watches
            .iter()
            .flat_map(|watch| watch.failure.pending())
            .find_map(|fault: Arc<Fault>| fault.tell_device())
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::without_provenance;

    use super::*;

    #[test]
    fn the_record_comes_after_however_many_parameters_there_are() {
        let record = 7;
        for count in [0, 1, FEW - 1, FEW, FEW + 1, 100] {
            let own: Vec<*const c_void> = (1..=count).map(without_provenance).collect();
            let expected = [&own[..], &[from_ref(&record).cast()]].concat();
            with_record(&own, &record, |all| assert_eq!(all, expected, "{count} parameters"));
        }
    }
}
