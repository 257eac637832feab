//! Kernels that are written as their operation on one element: `#[elementwise]`, `#[reduction]` and `#[scan]`; `#[comparison]`; `#[matmul]`.
//!
//! `elementwise`, `reductions`, `scans` and `comparisons` have the cases of each, and `kernels` their templates; `matmul` has both.

pub(crate) mod comparisons;
pub(crate) mod elementwise;
pub(crate) mod kernels;
pub(crate) mod matmul;
pub(crate) mod reductions;
pub(crate) mod scans;
