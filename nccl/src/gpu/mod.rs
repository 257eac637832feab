//! Ranks on GPUs, by NCCL.
//!
//! `library` finds NCCL and its functions, `rank` is one rank, `joining` makes communicators and splits them. `enqueue` gives NCCL
//! operations, and `watchdog` watches over these calls and what they have enqueued, which `activity` notes for each rank. `graph_share` is what a graph has of a rank, `registered`
//! memory that NCCL allocates, and `windows` such memory that all ranks register together.
//!
//! Communicators are made and split by calls that do not block. Operations block while they connect ranks, and while a stream is
//! full; the watchdog ends those that wait for too long.

mod activity;
mod enqueue;
mod graph_share;
mod joining;
mod library;
mod rank;
mod registered;
mod watchdog;
mod windows;

use std::sync::Arc;

use ferrogrid_host::{Error, Result};

pub(crate) use enqueue::{enqueue, enqueue_next, enqueue_one, record};
pub(crate) use joining::{all, join, split, unique_id};
pub use library::version;
pub(crate) use rank::Rank;
pub(crate) use registered::Registered;
pub(crate) use watchdog::collect;
pub(crate) use windows::Registering;

/// Ends `rank` and its operations with `error`.
pub(crate) fn abort(rank: &Arc<Rank>, error: &Error) {
    watchdog::fail(rank, error);
}

/// Whether `rank` works.
pub(crate) fn check(rank: &Arc<Rank>) -> Result<()> {
    let Some(error) = rank.failure()? else { return Ok(()) };
    watchdog::fail(rank, &error);
    Err(error)
}
