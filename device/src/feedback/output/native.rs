//! Printing on the CPU device: the text goes to the registered callback, or else to standard output.

extern crate std;

use core::fmt;
use std::sync::OnceLock;

/// A callback that takes unformatted text.
type Target = fn(fmt::Arguments<'_>);

static TARGET: OnceLock<Target> = OnceLock::new();

/// Passes all text from now on to `target`, in one call for each piece. Only the first call of this function
/// has an effect.
pub fn connect(target: Target) {
    TARGET.get_or_init(|| target);
}

pub(super) fn print(text: fmt::Arguments<'_>) {
    match TARGET.get() {
        Some(target) => target(text),
        None => std::print!("{text}"),
    }
}
