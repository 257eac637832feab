//! Floating-point numbers that only tensor cores compute with: [`tf32`], [`f8e4m3`] and [`f8e5m2`]. Kernels convert them from and to `f32`, and
//! multiply matrices of them ([`FragmentA`](crate::matrix::FragmentA)).
//!
//! | | bits of exponent and fraction | greatest | infinity | from `f32` |
//! |---|---|---|---|---|
//! | `tf32` | 8, 10 | 3.4e38 | yes | nearest, ties away from zero |
//! | `f8e4m3` | 4, 3 | 448 | no | nearest, ties to even, at most the greatest |
//! | `f8e5m2` | 5, 2 | 57344 | yes | nearest, ties to even, at most the greatest |
//!
//! Conversions have the same results on every device, except for the bits of a NaN.

use core::fmt;

use bytemuck::{Pod, Zeroable};

use crate::element::device_copy::DeviceCopy;
use crate::shared::{AnyBits, SharedElement};

macro_rules! number {
    ($($t:ident($bits:ty),)*) => { $(
        impl $t {
            /// The number with these bits.
            #[inline(always)]
            pub const fn from_bits(bits: $bits) -> Self {
                $t(bits)
            }

            /// Its bits.
            #[inline(always)]
            pub const fn to_bits(self) -> $bits {
                self.0
            }
        }

        // SAFETY: transparent over an integer.
        unsafe impl DeviceCopy for $t {
            const LAYOUT: u64 = crate::element::layout::of_type(stringify!($t), &[]);
        }
        // SAFETY: any bits are a number; nothing in it changes while it is shared.
        unsafe impl AnyBits for $t {}
        // SAFETY: as above.
        unsafe impl SharedElement for $t {}
        // SAFETY: transparent over an integer, any bits of which are a number.
        unsafe impl Zeroable for $t {}
        // SAFETY: as above.
        unsafe impl Pod for $t {}

        impl PartialEq for $t {
            #[inline(always)]
            fn eq(&self, other: &$t) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $t {
            #[inline(always)]
            fn partial_cmp(&self, other: &$t) -> Option<core::cmp::Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl From<$t> for f32 {
            #[inline(always)]
            fn from(number: $t) -> f32 {
                number.to_f32()
            }
        }

        impl fmt::Debug for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.to_f32().fmt(f)
            }
        }

        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.to_f32().fmt(f)
            }
        }
    )* };
}

number! { tf32(u32), f8e4m3(u8), f8e5m2(u8), }

/// One instruction from a register to a register.
#[cfg(target_arch = "nvptx64")]
macro_rules! converted {
    ($($text:literal)*, $result:ty = $class:ident, $number:expr) => {{
        let result: $result;
        // SAFETY: it computes its result from its operand, and does nothing else.
        unsafe {
            core::arch::asm!(concat!($($text),*), out($class) result, in(reg32) $number, options(pure, nomem, nostack, preserves_flags));
        }
        result
    }};
}

/// TensorFloat-32: an `f32` with 10 bits of fraction, in 4 bytes, whose low 13 bits do not count (CUDA's `wmma::precision::tf32`).
///
/// ```
/// use ferrogrid_device::narrow::tf32;
///
/// assert_eq!(tf32::from_f32(1.0 + 1.0 / 1024.0).to_f32(), 1.0 + 1.0 / 1024.0);
/// assert_eq!(tf32::from_f32(1.0 + 1.0 / 2048.0).to_f32(), 1.0 + 1.0 / 1024.0); // a tie
/// assert_eq!(tf32::from_bits(1.5_f32.to_bits() | 0x1FFF).to_f32(), 1.5);
/// ```
#[expect(non_camel_case_types, reason = "the name of a number, as `f32`")]
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct tf32(u32);

impl tf32 {
    /// The nearest number; of two, the one further from zero (PTX `cvt.rna.tf32.f32`, from `sm_80` on).
    #[inline(always)]
    pub fn from_f32(number: f32) -> Self {
        #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
        return tf32(converted!("cvt.rna.tf32.f32 {}, {};", u32 = reg32, number));
        #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
        {
            let bits = number.to_bits();
            tf32(if number.is_nan() { bits | 1 << 22 } else { (bits + 0x1000) & !0x1FFF })
        }
    }

    /// The number, which an `f32` holds exactly.
    #[inline(always)]
    pub const fn to_f32(self) -> f32 {
        f32::from_bits(self.0 & !0x1FFF)
    }
}

/// The bits of the nearest number, ties to even, of a format with so many bits of fraction and that bias of exponents; `greatest` are
/// the bits of the greatest one.
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90")))]
#[inline(always)]
const fn nearest(number: f32, fraction: u32, bias: i32, greatest: u32) -> u8 {
    const NAN: u32 = 0x7F;
    let bits = number.to_bits();
    let (sign, magnitude) = (bits >> 24 & 0x80, bits & 0x7FFF_FFFF);
    if magnitude > f32::INFINITY.to_bits() {
        return NAN as u8;
    }
    // As far as it is below zero, bits of the fraction are lost.
    let exponent = (magnitude >> 23) as i32 - 127 + bias - 1;
    let [exponent, lost] = if exponent < 0 { [0, -exponent] } else { [exponent, 0] };
    let significand = (magnitude & 0x7F_FFFF | 0x80_0000) as u64;
    let shift = 23 - fraction + if lost > 24 { 24 } else { lost as u32 };
    let kept = significand >> shift;
    let nearest = (significand + (1 << (shift - 1)) - 1 + (kept & 1)) >> shift;
    let nearest = nearest as u32 + ((exponent as u32) << fraction);
    (sign | if nearest < greatest { nearest } else { greatest }) as u8
}

macro_rules! eighth {
    ($t:ident, $cuda:literal, $name:literal, $fraction:literal, $bias:literal, $greatest:literal, $infinity:literal, $example:literal) => {
        #[doc = concat!("An 8-bit floating-point number (CUDA's `", $cuda, "`).\n\n```\nuse ferrogrid_device::narrow::", stringify!($t), ";\n\n", $example, "\n```")]
        #[expect(non_camel_case_types, reason = "the name of a number, as `f32`")]
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $t(u8);

        impl $t {
            /// The greatest finite number.
            pub const MAX: Self = $t($greatest);
            /// Not a number.
            pub const NAN: Self = $t(0x7F);

            #[doc = concat!(
                "The nearest number, ties to even, and [`MAX`](Self::MAX) or its negative beyond them and for infinities (PTX `cvt.rn.satfinite.",
                $name, "x2.f32` from `sm_90` on). A NaN is [`NAN`](Self::NAN)."
            )]
            #[inline(always)]
            pub fn from_f32(number: f32) -> Self {
                #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90"))]
                return $t(converted!("cvt.rn.satfinite." $name "x2.f32 {0}, {1}, {1};", u16 = reg16, number) as u8);
                #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90")))]
                $t(nearest(number, $fraction, $bias, $greatest))
            }

            /// The number, which an `f32` holds exactly.
            #[inline(always)]
            pub const fn to_f32(self) -> f32 {
                let (sign, magnitude) = (((self.0 & 0x80) as u32) << 24, self.0 & 0x7F);
                if magnitude > $infinity {
                    return f32::NAN;
                }
                if magnitude == $infinity && $infinity != $greatest {
                    return f32::from_bits(sign | f32::INFINITY.to_bits());
                }
                let (bits, bias) = ((magnitude as u32) << (23 - $fraction), (127 - $bias) << 23);
                if magnitude >> $fraction == 0 {
                    // The fraction behind a one, and without it: no `f32` here is subnormal, which `ftz` would make a zero.
                    let one = bias + (1 << 23);
                    let number = f32::from_bits(one + bits) - f32::from_bits(one);
                    return f32::from_bits(sign | number.to_bits());
                }
                f32::from_bits(sign | (bits + bias))
            }
        }
    };
}

eighth!(
    f8e4m3,
    "__nv_fp8_e4m3",
    "e4m3",
    3,
    7,
    0x7E,
    0x7E,
    "assert_eq!(f8e4m3::from_f32(1.0 + 1.0 / 16.0).to_f32(), 1.0); // a tie\n\
     assert_eq!(f8e4m3::from_f32(-1e9).to_f32(), -448.0);"
);
eighth!(
    f8e5m2,
    "__nv_fp8_e5m2",
    "e5m2",
    2,
    15,
    0x7B,
    0x7C,
    "assert_eq!(f8e5m2::from_f32(1.0 + 3.0 / 8.0).to_f32(), 1.5); // a tie\n\
     assert_eq!(f8e5m2::from_f32(f32::INFINITY).to_f32(), 57344.0);"
);

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{f8e4m3, f8e5m2, tf32};

    /// Each `f32` between two neighbours is rounded to the nearer one, or the even one of both.
    macro_rules! check {
        ($t:ident, $greatest:literal, $subnormal:expr) => {
            let mut all: std::vec::Vec<f32> =
                (0..=0x7F).map(|bits| $t::from_bits(bits).to_f32()).filter(|it| it.is_finite()).collect();
            all.sort_by(f32::total_cmp);
            assert_eq!((all[0], all[1], *all.last().unwrap()), (0.0, $subnormal, $greatest));
            assert_eq!(all.last(), Some(&$t::MAX.to_f32()));
            for (bits, pair) in (0_u8..).zip(all.windows(2)) {
                let [low, high] = [pair[0], pair[1]];
                let middle = (low + high) / 2.0;
                let even = if bits % 2 == 0 { low } else { high };
                for sign in [1.0, -1.0] {
                    let rounded = |number: f32| $t::from_f32(sign * number).to_f32() * sign;
                    assert_eq!([low, high].map(rounded), [low, high]);
                    assert_eq!(rounded(middle), even, "{middle}");
                    assert_eq!(rounded(middle.next_down()), low, "below {middle}");
                    assert_eq!(rounded(middle.next_up()), high, "above {middle}");
                }
            }
            for sign in [1.0, -1.0] {
                for beyond in [$greatest * 1.5, f32::MAX, f32::INFINITY] {
                    assert_eq!($t::from_f32(sign * beyond).to_f32(), sign * $greatest);
                }
                assert_eq!($t::from_f32(sign * f32::from_bits(1)).to_bits() & 0x7F, 0);
            }
            assert_eq!($t::from_f32(-0.0).to_bits(), 0x80);
            assert!($t::NAN.to_f32().is_nan());
            assert_eq!($t::from_f32(-f32::NAN).to_bits(), 0x7F);
        };
    }

    #[test]
    fn all_numbers_of_8_bits_are_rounded_to() {
        check!(f8e4m3, 448.0, 1.0 / 512.0);
        check!(f8e5m2, 57344.0, 1.0 / 65536.0);
    }

    #[test]
    fn numbers_of_8_bits_beyond_the_finite_ones() {
        let infinite = |bits: u8| f8e5m2::from_bits(bits).to_f32();
        assert_eq!([infinite(0x7C), infinite(0xFC)], [f32::INFINITY, f32::NEG_INFINITY]);
        let nans = |to_f32: fn(u8) -> f32| (0..=u8::MAX).filter(|bits| to_f32(*bits).is_nan()).count();
        assert_eq!(nans(|bits| f8e4m3::from_bits(bits).to_f32()), 2);
        assert_eq!(nans(|bits| f8e5m2::from_bits(bits).to_f32()), 6);
    }

    #[test]
    fn ties_of_tf32_are_rounded_away_from_zero() {
        let last = 2.0_f32.powi(-10);
        for sign in [1.0, -1.0] {
            let rounded = |number: f32| tf32::from_f32(sign * number).to_f32() * sign;
            let tie = 1.0 + last / 2.0;
            let numbers = [1.0, 1.0 + last, tie, tie.next_down(), tie.next_up(), 2.0 - last / 2.0];
            assert_eq!(numbers.map(rounded), [1.0, 1.0 + last, 1.0 + last, 1.0, 1.0 + last, 2.0]);
            assert_eq!([f32::MAX, f32::INFINITY].map(rounded), [f32::INFINITY; 2]);
            assert!(rounded(f32::from_bits(0x7F80_0001)).is_nan() && rounded(f32::NAN).is_nan());
            assert_eq!(rounded(f32::from_bits(0x0FFF)), 0.0);
            assert_eq!(rounded(f32::from_bits(0x1000)), f32::from_bits(0x2000));
        }
    }
}
