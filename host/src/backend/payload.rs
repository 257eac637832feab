//! The message of a caught panic.

use std::any::Any;

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
