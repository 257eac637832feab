//! Where the parts that several threads go through take their locks and atomics from: std here, loom in
//! `host/tests/loom_*.rs`, which include those parts by path and try all orders of their steps. It must not
//! know the parts.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, atomic};
