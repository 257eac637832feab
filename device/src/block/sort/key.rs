//! Keys of a radix sort, as unsigned bits that have the order of the keys.

use crate::shared::SharedElement;

/// A key of a radix sort: `u8` to `u64`, `i8` to `i64`, `usize`, `isize`, `f32`, `f64`.
///
/// Floating-point numbers are ordered by `total_cmp`: negative NaN, negative infinity, negative numbers,
/// -0.0, 0.0, positive numbers, infinity, NaN. (CUB treats -0.0 and 0.0 as equal.)
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use sort::RadixKey;
///
/// /// The keys of a block in order, whatever they are.
/// #[kernel(block = 32, K = [i8, f64])]
/// pub fn in_order<K: RadixKey + DeviceCopy>(
///     t: Thread<1>, mut x: DisjointRows<K>, keys: &[K], mut scratch: Shared<SortScratch<K, 32, 1>>,
/// ) {
///     let key = keys[t.index().get()];
///     let [sorted] = t.block_radix_sort(&mut scratch, [key], sort::Ascending);
///     x.fill_with(&t, |_| sorted);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut numbers = [0.0; 32];
/// numbers[5..8].copy_from_slice(&[f64::NAN, -0.0, -3.0]);
/// let (keys, mut x) = (stream.upload(&numbers)?, stream.zeros(32)?);
/// kernels::in_order(&stream, Grid::new(1, 32), x.view_2d_mut(32, 1)?, &keys)?;
/// let x = stream.download(&x)?;
/// assert!(x[0] == -3.0 && x[1].is_sign_negative() && x[2].is_sign_positive() && x[31].is_nan());
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "a radix sort has no order for `{Self}`",
    label = "not a `RadixKey`",
    note = "keys are integers of up to 64 bits, `f32` and `f64`; other values come along as the values of pairs"
)]
pub trait RadixKey: SharedElement + Copy + sealed::Key {}

pub(super) mod sealed {
    /// Converts a key to bits and back.
    pub trait Key {
        /// Has the size and alignment of the key.
        type Bits: Bits;

        fn into_bits(self) -> Self::Bits;
        fn of(bits: Self::Bits) -> Self;
    }

    /// An unsigned number.
    pub trait Bits: Copy {
        const BITS: u32;

        /// All bits inverted, which reverses the order.
        fn flipped(self) -> Self;
        /// Up to four bits from `begin` on, as `mask` selects.
        fn digit(self, begin: u32, mask: u32) -> u32;
    }
}

use sealed::{Bits, Key};

macro_rules! bits {
    ($($ty:ident)*) => { $(
        impl Bits for $ty {
            const BITS: u32 = $ty::BITS;

            #[inline(always)]
            fn flipped(self) -> Self {
                !self
            }

            #[inline(always)]
            fn digit(self, begin: u32, mask: u32) -> u32 {
                // Not wrapping: `begin` is below the number of bits.
                self.wrapping_shr(begin) as u32 & mask
            }
        }
    )* };
}

macro_rules! unsigned {
    ($($ty:ident)*) => { $(
        impl RadixKey for $ty {}
        impl Key for $ty {
            type Bits = $ty;

            #[inline(always)]
            fn into_bits(self) -> $ty {
                self
            }

            #[inline(always)]
            fn of(bits: $ty) -> $ty {
                bits
            }
        }
    )* };
}

macro_rules! signed {
    ($($ty:ident $unsigned:ident;)*) => { $(
        impl RadixKey for $ty {}
        impl Key for $ty {
            type Bits = $unsigned;

            #[inline(always)]
            fn into_bits(self) -> $unsigned {
                (self ^ $ty::MIN) as $unsigned
            }

            #[inline(always)]
            fn of(bits: $unsigned) -> $ty {
                bits as $ty ^ $ty::MIN
            }
        }
    )* };
}

macro_rules! float {
    ($($ty:ident $unsigned:ident $signed:ident;)*) => { $(
        impl RadixKey for $ty {}
        impl Key for $ty {
            type Bits = $unsigned;

            /// All bits of negative numbers are inverted, and the sign of others.
            #[inline(always)]
            fn into_bits(self) -> $unsigned {
                let bits = self.to_bits();
                let negative = (bits as $signed >> ($signed::BITS - 1)) as $unsigned;
                bits ^ (negative | $signed::MIN as $unsigned)
            }

            #[inline(always)]
            fn of(bits: $unsigned) -> $ty {
                let positive = (bits as $signed >> ($signed::BITS - 1)) as $unsigned;
                $ty::from_bits(bits ^ (!positive | $signed::MIN as $unsigned))
            }
        }
    )* };
}

bits!(u8 u16 u32 u64 usize);
unsigned!(u8 u16 u32 u64 usize);
signed! { i8 u8; i16 u16; i32 u32; i64 u64; isize usize; }
float! { f32 u32 i32; f64 u64 i64; }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_the_order_of_floating_point_numbers() {
        let ordered = [
            -f32::NAN,
            f32::NEG_INFINITY,
            f32::MIN,
            -1.0,
            -f32::MIN_POSITIVE,
            -0.0,
            0.0,
            f32::MIN_POSITIVE,
            1.0,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
        ];
        assert!(ordered.is_sorted_by(|a, b| a.total_cmp(b).is_lt()));
        assert!(ordered.is_sorted_by(|a, b| a.into_bits() < b.into_bits()));
        for number in ordered {
            assert_eq!(f32::of(number.into_bits()).to_bits(), number.to_bits());
            let double = f64::from(number);
            assert_eq!(f64::of(double.into_bits()).to_bits(), double.to_bits());
        }
    }

    #[test]
    fn bits_have_the_order_of_integers() {
        let ordered = [i16::MIN, -2, -1, 0, 1, i16::MAX];
        assert!(ordered.is_sorted_by(|a, b| a.into_bits() < b.into_bits()));
        assert!(ordered.iter().all(|&number| i16::of(number.into_bits()) == number));
        assert_eq!((0xABCD_u16.digit(4, 15), 0xABCD_u16.digit(12, 7)), (0xC, 2));
    }
}
