//! Textures: arrays that a kernel reads through the hardware that filters, addresses and converts. `element`
//! has the formats of arrays, `reading` the sampler's modes, and `surface` arrays that a kernel writes. `native` and `ptx`
//! read them on the CPU device and on a GPU.

mod element;
#[cfg(not(target_arch = "nvptx64"))]
mod native;
#[cfg(target_arch = "nvptx64")]
mod ptx;
mod reading;
pub mod surface;

use core::marker::PhantomData;

#[doc(hidden)]
pub use element::{Format, assert_texel, assert_texture_element};
pub use element::{ReadAs, Texel, TextureElement};
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use reading::Reading;
pub use reading::{AddressMode, FilterMode};

/// A texture of rank `R` (1, 2 or 3) that a kernel reads as values `V` (`cudaTextureObject_t`).
///
/// At the launch it is `array.texture(&sampler)?` of a `TextureArray<T, R>`. `V` is the elements' own type,
/// or `f32` for `f16` and for 8- and 16-bit integers, which are then normalised to at most 1. The sampler has
/// the filter, address modes and coordinates.
///
/// [`sample`](Texture::sample) takes floating-point coordinates, by the rules of the sampler (`tex1D`,
/// `tex2D`, `tex3D`). The centre of element `i` is `i + 0.5`, or `(i + 0.5) / width` in normalised
/// coordinates; there every filter returns the element itself.
///
/// On the CPU device the arithmetic is that of the CUDA programming guide; [`FilterMode`] says where GPUs may
/// differ.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// An image of another size.
/// #[kernel]
/// pub fn resize(t: Thread<2>, image: Texture<f32, 2>, mut out: DisjointSlice<f32, 2>) {
///     let (i, width, height) = (t.index(), out.width(), out.height());
///     if let Some(pixel) = out.get_mut(i) {
///         let (x, y) = ((i.x() as f32 + 0.5) / width as f32, (i.y() as f32 + 0.5) / height as f32);
///         *pixel = image.sample(x, y);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::Sampler;
///
/// let image = stream.upload_array(&[0_u8, 255], [2, 1])?; // black and white
/// let sampler = Sampler::new().linear().normalized_coordinates();
/// let mut wide = stream.zeros(4)?;
/// kernels::resize(&stream, Grid::cover([4, 1]), image.texture(&sampler)?, wide.view_2d_mut(4, 1)?)?;
/// assert_eq!(stream.download(&wide)?, [0.0, 0.25, 0.75, 1.0]);
/// # Ok(()) }
/// ```
///
/// Elements by index, at their centres, of a texture of rank 1 with two channels:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The difference of the two channels of each third element.
/// #[kernel]
/// pub fn thirds(t: Thread<1>, pairs: Texture<[i16; 2]>, mut out: DisjointSlice<i16>) {
///     let i = t.index();
///     if let Some(out) = out.get_mut(i) {
///         let [first, second] = pairs.sample(3.0 * i.get() as f32 + 0.5);
///         *out = first - second;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::Sampler;
///
/// let pairs = stream.upload_array(&[[9, 4], [1, 1], [1, 1], [3, 7]], [4])?;
/// let mut out = stream.zeros(3)?;
/// kernels::thirds(&stream, Grid::cover(3), pairs.texture(&Sampler::new())?, &mut out)?;
/// assert_eq!(stream.download(&out)?, [5, -4, -4]); // beyond the end is the last
/// # Ok(()) }
/// ```
pub struct Texture<'a, V, const R: usize = 1> {
    /// The texture object; natively the first element.
    handle: *const (),
    /// How it is read, for the CPU device: a `Reading`.
    #[cfg_attr(target_arch = "nvptx64", allow(dead_code))]
    reading: u32,
    /// The extents, x first.
    extent: [u32; R],
    values: PhantomData<&'a [V]>,
}

// SAFETY: it is a `&[V]`, wherever that is.
unsafe impl<V: Sync, const R: usize> Send for Texture<'_, V, R> {}
// SAFETY: as above.
unsafe impl<V: Sync, const R: usize> Sync for Texture<'_, V, R> {}

impl<V, const R: usize> Clone for Texture<'_, V, R> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<V, const R: usize> Copy for Texture<'_, V, R> {}

// Without a bound: for a type that no texture returns, only the signature should report an error.
impl<V, const R: usize> Texture<'_, V, R> {
    /// For the code that `#[kernel]` generates.
    ///
    /// # Safety
    /// During `'a`, `handle` is a texture object of rank `R` with these extents, none of them 0, whose values
    /// are of the class of `V`. Natively it points to that many elements, which can be read as `V` as
    /// `reading` says. They are not written.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw_parts(handle: *const (), reading: u32, extent: [u32; R]) -> Self {
        Texture { handle, reading, extent, values: PhantomData }
    }

    /// The extents, x first.
    #[inline(always)]
    pub fn shape(self) -> [usize; R] {
        self.extent.map(|extent| extent as usize)
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn image(self) -> native::Image {
        let reading = Reading::from_word(self.reading);
        // SAFETY: by the contract of `from_raw`.
        unsafe { native::Image::new(self.handle.cast(), self.extent, reading) }
    }
}

/// The methods of one rank: `$sample` is its instruction.
macro_rules! of_rank {
    ($rank:literal, $sample:ident, $function:literal, [$($axis:ident),*], [$($extent:ident = $number:literal),*]) => {
        impl<V: Texel> Texture<'_, V, $rank> {
            $(
                #[doc = concat!("The elements along axis ", stringify!($number), " (0 is x).")]
                #[inline(always)]
                pub fn $extent(self) -> usize {
                    self.extent[$number] as usize
                }
            )*

            #[doc = concat!("The value at these coordinates, by the rules of the sampler (CUDA's `", $function, "`, PTX `tex`).")]
            ///
            /// Every coordinate gives a value; NaN gives an arbitrary one.
            #[inline(always)]
            pub fn sample(self, $($axis: f32),*) -> V {
                #[cfg(target_arch = "nvptx64")]
                // SAFETY: by the contract of `from_raw`.
                let registers = unsafe { ptx::$sample(V::CLASS, self.handle, [$($axis),*]) };
                #[cfg(not(target_arch = "nvptx64"))]
                let registers = self.image().sample(padded([$($axis),*]));
                V::from_registers(registers)
            }
        }
    };
}

of_rank!(1, sample_1d, "tex1D", [x], [width = 0]);
of_rank!(2, sample_2d, "tex2D", [x, y], [width = 0, height = 1]);
of_rank!(3, sample_3d, "tex3D", [x, y, z], [width = 0, height = 1, depth = 2]);

/// In three dimensions.
#[cfg(not(target_arch = "nvptx64"))]
fn padded<T: Copy + Default, const R: usize>(place: [T; R]) -> [T; 3] {
    core::array::from_fn(|axis| place.get(axis).copied().unwrap_or_default())
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests;
