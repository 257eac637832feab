//! The order of numbers, as the order of unsigned integers of their size: kernels that compare need one instance for each size.

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;
#[cfg(feature = "half")]
use ferrogrid_device::half::{bf16, f16};

use crate::sort::digits::kernels::{Bits, Flips};
use numbers::Order;

/// Device code.
#[ferrogrid::module]
pub mod numbers {
    use ferrogrid::device::prelude::*;

    use crate::sort::digits::kernels::{Bits, Flips};

    /// An order of numbers that are kept as bits. Both zeros are equal, and so are all NaN, which come last.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Order<K> {
        /// What to flip, so that unsigned integers have the order.
        pub flips: Flips<K>,
        /// The bits of -0.0; 0 for integers.
        pub minus_zero: K,
        /// The first number, flipped.
        pub first: K,
        /// The last number, flipped.
        pub last: K,
    }

    impl<K: Bits> Order<K> {
        /// The place of a number in the order: equal ones have equal places.
        #[inline(always)]
        pub fn place(self, bits: K) -> K {
            let zero = K::narrow(0);
            let bits = if bits.widen() == self.minus_zero.widen() { zero } else { bits };
            let place = bits ^ (bits.sign() & self.flips.negative) ^ self.flips.all;
            let is_number = self.first.widen() <= place.widen() && place.widen() <= self.last.widen();
            if is_number { place } else { !zero }
        }

        /// The bits with that place.
        #[inline(always)]
        pub fn bits(self, place: K) -> K {
            let bits = place ^ self.flips.all;
            bits ^ (bits.sign() & self.flips.negative)
        }
    }
}

/// A number as bits, with its order.
pub trait Ordinal: Pod + DeviceCopy {
    /// The unsigned integer of its size.
    type Place: Pod + Bits;
    /// From the least number to the greatest.
    const ASCENDING: Order<Self::Place>;
    /// From the greatest number to the least.
    const DESCENDING: Order<Self::Place>;
}

macro_rules! integers {
    ($($t:ty: $bits:ty, $all:expr;)*) => {
        $(impl Ordinal for $t {
            type Place = $bits;
            const ASCENDING: Order<$bits> = Order {
                flips: Flips { negative: 0, all: $all },
                minus_zero: 0,
                first: 0,
                last: <$bits>::MAX,
            };
            const DESCENDING: Order<$bits> =
                Order { flips: Flips { negative: 0, all: !$all }, ..Self::ASCENDING };
        })*
    };
}
integers! {
    u8: u8, 0;
    u16: u16, 0;
    u32: u32, 0;
    u64: u64, 0;
    i8: u8, 1 << 7;
    i16: u16, 1 << 15;
    i32: u32, 1 << 31;
    i64: u64, 1 << 63;
}

macro_rules! floats {
    ($($t:ty: $bits:ty;)*) => {
        $(impl Ordinal for $t {
            type Place = $bits;
            const ASCENDING: Order<$bits> = {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                Order {
                    flips: Flips { negative: !SIGN, all: SIGN },
                    minus_zero: SIGN,
                    first: !<$t>::NEG_INFINITY.to_bits(),
                    last: <$t>::INFINITY.to_bits() ^ SIGN,
                }
            };
            const DESCENDING: Order<$bits> = {
                let Order { flips: Flips { negative, all }, minus_zero, first, last } = Self::ASCENDING;
                Order { flips: Flips { negative, all: !all }, minus_zero, first: !last, last: !first }
            };
        })*
    };
}
floats! { f32: u32; f64: u64; }
#[cfg(feature = "half")]
floats! { f16: u16; bf16: u16; }

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Ordinal + PartialOrd + std::fmt::Debug>(ascending: &[T], nan: &[T]) {
        let bits = |x: &T| bytemuck::cast::<T, T::Place>(*x);
        for (order, is_descending) in [(T::ASCENDING, false), (T::DESCENDING, true)] {
            for a in ascending {
                for b in ascending {
                    let (place, other) = (order.place(bits(a)).widen(), order.place(bits(b)).widen());
                    let expected = if is_descending { b.partial_cmp(a) } else { a.partial_cmp(b) };
                    assert_eq!(Some(place.cmp(&other)), expected, "{a:?}, {b:?}");
                }
                let back: T = bytemuck::cast(order.bits(order.place(bits(a))));
                assert_eq!(back, *a);
            }
            for nan in nan {
                assert_eq!(order.place(bits(nan)).widen(), (!T::Place::narrow(0)).widen());
                let back: T = bytemuck::cast(order.bits(order.place(bits(nan))));
                assert!(back.partial_cmp(&back).is_none(), "{back:?}");
            }
        }
    }

    #[test]
    fn places_have_the_order_of_the_numbers() {
        check(&[i8::MIN, -1, 0, 1, i8::MAX], &[]);
        check(&[0, 1, u16::MAX], &[]);
        check(&[i64::MIN, -5, 0, i64::MAX], &[]);
        let nan = [f32::NAN, -f32::NAN, f32::from_bits(0x7F80_0001), f32::from_bits(0xFF80_0001)];
        check(&[f32::NEG_INFINITY, -1.5, -1e-45, -0.0, 0.0, 1e-45, 1.5, f32::INFINITY], &nan);
        check(&[f64::NEG_INFINITY, -1.5, -0.0, 0.0, 5e-324, f64::INFINITY], &[f64::NAN, -f64::NAN]);
    }
}
