//! Streams and events: order, waits, futures, and the legacy default stream.

pub(super) mod awaiting;
pub(super) mod events;
pub(super) mod legacy;
pub(super) mod streams;
pub(super) mod values;
