//! Occupancy: the number of blocks of a kernel per multiprocessor, and its limiting resource. `rules` is
//! the arithmetic, which needs no device; `query` asks devices.

mod query;
mod rules;

pub use query::BlockSuggestion;
pub(crate) use query::{fullest, padded};
pub use rules::{BlockResources, MultiprocessorLimits, Occupancy, OccupancyLimiter, OccupancyLimits};
