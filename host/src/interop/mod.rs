//! Types of other crates: streams and buffers in calls of cudarc (the feature `cudarc` of `ferrogrid`), and arrays of ndarray (the feature
//! `ndarray`).
//!
//! # cudarc
//!
//! For cudarc's bindings of cuBLAS, cuBLASLt, cuFFT, cuRAND and others. A [`SharedStream`] is one CUDA stream with two interfaces: it is a
//! [`Stream`](crate::Stream), with all its methods, and a [`CudaStream`](cudarc::driver::CudaStream). Libraries enqueue on it between
//! launches and copies of this crate. A buffer goes to them as a [`SharedView`] or [`SharedViewMut`], which have cudarc's traits
//! `DevicePtr` and `DevicePtrMut`. Both are borrows: while a view exists, nothing else uses the memory in another way, and later uses on
//! any stream come after the library's work. Memory that cudarc has allocated becomes a buffer by [`SharedStream::adopt`]. Nothing is
//! copied.
//!
//! ```no_run
//! use cudarc::cublas::{CudaBlas, Gemm, GemmConfig, sys::cublasOperation_t::CUBLAS_OP_N};
//! use ferrogrid::Device;
//! use ferrogrid::interop::SharedStream;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // SAFETY: nothing captures the stream.
//! let stream = unsafe { SharedStream::new(&Device::cuda(0)?)? };
//! let blas = CudaBlas::new(stream.cudarc().clone())?;
//!
//! let (a, b) = (stream.upload(&[1.0_f32, 2.0, 3.0, 4.0])?, stream.upload(&[1.0_f32, 0.0, 0.0, 1.0])?);
//! let mut c = stream.zeros::<f32>(4)?;
//! let (transa, transb, m, n, k) = (CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2);
//! let config = GemmConfig { transa, transb, m, n, k, alpha: 1.0, lda: 2, ldb: 2, beta: 0.0, ldc: 2 };
//! // SAFETY: the matrices have these shapes.
//! unsafe { blas.gemm(config, &stream.read(&a)?, &stream.read(&b)?, &mut stream.write(&mut c)?)? };
//! assert_eq!(stream.download(&c)?, [1.0, 2.0, 3.0, 4.0]);
//! # Ok(()) }
//! ```
//!
//! # ndarray
//!
//! An array is an argument of a launch by [`HostArray`] and [`HostArrayMut`], with its shape.
//! [`Stream::upload_ndarray`](crate::Stream::upload_ndarray) and [`Stream::download_ndarray`](crate::Stream::download_ndarray) copy arrays to
//! buffers and back.

// `stream` is the stream of cudarc, `view` what its libraries use, `calls` what their results rest on. `arrays` is for ndarray.

#[cfg(feature = "ndarray")]
mod arrays;
#[cfg(feature = "cudarc-interop")]
mod calls;
#[cfg(feature = "cudarc-interop")]
mod stream;
#[cfg(feature = "cudarc-interop")]
mod view;

#[cfg(feature = "ndarray")]
pub use arrays::{ArrayRank, HostArray, HostArrayMut};
#[cfg(feature = "cudarc-interop")]
pub use stream::SharedStream;
#[cfg(feature = "cudarc-interop")]
pub use view::{SharedView, SharedViewMut};
