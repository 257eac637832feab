//! Arrays for textures and surfaces: allocation and copies.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Zeroable;
use ferrogrid_device::{AddressMode, ReadAs, Reading, Texel, TextureElement};

use super::argument::{ArrayInput, ArrayOutput};
use super::limits::{check_surface, check_texture};
use super::sampler::Sampler;
use super::view::{SurfaceViewMut, TextureView, check};
use crate::backend::memory::array::{ArrayBackend, ArrayShape, TextureObject};
use crate::backend::recording::refusal::allocation;
use crate::backend::{Contents, MemoryCopy, Place, Side};
use crate::copy::room_for;
use crate::device::Device;
use crate::error::Result;
use crate::memory::access::{Access, enqueue};
use crate::memory::buffer::DeviceBuffer;
use crate::memory::{Memory, Origin};
use crate::order::Use;
use crate::stream::{Stream, StreamInner};
use crate::view::agree;
use crate::view::argument::{DeviceInput, DeviceOutput};

/// Elements in the layout for textures: a CUDA array of rank `R` (1, 2 or 3), made by
/// [`Stream::upload_array`] or [`Stream::zeros_array`] (`cuArray3DCreate`).
///
/// A kernel reads it as a [`Texture`](ferrogrid_device::Texture) and writes it as a
/// [`Surface`](ferrogrid_device::Surface); the host, and buffers, copy it as a whole. Uses on different
/// streams of its device are ordered as those of a [`DeviceBuffer`](crate::DeviceBuffer) are, and dropped it
/// may be at any time, on any thread: it is kept until the last work that uses it has run. Graphs use
/// it, too ([`Capture::read_array`](crate::Capture::read_array), [`Capture::write_array`](crate::Capture::write_array)). Other
/// devices cannot use it.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// A blur of three by three, to a surface.
/// #[kernel]
/// pub fn blur(t: Thread<2>, from: Texture<f32, 2>, mut to: Surface<f32, 2>) {
///     let i = t.index();
///     let mut sum = 0.0;
///     for y in [-0.5, 0.5, 1.5] {
///         for x in [-0.5, 0.5, 1.5] {
///             sum += from.sample(i.x() as f32 + x, i.y() as f32 + y);
///         }
///     }
///     to.set(i, sum / 9.0);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{AddressMode, Sampler};
///
/// let from = stream.upload_array(&[0.0, 9.0, 0.0, 0.0, 0.0, 0.0], [3, 2])?; // 2 rows of 3
/// let mut to = stream.zeros_array([3, 2])?;
/// let sampler = Sampler::new().address_mode(AddressMode::Border);
/// kernels::blur(&stream, Grid::cover([3, 2]), from.texture(&sampler)?, to.surface()?)?;
/// assert_eq!(stream.download_array(&to)?, [1.0; 6]);
/// # Ok(()) }
/// ```
// Without a bound: of an element that no array has, the function that makes it tells.
pub struct TextureArray<T, const R: usize> {
    extent: [u32; R],
    shape: ArrayShape,
    backend: ArrayBackend,
    memory: Memory,
    elements: PhantomData<T>,
}

impl<T: TextureElement, const R: usize> TextureArray<T, R> {
    const RANK: () = assert!(R >= 1 && R <= 3, "a texture array has rank 1, 2 or 3");

    /// Elements that are not initialised.
    fn allocate(stream: &Stream, extent: [usize; R]) -> Result<Self> {
        const { Self::RANK }
        let device = stream.device();
        check_texture(device, &extent)?;
        let shape = ArrayShape {
            rank: R,
            extent: std::array::from_fn(|axis| extent.get(axis).copied().unwrap_or(1)),
            format: T::FORMAT,
            channels: T::CHANNELS,
            element: size_of::<T>(),
            has_surface: check_surface(device, &extent).is_ok(),
        };
        let length = extent.iter().fold(1_usize, |length, &extent| length.saturating_mul(extent));
        DeviceBuffer::<T>::bytes_of(length)?;
        let (memory, backend) = array_with_memory(stream.inner(), &shape)?;
        // No limit of textures has more bits.
        let extent = extent.map(|extent| extent as u32);
        Ok(TextureArray { extent, shape, backend, memory, elements: PhantomData })
    }

    /// The elements along each axis, x first.
    pub fn extent(&self) -> [usize; R] {
        self.extent.map(|extent| extent as usize)
    }

    /// The number of elements.
    #[allow(clippy::len_without_is_empty, reason = "no array is empty")]
    pub fn len(&self) -> usize {
        self.shape.extent.iter().product()
    }

    /// The device that has it.
    pub fn device(&self) -> &Device {
        self.memory.device()
    }

    /// The array as a kernel reads it, as values `V`: the elements themselves, or `f32` for `f16` and, from 0
    /// or -1 to 1, for integers of 8 and 16 bits. The kernel's signature determines which.
    ///
    /// The texture object is made at the first call with that sampler and `V`, and kept
    /// (`cuTexObjectCreate`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::Sampler;
    ///
    /// let bytes = stream.upload_array(&[0_u8, 128, 255], [3])?;
    /// let _as_they_are = bytes.texture::<u8>(&Sampler::new())?;
    /// let _from_0_to_1 = bytes.texture::<f32>(&Sampler::new().linear())?;
    /// let error = bytes.texture::<u8>(&Sampler::new().linear()).unwrap_err();
    /// assert!(error.to_string().contains("linear filtering gives `f32`"), "{error}");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::TextureSampler`](crate::Error::TextureSampler) if there is no such texture; or a failure of the device.
    pub fn texture<V: Texel>(&self, sampler: &Sampler) -> Result<TextureView<'_, V, R>>
    where
        T: ReadAs<V>,
    {
        sampler.check(R, V::IS_FLOAT)?;
        let Sampler { filter, mut addresses, has_normalized_coordinates } = *sampler;
        // What is above the rank does not count, and makes no other object.
        addresses[R..].fill(AddressMode::Clamp);
        let gives_integers = !V::IS_FLOAT;
        let object = TextureObject { addresses, filter, has_normalized_coordinates, gives_integers };
        let reading = Reading {
            format: T::FORMAT,
            channels: T::CHANNELS,
            filter,
            addresses,
            has_normalized_coordinates,
            is_normalized: T::IS_NORMALIZED,
        };
        let handle = self.backend.texture(self.memory.pointer(), object)?;
        Ok(TextureView::new(handle, reading.to_word(), self.extent, self.access(Use::Read)))
    }

    /// The array as a kernel writes it (`cuSurfObjectCreate`, at the first call).
    ///
    /// # Errors
    /// [`Error::TextureExtent`](crate::Error::TextureExtent) if the array is larger than a surface may be, which in rank 1 is less than
    /// what a texture may be; or a failure of the device.
    pub fn surface(&mut self) -> Result<SurfaceViewMut<'_, T, R>> {
        self.surface_of_shared()
    }

    /// The same for an array that a graph has borrowed mutably.
    pub(crate) fn surface_of_shared(&self) -> Result<SurfaceViewMut<'_, T, R>> {
        if !self.shape.has_surface {
            check_surface(self.device(), &self.extent())?;
        }
        let handle = self.backend.surface(self.memory.pointer())?;
        Ok(SurfaceViewMut::new(handle, self.extent, self.access(Use::Write)))
    }

    /// The driver's handle (`CUarray`); `None` on the CPU device. It is valid while this array exists. Work that is
    /// enqueued through it is not ordered with other uses.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let array = stream.zeros_array::<f32, 2>([4, 4])?;
    /// assert_eq!(array.as_raw().is_some(), stream.device().is_cuda()); // for `cuArrayGetDescriptor` and the like
    /// # Ok(()) }
    /// ```
    pub fn as_raw(&self) -> Option<*mut c_void> {
        self.backend.as_raw()
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// A use of all of it.
    fn access(&self, usage: Use) -> Access<'_> {
        Access::new(&self.memory, usage).of_bytes(self.memory.bytes())
    }

    /// That a copy on `stream` from or to a slice of the host may use it.
    fn check_with_host(&self, stream: &Stream) -> Result<()> {
        stream.inner().refuse_host_memory("a copy between a slice of the host and a texture array")?;
        check(&self.memory, stream)
    }
}

impl Stream {
    /// A new texture array with a copy of `data`, which has its elements row by row, x first
    /// (`cuArray3DCreate`, `cuMemcpy3DAsync`). Returns when `data` can be changed again.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let colours = [[255_u8, 0, 0, 255], [0, 255, 0, 255]];
    /// let image = stream.upload_array(&colours, [2, 1])?; // a row of 2 pixels
    /// assert_eq!((image.extent(), image.len(), image.device()), ([2, 1], 2, stream.device()));
    /// assert_eq!(stream.download_array(&image)?, colours);
    /// let error = stream.upload_array(&[0_u8; 6], [0, 6]).err().unwrap();
    /// assert!(error.to_string().contains("along x"), "{error}");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch), [`Error::TextureExtent`](crate::Error::TextureExtent), [`Error::OutOfMemory`](crate::Error::OutOfMemory), or a failure of the
    /// device.
    pub fn upload_array<T: TextureElement, const R: usize>(
        &self,
        data: &[T],
        extent: [usize; R],
    ) -> Result<TextureArray<T, R>> {
        let mut array = TextureArray::allocate(self, extent)?;
        self.upload_into_array(data, &mut array)?;
        Ok(array)
    }

    /// A new texture array whose elements are all 0.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let volume = stream.zeros_array::<u16, 3>([2, 2, 2])?;
    /// assert_eq!(stream.download_array(&volume)?, [0; 8]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::TextureExtent`](crate::Error::TextureExtent), [`Error::OutOfMemory`](crate::Error::OutOfMemory), or a failure of the device.
    pub fn zeros_array<T: TextureElement + Zeroable, const R: usize>(
        &self,
        extent: [usize; R],
    ) -> Result<TextureArray<T, R>> {
        let mut array = TextureArray::allocate(self, extent)?;
        // The driver fills no arrays.
        let zeros = self.zeros::<T>(array.len())?;
        self.copy_to_array(&zeros, &mut array)?;
        Ok(array)
    }

    /// Copies `source` into all elements of an array (`cuMemcpy3DAsync`). Returns when `source` is free to be
    /// changed.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut array = stream.zeros_array([3])?;
    /// stream.upload_into_array(&[1.0, 2.0, 3.0], &mut array)?;
    /// assert_eq!(stream.download_array(&array)?, [1.0, 2.0, 3.0]);
    /// assert!(stream.upload_into_array(&[1.0], &mut array).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch), or a failure of the device.
    pub fn upload_into_array<T: TextureElement, const R: usize>(
        &self,
        source: &[T],
        target: &mut TextureArray<T, R>,
    ) -> Result<()> {
        agree("upload_into_array", source.len(), target.len())?;
        target.check_with_host(self)?;
        let (from, to) =
            (Side::memory(Place::Host, source.as_ptr().cast()), Side::array(target.memory.pointer()));
        let copy = MemoryCopy::array(to, from, &target.shape);
        // SAFETY: both have as many elements; the array is of this device, and ordered for writing here.
        enqueue(self.inner(), None, Some(target.access(Use::Write)), copy.bytes(), || unsafe {
            self.inner().upload(copy)
        })
    }

    /// The elements of an array, row by row, once all work enqueued here so far has run (`cuMemcpy3DAsync`,
    /// `cuStreamSynchronize`).
    ///
    /// # Errors
    /// As for [`Stream::download`].
    pub fn download_array<T: TextureElement, const R: usize>(
        &self,
        source: &TextureArray<T, R>,
    ) -> Result<Vec<T>> {
        let mut data = room_for::<T>(source.len())?;
        source.check_with_host(self)?;
        let sources = source.memory.writers().sources();
        let (from, to) =
            (Side::array(source.memory.pointer()), Side::memory(Place::Host, data.as_mut_ptr().cast()));
        let copy = MemoryCopy::array(to, from, &source.shape);
        // SAFETY: there is room for the elements of the array, which is of this device and ordered for
        // reading here.
        enqueue(self.inner(), Some(source.access(Use::Read)), None, copy.bytes(), || unsafe {
            self.inner().download(copy)
        })?;
        sources.check()?;
        // SAFETY: all of them have been filled.
        unsafe { data.set_len(source.len()) };
        Ok(data)
    }

    /// Enqueues a copy of a buffer or view to all elements of an array (`cuMemcpy3DAsync`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (buffer, mut array) = (stream.upload(&[1, 2, 3, 4, 5])?, stream.zeros_array([2, 2])?);
    /// stream.copy_to_array(buffer.slice(1..)?, &mut array)?;
    /// let mut back = stream.zeros(4)?;
    /// stream.copy_from_array(&array, &mut back)?;
    /// assert_eq!(stream.download(&back)?, [2, 3, 4, 5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch), or a failure of the device.
    pub fn copy_to_array<'a, 'b, T: TextureElement, const R: usize>(
        &self,
        source: impl DeviceInput<'a, T>,
        target: impl ArrayOutput<'b, T, R>,
    ) -> Result<()> {
        let (source, target) = (source.into_input(), target.into_array());
        agree("copy_to_array", source.len(), target.len())?;
        check(&target.memory, self)?;
        let from = Side::memory(Place::Device, source.start().cast());
        let copy = MemoryCopy::array(Side::array(target.memory.pointer()), from, &target.shape);
        let written = target.access(Use::Write);
        // SAFETY: both have as many elements of this device, ordered here for their use; no view leads to an
        // array.
        enqueue(self.inner(), Some(source.access()), Some(written), copy.bytes(), || unsafe {
            self.inner().enqueue(copy)
        })
    }

    /// Enqueues a copy of all elements of an array to a buffer or view (`cuMemcpy3DAsync`); see
    /// [`Stream::copy_to_array`].
    ///
    /// # Errors
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch), or a failure of the device.
    pub fn copy_from_array<'a, 'b, T: TextureElement, const R: usize>(
        &self,
        source: impl ArrayInput<'b, T, R>,
        target: impl DeviceOutput<'a, T>,
    ) -> Result<()> {
        let (source, target) = (source.into_array(), target.into_output());
        agree("copy_from_array", source.len(), target.len())?;
        check(&source.memory, self)?;
        let to = Side::memory(Place::Device, target.start().cast());
        let copy = MemoryCopy::array(to, Side::array(source.memory.pointer()), &source.shape);
        let read = source.access(Use::Read);
        // SAFETY: as above.
        enqueue(self.inner(), Some(read), Some(target.access()), copy.bytes(), || unsafe {
            self.inner().enqueue(copy)
        })
    }
}

impl<T, const R: usize> fmt::Debug for TextureArray<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextureArray").field("extent", &self.extent).finish_non_exhaustive()
    }
}

/// The memory of an array and the array itself, whose elements are not initialised.
fn array_with_memory(stream: &Arc<StreamInner>, shape: &ArrayShape) -> Result<(Memory, ArrayBackend)> {
    if stream.recording().is_some() {
        return Err(allocation());
    }
    let array = ArrayBackend::new(stream.device().backend(), shape)?;
    let memory = match array.as_raw() {
        None => Memory::allocate(stream, None, shape.bytes(), Contents::Uninitialised)?,
        Some(handle) => {
            let owner = Box::new(array.clone());
            // SAFETY: the handle of an array, which `owner` keeps, and nothing uses yet.
            unsafe { Memory::owned(stream, Origin::Array, handle.cast(), shape.bytes(), owner) }
        }
    };
    Ok((memory, array))
}
