//! The intervals that launches of a stream are part of, and the search for a panic, as `watch.rs` states them. Knows its
//! locks alone: `host/tests/loom_watch.rs` includes it by path, and tries all orders of its steps.

use std::ptr::null_mut;
use std::sync::PoisonError;

use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard};

/// The intervals of a stream, each with an outcome of type `O`.
pub(super) struct Intervals<O> {
    /// The outcome of the interval that goes on, null if there is none; it is among `open`, too.
    current: AtomicPtr<O>,
    /// The launches that may panic and are being enqueued.
    launching: AtomicUsize,
    /// Those that are not known to have ended well.
    open: Mutex<Vec<Arc<O>>>,
}

impl<O: Default> Intervals<O> {
    pub(super) fn new() -> Self {
        Intervals {
            current: AtomicPtr::new(null_mut()),
            launching: AtomicUsize::new(0),
            open: Mutex::new(Vec::new()),
        }
    }

    /// To be called before a launch that may panic is enqueued; gives the interval that it is part of. `done` must be
    /// called afterwards.
    #[inline]
    pub(super) fn begin(&self) -> *const O {
        // Before the load: whoever ends an interval first makes `current` null, and then looks at the count.
        self.launching.fetch_add(1, Ordering::SeqCst);
        let current = self.current.load(Ordering::SeqCst);
        if current.is_null() { self.begin_interval() } else { current }
    }

    #[cold]
    fn begin_interval(&self) -> *const O {
        let mut open = self.open();
        let current = self.current.load(Ordering::SeqCst);
        if !current.is_null() {
            return current;
        }
        let outcome = Arc::new(O::default());
        let address = Arc::as_ptr(&outcome);
        open.push(outcome);
        self.current.store(address.cast_mut(), Ordering::SeqCst);
        address
    }

    /// To be called when the launch has been enqueued, and what it writes named.
    #[inline]
    pub(super) fn done(&self) {
        self.launching.fetch_sub(1, Ordering::SeqCst);
    }

    /// The interval that goes on, null if there is none.
    #[inline]
    pub(super) fn current(&self) -> *const O {
        self.current.load(Ordering::Relaxed)
    }

    pub(super) fn find(&self, outcome: *const O) -> Option<Arc<O>> {
        self.open().iter().find(|open| Arc::as_ptr(open) == outcome).cloned()
    }

    /// To be called before a wait for the stream: ends the interval. Gives those of which all work comes before.
    pub(super) fn end(&self) -> Vec<Arc<O>> {
        let open = self.open();
        let current = self.current.swap(null_mut(), Ordering::SeqCst);
        if self.launching.load(Ordering::SeqCst) > 0 {
            // A launch may be enqueued after what is waited for, and be part of it.
            self.current.store(current, Ordering::SeqCst);
            return Vec::new();
        }
        open.clone()
    }

    /// To be called after it, with what it gave, when a panic has been looked for.
    pub(super) fn forget(&self, ended: &[Arc<O>]) {
        self.open().retain(|interval| !ended.iter().any(|it| Arc::ptr_eq(it, interval)));
    }

    /// Ends the interval with a failure, and has `settle` settle all that is open; whether it did so for any.
    pub(super) fn fail(&self, mut settle: impl FnMut(&O) -> bool) -> bool {
        let open = self.open();
        self.current.store(null_mut(), Ordering::SeqCst);
        let mut is_any = false;
        for interval in open.iter() {
            is_any |= settle(interval);
        }
        is_any
    }

    pub(super) fn open(&self) -> MutexGuard<'_, Vec<Arc<O>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The search for a panic in the record of a device.
pub(super) struct Search {
    /// Held by whoever searches.
    searching: Mutex<()>,
    /// Whether a panic may have been taken out of the record, and is not yet that of every interval.
    is_spreading: AtomicBool,
}

impl Search {
    pub(super) fn new() -> Self {
        Search { searching: Mutex::new(()), is_spreading: AtomicBool::new(false) }
    }

    /// Whether there is something to find, or another thread may be about to tell of it.
    #[inline]
    pub(super) fn is_needed(&self, is_free: impl FnOnce() -> bool) -> bool {
        // The record first: it is free before all intervals know, but not before this says so.
        !is_free() || self.is_spreading.load(Ordering::SeqCst)
    }

    /// Has `take` take a panic out of the record, and `spread` make it that of every interval; then has `settle` settle
    /// those that have ended well.
    pub(super) fn search<P, E>(
        &self,
        take: impl FnOnce() -> Result<Option<P>, E>,
        spread: impl FnOnce(P),
        settle: impl FnOnce(),
    ) -> Result<(), E> {
        let _alone = self.searching.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_spreading.store(true, Ordering::SeqCst);
        let taken = take().map(|panic| panic.map(spread));
        self.is_spreading.store(false, Ordering::SeqCst);
        taken?;
        settle();
        Ok(())
    }
}
