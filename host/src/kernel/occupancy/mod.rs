//! Occupancy: how many blocks of a kernel a multiprocessor runs at a time, and what limits that. `rules` is
//! the arithmetic, which needs no device; `query` asks devices.

mod query;
mod rules;

pub use query::BlockSuggestion;
pub(crate) use query::{fullest, padded};
pub use rules::{BlockResources, MultiprocessorLimits, Occupancy, OccupancyLimiter, OccupancyLimits};
