//! A list of values that wait for their events. Depends on nothing but its locks: `host/tests/loom/order.rs`
//! includes it by path and explores all interleavings.

use std::sync::PoisonError;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// The operations of an event that the list needs.
pub(crate) trait Until {
    /// Whether what may use the owner has run, or never will.
    fn has_come(&self) -> bool;
}

/// Things that may only be dropped after an event each.
pub(crate) struct List<E> {
    retired: Mutex<Vec<Retired<E>>>,
    /// The number of entries, readable without the lock.
    count: AtomicUsize,
}

struct Retired<E> {
    until: E,
    _owner: Box<dyn Send>,
}

impl<E: Until> List<E> {
    pub(crate) fn new() -> Self {
        List { retired: Mutex::new(Vec::new()), count: AtomicUsize::new(0) }
    }

    /// Drops `owner` after `until`, in this call or a later one.
    pub(crate) fn retire(&self, until: E, owner: Box<dyn Send>) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.push(Retired { until, _owner: owner });
        self.count.store(retired.len(), Ordering::Relaxed);
        drop(retired);
        self.collect();
    }

    /// Drops values that need not be kept any longer.
    pub(crate) fn collect(&self) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let free: Vec<Retired<E>> = retired.extract_if(.., |retired| retired.until.has_come()).collect();
        self.count.store(retired.len(), Ordering::Relaxed);
        drop(retired);
        // Without the lock: what owners do when they are dropped is their business.
        drop(free);
    }
}
