//! Tensors shared with other libraries (NumPy, PyTorch, CuPy, JAX) without a copy, by the DLPack protocol. Its
//! C structures are in [`abi`].
//!
//! A [`DlpackTensor`] owns a tensor of either side. A buffer becomes one with [`DlpackTensor::from_buffer`],
//! and goes out with [`DlpackTensor::into_raw`]; what comes in by [`DlpackTensor::from_raw`] becomes a buffer
//! with [`DlpackTensor::into_buffer`].
//!
//! | memory | out | in |
//! |---|---|---|
//! | of a device | [`from_buffer`](DlpackTensor::from_buffer), [`from_pitched`](DlpackTensor::from_pitched) | [`into_buffer`](DlpackTensor::into_buffer) |
//! | page-locked, of the host | [`from_pinned`](DlpackTensor::from_pinned) | [`into_pinned`](DlpackTensor::into_pinned) |
//! | managed | [`from_managed`](DlpackTensor::from_managed) | [`into_managed`](DlpackTensor::into_managed) |
//! | read-only | [`from_shared`](DlpackTensor::from_shared), [`with_read_only`](DlpackTensor::with_read_only) | [`into_read_only_buffer`](DlpackTensor::into_read_only_buffer) |
//! | in the order of a stream | [`from_buffer_async`](DlpackTensor::from_buffer_async), [`from_shared_async`](DlpackTensor::from_shared_async) | [`from_raw_async`](DlpackTensor::from_raw_async) |
//! | with strides, or on another device | [`with_layout`](DlpackTensor::with_layout) | [`copy_to_buffer`](DlpackTensor::copy_to_buffer) |
//!
//! ```
//! # fn main() -> ferrogrid_host::Result<()> {
//! use ferrogrid_host::Device;
//! use ferrogrid_host::dlpack::DlpackTensor;
//!
//! let stream = Device::cpu().new_stream()?;
//! let buffer = stream.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let tensor = DlpackTensor::from_buffer(&stream, buffer)?.with_shape(&[2, 3])?;
//! let raw = tensor.into_raw(); // for `__dlpack__` of a Python object, in a capsule `dltensor_versioned`
//!
//! // SAFETY: it comes from `into_raw`, is taken over once, and nothing else uses its memory.
//! let tensor = unsafe { DlpackTensor::from_raw(raw)? };
//! assert_eq!(tensor.shape(), [2, 3]);
//! let buffer = tensor.into_buffer::<f32>(&stream)?;
//! assert_eq!(stream.download(&buffer)?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! # Ok(()) }
//! ```

// `export` and `outgoing` make tensors of buffers, and `incoming` buffers of tensors. `tensor` owns one, `layout` has
// shapes and strides, `element` the types, and `ready` the order by streams.

/// The structures of DLPack 1.1, as in `dlpack.h`.
pub mod abi {
    pub use crate::dlpack_abi::*;
}
mod element;
mod export;
mod incoming;
mod layout;
mod outgoing;
mod ready;
mod tensor;

pub use crate::error::dlpack::DlpackError;
pub use element::DlpackElement;
pub use incoming::ReadOnlyBuffer;
pub use tensor::DlpackTensor;
