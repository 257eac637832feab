//! A thread-safe count of bytes in use, with a limit. Depends on nothing but its atomics:
//! `host/tests/loom/accounts.rs` includes it by path and explores all interleavings.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// The bytes that are in use in one place.
#[derive(Debug)]
pub(crate) struct Balance {
    used: AtomicU64,
    /// The maximum since the last reset.
    high: AtomicU64,
    limit: AtomicU64,
    /// The account of which this is a part: bytes here count there too.
    whole: Option<Arc<Balance>>,
}

/// So many bytes were in use that a request would have exceeded the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exceeded {
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

impl Balance {
    pub(crate) fn new(limit: Option<u64>, whole: Option<Arc<Balance>>) -> Self {
        let [used, high, limit] = [0, 0, limit.unwrap_or(u64::MAX)].map(AtomicU64::new);
        Balance { used, high, limit, whole }
    }

    /// Enters `bytes`, here and in the whole, if both limits allow it.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), Exceeded> {
        let before = self.enter(bytes)?;
        if let Some(whole) = &self.whole {
            whole.take(bytes).inspect_err(|_| self.leave(bytes))?;
        }
        // Released, for a reset that comes after it: see there.
        self.high.fetch_max(before + bytes, Ordering::Release);
        Ok(())
    }

    /// Enters that so many are free again.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.leave(bytes);
        if let Some(whole) = &self.whole {
            whole.give_back(bytes);
        }
    }

    /// Adds `bytes`, if the limit allows it; returns the number before.
    fn enter(&self, bytes: u64) -> Result<u64, Exceeded> {
        let limit = self.limit.load(Ordering::Relaxed);
        let more = |used: u64| used.checked_add(bytes).filter(|used| *used <= limit);
        let entered = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        entered.map_err(|used| Exceeded { used, limit })
    }

    fn leave(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn high(&self) -> u64 {
        self.high.load(Ordering::Relaxed).max(self.used())
    }

    /// Resets the maximum to the bytes in use.
    pub(crate) fn reset_high(&self) {
        // What was entered before is seen below; what is entered later raises it again by itself.
        self.high.swap(0, Ordering::Acquire);
        self.high.fetch_max(self.used(), Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit < u64::MAX)
    }

    pub(crate) fn set_limit(&self, limit: Option<u64>) {
        self.limit.store(limit.unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
