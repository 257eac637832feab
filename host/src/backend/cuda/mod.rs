//! CUDA GPUs through the driver API, which is found at run time. It must not know the public types,
//! beyond the kernels that it is given.
//!
//! cudarc gives the types and constants; the calls are made through function types of our own that
//! return plain integers (see `driver`).

mod callback;
mod device;
mod driver;
mod event;
mod feedback;
mod fill;
mod managed;
mod memory;
mod module;
mod pinned;
mod pool;
mod recent;
mod stream;

pub(crate) use device::{CudaDevice, devices};
pub(crate) use event::CudaEvent;
pub(crate) use stream::CudaStream;
