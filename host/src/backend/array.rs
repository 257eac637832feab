//! Texture arrays of either backend: on a GPU CUDA arrays, with the texture and surface objects that were
//! made of them; on the CPU device ordinary memory.

use std::ffi::c_void;
use std::sync::Arc;

use ferrogrid_device::{AddressMode, FilterMode, Format};

use super::{DeviceBackend, StreamBackend, cuda};
use crate::backend::Place;
use crate::backend::recording::refusal::{allocation, host_memory};
use crate::error::Result;
use crate::memory::{Contents, Memory, Origin};
use crate::profile::{self, Work};
use crate::stream::StreamInner;

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

/// A side of a copy: memory that is contiguous, or an array.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Host(*mut u8),
    Device(*mut u8),
    /// What `Memory::pointer` is of an array.
    Array(*mut u8),
}

/// What an array has beyond its memory.
pub(crate) enum ArrayBackend {
    Cuda(Arc<cuda::CudaArray>),
    Cpu,
}

impl ArrayBackend {
    /// An array, whose elements are not initialised.
    pub(crate) fn allocate(stream: &Arc<StreamInner>, shape: &ArrayShape) -> Result<(Memory, Self)> {
        let bytes = shape.bytes();
        match (stream.device().backend(), stream.backend()) {
            (_, StreamBackend::Recording(_)) => Err(allocation()),
            (DeviceBackend::Cuda(device), _) => {
                let array = Arc::new(cuda::CudaArray::new(device, shape)?);
                let (handle, owner) = (array.as_raw().cast(), Box::new(array.clone()));
                // SAFETY: the handle of an array, which `owner` keeps, and nothing uses yet.
                let memory = unsafe { Memory::owned(stream, Origin::Array, handle, bytes, owner) };
                Ok((memory, ArrayBackend::Cuda(array)))
            }
            (DeviceBackend::Cpu(_), _) => {
                let memory = Memory::allocate(stream, None, bytes, Contents::Uninitialised)?;
                Ok((memory, ArrayBackend::Cpu))
            }
        }
    }

    /// The driver's handle; `None` on the CPU device.
    pub(crate) fn as_raw(&self) -> Option<*mut c_void> {
        match self {
            ArrayBackend::Cuda(array) => Some(array.as_raw().cast()),
            ArrayBackend::Cpu => None,
        }
    }

    /// What a kernel reads it by: the texture object, or `memory`. It is there as long as the array.
    pub(crate) fn texture(&self, memory: &Memory, object: TextureObject) -> Result<*const ()> {
        match self {
            ArrayBackend::Cuda(array) => array.texture(object),
            ArrayBackend::Cpu => Ok(memory.pointer().cast_const().cast()),
        }
    }

    /// What a kernel writes it by; the array has a surface.
    pub(crate) fn surface(&self, memory: &Memory) -> Result<*const ()> {
        match self {
            ArrayBackend::Cuda(array) => array.surface(),
            ArrayBackend::Cpu => Ok(memory.pointer().cast_const().cast()),
        }
    }
}

impl StreamInner {
    /// Enqueues a copy of a whole array, from or to one.
    ///
    /// # Safety
    /// Both sides have all of its elements, and do not overlap. Memory of this device is ordered here for its
    /// use, memory of the host used by nobody else until the copy has run.
    pub(crate) unsafe fn copy_array(&self, target: Side, source: Side, shape: &ArrayShape) -> Result<()> {
        if let Some(recording) = self.recording() {
            return recording.copy_array(target, source, shape);
        }
        let bytes = shape.bytes();
        let work = match (target, source) {
            (_, Side::Host(_)) => Work::Upload { bytes },
            (Side::Host(_), _) => Work::Download { bytes },
            _ => Work::Copy { bytes },
        };
        profile::observe(self, work, || match self.backend() {
            // SAFETY: passed on.
            StreamBackend::Cuda(stream) => unsafe { stream.copy_array(target, source, shape) },
            // SAFETY: passed on: an array there is its elements, one after the other.
            StreamBackend::Cpu(stream) => unsafe { stream.copy(target.start(), source.start(), bytes) },
            StreamBackend::Recording(_) => Err(host_memory("a copy from or to the host")),
        })
    }

    /// Copies host memory into an array; the memory is not used after this returns.
    ///
    /// # Safety
    /// As for `copy_array`.
    pub(crate) unsafe fn copy_array_from_host(
        &self,
        target: *mut u8,
        source: *const u8,
        shape: &ArrayShape,
    ) -> Result<()> {
        let source = Side::Host(source.cast_mut());
        match self.backend() {
            StreamBackend::Cuda(stream) => {
                // SAFETY: passed on; the wait below outlasts the use of `source`.
                unsafe { self.copy_array(Side::Array(target), source, shape)? };
                profile::observe_host(self.device(), Work::Synchronize, || stream.drain())
            }
            // SAFETY: passed on.
            StreamBackend::Cpu(_) => unsafe { self.copy_from_host(target, source.start(), shape.bytes()) },
            StreamBackend::Recording(_) => Err(host_memory("an upload to a texture array")),
        }
    }

    /// Copies an array to host memory, which is filled when this returns `Ok`, and not used after it returns.
    ///
    /// # Safety
    /// As for `copy_array`.
    pub(crate) unsafe fn copy_array_to_host(
        &self,
        target: *mut u8,
        source: *mut u8,
        shape: &ArrayShape,
    ) -> Result<()> {
        match self.backend() {
            StreamBackend::Cuda(stream) => {
                // SAFETY: passed on; the wait below outlasts the use of `target`.
                unsafe { self.copy_array(Side::Host(target), Side::Array(source), shape)? };
                profile::observe_host(self.device(), Work::Synchronize, || stream.synchronize())
            }
            // SAFETY: passed on.
            StreamBackend::Cpu(_) => unsafe { self.copy_to_host(target, source, shape.bytes()) },
            StreamBackend::Recording(_) => Err(host_memory("a download of a texture array")),
        }
    }
}

impl Side {
    /// The first byte; of an array its handle.
    pub(crate) fn start(self) -> *mut u8 {
        let (Side::Host(start) | Side::Device(start) | Side::Array(start)) = self;
        start
    }

    pub(crate) fn place(self) -> Place {
        if matches!(self, Side::Host(_)) { Place::Host } else { Place::Device }
    }
}
