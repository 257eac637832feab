//! Formats of texture elements: the numbers that arrays store, and the types that a kernel reads.

use bytemuck::Pod;

use crate::element::device_copy::DeviceCopy;

/// The format of a channel, as CUDA arrays have it (`CUarray_format`).
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Format {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F16,
    F32,
}

impl Format {
    /// All of them, each at its number.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(super) const ALL: [Format; 8] = [
        Format::U8,
        Format::I8,
        Format::U16,
        Format::I16,
        Format::U32,
        Format::I32,
        Format::F16,
        Format::F32,
    ];

    /// The bytes of a channel.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(super) fn size(self) -> usize {
        match self {
            Format::U8 | Format::I8 => 1,
            Format::U16 | Format::I16 | Format::F16 => 2,
            Format::U32 | Format::I32 | Format::F32 => 4,
        }
    }
}

/// What the registers hold that a texture instruction fills.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Unsigned,
    Signed,
    Float,
}

mod sealed {
    pub trait Sealed {}
}

/// An element of a texture array: `u8`, `i8`, `u16`, `i16`, `u32`, `i32`, `f32` or (with the feature `half`)
/// `f16`, or an array of two or four of them (`cudaChannelFormatDesc`). These are the formats that CUDA
/// arrays have.
///
/// ```
/// use ferrogrid_device::TextureElement;
///
/// fn channels<T: TextureElement>(_: T) -> usize {
///     T::CHANNELS
/// }
/// assert_eq!((channels(1.0_f32), channels([1_u8; 2]), channels([1_i16; 4])), (1, 2, 4));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of a texture array",
    label = "not a format of CUDA arrays",
    note = "elements are `u8`, `i8`, `u16`, `i16`, `u32`, `i32`, `f32`, with the feature `half` also `f16`, and `[_; 2]` and `[_; 4]` of them"
)]
pub trait TextureElement: DeviceCopy + Pod + sealed::Sealed {
    /// The format of a channel.
    #[doc(hidden)]
    const FORMAT: Format;
    /// The number of channels of an element: 1, 2 or 4.
    const CHANNELS: usize;
}

/// A value that a kernel reads from a texture: a number other than `f16` (which is read as `f32`), or an
/// array of two or four.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot read `{Self}` from a texture",
    label = "not a type that a texture returns",
    note = "a texture returns `f32`, of elements `f32` or `f16`, or `u8`, `i8`, `u16`, `i16` read as numbers up to 1; the integers `u8`, `i8`, `u16`, `i16`, `u32`, `i32` as they are; and `[_; 2]` and `[_; 4]` of these"
)]
pub trait Texel: DeviceCopy + sealed::Sealed {
    #[doc(hidden)]
    const CLASS: Class;
    /// Whether it is floating point, and so can hold the means of linear filtering.
    #[doc(hidden)]
    const IS_FLOAT: bool = matches!(Self::CLASS, Class::Float);

    /// Of the registers that the texture instruction filled.
    #[doc(hidden)]
    fn from_registers(registers: [u32; 4]) -> Self;
}

/// Elements that a kernel can read as `V`: unchanged, or from 8 and 16 bits to `f32`
/// (`cudaReadModeNormalizedFloat`), from 0 to 1, or from -1 to 1 for signed ones.
///
/// `f16` is read as `f32`, exactly.
#[diagnostic::on_unimplemented(
    message = "a texture of `{Self}` cannot be read as `{V}`",
    label = "the kernel reads `{V}`",
    note = "an element is read as it is, with as many channels; `u8`, `i8`, `u16` and `i16` also as `f32` (from 0 or -1 to 1), and `f16` as `f32`"
)]
pub trait ReadAs<V: Texel>: TextureElement {
    /// Whether integers are normalised to at most 1.
    #[doc(hidden)]
    const IS_NORMALIZED: bool;
}

/// A channel that is read as it is, from a register by `$read`.
macro_rules! texels {
    ($($ty:ident: $format:ident, $class:ident, $read:expr;)*) => { $(
        impl sealed::Sealed for $ty {}

        impl TextureElement for $ty {
            const FORMAT: Format = Format::$format;
            const CHANNELS: usize = 1;
        }

        impl Texel for $ty {
            const CLASS: Class = Class::$class;

            #[inline(always)]
            fn from_registers([first, ..]: [u32; 4]) -> Self {
                let read: fn(u32) -> $ty = $read;
                read(first)
            }
        }

        impl ReadAs<$ty> for $ty {
            const IS_NORMALIZED: bool = false;
        }

        elements_of!($ty);
        texels_of!($ty, 2);
        texels_of!($ty, 4);
        read_as!($ty as $ty, false);
    )* };
}

macro_rules! elements_of {
    ($ty:ty) => {
        elements_of!($ty, 2);
        elements_of!($ty, 4);
    };
    ($ty:ty, $channels:literal) => {
        impl sealed::Sealed for [$ty; $channels] {}

        impl TextureElement for [$ty; $channels] {
            const FORMAT: Format = <$ty>::FORMAT;
            const CHANNELS: usize = $channels;
        }
    };
}

macro_rules! texels_of {
    ($ty:ty, $channels:literal) => {
        impl Texel for [$ty; $channels] {
            const CLASS: Class = <$ty>::CLASS;

            #[inline(always)]
            fn from_registers(registers: [u32; 4]) -> Self {
                core::array::from_fn(|channel| <$ty>::from_registers([registers[channel], 0, 0, 0]))
            }
        }
    };
}

/// Elements of several channels.
macro_rules! read_as {
    ($from:ty as $to:ty, $is_normalized:literal) => {
        impl ReadAs<[$to; 2]> for [$from; 2] {
            const IS_NORMALIZED: bool = $is_normalized;
        }

        impl ReadAs<[$to; 4]> for [$from; 4] {
            const IS_NORMALIZED: bool = $is_normalized;
        }
    };
}

texels! {
    u8: U8, Unsigned, |word| word as u8;
    i8: I8, Signed, |word| word as i8;
    u16: U16, Unsigned, |word| word as u16;
    i16: I16, Signed, |word| word as i16;
    u32: U32, Unsigned, |word| word;
    i32: I32, Signed, |word| word as i32;
    f32: F32, Float, f32::from_bits;
}

macro_rules! normalized {
    ($($ty:ty),*) => { $(
        impl ReadAs<f32> for $ty {
            const IS_NORMALIZED: bool = true;
        }

        read_as!($ty as f32, true);
    )* };
}

normalized!(u8, i8, u16, i16);

/// Compiles if a kernel can read `V` from a texture; generated code uses it to report errors at the type.
#[doc(hidden)]
pub const fn assert_texel<V: Texel>() {}

/// Compiles if `T` may be an element of a surface; generated code uses it to report errors at the type.
#[doc(hidden)]
pub const fn assert_texture_element<T: TextureElement>() {}

#[cfg(feature = "half")]
mod half {
    use super::{Format, ReadAs, TextureElement, sealed};
    use crate::half::f16;

    impl sealed::Sealed for f16 {}

    impl TextureElement for f16 {
        const FORMAT: Format = Format::F16;
        const CHANNELS: usize = 1;
    }

    impl ReadAs<f32> for f16 {
        const IS_NORMALIZED: bool = false;
    }

    elements_of!(f16);
    read_as!(f16 as f32, false);
}
