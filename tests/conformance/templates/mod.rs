//! Kernels that are written as their operation on one element: `#[elementwise]` and `#[reduction]`.

pub(crate) mod elementwise;
mod kernels;
pub(crate) mod reductions;
