//! How kernels read and write memory.
//!
//! `caches` has cache hints, `strides` grid-stride loops and views of rows, and `writes` outputs at computed indices.
//! `X_kernels` has the kernels of `X`.

pub(crate) mod cache_kernels;
pub(crate) mod caches;
pub(crate) mod stride_kernels;
pub(crate) mod strides;
pub(crate) mod write_kernels;
pub(crate) mod writes;
