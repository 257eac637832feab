//! The limit on the stacks of the process, and the queue of threads that wait for some.
//!
//! No thread waits while it holds any: a waiter requests all that it needs. So stacks in use belong to work that makes
//! progress, and are returned. Waiters are served first come, first served: many small requests cannot starve a large one.

use std::sync::PoisonError;

use super::sync::{Condvar, Mutex, MutexGuard};

/// A number of stacks to share out.
pub(crate) struct Budget {
    limit: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    taken: usize,
    /// The numbers of the next waiter to come, and the next to be served.
    next: u64,
    serving: u64,
}

/// Leave to have so many stacks, given back when dropped.
pub(crate) struct Permits<'a> {
    budget: &'a Budget,
    count: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        let state = Mutex::new(State { taken: 0, next: 0, serving: 0 });
        Budget { limit, state, changed: Condvar::new() }
    }

    /// Leave to have none.
    pub(crate) fn nothing(&self) -> Permits<'_> {
        Permits { budget: self, count: 0 }
    }

    /// Takes `count` if so many are free and no thread waits.
    pub(crate) fn try_take(&self, count: usize) -> Option<Permits<'_>> {
        let mut state = self.lock();
        if state.next != state.serving || self.limit - state.taken < count {
            return None;
        }
        state.taken += count;
        Some(Permits { budget: self, count })
    }

    /// Leave to have `count`: waits for them, if others have them. The caller must have none. `reclaim` is to
    /// drop what is kept unused; `None` if `count` is more than there ever are.
    pub(crate) fn take(&self, count: usize, reclaim: impl FnOnce()) -> Option<Permits<'_>> {
        if count > self.limit {
            return None;
        }
        if let Some(permits) = self.try_take(count) {
            return Some(permits);
        }
        let ticket = self.line_up();
        // After queueing: threads that keep stacks from now on see that some are wanted.
        reclaim();
        let mut state = self.lock();
        while state.serving != ticket || self.limit - state.taken < count {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.taken += count;
        state.serving += 1;
        drop(state);
        self.changed.notify_all();
        Some(Permits { budget: self, count })
    }

    /// Whether a launch waits, so that unused stacks should be dropped.
    pub(crate) fn is_wanted(&self) -> bool {
        let state = self.lock();
        state.next != state.serving
    }

    fn line_up(&self) -> u64 {
        let mut state = self.lock();
        state.next += 1;
        state.next - 1
    }

    fn give_back(&self, count: usize) {
        if count == 0 {
            return;
        }
        self.lock().taken -= count;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permits<'_> {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds those of `other`, of the same budget.
    pub(crate) fn join(&mut self, other: Self) {
        debug_assert!(std::ptr::eq(self.budget, other.budget));
        let mut other = other;
        self.count += std::mem::take(&mut other.count);
    }

    /// Takes `count` of these out, or all if they are fewer.
    pub(crate) fn split(&mut self, count: usize) -> Self {
        let count = count.min(self.count);
        self.count -= count;
        Permits { budget: self.budget, count }
    }
}

impl Drop for Permits<'_> {
    fn drop(&mut self) {
        self.budget.give_back(self.count);
    }
}
