//! Texture arrays of either backend: on a GPU CUDA arrays, with the texture and surface objects that were
//! made of them; on the CPU device ordinary memory.

use std::ffi::c_void;
use std::sync::Arc;

use ferrogrid_device::{AddressMode, FilterMode, Format};

use crate::backend::{DeviceBackend, cuda};
use crate::error::Result;

/// What an array is like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrayShape {
    /// 1 to 3.
    pub(crate) rank: usize,
    /// Elements along each axis, 1 above the rank. None is 0.
    pub(crate) extent: [usize; 3],
    pub(crate) format: Format,
    pub(crate) channels: usize,
    /// The bytes of an element.
    pub(crate) element: usize,
    /// Whether kernels may write it.
    pub(crate) has_surface: bool,
}

impl ArrayShape {
    pub(crate) fn bytes(&self) -> usize {
        self.extent.iter().product::<usize>() * self.element
    }
}

/// How a texture is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextureObject {
    pub(crate) addresses: [AddressMode; 3],
    pub(crate) filter: FilterMode,
    pub(crate) has_normalized_coordinates: bool,
    /// Whether it gives integers; else those of 8 and 16 bits become numbers up to 1.
    pub(crate) gives_integers: bool,
}

/// What an array has beyond its memory: on a GPU the CUDA array, and nothing on the CPU device.
#[derive(Clone)]
pub(crate) struct ArrayBackend(Option<Arc<cuda::CudaArray>>);

impl ArrayBackend {
    /// An array, whose elements are not initialised.
    pub(crate) fn new(device: DeviceBackend, shape: &ArrayShape) -> Result<Self> {
        let array = device.as_cuda().map(|device| cuda::CudaArray::new(device, shape)).transpose()?;
        Ok(ArrayBackend(array.map(Arc::new)))
    }

    /// The driver's handle; `None` on the CPU device.
    pub(crate) fn as_raw(&self) -> Option<*mut c_void> {
        self.0.as_ref().map(|array| array.as_raw().cast())
    }

    /// What a kernel reads it by: the texture object, or `start`, the first byte of its memory. It is there as long as the
    /// array.
    pub(crate) fn texture(&self, start: *const u8, object: TextureObject) -> Result<*const ()> {
        self.0.as_ref().map_or(Ok(start.cast()), |array| array.texture(object))
    }

    /// What a kernel writes it by; the array has a surface.
    pub(crate) fn surface(&self, start: *const u8) -> Result<*const ()> {
        self.0.as_ref().map_or(Ok(start.cast()), |array| array.surface())
    }
}
