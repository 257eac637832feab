//! `f16` and `bf16` on the device: what the crate `half` offers without an allocator, with arithmetic by
//! instructions. What only looks at bits is left to `half`.

use core::cmp::Ordering;
use core::fmt;
use core::iter::{Product, Sum};
use core::num::{FpCategory, ParseFloatError};
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign};
use core::str::FromStr;

use bytemuck::{Pod, Zeroable};

use super::ptx::{binary16, brain16};
use crate::math::Float;

macro_rules! constants_of_half {
    ($ty:ident: $($name:ident)*) => { $(
        #[allow(missing_docs, reason = "those of `half`")]
        pub const $name: $ty = $ty(::half::$ty::$name.to_bits());
    )* };
}

macro_rules! questions_of_half {
    ($ty:ident: $($name:ident -> $result:ty;)*) => { $(
        #[allow(missing_docs, reason = "those of `half`")]
        #[inline(always)]
        pub const fn $name(self) -> $result {
            ::half::$ty::from_bits(self.0).$name()
        }
    )* };
}

macro_rules! operators {
    ($ty:ident: $($operator:ident $method:ident, $assign:ident $method_assign:ident = $by:expr;)*) => { $(
        impl $operator for $ty {
            type Output = $ty;
            #[inline(always)]
            fn $method(self, rhs: $ty) -> $ty {
                $by(self, rhs)
            }
        }

        impl $operator<&$ty> for $ty {
            type Output = $ty;
            #[inline(always)]
            fn $method(self, rhs: &$ty) -> $ty {
                $by(self, *rhs)
            }
        }

        impl $operator<$ty> for &$ty {
            type Output = $ty;
            #[inline(always)]
            fn $method(self, rhs: $ty) -> $ty {
                $by(*self, rhs)
            }
        }

        impl $operator<&$ty> for &$ty {
            type Output = $ty;
            #[inline(always)]
            fn $method(self, rhs: &$ty) -> $ty {
                $by(*self, *rhs)
            }
        }

        impl $assign for $ty {
            #[inline(always)]
            fn $method_assign(&mut self, rhs: $ty) {
                *self = $by(*self, rhs);
            }
        }

        impl $assign<&$ty> for $ty {
            #[inline(always)]
            fn $method_assign(&mut self, rhs: &$ty) {
                *self = $by(*self, *rhs);
            }
        }
    )* };
}

macro_rules! formats {
    ($ty:ident by $through:ident: $($format:ident)*) => { $(
        impl fmt::$format for $ty {
            #[inline]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::$format::fmt(&self.$through(), f)
            }
        }
    )* };
}

macro_rules! number {
    ($ty:ident, $instructions:ident) => {
        /// The number of this name of the crate `half`, with the hardware's arithmetic.
        #[allow(non_camel_case_types, reason = "half's name")]
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $ty(u16);

        // SAFETY: transparent over a `u16`, any bits of which are a number.
        unsafe impl Zeroable for $ty {}
        // SAFETY: as above.
        unsafe impl Pod for $ty {}

        impl $ty {
            constants_of_half! { $ty:
                EPSILON INFINITY MAX MIN MIN_POSITIVE NAN NEG_INFINITY MIN_POSITIVE_SUBNORMAL MAX_SUBNORMAL
                ONE ZERO NEG_ZERO NEG_ONE E PI FRAC_1_PI FRAC_1_SQRT_2 FRAC_2_PI FRAC_2_SQRT_PI FRAC_PI_2
                FRAC_PI_3 FRAC_PI_4 FRAC_PI_6 FRAC_PI_8 LN_10 LN_2 LOG10_E LOG10_2 LOG2_E LOG2_10 SQRT_2
            }

            questions_of_half! { $ty:
                is_nan -> bool;
                is_infinite -> bool;
                is_finite -> bool;
                is_normal -> bool;
                classify -> FpCategory;
                is_sign_positive -> bool;
                is_sign_negative -> bool;
                to_le_bytes -> [u8; 2];
                to_be_bytes -> [u8; 2];
                to_ne_bytes -> [u8; 2];
                to_f32_const -> f32;
                to_f64_const -> f64;
            }

            /// The number with these bits.
            #[inline(always)]
            pub const fn from_bits(bits: u16) -> $ty {
                $ty(bits)
            }

            /// Its bits.
            #[inline(always)]
            pub const fn to_bits(self) -> u16 {
                self.0
            }

            /// The nearest number, ties to even.
            #[inline(always)]
            pub fn from_f32(value: f32) -> $ty {
                $ty($instructions::from_single(value))
            }

            /// The nearest number, in a constant.
            #[inline(always)]
            pub const fn from_f32_const(value: f32) -> $ty {
                $ty(::half::$ty::from_f32_const(value).to_bits())
            }

            /// The nearest number, in a constant.
            #[inline(always)]
            pub const fn from_f64_const(value: f64) -> $ty {
                $ty(::half::$ty::from_f64_const(value).to_bits())
            }

            /// The nearest number.
            #[inline(always)]
            pub fn from_f64(value: f64) -> $ty {
                $ty($instructions::from_double(value))
            }

            /// The number with these bytes, the lowest first.
            #[inline(always)]
            pub const fn from_le_bytes(bytes: [u8; 2]) -> $ty {
                $ty(u16::from_le_bytes(bytes))
            }

            /// The number with these bytes, the highest first.
            #[inline(always)]
            pub const fn from_be_bytes(bytes: [u8; 2]) -> $ty {
                $ty(u16::from_be_bytes(bytes))
            }

            /// The number with these bytes, in the device's order.
            #[inline(always)]
            pub const fn from_ne_bytes(bytes: [u8; 2]) -> $ty {
                $ty(u16::from_ne_bytes(bytes))
            }

            /// The same number.
            #[inline(always)]
            pub fn to_f32(self) -> f32 {
                $instructions::to_single(self.0)
            }

            /// The same number.
            #[inline(always)]
            pub fn to_f64(self) -> f64 {
                f64::from(self.to_f32())
            }

            /// 1 or -1 with this number's sign; NaN for NaN.
            #[inline(always)]
            pub const fn signum(self) -> $ty {
                $ty(::half::$ty::from_bits(self.0).signum().to_bits())
            }

            /// This number with the sign of `sign`.
            #[inline(always)]
            pub const fn copysign(self, sign: $ty) -> $ty {
                $ty((sign.0 & 0x8000) | (self.0 & 0x7FFF))
            }

            /// The larger of two numbers; the other one if one is NaN.
            #[inline(always)]
            pub fn max(self, other: $ty) -> $ty {
                if self.is_nan() || other > self { other } else { self }
            }

            /// The smaller of two numbers; the other one if one is NaN.
            #[inline(always)]
            pub fn min(self, other: $ty) -> $ty {
                if self.is_nan() || other < self { other } else { self }
            }

            /// This number, or the nearer of `min` and `max` if it is not between them; panics unless
            /// `min <= max`.
            #[inline(always)]
            pub fn clamp(self, min: $ty, max: $ty) -> $ty {
                assert!(min <= max);
                let raised = if self < min { min } else { self };
                if raised > max { max } else { raised }
            }

            /// The order of all bit patterns, as IEEE 754 has it.
            #[inline(always)]
            pub fn total_cmp(&self, other: &$ty) -> Ordering {
                ::half::$ty::from_bits(self.0).total_cmp(&::half::$ty::from_bits(other.0))
            }

            /// `self * a + b` with one rounding.
            #[inline(always)]
            pub(super) fn fused(self, a: $ty, b: $ty) -> $ty {
                $ty($instructions::mul_add(self.0, a.0, b.0))
            }

            /// 2 to this power, approximately.
            #[inline(always)]
            pub(super) fn approximate_exp2(self) -> $ty {
                $ty($instructions::fast_exp2(self.0))
            }

            /// The hyperbolic tangent, approximately.
            #[inline(always)]
            pub(super) fn approximate_tanh(self) -> $ty {
                $ty($instructions::fast_tanh(self.0))
            }
        }

        operators! { $ty:
            Add add, AddAssign add_assign = |a: $ty, b: $ty| $ty($instructions::add(a.0, b.0));
            Sub sub, SubAssign sub_assign = |a: $ty, b: $ty| $ty($instructions::sub(a.0, b.0));
            Mul mul, MulAssign mul_assign = |a: $ty, b: $ty| $ty($instructions::mul(a.0, b.0));
            Div div, DivAssign div_assign = |a: $ty, b: $ty| $ty::from_f32(a.to_f32() / b.to_f32());
            Rem rem, RemAssign rem_assign = |a: $ty, b: $ty| $ty::from_f32(Float::fmod(a.to_f32(), b.to_f32()));
        }

        formats! { $ty by to_f32: Debug Display LowerExp UpperExp }
        formats! { $ty by to_bits: Binary Octal LowerHex UpperHex }

        impl Neg for $ty {
            type Output = $ty;
            #[inline(always)]
            fn neg(self) -> $ty {
                $ty(self.0 ^ 0x8000)
            }
        }

        impl Neg for &$ty {
            type Output = $ty;
            #[inline(always)]
            fn neg(self) -> $ty {
                -*self
            }
        }

        impl PartialEq for $ty {
            #[inline(always)]
            fn eq(&self, other: &$ty) -> bool {
                $instructions::eq(self.0, other.0)
            }
        }

        impl PartialOrd for $ty {
            #[inline(always)]
            fn partial_cmp(&self, other: &$ty) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }

            #[inline(always)]
            fn lt(&self, other: &$ty) -> bool {
                $instructions::lt(self.0, other.0)
            }

            #[inline(always)]
            fn le(&self, other: &$ty) -> bool {
                $instructions::le(self.0, other.0)
            }

            #[inline(always)]
            fn gt(&self, other: &$ty) -> bool {
                $instructions::lt(other.0, self.0)
            }

            #[inline(always)]
            fn ge(&self, other: &$ty) -> bool {
                $instructions::le(other.0, self.0)
            }
        }

        impl From<$ty> for f32 {
            #[inline(always)]
            fn from(value: $ty) -> f32 {
                value.to_f32()
            }
        }

        impl From<$ty> for f64 {
            #[inline(always)]
            fn from(value: $ty) -> f64 {
                value.to_f64()
            }
        }

        impl From<i8> for $ty {
            #[inline(always)]
            fn from(value: i8) -> $ty {
                $ty::from_f32(f32::from(value))
            }
        }

        impl From<u8> for $ty {
            #[inline(always)]
            fn from(value: u8) -> $ty {
                $ty::from_f32(f32::from(value))
            }
        }

        impl From<::half::$ty> for $ty {
            #[inline(always)]
            fn from(value: ::half::$ty) -> $ty {
                $ty(value.to_bits())
            }
        }

        impl From<$ty> for ::half::$ty {
            #[inline(always)]
            fn from(value: $ty) -> ::half::$ty {
                ::half::$ty::from_bits(value.0)
            }
        }

        impl FromStr for $ty {
            type Err = ParseFloatError;
            #[inline]
            fn from_str(text: &str) -> Result<$ty, ParseFloatError> {
                f32::from_str(text).map($ty::from_f32)
            }
        }

        // As `half` does: in `f32`, rounded at the end.
        impl Sum for $ty {
            #[inline]
            fn sum<I: Iterator<Item = $ty>>(numbers: I) -> $ty {
                $ty::from_f32(numbers.map($ty::to_f32).sum())
            }
        }

        impl<'a> Sum<&'a $ty> for $ty {
            #[inline]
            fn sum<I: Iterator<Item = &'a $ty>>(numbers: I) -> $ty {
                numbers.copied().sum()
            }
        }

        impl Product for $ty {
            #[inline]
            fn product<I: Iterator<Item = $ty>>(numbers: I) -> $ty {
                $ty::from_f32(numbers.map($ty::to_f32).product())
            }
        }

        impl<'a> Product<&'a $ty> for $ty {
            #[inline]
            fn product<I: Iterator<Item = &'a $ty>>(numbers: I) -> $ty {
                numbers.copied().product()
            }
        }
    };
}

number!(f16, binary16);
number!(bf16, brain16);
