//! Failures of a stream that have not been reported. Depends on nothing but its locks:
//! `host/tests/loom/reports.rs` includes it by path and explores all interleavings.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;

use crate::error::Error;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread::{self, ThreadId};
use crate::sync::{Arc, Mutex, MutexGuard};

/// The most failures that a stream remembers one by one. Of more, the last stands for those after it.
pub(super) const KEPT: usize = 64;

/// One failure, shared by the streams and the memory that it concerns.
#[derive(Debug)]
pub(crate) struct Fault {
    error: Error,
    /// The streams that have noted it.
    noted_by: Mutex<Vec<u64>>,
    /// The threads that it was reported to.
    told: Mutex<Vec<ThreadId>>,
    /// Whether a synchronisation of the device has reported it.
    told_by_device: AtomicBool,
}

impl Fault {
    pub(crate) fn new(error: Error) -> Self {
        let (noted_by, told) = Default::default();
        Fault { error, noted_by, told, told_by_device: AtomicBool::new(false) }
    }

    /// The error, which the caller hands to the user on this thread.
    pub(crate) fn tell(&self) -> Error {
        let (mut told, here) = (lock(&self.told), thread::current().id());
        if !told.contains(&here) {
            told.push(here);
        }
        self.error.clone()
    }

    /// As `tell`, once for all synchronisations of the device.
    pub(super) fn tell_device(&self) -> Option<Error> {
        (!self.told_by_device.swap(true, Ordering::Relaxed)).then(|| self.tell())
    }

    /// Whether it was reported to the calling thread.
    pub(crate) fn is_known_here(&self) -> bool {
        lock(&self.told).contains(&thread::current().id())
    }
}

/// The unreported failures of a stream, in order; shared with what runs the work.
pub(crate) struct Failure {
    id: u64,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    /// How many have been noted so far.
    noted: u64,
    /// Each with its number, from 1.
    faults: VecDeque<(u64, Arc<Fault>)>,
}

impl Pending {
    fn push(&mut self, fault: Arc<Fault>) {
        self.noted += 1;
        if self.faults.len() < KEPT {
            self.faults.push_back((self.noted, fault));
        } else if let Some((number, _)) = self.faults.back_mut() {
            *number = self.noted;
        }
    }
}

impl Default for Failure {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Failure { id: NEXT.fetch_add(1, Ordering::Relaxed), pending: Mutex::default() }
    }
}

impl Failure {
    /// Keeps `error`, of work of this stream.
    pub(super) fn note(&self, error: Error) -> Arc<Fault> {
        let fault = Arc::new(Fault::new(error));
        self.note_shared(&fault);
        fault
    }

    /// Keeps a failure of other work that this stream's came after, unless it has been noted here before.
    pub(crate) fn note_shared(&self, fault: &Arc<Fault>) {
        let mut noted_by = lock(&fault.noted_by);
        if noted_by.contains(&self.id) {
            return;
        }
        noted_by.push(self.id);
        drop(noted_by);
        self.lock().push(fault.clone());
    }

    /// How many have been noted so far: what has failed before a point, if this is asked there.
    pub(super) fn position(&self) -> u64 {
        self.lock().noted
    }

    /// The unreported ones.
    pub(super) fn pending(&self) -> Vec<Arc<Fault>> {
        self.lock().faults.iter().map(|(_, fault)| fault.clone()).collect()
    }

    /// Tells of those up to `position`.
    pub(super) fn take_until(&self, position: u64) -> Option<Error> {
        self.take_where(|number, _| number <= position)
    }

    /// Reports all except those in `later`.
    pub(super) fn take_except(&self, later: &[Arc<Fault>]) -> Option<Error> {
        self.take_where(|_, fault| !later.iter().any(|it| Arc::ptr_eq(it, fault)))
    }

    /// Tells of those that `is_taken` is true of: the first stands for those after it, which may come of it.
    fn take_where(&self, is_taken: impl Fn(u64, &Arc<Fault>) -> bool) -> Option<Error> {
        let mut pending = self.lock();
        let (taken, left): (VecDeque<_>, _) =
            pending.faults.drain(..).partition(|(number, fault)| is_taken(*number, fault));
        pending.faults = left;
        drop(pending);
        taken.iter().map(|(_, fault)| fault.tell()).reduce(|first, _| first)
    }

    /// Removes failures that a synchronisation of the device has reported, where no stream is left to report them.
    pub(super) fn forget_reported_by_device(&self) {
        self.lock().faults.retain(|(_, fault)| !fault.told_by_device.load(Ordering::Relaxed));
    }

    /// Tells of all.
    pub(super) fn take(&self) -> Option<Error> {
        self.take_until(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        lock(&self.pending)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
