//! Streams and events: order, waits, futures, and the legacy default stream.
//!
//! `streams` has their work, `events` marks in it, `awaiting` futures, `legacy` the default stream, `sharing` streams that are also
//! cudarc's, and `values` numbers that streams write and await.

pub(super) mod awaiting;
pub(super) mod events;
pub(super) mod legacy;
pub(crate) mod sharing;
pub(super) mod streams;
pub(super) mod values;
