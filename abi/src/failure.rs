//! The record in which a panicking GPU thread reports to the host. Device code and host share its layout.
//!
//! The record lies in host memory that the GPU can write. Each kernel that may panic takes the record's
//! address as its last parameter.

/// The name of that parameter (a `u64`), which the build step adds to kernels and to all functions that may
/// panic. It is 0 if there is no record.
pub const RECORD_PARAMETER: &str = "__ferrogrid_record";

/// The maximum length of a message in bytes; longer messages are truncated.
pub const MESSAGE_BYTES: usize = 4096;

/// [`FailureRecord::state`]: no thread has panicked.
pub const FREE: u32 = 0;
/// [`FailureRecord::state`]: a thread has panicked and is writing.
pub const CLAIMED: u32 = 1;
/// [`FailureRecord::state`]: the record is complete.
pub const COMPLETE: u32 = 2;

/// [`FailureRecord::kind`]: an index (`first`) was not below a length (`second`).
pub const BOUNDS: u32 = 1;
/// [`FailureRecord::kind`]: the message is a constant of the module, `second` bytes at `first`.
pub const CONSTANT: u32 = 2;
/// [`FailureRecord::kind`]: the message is `second` bytes long; `message` has as much of it as fits.
pub const MESSAGE: u32 = 3;

/// [`FailureRecord::kind`]: a warp operation with the mask `first` lacks the lanes `second`.
pub const LANES: u32 = 4;

/// The report of the first panicking thread. Addresses are those of the module's constants in device memory.
#[repr(C, align(16))]
pub struct FailureRecord {
    /// [`FREE`], [`CLAIMED`] or [`COMPLETE`].
    pub state: u32,
    /// [`BOUNDS`], [`CONSTANT`], [`MESSAGE`] or [`LANES`].
    pub kind: u32,
    /// The block's index in the grid, x first.
    pub block: [u32; 3],
    /// The thread's index in the block, x first.
    pub thread: [u32; 3],
    /// The line of the panic.
    pub line: u32,
    /// Its column.
    pub column: u32,
    /// The address of the source file's name.
    pub file: u64,
    /// The length of that name in bytes.
    pub file_length: u64,
    /// The first value of the message, by its kind.
    pub first: u64,
    /// The second value of the message, by its kind.
    pub second: u64,
    /// The address of a `u64` in the device's memory: the number of threads that ended early, by their own
    /// panic or because of another's. The host sets it before any launch.
    pub alarm: u64,
    /// The message, as [`crate::message`] says.
    pub message: [u64; MESSAGE_BYTES / 8],
}
