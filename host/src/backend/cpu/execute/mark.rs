//! A point that one thread reaches, once, and that others wait for.

use std::sync::PoisonError;

use super::sync::{Arc, AtomicBool, Condvar, Mutex, MutexGuard, Ordering, look_for_a_moment};

/// The point; clones are the same one. The thread that reaches it leaves a `T` for the waiting ones.
pub(crate) struct Mark<T> {
    state: Arc<State<T>>,
}

struct State<T> {
    /// Whether it has been reached, for those who look without waiting.
    reached: AtomicBool,
    progress: Mutex<Progress<T>>,
    changed: Condvar,
}

enum Progress<T> {
    /// Not yet reached; these are to be called then.
    Ahead(Vec<Box<dyn FnOnce() + Send>>),
    Reached(T),
}

impl<T: Clone> Mark<T> {
    pub(crate) fn new() -> Self {
        let progress = Mutex::new(Progress::Ahead(Vec::new()));
        let state = State { reached: AtomicBool::new(false), progress, changed: Condvar::new() };
        Mark { state: Arc::new(state) }
    }

    /// Reaches it.
    pub(crate) fn reach(&self, value: T) {
        let before = std::mem::replace(&mut *self.lock(), Progress::Reached(value));
        self.state.reached.store(true, Ordering::Release);
        self.state.changed.notify_all();
        if let Progress::Ahead(calls) = before {
            calls.into_iter().for_each(|call| call());
        }
    }

    /// Waits until it has been reached.
    pub(crate) fn wait(&self) -> T {
        look_for_a_moment(|| self.state.reached.load(Ordering::Acquire).then_some(()));
        let mut progress = self.lock();
        loop {
            if let Progress::Reached(value) = &*progress {
                return value.clone();
            }
            progress = self.state.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What was left there, if it has been reached.
    pub(crate) fn reached(&self) -> Option<T> {
        match &*self.lock() {
            Progress::Ahead(_) => None,
            Progress::Reached(value) => Some(value.clone()),
        }
    }

    /// Runs `call` when the point is reached, on the thread that reaches it; immediately if it was reached.
    pub(crate) fn notify(&self, call: impl FnOnce() + Send + 'static) {
        if let Progress::Ahead(calls) = &mut *self.lock() {
            calls.push(Box::new(call));
            return;
        }
        call();
    }

    fn lock(&self) -> MutexGuard<'_, Progress<T>> {
        self.state.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Mark<T> {
    fn clone(&self) -> Self {
        Mark { state: self.state.clone() }
    }
}
