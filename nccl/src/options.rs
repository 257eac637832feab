//! Options of communicators.

use std::time::{Duration, Instant};

/// Options of a [`Communicator`](crate::Communicator).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use std::time::Duration;
/// use ferrogrid::NcclError;
/// use ferrogrid::nccl::{Communicator, CommunicatorOptions, ReduceOp};
///
/// let options = CommunicatorOptions::new().with_timeout(Duration::from_millis(20));
/// let ranks = Communicator::all_with(&[Device::cpu(), Device::cpu()], options)?;
/// let stream = ranks[0].device().new_stream()?;
/// let mut data = stream.upload(&[1.0_f32])?;
/// ranks[0].all_reduce_in_place(ReduceOp::Sum, &mut data).enqueue(&stream)?;
/// // Rank 1 does nothing.
/// let error = stream.synchronize().unwrap_err();
/// assert!(matches!(error, Error::Nccl(NcclError::TimedOut { rank: 0, milliseconds: 20, .. })), "{error}");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommunicatorOptions {
    timeout: Duration,
}

impl CommunicatorOptions {
    /// A time-out of ten minutes.
    pub const fn new() -> Self {
        CommunicatorOptions { timeout: Duration::from_secs(600) }
    }

    /// How long an operation waits for other ranks, from when it is first in its stream; also how long a new communicator
    /// waits for them. Work of a GPU that an operation is enqueued behind counts, unless it is an operation of the same communicator. Of the
    /// launch of a graph all of its work counts. On a GPU up to 32 operations in a row, which one stream is given within some 5 ms,
    /// count as one, and fail as one.
    #[must_use]
    pub const fn with_timeout(self, timeout: Duration) -> Self {
        CommunicatorOptions { timeout }
    }

    pub(crate) fn timeout(self) -> Duration {
        self.timeout
    }
}

impl Default for CommunicatorOptions {
    fn default() -> Self {
        CommunicatorOptions::new()
    }
}

/// In whole milliseconds, for messages.
pub(crate) fn milliseconds(timeout: Duration) -> u64 {
    timeout.as_millis().try_into().unwrap_or(u64::MAX)
}

/// The end of a time-out; one that is too long for the clock ends after a century.
pub(crate) fn deadline(start: Instant, timeout: Duration) -> Instant {
    start.checked_add(timeout).unwrap_or_else(|| start + Duration::from_secs(100 * 365 * 24 * 3600))
}
