//! The types of elements.

use core::fmt::Debug;

use bytemuck::Pod;

use crate::element::device_copy::DeviceCopy;
#[cfg(feature = "half")]
use crate::half::{bf16, f16};
use crate::math::Float;
use crate::narrow::{f8e4m3, f8e5m2, tf32};
use crate::shared::SharedElement;
use crate::warp::{Exchange, Warp};

/// An element of matrices that tensor cores multiply: `f64`, `tf32`, `f8e4m3`, `f8e5m2`, `i8`, `u8`, and with the feature `half` `f16` and
/// `bf16`. See [`FragmentA`](super::FragmentA).
#[diagnostic::on_unimplemented(
    message = "no tensor core multiplies matrices of `{Self}`",
    label = "not a `MatrixElement`",
    note = "elements are `f64`, `i8`, `u8`, the `tf32`, `f8e4m3` and `f8e5m2` of `device::narrow`, and with the feature `half` `f16` and `bf16`"
)]
pub trait MatrixElement: DeviceCopy + SharedElement + Pod + sealed::Sealed {
    /// What products are added up in: `f64`, `f32`, or `i32`.
    type Sum: DeviceCopy + Default;

    /// What a thread holds of neighbours along the depth: 32 bits, or one `f64`.
    #[doc(hidden)]
    type Word: Pod + Exchange + Default + Debug;

    /// The columns of a left factor, and the rows of a right one.
    const DEPTH: usize = 8 * Self::PER_WORD;

    #[doc(hidden)]
    const PER_WORD: usize = size_of::<Self::Word>() / size_of::<Self>();

    /// Whether tensor cores of the architecture multiply it.
    #[doc(hidden)]
    const HAS_PRODUCT: bool;

    #[doc(hidden)]
    const IN_16_BYTES: usize = 16 / size_of::<Self>();

    /// The elements of a word, by their numbers, the first one lowest.
    #[doc(hidden)]
    fn word(element: impl FnMut(usize) -> Self) -> Self::Word;

    /// `sum` and the products of the elements of two words, one after the other.
    #[doc(hidden)]
    fn add_products(a: Self::Word, b: Self::Word, sum: Self::Sum) -> Self::Sum;

    /// Adds the products of fragments to the sums of the thread.
    #[doc(hidden)]
    fn add_product<const M: usize, const N: usize>(
        warp: &Warp,
        a: &[[Self::Word; 4]; M],
        b: &[[Self::Word; 2]; N],
        sums: &mut [[[Self::Sum; 4]; N]; M],
    );
}

mod sealed {
    pub trait Sealed {}
}

/// The product by the instructions of that name, from an architecture on.
macro_rules! product {
    ($word:ty, $sum:ty, $product:ident from $first:literal) => {
        const HAS_PRODUCT: bool = cfg!(all(target_arch = "nvptx64", target_feature = $first));

        #[track_caller]
        #[inline(always)]
        fn add_product<const M: usize, const N: usize>(
            warp: &Warp,
            a: &[[$word; 4]; M],
            b: &[[$word; 2]; N],
            sums: &mut [[[$sum; 4]; N]; M],
        ) {
            #[cfg(all(target_arch = "nvptx64", target_feature = $first))]
            super::ptx::$product(warp, a, b, sums);
            #[cfg(not(all(target_arch = "nvptx64", target_feature = $first)))]
            super::steps::add_product::<Self, M, N>(warp, a, b, sums);
        }
    };
}

macro_rules! elements {
    ($($t:ident: $sum:ident, $bits:ident, $product:ident from $first:literal, $add:expr;)*) => { $(
        impl sealed::Sealed for $t {}

        impl MatrixElement for $t {
            type Sum = $sum;
            type Word = u32;

            #[inline(always)]
            fn word(mut element: impl FnMut(usize) -> Self) -> u32 {
                (0..Self::PER_WORD).fold(0, |word, number| {
                    let bits: $bits = bytemuck::cast(element(number));
                    word | u32::from(bits) << (number * 8 * size_of::<Self>())
                })
            }

            #[inline(always)]
            fn add_products(a: u32, b: u32, mut sum: $sum) -> $sum {
                let add: fn($t, $t, $sum) -> $sum = $add;
                let element = |word: u32, number: usize| -> $t {
                    bytemuck::cast((word >> (number * 8 * size_of::<Self>())) as $bits)
                };
                for number in 0..Self::PER_WORD {
                    sum = add(element(a, number), element(b, number), sum);
                }
                sum
            }

            product!(u32, $sum, $product from $first);
        }
    )* };
}

elements! {
    i8: i32, u8, product_i8 from "sm_80", |a, b, sum| sum.wrapping_add(i32::from(a) * i32::from(b));
    u8: i32, u8, product_u8 from "sm_80", |a, b, sum| sum.wrapping_add(i32::from(a) * i32::from(b));
    tf32: f32, u32, product_tf32 from "sm_80", |a, b, sum| Float::mul_add(a.to_f32(), b.to_f32(), sum);
    f8e4m3: f32, u8, product_f8e4m3 from "sm_89", |a, b, sum| Float::mul_add(a.to_f32(), b.to_f32(), sum);
    f8e5m2: f32, u8, product_f8e5m2 from "sm_89", |a, b, sum| Float::mul_add(a.to_f32(), b.to_f32(), sum);
}
#[cfg(feature = "half")]
elements! {
    f16: f32, u16, product_f16 from "sm_80", |a, b, sum| Float::mul_add(a.to_f32(), b.to_f32(), sum);
    bf16: f32, u16, product_bf16 from "sm_80", |a, b, sum| Float::mul_add(a.to_f32(), b.to_f32(), sum);
}

impl sealed::Sealed for f64 {}

impl MatrixElement for f64 {
    type Sum = f64;
    type Word = f64;

    #[inline(always)]
    fn word(mut element: impl FnMut(usize) -> f64) -> f64 {
        element(0)
    }

    #[inline(always)]
    fn add_products(a: f64, b: f64, sum: f64) -> f64 {
        Float::mul_add(a, b, sum)
    }

    product!(f64, f64, product_f64 from "sm_80");
}
