//! Memory of kernels: buffers, atomics, constants, statics, cache hints, strided and scattered writes, and
//! host memory.

pub(crate) mod atomic_kernels;
pub(crate) mod atomics;
pub(crate) mod buffers;
pub(crate) mod cache_kernels;
pub(crate) mod caches;
pub(crate) mod constant_kernels;
pub(crate) mod constants;
pub(crate) mod host_slices;
pub(crate) mod static_kernels;
pub(crate) mod statics;
pub(crate) mod stride_kernels;
pub(crate) mod strides;
pub(crate) mod write_kernels;
pub(crate) mod writes;
pub(crate) mod zero_copy;
