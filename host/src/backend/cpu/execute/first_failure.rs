//! The failure of the lowest failed block of a launch, whatever the order in which workers run blocks.

use std::sync::PoisonError;

use super::sync::{AtomicU64, Mutex, Ordering};

pub(crate) struct FirstFailure<E> {
    /// The block's number, or `u64::MAX`.
    block: AtomicU64,
    error: Mutex<Option<E>>,
}

impl<E> FirstFailure<E> {
    pub(crate) fn new() -> Self {
        FirstFailure { block: AtomicU64::new(u64::MAX), error: Mutex::new(None) }
    }

    /// Whether a block before `number` has failed, so that `number` need not run.
    pub(crate) fn before(&self, number: u64) -> bool {
        self.block.load(Ordering::Relaxed) < number
    }

    /// Notes that block `number` has failed.
    pub(crate) fn note(&self, number: u64, error: impl FnOnce() -> E) {
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        if number < self.block.load(Ordering::Relaxed) {
            self.block.store(number, Ordering::Relaxed);
            *first = Some(error());
        }
    }

    /// The failure of the lowest block, when all workers are done.
    pub(crate) fn into_result(self) -> Result<(), E> {
        let error = self.error.into_inner().unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)
    }
}
