//! Locks of the parts that coordinate CPU threads: std's here, loom's in `host/tests/loom/executor.rs`, which
//! includes those parts by path.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

pub(crate) use super::spin::until as look_for_a_moment;
