//! Memory that streams work on as plain data: where it is, what fresh memory holds, rows of bytes.

pub(crate) use crate::backend::{Place, Rows};

/// What fresh memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Anything; it must be written before it is read.
    Uninitialised,
    /// Bytes of value 0.
    Zeroed,
}

impl Rows {
    /// How many bytes are copied.
    pub(crate) fn bytes(&self) -> usize {
        self.width * self.height
    }
}
