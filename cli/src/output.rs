//! What goes to standard output: in colour where that is a terminal which shows it, and without complaint
//! where nobody reads on (`| head`). It must not know what is said.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use crate::Failure;

/// Prints `text` and ends the line.
pub(crate) fn line(text: impl Display) -> Result<(), Failure> {
    match writeln!(anstream::stdout(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
