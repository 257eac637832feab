//! Functions of the host that run in the order of a stream: run once, and their panics caught. Also what a caught panic says.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Error;

/// A function of the host in a stream.
pub(crate) type HostFn = Box<dyn FnOnce() + Send>;

/// Runs `function` and drops what it has captured; returns whether it panicked.
pub(super) fn run(function: HostFn) -> Option<Error> {
    let payload = catch_unwind(AssertUnwindSafe(function)).err()?;
    Some(Error::HostFnPanic { message: text(payload) })
}

/// The text of a panic's payload.
pub(super) fn text(payload: Box<dyn Any + Send>) -> Box<str> {
    let payload = match payload.downcast::<String>() {
        Ok(text) => return text.into_boxed_str(),
        Err(payload) => payload,
    };
    match payload.downcast::<&'static str>() {
        Ok(text) => (*text).into(),
        Err(other) => {
            // Its destructor could panic in turn, on a thread that must go on, or that is the driver's.
            std::mem::forget(other);
            "a panic whose payload is no text".into()
        }
    }
}
