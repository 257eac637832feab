//! [`F16x2`] and [`Bf16x2`]: two 16-bit numbers in 32 bits, on which one instruction computes.

use core::fmt;
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use bytemuck::{Pod, Zeroable};

#[cfg(not(target_arch = "nvptx64"))]
use super::float::HalfFloat;
#[cfg(target_arch = "nvptx64")]
use super::ptx::packed::{binary16, brain16};
use super::{bf16, f16};

/// Both numbers of a pair by an operation on one.
macro_rules! each {
    ($pair:ident, $ty:ident, $operation:expr, $a:expr $(, $b:expr)*) => {
        $pair::new($operation($a.low() $(, $b.low())*), $operation($a.high() $(, $b.high())*))
    };
}

macro_rules! operators {
    ($pair:ident, $ty:ident, $instructions:ident: $($operator:ident $method:ident, $assign:ident $method_assign:ident;)*) => { $(
        impl $operator for $pair {
            type Output = $pair;
            #[inline(always)]
            fn $method(self, rhs: $pair) -> $pair {
                #[cfg(target_arch = "nvptx64")]
                return $pair($instructions::$method(self.0, rhs.0));
                #[cfg(not(target_arch = "nvptx64"))]
                each!($pair, $ty, $ty::$method, self, rhs)
            }
        }

        impl $assign for $pair {
            #[inline(always)]
            fn $method_assign(&mut self, rhs: $pair) {
                *self = $operator::$method(*self, rhs);
            }
        }
    )* };
}

macro_rules! packed {
    ($pair:ident, $ty:ident, $instructions:ident, $cuda:literal, $ptx:literal) => {
        #[doc = concat!(
            "Two `", stringify!($ty), "` in 32 bits (CUDA's `", $cuda, "`): `+`, `-`, `*` and [`mul_add`](Self::mul_add) are \
             one instruction for both where the architecture has it (PTX `.", $ptx, "`), each rounded as for one.\n\n\
             ```\nuse ferrogrid_device::half::{", stringify!($pair), ", ", stringify!($ty), "};\n\
             let (one, two) = (", stringify!($ty), "::from_f32(1.0), ", stringify!($ty), "::from_f32(2.0));\n\
             let pair = ", stringify!($pair), "::new(one, two) + ", stringify!($pair), "::splat(two);\n\
             assert_eq!(pair.to_f32(), [3.0, 4.0]);\nassert_eq!(size_of_val(&pair), 4);\n```\n\n\
             ```\nuse ferrogrid_device::half::", stringify!($pair), ";\n\
             let a = ", stringify!($pair), "::from_f32([-1.5, 8.0]);\n\
             let b = ", stringify!($pair), "::from_f32([2.0, f32::NAN]);\n\
             assert_eq!(a.abs().to_f32(), [1.5, 8.0]);\n\
             assert_eq!((a.min(b).to_f32(), a.max(b).to_f32()), ([-1.5, 8.0], [2.0, 8.0])); // NaN loses\n\
             assert_eq!((a.low().to_f32(), a.high().to_f32(), a.sum().to_f32()), (-1.5, 8.0, 6.5));\n\
             assert_eq!(a.mul_add(a, a).to_f32(), [0.75, 72.0]);\n\
             let swapped = ", stringify!($pair), "::from_bits(a.to_bits().rotate_left(16));\n\
             assert_eq!(swapped.to_array(), [a.high(), a.low()]);\n```\n\n\
             The first number is in the low half, as in a `[", stringify!($ty), "; 2]` in memory; aligned to 4 bytes."
        )]
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $pair(u32);

        // SAFETY: transparent over a `u32`, any bits of which are two numbers.
        unsafe impl Zeroable for $pair {}
        // SAFETY: as above.
        unsafe impl Pod for $pair {}

        impl $pair {
            /// A pair of two numbers (CUDA's `__halves2half2`, `__halves2bfloat162`).
            #[inline(always)]
            pub const fn new(low: $ty, high: $ty) -> Self {
                $pair((high.to_bits() as u32) << 16 | low.to_bits() as u32)
            }

            /// A pair of the same number (CUDA's `__half2half2`, `__bfloat162bfloat162`).
            #[inline(always)]
            pub const fn splat(value: $ty) -> Self {
                Self::new(value, value)
            }

            /// The pair with these bits, the first number in the low half.
            #[inline(always)]
            pub const fn from_bits(bits: u32) -> Self {
                $pair(bits)
            }

            /// Its bits.
            #[inline(always)]
            pub const fn to_bits(self) -> u32 {
                self.0
            }

            /// The first number (CUDA's `__low2half`, `__low2bfloat16`).
            #[inline(always)]
            pub const fn low(self) -> $ty {
                $ty::from_bits(self.0 as u16)
            }

            /// The second number (CUDA's `__high2half`, `__high2bfloat16`).
            #[inline(always)]
            pub const fn high(self) -> $ty {
                $ty::from_bits((self.0 >> 16) as u16)
            }

            /// Both numbers.
            #[inline(always)]
            pub const fn to_array(self) -> [$ty; 2] {
                [self.low(), self.high()]
            }

            /// The nearest numbers to two `f32`s (CUDA's `__floats2half2_rn`, `__floats2bfloat162_rn`).
            #[inline(always)]
            pub fn from_f32(numbers: [f32; 2]) -> Self {
                let [low, high] = numbers;
                #[cfg(target_arch = "nvptx64")]
                return $pair($instructions::from_singles(low, high));
                #[cfg(not(target_arch = "nvptx64"))]
                Self::new($ty::from_f32(low), $ty::from_f32(high))
            }

            /// Both numbers as `f32` (CUDA's `__half22float2`, `__bfloat1622float2`).
            #[inline(always)]
            pub fn to_f32(self) -> [f32; 2] {
                [self.low().to_f32(), self.high().to_f32()]
            }

            /// `self * a + b` with one rounding, for both (CUDA's `__hfma2`, PTX `fma.rn.f16x2`, `fma.rn.bf16x2`).
            #[inline(always)]
            pub fn mul_add(self, a: Self, b: Self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                return $pair($instructions::mul_add(self.0, a.0, b.0));
                #[cfg(not(target_arch = "nvptx64"))]
                each!($pair, $ty, <$ty as HalfFloat>::mul_add, self, a, b)
            }

            /// The smaller of each two numbers; the other one if one is NaN; for two zeros either (CUDA's
            /// `__hmin2`).
            #[inline(always)]
            pub fn min(self, other: Self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                return $pair($instructions::min(self.0, other.0));
                #[cfg(not(target_arch = "nvptx64"))]
                each!($pair, $ty, $ty::min, self, other)
            }

            /// The larger of each two numbers; the other one if one is NaN; for two zeros either (CUDA's
            /// `__hmax2`).
            #[inline(always)]
            pub fn max(self, other: Self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                return $pair($instructions::max(self.0, other.0));
                #[cfg(not(target_arch = "nvptx64"))]
                each!($pair, $ty, $ty::max, self, other)
            }

            /// The absolute values (CUDA's `__habs2`).
            #[inline(always)]
            pub const fn abs(self) -> Self {
                $pair(self.0 & 0x7FFF_7FFF)
            }

            /// The first plus the second.
            #[inline(always)]
            pub fn sum(self) -> $ty {
                self.low() + self.high()
            }
        }

        operators! { $pair, $ty, $instructions:
            Add add, AddAssign add_assign;
            Sub sub, SubAssign sub_assign;
            Mul mul, MulAssign mul_assign;
        }

        // There is no instruction for it.
        impl Div for $pair {
            type Output = $pair;
            #[inline(always)]
            fn div(self, rhs: $pair) -> $pair {
                each!($pair, $ty, $ty::div, self, rhs)
            }
        }

        impl DivAssign for $pair {
            #[inline(always)]
            fn div_assign(&mut self, rhs: $pair) {
                *self = *self / rhs;
            }
        }

        impl Neg for $pair {
            type Output = $pair;
            #[inline(always)]
            fn neg(self) -> $pair {
                $pair(self.0 ^ 0x8000_8000)
            }
        }

        impl PartialEq for $pair {
            #[inline(always)]
            fn eq(&self, other: &$pair) -> bool {
                self.low() == other.low() && self.high() == other.high()
            }
        }

        impl From<[$ty; 2]> for $pair {
            #[inline(always)]
            fn from([low, high]: [$ty; 2]) -> $pair {
                $pair::new(low, high)
            }
        }

        impl From<$pair> for [$ty; 2] {
            #[inline(always)]
            fn from(pair: $pair) -> [$ty; 2] {
                pair.to_array()
            }
        }

        impl fmt::Debug for $pair {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.to_array().fmt(f)
            }
        }
    };
}

packed!(F16x2, f16, binary16, "__half2", "f16x2");
packed!(Bf16x2, bf16, brain16, "__nv_bfloat162", "bf16x2");
