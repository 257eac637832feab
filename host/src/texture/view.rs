//! Texture arrays as arguments of launches.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::from_ref;

use derive_where::derive_where;

use crate::error::Result;
use crate::memory::Memory;
use crate::memory::access::Access;
use crate::stream::Stream;
use crate::view::addresses;

/// A texture array as a kernel reads it: for a kernel's [`Texture<V, R>`](ferrogrid_device::Texture). Made by
/// [`TextureArray::texture`](super::TextureArray::texture).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// One column of an image.
/// #[kernel]
/// pub fn column(t: Thread<1>, x: f32, image: Texture<f32, 2>, mut out: DisjointSlice<f32>) {
///     let i = t.index();
///     if let Some(out) = out.get_mut(i) {
///         *out = image.sample(x, i.get() as f32 + 0.5);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{Sampler, TextureView};
///
/// /// What is in the middle between two columns, from top to bottom.
/// fn middle(stream: &Stream, image: TextureView<f32, 2>) -> ferrogrid::Result<Vec<f32>> {
///     let [width, height] = image.extent();
///     let mut out = stream.zeros(height)?;
///     kernels::column(stream, Grid::cover(height), width as f32 / 2.0, image, &mut out)?;
///     stream.download(&out)
/// }
/// let image = stream.upload_array(&[0.0, 1.0, 5.0, 7.0], [2, 2])?;
/// assert_eq!(middle(&stream, image.texture(&Sampler::new().linear())?)?, [0.5, 6.0]);
/// # Ok(()) }
/// ```
#[derive_where(Clone, Copy, Debug)]
pub struct TextureView<'a, V, const R: usize> {
    /// The texture object, or the first element.
    handle: *const (),
    /// How it is read, for the CPU device.
    reading: u32,
    extent: [u32; R],
    access: Access<'a>,
    values: PhantomData<&'a [V]>,
}

/// A texture array as a kernel writes it: for a kernel's [`Surface<T, R>`](ferrogrid_device::Surface). Made
/// by [`TextureArray::surface`](super::TextureArray::surface).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// #[kernel]
/// pub fn number(t: Thread<1>, mut out: Surface<u32>) {
///     let i = t.index();
///     out.set(i, i.get() as u32);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut array = stream.zeros_array([4])?;
/// let surface = array.surface()?;
/// assert_eq!(surface.extent(), [4]);
/// kernels::number(&stream, Grid::cover(4), surface)?;
/// assert_eq!(stream.download_array(&array)?, [0, 1, 2, 3]);
/// # Ok(()) }
/// ```
#[derive_where(Debug)]
pub struct SurfaceViewMut<'a, T, const R: usize> {
    /// The surface object, or the first element.
    handle: *const (),
    extent: [u32; R],
    access: Access<'a>,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: a view is a `&[V]` in device memory; a texture object may be used from any thread.
unsafe impl<V: Sync, const R: usize> Send for TextureView<'_, V, R> {}
// SAFETY: as above.
unsafe impl<V: Sync, const R: usize> Sync for TextureView<'_, V, R> {}
// SAFETY: a view is a `&mut [T]` in device memory; a surface object may be used from any thread.
unsafe impl<T: Send, const R: usize> Send for SurfaceViewMut<'_, T, R> {}
// SAFETY: as above.
unsafe impl<T: Sync, const R: usize> Sync for SurfaceViewMut<'_, T, R> {}

/// The methods that textures share with surfaces.
macro_rules! object_methods {
    ($View:ident) => {
        // Without bounds: generated code calls these, and a kernel over other values is to be reported once, at its
        // signature.
        impl<'a, T, const R: usize> $View<'a, T, R> {
            /// The elements along each axis, x first.
            pub fn extent(&self) -> [usize; R] {
                self.extent.map(|extent| extent as usize)
            }

            /// For a launch on `stream`.
            ///
            /// # Errors
            /// If the array is another device's.
            #[doc(hidden)]
            pub fn on(self, stream: &Stream) -> Result<Self> {
                check(self.access.memory(), stream)?;
                Ok(self)
            }

            /// What a launch with it uses.
            #[doc(hidden)]
            pub fn access(&self) -> Access<'a> {
                self.access
            }
        }
    };
}

object_methods!(TextureView);
object_methods!(SurfaceViewMut);

impl<'a, V, const R: usize> TextureView<'a, V, R> {
    /// What a kernel that takes `reading` and `handle` can read as `V` is in use as `access` says.
    pub(super) fn new(handle: *const (), reading: u32, extent: [u32; R], access: Access<'a>) -> Self {
        TextureView { handle, reading, extent, access, values: PhantomData }
    }

    /// The host addresses of the kernel parameters that it becomes; as many extents count as there are.
    #[doc(hidden)]
    pub fn params(&self) -> [*const c_void; 5] {
        let [x, y, z, ..] = addresses(&self.extent);
        [from_ref(&self.handle).cast(), from_ref(&self.reading).cast(), x, y, z]
    }
}

impl<'a, T, const R: usize> SurfaceViewMut<'a, T, R> {
    /// What a kernel that takes `handle` can write as `T` is in use as `access` says.
    pub(super) fn new(handle: *const (), extent: [u32; R], access: Access<'a>) -> Self {
        SurfaceViewMut { handle, extent, access, elements: PhantomData }
    }

    /// The host addresses of the kernel parameters that it becomes; as many extents count as there are.
    #[doc(hidden)]
    pub fn params(&self) -> [*const c_void; 4] {
        let [x, y, z, ..] = addresses(&self.extent);
        [from_ref(&self.handle).cast(), x, y, z]
    }
}

/// An array is used on its own device, even if that shares memory with others: its objects are invalid on other devices.
pub(super) fn check(memory: &Memory, stream: &Stream) -> Result<()> {
    if memory.device() == stream.device() { Ok(()) } else { Err(memory.mismatch(stream.inner())) }
}
