//! Locks and atomics of the parts that `host/tests/loom` checks: std's here, loom's there, where those parts
//! are included by path.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic};
pub(crate) use std::thread;
