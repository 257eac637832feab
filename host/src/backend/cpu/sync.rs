//! Where the parts that coordinate CPU threads take their locks from: std here, loom in `host/tests/loom_executor.rs`,
//! which includes those parts by path and tries all orders of their steps. It must not know the parts.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
