//! Errors of communication between devices.

use std::fmt::{Display, from_fn};

/// An error of `ferrogrid::nccl`: communicators, and operations among their ranks.
///
/// A lost rank is an error of all others, within the time-out of their communicator:
///
/// ```
/// use ferrogrid_host::{Error, NcclError};
///
/// /// Whether the program can go on with fewer ranks.
/// fn is_about_a_peer(error: &Error) -> bool {
///     use NcclError::{Aborted, PeerLost, TimedOut};
///     matches!(error, Error::Nccl(PeerLost { .. } | TimedOut { .. } | Aborted { .. }))
/// }
/// let lost = NcclError::PeerLost { operation: "all_reduce", rank: 1, peer: 0 };
/// assert_eq!(lost.to_string(), "all_reduce: rank 0 is gone, which rank 1 waits for");
/// assert!(is_about_a_peer(&lost.into()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NcclError {
    /// The installed NCCL is older than this crate needs.
    #[error(
        "NCCL {}.{}.{} in `{path}` is too old: this crate requires {}.{} or newer; the variable FERROGRID_NCCL names another file",
        found.0, found.1, found.2, needed.0, needed.1
    )]
    TooOld {
        /// The library's file, or the name under which the system's loader found it.
        path: Box<str>,
        /// Its version.
        found: (u32, u32, u32),
        /// The oldest version that works.
        needed: (u32, u32),
    },
    /// The library lacks a function that this crate calls.
    #[error("`{path}` has no function `{symbol}`; it is no NCCL, or a damaged one")]
    MissingSymbol {
        /// The library's file, or the name under which the system's loader found it.
        path: Box<str>,
        /// The function.
        symbol: &'static str,
    },
    /// A call of NCCL failed.
    #[error("{function} failed on rank {rank}: {reason}; the variable NCCL_DEBUG=WARN makes NCCL say more")]
    Call {
        /// The function.
        function: &'static str,
        /// The rank that called it.
        rank: usize,
        /// NCCL's text for the error, and its last message.
        reason: Box<str>,
    },
    /// There is no such rank.
    #[error("{operation}: the {role} is {rank}, but there are {size} ranks, numbered from 0")]
    Rank {
        /// What was to be done.
        operation: &'static str,
        /// What the rank was to be: `rank`, `root` or `peer`.
        role: &'static str,
        /// The requested rank.
        rank: usize,
        /// The number of ranks.
        size: usize,
    },
    /// Two ranks of one communicator have the same number.
    #[error("two communicators with one `UniqueId` are rank {rank}; each of the {size} ranks joins once")]
    RankTaken {
        /// The rank.
        rank: usize,
        /// The number of ranks.
        size: usize,
    },
    /// Ranks of one communicator disagree about their number.
    #[error("rank {rank} joins {size} ranks, but others with its `UniqueId` are of {other}")]
    Size {
        /// The rank that joins.
        rank: usize,
        /// The number of ranks that it names.
        size: usize,
        /// The number that the others have named.
        other: usize,
    },
    /// A buffer has not as many elements as the operation needs.
    #[error("{operation} among {size} ranks: the {buffer} has {length} elements; expected {expected}")]
    Length {
        /// The operation.
        operation: &'static str,
        /// The number of ranks.
        size: usize,
        /// `source`, `target` or `buffer`.
        buffer: &'static str,
        /// How many elements it has.
        length: usize,
        /// How many it should have.
        expected: Box<str>,
    },
    /// The root of an operation has given no buffer that only the root gives.
    #[error("{operation}: rank {rank} is the root and has no {buffer}; only other ranks may leave it out")]
    RootBuffer {
        /// The operation.
        operation: &'static str,
        /// The root.
        rank: usize,
        /// `source` or `target`.
        buffer: &'static str,
    },
    /// Ranks have called different operations at the same point. Found among CPU devices; among GPUs NCCL does not
    /// compare them.
    #[error("ranks disagree: rank {} calls {}, rank {} {}", one.0, one.1, other.0, other.1)]
    Mismatch {
        /// A rank, and what it called.
        one: (usize, Box<str>),
        /// Another one, and what that called.
        other: (usize, Box<str>),
    },
    /// Another rank has dropped its communicator, or its process has ended.
    #[error("{operation}: rank {peer} is gone, which rank {rank} waits for")]
    PeerLost {
        /// The operation.
        operation: &'static str,
        /// The rank that waits.
        rank: usize,
        /// The rank that is gone.
        peer: usize,
    },
    /// Other ranks have not taken part within the time-out.
    #[error(
        "{operation}: rank {rank} has waited for {milliseconds} ms{}; a rank may be lost, or calls another operation",
        for_ranks(missing)
    )]
    TimedOut {
        /// The operation.
        operation: &'static str,
        /// The rank that has waited.
        rank: usize,
        /// The time-out.
        milliseconds: u64,
        /// The ranks that have not come, if that is known: among CPU devices.
        missing: Box<[usize]>,
    },
    /// A rank has aborted the communicator.
    #[error("rank {rank} has aborted the communicator")]
    Aborted {
        /// The rank.
        rank: usize,
    },
    /// An operation was to be enqueued on a stream of another device than the communicator's.
    #[error("rank {rank} is {device}, but {operation} was to be enqueued on a stream of {stream}")]
    StreamDevice {
        /// The operation.
        operation: &'static str,
        /// The rank.
        rank: usize,
        /// The communicator's device.
        device: Box<str>,
        /// The stream's.
        stream: Box<str>,
    },
    /// Two ranks have the same GPU, or some ranks have GPUs and others the CPU.
    #[error("{device} cannot be rank {rank}: {reason}")]
    Device {
        /// The device.
        device: Box<str>,
        /// The rank.
        rank: usize,
        /// Why not.
        reason: &'static str,
    },
    /// The environment has a part of what a launcher sets.
    #[error("the environment has {present}, as {launcher} sets, but no {missing}")]
    Launcher {
        /// The launcher.
        launcher: &'static str,
        /// The variable that is there.
        present: &'static str,
        /// The variable that is not.
        missing: &'static str,
    },
    /// Processes have no way to agree on a communicator.
    #[error(
        "{size} processes need a place to meet: set NCCL_COMM_ID={} (a free port of the host of rank 0), or FERROGRID_NCCL_FILE to the path of a new file that all of them can read",
        meeting_point(host)
    )]
    NoMeetingPoint {
        /// The number of processes.
        size: usize,
        /// The host of rank 0, if the launcher has named it.
        host: Option<Box<str>>,
    },
    /// The file by which processes meet cannot be written or read.
    #[error("FERROGRID_NCCL_FILE: `{path}`: {reason}")]
    File {
        /// The file.
        path: Box<str>,
        /// What is wrong.
        reason: Box<str>,
    },
}

/// Those that a rank has waited for.
fn for_ranks(missing: &[usize]) -> impl Display {
    from_fn(move |f| match missing {
        [] => Ok(()),
        [one] => write!(f, " for rank {one}"),
        several => write!(f, " for ranks {several:?}"),
    })
}

fn meeting_point(host: &Option<Box<str>>) -> impl Display {
    from_fn(move |f| write!(f, "{}:29501", host.as_deref().unwrap_or("HOST")))
}
