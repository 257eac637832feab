//! The first failure of a stream since anyone asked. It must not know what failed, or on which backend.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// The first failure of a stream since it was last reported; shared with whoever runs the work.
#[derive(Default)]
pub(crate) struct Failure(Mutex<Option<Error>>);

impl Failure {
    /// Keeps `failure`, unless there is an earlier one.
    pub(super) fn note(&self, failure: Error) {
        self.lock().get_or_insert(failure);
    }

    pub(super) fn get(&self) -> Option<Error> {
        self.lock().clone()
    }

    /// Reports the failure, once.
    pub(super) fn take(&self) -> Option<Error> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Error>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
