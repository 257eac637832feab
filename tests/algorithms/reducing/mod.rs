//! Values combined: of whole slices, of segments, of runs of equal keys, and of bins.
//!
//! `reductions`, `statistics` and `scans` treat whole slices, `segmented` segments, `keyed` runs of equal keys, and `histograms`
//! the samples of each bin.

pub(crate) mod histograms;
pub(crate) mod keyed;
pub(crate) mod reductions;
pub(crate) mod scans;
pub(crate) mod segmented;
pub(crate) mod statistics;
