//! Host functions in stream order: run once, with panics caught.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::payload;
use crate::error::Error;

/// A function of the host in a stream.
pub(crate) type HostFn = Box<dyn FnOnce() + Send>;

/// Runs `function` and drops what it has captured; returns whether it panicked.
pub(super) fn run(function: HostFn) -> Option<Error> {
    let payload = catch_unwind(AssertUnwindSafe(function)).err()?;
    Some(Error::HostFnPanic { message: payload::text(payload) })
}
