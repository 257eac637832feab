//! [`Aligned16`]: several numbers as one element of 16 bytes, which one instruction loads or stores (CUDA's
//! `float4`).

use core::fmt;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, transmute_copy};
use core::ops::{Deref, DerefMut};

use crate::element::device_copy::DeviceCopy;

/// A value of exactly 16 bytes, aligned to 16, which a device loads and stores with one instruction
/// (PTX `ld.global.nc.v4`, `st.global.v4`, or `.v2` of 64 bits): `Aligned16<[f32; 4]>`,
/// `Aligned16<[u8; 16]>`, as `float4` is in CUDA.
///
/// A kernel takes `&[Aligned16<[f32; 4]>]` and `DisjointSlice<Aligned16<[f32; 4]>>`. At the launch,
/// `buffer.view().as_aligned16::<4>()?` and `buffer.view_mut().as_aligned16::<4>()?` view a buffer of `f32`
/// as such elements. A kernel that only moves memory needs them to reach the memory's bandwidth. The type
/// dereferences to the array and is copied as a whole.
///
/// The grouping is part of the signature; a kernel cannot regroup a `DisjointSlice<f32>`. Threads could
/// disagree about the grouping, and two of them would reach the same element.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// y <- a*x + y, four elements a thread.
/// #[kernel]
/// pub fn saxpy(t: Thread<1>, a: f32, x: &[Aligned16<[f32; 4]>], mut y: DisjointSlice<Aligned16<[f32; 4]>>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         let x = x[i.get()];
///         for k in 0..4 {
///             y[k] += a * x[k];
///         }
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.fill(1.0_f32, 1024)?;
/// let mut y = stream.fill(2.0_f32, 1024)?;
/// let x = x.view().as_aligned16::<4>()?;
/// kernels::saxpy(&stream, Grid::cover(x.len()), 3.0, x, y.view_mut().as_aligned16::<4>()?)?;
/// assert_eq!(stream.download(&y)?, [5.0; 1024]);
/// # Ok(()) }
/// ```
///
/// Alone:
///
/// ```
/// use ferrogrid_device::Aligned16;
///
/// let mut x = Aligned16::new([1.0_f64, 2.0]);
/// x[1] *= 4.0; // as the array
/// assert_eq!((x.into_inner(), align_of_val(&x)), ([1.0, 8.0], 16));
/// ```
///
/// ```compile_fail,E0080
/// let twelve_bytes = ferrogrid_device::Aligned16::new([1.0_f32, 2.0, 3.0]);
/// ```
// An integer, because LLVM moves one as a whole, but splits a copy of an array into 8-byte moves; and
// `MaybeUninit`, because a value may have padding.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Aligned16<T: DeviceCopy> {
    /// Always the bytes of a valid `T`.
    bytes: MaybeUninit<u128>,
    value: PhantomData<T>,
}

// SAFETY: transparent over 16 bytes aligned to 16 on every 64-bit host and on nvptx64, which are those of
// a `T`, which is `DeviceCopy`.
unsafe impl<T: DeviceCopy> DeviceCopy for Aligned16<T> {
    const LAYOUT: u64 = T::LAYOUT;
}

impl<T: DeviceCopy> Aligned16<T> {
    const FITS: () = {
        assert!(
            size_of::<T>() == 16,
            "`Aligned16` holds exactly 16 bytes: `[f32; 4]`, `[f64; 2]`, `[u8; 16]`"
        );
        assert!(align_of::<T>() <= 16, "`Aligned16` is aligned to 16 bytes");
        assert!(align_of::<u128>() == 16, "a 128-bit integer is aligned to 16 bytes");
    };

    /// Wraps `value` (CUDA's `make_float4()` for four `f32`). A type that does not have 16 bytes is a compile
    /// error.
    #[inline(always)]
    pub const fn new(value: T) -> Self {
        const { Self::FITS }
        // SAFETY: both have 16 bytes, and any bytes are a `MaybeUninit`.
        Aligned16 { bytes: unsafe { transmute_copy(&value) }, value: PhantomData }
    }

    /// The value.
    #[inline(always)]
    pub const fn into_inner(self) -> T {
        const { Self::FITS }
        // SAFETY: both have 16 bytes, which are those of a `T`.
        unsafe { transmute_copy(&self.bytes) }
    }
}

impl<T: DeviceCopy> Deref for Aligned16<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        const { Self::FITS }
        // SAFETY: the 16 bytes are those of a valid `T`, and aligned for it.
        unsafe { &*self.bytes.as_ptr().cast::<T>() }
    }
}

impl<T: DeviceCopy> DerefMut for Aligned16<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        const { Self::FITS }
        // SAFETY: the 16 bytes are those of a valid `T`, and aligned for it; what is written is one too.
        unsafe { &mut *self.bytes.as_mut_ptr().cast::<T>() }
    }
}

impl<T: DeviceCopy> From<T> for Aligned16<T> {
    #[inline(always)]
    fn from(value: T) -> Self {
        Aligned16::new(value)
    }
}

impl<T: DeviceCopy + Default> Default for Aligned16<T> {
    #[inline(always)]
    fn default() -> Self {
        Aligned16::new(T::default())
    }
}

impl<T: DeviceCopy + PartialEq> PartialEq for Aligned16<T> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: DeviceCopy + Eq> Eq for Aligned16<T> {}

impl<T: DeviceCopy + fmt::Debug> fmt::Debug for Aligned16<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
