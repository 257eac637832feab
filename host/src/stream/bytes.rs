//! Memory that streams work on as plain data: where it is, what fresh memory holds, rows of bytes.

/// What fresh memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Anything; it must be written before it is read.
    Uninitialised,
    /// Bytes of value 0.
    Zeroed,
}

/// A copy of rows, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// From the start of a row to that of the next.
    pub(crate) source_pitch: usize,
    pub(crate) target_pitch: usize,
}

impl Rows {
    /// How many bytes are copied.
    pub(crate) fn bytes(&self) -> usize {
        self.width * self.height
    }
}

/// Where memory is, as the device sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    Device,
}
