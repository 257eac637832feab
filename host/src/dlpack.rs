//! Tensors shared with other libraries without a copy, by the DLPack protocol: NumPy, PyTorch, CuPy, JAX.
//! It must not know those libraries, only the structures that they agree on ([`abi`]).
//!
//! A [`DlpackTensor`] owns a tensor of either side. A buffer becomes one with [`DlpackTensor::from_buffer`],
//! and goes out with [`DlpackTensor::into_raw`]; what comes in by [`DlpackTensor::from_raw`] becomes a buffer
//! with [`DlpackTensor::into_buffer`].
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
//! // SAFETY: it comes from `into_raw`, is taken over once, and nobody else uses its memory.
//! let tensor = unsafe { DlpackTensor::from_raw(raw)? };
//! assert_eq!(tensor.shape(), [2, 3]);
//! let buffer = tensor.into_buffer::<f32>(&stream)?;
//! assert_eq!(stream.download(&buffer)?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! # Ok(()) }
//! ```

pub mod abi;
mod element;
mod error;
mod export;
mod tensor;

pub use element::DlpackElement;
pub use error::DlpackError;
pub use tensor::DlpackTensor;
