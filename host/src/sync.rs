//! Locks and atomics of the parts that `host/tests/loom` checks: std's here, loom's there, where those parts
//! are included by path.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic};
pub(crate) use std::thread;

/// What a mutex holds, also after a panic of whoever held it: nothing here is left half-changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
