//! Printing on the CPU device: the text goes to the registered callback, or else to standard output.

extern crate std;

use core::fmt;
use std::sync::OnceLock;

/// What takes text, not yet formatted.
type Target = fn(fmt::Arguments<'_>);

static TARGET: OnceLock<Target> = OnceLock::new();

/// Hands all text from now on to `target`, in one call for each piece; the first call counts.
pub fn connect(target: Target) {
    TARGET.get_or_init(|| target);
}

pub(super) fn print(text: fmt::Arguments<'_>) {
    match TARGET.get() {
        Some(target) => target(text),
        None => std::print!("{text}"),
    }
}
