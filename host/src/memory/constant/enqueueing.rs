//! The lock for threads that enqueue uses of constants. Depends on nothing but its lock:
//! `host/tests/loom/graphs.rs` includes it by path and explores all interleavings.
//!
//! A constant has no owner, so the borrow checker does not order its uses as it does those of buffers: one
//! thread may set it while another launches. This lock replaces the borrows that `order/mod.rs` requires: a thread that uses a
//! constant holds it from the entry into the order until the work is enqueued, setters alone, readers together.

use std::sync::PoisonError;

use crate::order::Use;
use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// All that enqueue uses of constants.
pub(crate) struct Enqueuers {
    pub(super) lock: RwLock<()>,
}

/// Its holder may enqueue uses of constants.
pub(crate) enum Enqueueing<'a> {
    /// At the same time as others.
    WithOthers { _lock: RwLockReadGuard<'a, ()> },
    /// Exclusively.
    Alone { _lock: RwLockWriteGuard<'a, ()> },
}

impl Enqueuers {
    /// For work that reads constants.
    pub(crate) fn with_others(&self) -> Enqueueing<'_> {
        Enqueueing::WithOthers { _lock: self.lock.read().unwrap_or_else(PoisonError::into_inner) }
    }

    /// For work that writes a constant.
    pub(crate) fn alone(&self) -> Enqueueing<'_> {
        Enqueueing::Alone { _lock: self.lock.write().unwrap_or_else(PoisonError::into_inner) }
    }

    /// For work with several uses of constants; nothing if there are none.
    pub(crate) fn for_uses(&self, mut uses: impl Iterator<Item = Use>) -> Option<Enqueueing<'_>> {
        let first = uses.next()?;
        let only_reads = first == Use::Read && uses.all(|usage| usage == Use::Read);
        Some(if only_reads { self.with_others() } else { self.alone() })
    }
}
