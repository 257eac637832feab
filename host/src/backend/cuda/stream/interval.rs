//! The intervals that launches of a stream are part of, as `watch.rs` states them. Depends on nothing but its
//! locks: `host/tests/loom/watch.rs` includes it by path and explores all interleavings.

use std::ptr::null_mut;
use std::sync::PoisonError;

use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard};

/// The intervals of a stream, each with an outcome of type `O`.
pub(crate) struct Intervals<O> {
    /// The outcome of the current interval, null if there is none; it is among `open`, too.
    current: AtomicPtr<O>,
    /// The launches that may panic and are being enqueued.
    launching: AtomicUsize,
    /// Those that are not known to have ended well.
    open: Mutex<Vec<Arc<O>>>,
}

/// The intervals that a wait finds the outcomes of.
pub(crate) struct Ended<O> {
    pub(crate) intervals: Vec<Arc<O>>,
    /// Whether all that is in them comes before what is waited for.
    pub(crate) come_before: bool,
}

/// The intervals of a stream that a wait for a point in it ends; if more are open, the last one continues. Each has a
/// record, of 4 KiB.
const MOST: usize = 64;

impl<O> Intervals<O> {
    pub(crate) fn new() -> Self {
        Intervals {
            current: AtomicPtr::new(null_mut()),
            launching: AtomicUsize::new(0),
            open: Mutex::new(Vec::new()),
        }
    }

    /// To be called before a launch that may panic is enqueued; gives the interval that it is part of, which `make`
    /// makes if there is none, and which is open until `done` is called: that must be afterwards.
    #[inline]
    pub(crate) fn begin<E>(&self, make: impl FnOnce() -> Result<O, E>) -> Result<*const O, E> {
        // Before the load: a thread that ends an interval first sets `current` to null, and then reads the count.
        self.launching.fetch_add(1, Ordering::SeqCst);
        let current = self.current.load(Ordering::SeqCst);
        if current.is_null() { self.begin_interval(make) } else { Ok(current) }
    }

    #[cold]
    fn begin_interval<E>(&self, make: impl FnOnce() -> Result<O, E>) -> Result<*const O, E> {
        let mut open = self.open();
        let current = self.current.load(Ordering::SeqCst);
        if !current.is_null() {
            return Ok(current);
        }
        let outcome = Arc::new(make().inspect_err(|_| self.done())?);
        let address = Arc::as_ptr(&outcome);
        open.push(outcome);
        self.current.store(address.cast_mut(), Ordering::SeqCst);
        Ok(address)
    }

    /// To be called when the launch has been enqueued, and what it writes named.
    #[inline]
    pub(crate) fn done(&self) {
        self.launching.fetch_sub(1, Ordering::SeqCst);
    }

    /// The current interval, null if there is none.
    #[inline]
    pub(crate) fn current(&self) -> *const O {
        self.current.load(Ordering::Relaxed)
    }

    pub(crate) fn find(&self, outcome: *const O) -> Option<Arc<O>> {
        self.open().iter().find(|open| Arc::as_ptr(open) == outcome).cloned()
    }

    /// To be called before a wait for the stream, or for a point in it (`must`: for the stream, and the wait comes now):
    /// ends the interval.
    pub(crate) fn end(&self, must: bool) -> Ended<O> {
        let open = self.open();
        let current = self.current.swap(null_mut(), Ordering::SeqCst);
        // Else a launch may be enqueued after what is waited for, and be part of it; or there would be ever more.
        let come_before = self.launching.load(Ordering::SeqCst) == 0 && (must || open.len() < MOST);
        if !come_before {
            self.current.store(current, Ordering::SeqCst);
        }
        Ended { intervals: open.clone(), come_before }
    }

    /// To be called after it, when the outcome of those is known.
    pub(crate) fn forget(&self, ended: &[Arc<O>]) {
        self.open().retain(|interval| !ended.iter().any(|it| Arc::ptr_eq(it, interval)));
    }

    /// To be called when an interval is known to have failed: later launches are no part of it.
    pub(crate) fn leave(&self, interval: *const O) {
        let _open = self.open();
        if self.current.load(Ordering::SeqCst).cast_const() == interval {
            self.current.store(null_mut(), Ordering::SeqCst);
        }
    }

    pub(crate) fn open(&self) -> MutexGuard<'_, Vec<Arc<O>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
