//! Where the parts that coordinate CPU threads take their locks from: std here, loom in `host/tests/loom/executor.rs`,
//! which includes those parts by path and tries the orders of their steps. It must not know the parts.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

pub(crate) use super::spin::until as look_for_a_moment;
