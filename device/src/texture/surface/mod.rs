//! Surfaces: texture arrays that a kernel writes, each thread the element that its index names.

// `native` and `ptx` write them on the CPU device and on a GPU.

#[cfg(not(target_arch = "nvptx64"))]
mod native;
#[cfg(target_arch = "nvptx64")]
mod ptx;

use core::marker::PhantomData;

use crate::texture::TextureElement;
use crate::thread::index::Index;

/// What an access outside a surface does, as a value.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Zero,
    Clamp,
    Trap,
}

/// What an access outside a surface does (`cudaSurfaceBoundaryMode`): [`Zero`], [`Clamp`] or [`Trap`].
pub trait Boundary: sealed::Sealed {
    #[doc(hidden)]
    const MODE: Mode;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! boundaries {
    ($($(#[$documentation:meta])* $name:ident;)*) => { $(
        $(#[$documentation])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl sealed::Sealed for $name {}

        impl Boundary for $name {
            const MODE: Mode = Mode::$name;
        }
    )* };
}

boundaries! {
    /// A read outside returns 0, and a write is dropped (`cudaBoundaryModeZero`, PTX `.zero`).
    Zero;
    /// An access outside goes to the nearest element at the edge (`cudaBoundaryModeClamp`, PTX `.clamp`).
    Clamp;
    /// An access outside ends the kernel (`cudaBoundaryModeTrap`, PTX `.trap`): on a GPU with an error that
    /// makes its context unusable, on the CPU device with a panic.
    Trap;
}

/// A texture array of rank `R` (1, 2 or 3) that a kernel writes, each element of which belongs to one thread
/// (`cudaSurfaceObject_t`).
///
/// At the launch it is `array.surface()?` of a `&mut TextureArray<T, R>`. Like
/// [`DisjointSlice`](crate::DisjointSlice) it is written with the [`Index`] of a thread, which no other
/// thread has. What is written, the texture of later launches shows.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// A gradient from left to right.
/// #[kernel]
/// pub fn gradient(t: Thread<2>, mut image: Surface<u8, 2>) {
///     let i = t.index();
///     image.set(i, (10 * i.x()) as u8); // nothing for threads beyond the edge
/// }
///
/// /// Adds to what each element held before.
/// #[kernel]
/// pub fn brighten(t: Thread<2>, by: u8, mut image: Surface<u8, 2>) {
///     let i = t.index();
///     if let Some(before) = image.get(i) {
///         image.set(i, before.saturating_add(by));
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut image = stream.zeros_array([3, 2])?;
/// kernels::gradient(&stream, Grid::cover([3, 2]), image.surface()?)?;
/// kernels::brighten(&stream, Grid::cover([3, 2]), 240, image.surface()?)?;
/// assert_eq!(stream.download_array(&image)?, [240, 250, 255, 240, 250, 255]);
/// # Ok(()) }
/// ```
pub struct Surface<'a, T, const R: usize = 1> {
    /// The surface object; natively the first element.
    handle: *const (),
    /// The extents, x first.
    extent: [u32; R],
    elements: PhantomData<&'a mut [T]>,
}

// Without a bound, as for textures.
impl<T, const R: usize> Surface<'_, T, R> {
    /// For the code that `#[kernel]` generates.
    ///
    /// # Safety
    /// For as long as `'a`, `handle` is a surface object of rank `R` and these extents, none of them 0, with
    /// elements of the format of `T`; or natively the first of so many elements `T`. Nothing else may reach
    /// them but surfaces with the same parts, in threads with distinct indices of one launch of rank `R`.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw_parts(handle: *const (), extent: [u32; R]) -> Self {
        Surface { handle, extent, elements: PhantomData }
    }

    /// The extents, x first.
    #[inline(always)]
    pub fn shape(&self) -> [usize; R] {
        self.extent.map(|extent| extent as usize)
    }

    /// A thread's index as coordinates, if there is such an element: coordinates are below 2^31.
    #[inline(always)]
    fn inside(&self, index: Index<'_, R>) -> Option<[i32; R]> {
        let place = index.position();
        let is_inside = (0..R).all(|axis| place[axis] < self.extent[axis] as usize);
        is_inside.then(|| place.map(|number| number as i32))
    }
}

/// The methods of one rank: `$load` and `$store` are its instructions.
macro_rules! of_rank {
    ($rank:literal, $load:ident, $store:ident, $read:literal, $write:literal, [$($extent:ident = $number:literal),*]) => {
        impl<T: TextureElement> Surface<'_, T, $rank> {
            $(
                #[doc = concat!("The elements along axis ", stringify!($number), " (0 is x).")]
                #[inline(always)]
                pub fn $extent(&self) -> usize {
                    self.extent[$number] as usize
                }
            )*

            /// The value that the element of the thread with this index had before the launch; `None`
            /// outside.
            ///
            /// After [`set`](Self::set) it is either the old or the new value; the CUDA programming guide
            /// does not say which. Keep the written value in a variable.
            #[inline(always)]
            pub fn get(&self, index: Index<'_, $rank>) -> Option<T> {
                let place = self.inside(index)?;
                // SAFETY: only this thread has this index (`Index`), and it does not write meanwhile.
                Some(unsafe { self.load::<Zero>(place) })
            }

            /// Sets the element of the thread with this index; does nothing outside.
            #[inline(always)]
            pub fn set(&mut self, index: Index<'_, $rank>, value: T) {
                if let Some(place) = self.inside(index) {
                    // SAFETY: only this thread has this index (`Index`), and this thread's access is
                    // exclusive by `&mut self`.
                    unsafe { self.store::<Zero>(place, value) }
                }
            }

            #[doc = concat!("The element at any place (CUDA's `", $read, "`, PTX `suld.b`); `B` defines accesses outside.")]
            ///
            /// # Safety
            /// No thread of the launch has written the element, and no other thread writes it meanwhile.
            #[inline(always)]
            pub unsafe fn read<B: Boundary>(&self, place: [i32; $rank]) -> T {
                // SAFETY: the caller's.
                unsafe { self.load::<B>(in_range::<T, $rank>(place)) }
            }

            #[doc = concat!("Sets the element at any place (CUDA's `", $write, "`, PTX `sust.b`); `B` defines accesses outside.")]
            ///
            /// ```
            /// # use ferrogrid::prelude::*;
            /// # #[ferrogrid::module(host_only)]
            /// # mod kernels {
            /// # use ferrogrid::device::prelude::*;
            /// use ferrogrid::device::surface::Zero;
            ///
            /// /// Moves what is in a texture to the right.
            /// #[kernel]
            /// pub fn shift(t: Thread<1>, by: i32, from: Texture<u16>, to: Surface<u16>) {
            ///     let place = t.index().get() as i32;
            ///     let element = from.sample(place as f32 + 0.5);
            ///     // SAFETY: each thread has a place of its own, and none is read.
            ///     unsafe { to.write::<Zero>([place + by], element) };
            /// }
            /// # }
            /// # fn main() -> ferrogrid::Result<()> {
            /// # let stream = Device::cpu().new_stream()?;
            /// let (from, mut to) = (stream.upload_array(&[1, 2, 3], [3])?, stream.zeros_array([3])?);
            /// let texture = from.texture(&ferrogrid::Sampler::new())?;
            /// kernels::shift(&stream, Grid::cover(3), 1, texture, to.surface()?)?;
            /// assert_eq!(stream.download_array(&to)?, [0, 1, 2]);
            /// # Ok(()) }
            /// ```
            ///
            /// # Safety
            /// No other thread of the launch reads or writes the element.
            #[inline(always)]
            pub unsafe fn write<B: Boundary>(&self, place: [i32; $rank], value: T) {
                // SAFETY: the caller's.
                unsafe { self.store::<B>(in_range::<T, $rank>(place), value) }
            }

            /// # Safety
            /// No other thread writes the element meanwhile.
            #[inline(always)]
            unsafe fn load<B: Boundary>(&self, place: [i32; $rank]) -> T {
                #[cfg(target_arch = "nvptx64")]
                // SAFETY: the surface is valid by the contract of `from_raw`, the element by the caller's;
                // any bytes are a `T`.
                return unsafe { ptx::$load(B::MODE, self.handle, in_bytes::<T, $rank>(place)) };
                #[cfg(not(target_arch = "nvptx64"))]
                // SAFETY: as above.
                unsafe {
                    native::load(B::MODE, self.handle, self.extent, place)
                }
            }

            /// # Safety
            /// No other thread reads or writes the element meanwhile.
            #[inline(always)]
            unsafe fn store<B: Boundary>(&self, place: [i32; $rank], value: T) {
                #[cfg(target_arch = "nvptx64")]
                // SAFETY: the surface is valid by the contract of `from_raw`, the element by the caller's; a
                // `T` has no padding.
                unsafe {
                    ptx::$store(B::MODE, self.handle, in_bytes::<T, $rank>(place), value)
                }
                #[cfg(not(target_arch = "nvptx64"))]
                // SAFETY: as above.
                unsafe {
                    native::store(B::MODE, self.handle, self.extent, place, value)
                }
            }
        }
    };
}

of_rank!(1, load_1d, store_1d, "surf1Dread", "surf1Dwrite", [width = 0]);
of_rank!(2, load_2d, store_2d, "surf2Dread", "surf2Dwrite", [width = 0, height = 1]);
of_rank!(3, load_3d, store_3d, "surf3Dread", "surf3Dwrite", [width = 0, height = 1, depth = 2]);

/// The same coordinates, or ones as far outside as can be counted in bytes.
#[inline(always)]
fn in_range<T, const R: usize>(mut place: [i32; R]) -> [i32; R] {
    let size = size_of::<T>() as i32;
    place[0] = place[0].clamp(i32::MIN / size, i32::MAX / size);
    place
}

/// The same coordinates, the first of them in bytes.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn in_bytes<T, const R: usize>(mut place: [i32; R]) -> [i32; R] {
    // Inside, coordinates are below the array's extents; outside, `in_range` limits them.
    place[0] = place[0].wrapping_mul(size_of::<T>() as i32);
    place
}
