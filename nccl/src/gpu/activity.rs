//! [`Activity`]: what a rank has given NCCL and the device, as far as it has not ended.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ferrogrid_host::__private::PendingWork;

use crate::call::Kind;

/// The bits of a call that have its kind.
const KIND: u64 = 15;

const _: () = assert!(Kind::NAMES.len() < KIND as usize);

/// What the watchdog knows of a rank. An operation that is part of a burst takes no lock here.
pub(super) struct Activity {
    /// The number of the last call of NCCL, and in the bits of `KIND` its kind, from 1 on; 0 when the call has returned. It is changed
    /// while operations are locked.
    call: AtomicU64,
    /// Whether the watchdog looks at the rank. It is changed while operations are locked.
    pub(super) is_listed: AtomicBool,
    works: Mutex<Works>,
}

pub(super) struct Works {
    /// The operations that have been enqueued, in their order, in which they end.
    pub(super) pending: VecDeque<Arc<Watched>>,
    /// When one was seen to end.
    progress: Instant,
    /// A call, and when it was seen first.
    seen: (u64, Instant),
}

/// Operations that have been enqueued and end together. The name and the time are those of the first.
pub(super) struct Watched {
    pub(super) operation: &'static str,
    pub(super) work: PendingWork,
    pub(super) enqueued: Instant,
}

impl Activity {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let works = Works { pending: VecDeque::new(), progress: now, seen: (0, now) };
        Activity { call: AtomicU64::new(0), is_listed: AtomicBool::new(false), works: Mutex::new(works) }
    }

    pub(super) fn works(&self) -> MutexGuard<'_, Works> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(super) fn is_listed(&self) -> bool {
        self.is_listed.load(Ordering::Relaxed)
    }

    /// A call of the function with that number in `Kind::NAMES` begins; operations are locked.
    pub(super) fn begin(&self, function: usize) {
        let earlier = self.call.load(Ordering::Relaxed) | KIND;
        self.call.store(earlier + 2 + function as u64, Ordering::Relaxed);
    }

    /// The call has returned.
    pub(super) fn end(&self) {
        self.call.store(self.call.load(Ordering::Relaxed) & !KIND, Ordering::Relaxed);
    }

    /// Settles what has run. Later operations are not part of that.
    pub(super) fn settle(&self) {
        let pending: Vec<_> = self.works().pending.iter().cloned().collect();
        // A device that cannot be asked fails all who wait for it.
        for watched in pending.iter().take_while(|watched| watched.work.is_complete().unwrap_or(true)) {
            let mut works = self.works();
            // Unless it has failed meanwhile, or another thread has settled it.
            if works.pending.pop_front_if(|first| Arc::ptr_eq(first, watched)).is_some() {
                works.progress = Instant::now();
                watched.work.succeed();
            }
        }
    }

    /// The call that has not returned and the operation that ends next, each with the time since when it can have waited. A call
    /// counts from when this finds it first.
    pub(super) fn waiting(&self) -> [Option<(&'static str, Instant)>; 2] {
        let (call, mut works) = (self.call.load(Ordering::Relaxed), self.works());
        if works.seen.0 != call {
            works.seen = (call, Instant::now());
        }
        let (progress, seen) = (works.progress, works.seen.1);
        let name = Kind::NAMES.get(((call & KIND) as usize).wrapping_sub(1));
        let first = works.pending.front();
        [
            name.map(|name| (*name, seen.max(progress))),
            first.map(|first| (first.operation, first.enqueued.max(progress))),
        ]
    }
}
