//! A copy as plain data: its rows, and where its memory is.

/// A copy of rows, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// From the start of a row to that of the next.
    pub(crate) source_pitch: usize,
    pub(crate) target_pitch: usize,
}

/// Where memory is, as the device sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    Device,
}
