//! A flag that work on a device raises once, and the task that waits for it.

use crate::sync::lock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::task::Waker;

/// Raised once, by a worker thread or by a thread of the driver.
#[derive(Default)]
pub(crate) struct Signal(Mutex<State>);

#[derive(Default)]
struct State {
    raised: bool,
    waker: Option<Waker>,
}

impl Signal {
    /// Raises it and wakes the task that waits. A waker that panics is not let through: above this
    /// may be the driver.
    pub(super) fn raise(&self) {
        let waker = {
            let mut state = lock(&self.0);
            state.raised = true;
            state.waker.take()
        };
        if let Some(waker) = waker
            && let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake()))
        {
            std::mem::forget(payload);
        }
    }

    /// Whether it has been raised; if not, `waker` will be woken when it is (and no earlier one).
    pub(crate) fn poll(&self, waker: &Waker) -> bool {
        let waker = waker.clone();
        let mut state = lock(&self.0);
        let raised = state.raised;
        let unused = if raised { Some(waker) } else { state.waker.replace(waker) };
        // Without the lock: what a waker does when it is dropped is its business.
        drop(state);
        drop(unused);
        raised
    }
}
