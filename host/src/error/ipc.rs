//! Errors of memory and events shared between processes.

/// What can go wrong with memory and events of several processes.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{IpcError, IpcMemoryHandle};
///
/// let stream = Device::cpu().new_stream()?;
/// assert!(matches!(stream.ipc_zeros::<f32>(0), Err(Error::Ipc(IpcError::Empty))));
/// assert!(matches!(IpcMemoryHandle::from_bytes(b"?"), Err(IpcError::NoHandle { length: 1, .. })));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IpcError {
    /// A buffer of no bytes was to be shared.
    #[error("a buffer of 0 bytes cannot be shared with other processes")]
    Empty,
    /// Bytes are no handle.
    #[error(
        "{length} bytes that start with {start:02x?} are not {expected}; expected what `to_bytes` returns"
    )]
    NoHandle {
        /// How many bytes there are.
        length: usize,
        /// The first of them.
        start: Vec<u8>,
        /// What they were to be.
        expected: &'static str,
    },
    /// The buffer is of another kind of device.
    #[error("the buffer is of {made_on}, and cannot be opened on {device}")]
    OtherKind {
        /// What it was made on.
        made_on: &'static str,
        /// The device on which it was to be opened.
        device: Box<str>,
    },
    /// The bytes of a buffer are no whole number of elements.
    #[error(
        "a shared buffer of {bytes} bytes has no whole number of elements of type `{element}`, which have {element_size}"
    )]
    Elements {
        /// The bytes of the buffer.
        bytes: usize,
        /// The requested type.
        element: &'static str,
        /// Its size in bytes.
        element_size: usize,
    },
    /// The process that made a buffer, or the buffer, is gone.
    #[error("the shared buffer of process {process} cannot be opened: {reason}")]
    Gone {
        /// The process that made it.
        process: u32,
        /// The system's message.
        reason: Box<str>,
    },
    /// A buffer was to be shared by a pool that it is not of, or that is not shareable.
    #[error(
        "the buffer is not from this pool, or the pool cannot be shared: make the pool with `PoolOptions::new().shareable()`, and the buffer from it"
    )]
    OtherPool,
    /// An event cannot be shared.
    #[error("the event is for one process only: make it with `EventOptions::new().interprocess()`")]
    NotInterprocess,
}
