//! Occupancy: the number of blocks of a kernel per multiprocessor, and its limiting resource. `rules` is
//! the arithmetic, which needs no device; `suggestion` is the block size that fills a multiprocessor.

mod rules;
mod suggestion;

pub use rules::{BlockResources, MultiprocessorLimits, Occupancy, OccupancyLimiter, OccupancyLimits};
pub use suggestion::BlockSuggestion;
pub(crate) use suggestion::fullest;
