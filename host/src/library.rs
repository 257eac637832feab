//! Dynamic libraries: opened once per process, under the first of several names that works; otherwise an error with the
//! reasons.

use std::error::Error;
use std::ffi::OsStr;

use libloading::Library;

/// Opens the first of `files` that the system's loader finds; otherwise returns its message for each.
///
/// # Safety
/// The initialisers of a library of any of these names may run.
pub(crate) unsafe fn open(
    files: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<&'static Library, Vec<String>> {
    let mut reasons = Vec::new();
    for file in files {
        // SAFETY: the caller vouches for the initialisers.
        match unsafe { Library::new(file.as_ref()) } {
            Ok(library) => return Ok(Box::leak(Box::new(library))),
            Err(error) => reasons.push(reason(&error)),
        }
    }
    Err(reasons)
}

/// The system's own words, which libloading has as the source of its error.
pub(crate) fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
