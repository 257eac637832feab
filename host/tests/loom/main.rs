//! Models of the concurrent parts: loom runs each case in all interleavings of the threads' steps, one after
//! the other. Each module includes its parts by path, with loom's locks and atomics for std's.

#![allow(dead_code, reason = "the parts are larger than what is modelled")]

mod accounts;
mod executor;
mod graphs;
mod order;
mod reports;
mod watch;

mod sync {
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic};
    pub(crate) use loom::thread;
}

mod error {
    /// The driver that is made up here never fails.
    pub(crate) type Result<T> = std::result::Result<T, std::convert::Infallible>;

    /// A failure of work, by number.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) struct Error(pub(crate) u32);
}
