//! Standard output: in colour on terminals, and without an error if the reader has closed the pipe (`|
//! head`).

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use crate::Failure;

/// Prints `text` and a line break.
pub(crate) fn line(text: impl Display) -> Result<(), Failure> {
    match writeln!(anstream::stdout(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
