//! Memory of kernels.
//!
//! `access` is how kernels read and write it, and `variables` has constants and statics. `atomics` has atomic operations,
//! `buffers` buffers of kernels. `host_slices` and `zero_copy` use the host's memory. `X_kernels` has the kernels of `X`.

pub(crate) mod access;
pub(crate) mod atomic_kernels;
pub(crate) mod atomics;
pub(crate) mod buffers;
pub(crate) mod host_slices;
pub(crate) mod variables;
pub(crate) mod zero_copy;
