//! What device code reports to the host: panics and messages, which the host formats, and the variables and the
//! parameter through which they arrive.

pub(super) mod formatters;
pub(super) mod panics;
pub(super) mod record;
pub(super) mod symbols;
