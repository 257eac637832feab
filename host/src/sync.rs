//! Where the parts that several threads go through take their locks and atomics from: std here, loom in
//! `host/tests/loom`, which includes those parts by path and tries all orders of their steps. It must not
//! know the parts.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic};
pub(crate) use std::thread;
