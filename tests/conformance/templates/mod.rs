//! Kernels that are written as their operation on one element: `#[elementwise]`, `#[reduction]` and `#[scan]`; `#[comparison]`.

pub(crate) mod comparisons;
pub(crate) mod elementwise;
pub(crate) mod kernels;
pub(crate) mod reductions;
pub(crate) mod scans;
