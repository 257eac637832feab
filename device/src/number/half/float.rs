//! Functions of 16-bit numbers that the crate `half` lacks; all but a few are those of `f32`, rounded.

use core::fmt::{Debug, Display};
use core::iter::{Product, Sum};
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign};

use super::packed::{Bf16x2, F16x2};
use super::{bf16, f16};
use crate::element::device_copy::DeviceCopy;
use crate::math::{FastMath, Float};

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::f16 {}
    impl Sealed for super::bf16 {}
}

/// A 16-bit floating-point number of a kernel: [`f16`](super::f16) or [`bf16`](super::bf16), with functions
/// that the crate `half` lacks. A function that is generic over `T: HalfFloat` works for both, on host and
/// device.
///
/// Unless stated otherwise, a function is that of `f32`, rounded to the nearest. Its error is then barely
/// more than half a unit in the last place, because `f32` has 13 or 16 more bits.
///
/// ```
/// use ferrogrid_device::half::{HalfFloat, bf16, f16};
///
/// fn gelu<T: HalfFloat>(x: T) -> T {
///     let cubic = x * x * x;
///     let inner = cubic.mul_add(T::from_f32(0.044715), x) * T::from_f32(0.797_884_6);
///     T::from_f32(0.5) * x * (T::ONE + inner.tanh())
/// }
/// assert_eq!(gelu(f16::from_f32(10.0)), f16::from_f32(10.0));
/// assert_eq!(gelu(bf16::ZERO), bf16::ZERO);
/// ```
///
/// The functions, at arguments where all but a few are exact:
///
/// ```
/// use ferrogrid_device::half::{HalfFloat, bf16, f16};
///
/// fn functions<T: HalfFloat>() {
///     let [zero, half, two, four] = [0.0, 0.5, 2.0, 4.0].map(T::from_f32);
///     assert!((four.sqrt(), four.rsqrt(), four.recip()) == (two, half, T::from_f32(0.25)));
///     assert!((two.powf(four), four.exp2(), four.log2()) == (T::from_f32(16.0), T::from_f32(16.0), two));
///     assert!((zero.exp(), T::ONE.ln(), T::from_f32(100.0).log10()) == (T::ONE, zero, two));
///     assert!((zero.sin(), zero.cos(), zero.tan(), zero.tanh(), zero.erf()) == (zero, T::ONE, zero, zero, zero));
///     let x = T::from_f32(-2.5);
///     let integers = [x.floor(), x.ceil(), x.trunc(), x.round(), x.round_ties_even()];
///     assert_eq!(integers.map(T::to_f32), [-3.0, -2.0, -2.0, -3.0, -2.0]);
///     assert!((x.abs(), x.min(two), x.max(two), x.max(T::NAN)) == (T::from_f32(2.5), x, two, x));
///     assert!(T::NAN.is_nan() && !T::INFINITY.is_finite() && T::from_bits(T::MAX.to_bits() + 1) == T::INFINITY);
///     // The approximations are within 2^-7 of the accurate ones, of which those for `f16` are closer.
///     let near = |a: T, b: T| (a - b).abs() <= T::from_f32(1.0 / 64.0) * b.abs();
///     assert!(near(half.fast_exp2(), half.exp2()) && near(half.fast_tanh(), half.tanh()));
/// }
/// functions::<f16>();
/// functions::<bf16>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a 16-bit floating-point type of kernels",
    label = "neither `f16` nor `bf16`",
    note = "kernels use the types `f16` and `bf16` of `ferrogrid::device::half`"
)]
pub trait HalfFloat:
    DeviceCopy
    + sealed::Sealed
    + Default
    + Debug
    + Display
    + PartialEq
    + PartialOrd
    + From<u8>
    + From<i8>
    + Into<f32>
    + Into<f64>
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + RemAssign
    + Sum
    + Product
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The difference between 1 and the next larger number: 2^-10, 2^-7.
    const EPSILON: Self;
    /// The largest finite number: 65504, about 3.39e38.
    const MAX: Self;
    /// The smallest finite number, `-MAX`.
    const MIN: Self;
    /// The smallest positive normal number: 2^-14, 2^-126.
    const MIN_POSITIVE: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// Negative infinity.
    const NEG_INFINITY: Self;
    /// Not a number.
    const NAN: Self;

    /// The nearest number to `value`, ties to even (CUDA's `__float2half`, `__float2bfloat16`; PTX `cvt.rn.f16.f32`,
    /// `cvt.rn.bf16.f32`).
    fn from_f32(value: f32) -> Self;
    /// The bits of the nearest numbers to two, of the first in the lower half (CUDA's `__floats2half2_rn`, `__floats2bfloat162_rn`; PTX
    /// `cvt.rn.f16x2.f32`, `cvt.rn.bf16x2.f32`).
    ///
    /// ```
    /// use ferrogrid_device::half::{HalfFloat, bf16};
    /// assert_eq!(bf16::pair_to_bits([1.0, -2.0]), 0xC000_3F80);
    /// ```
    fn pair_to_bits(numbers: [f32; 2]) -> u32;
    /// The same number (CUDA's `__half2float`, `__bfloat162float`; PTX `cvt.f32.f16`, a shift for `bf16`).
    fn to_f32(self) -> f32;
    /// The number with these bits (CUDA's `__ushort_as_half`, `__ushort_as_bfloat16`).
    fn from_bits(bits: u16) -> Self;
    /// Its bits (CUDA's `__half_as_ushort`, `__bfloat16_as_ushort`).
    fn to_bits(self) -> u16;
    /// Whether this is not a number (CUDA's `__hisnan`).
    fn is_nan(self) -> bool;
    /// Whether this is neither infinite nor not a number.
    fn is_finite(self) -> bool;
    /// The smaller of two numbers; the other one if one is NaN (CUDA's `__hmin`).
    fn min(self, other: Self) -> Self;
    /// The larger of two numbers; the other one if one is NaN (CUDA's `__hmax`).
    fn max(self, other: Self) -> Self;
    /// The absolute value (CUDA's `__habs`).
    fn abs(self) -> Self;
    /// `self * a + b` with one rounding (CUDA's `__hfma`, PTX `fma.rn.f16`, `fma.rn.bf16`; on the CPU, and before
    /// `sm_80` for `bf16`, exactly in two `f64`s).
    ///
    /// ```
    /// use ferrogrid_device::half::{HalfFloat, f16};
    /// let x = f16::from_f32(1.0 + 1.0 / 512.0);
    /// assert_eq!(x.mul_add(x, f16::NEG_ONE).to_f32(), 1.0 / 256.0 + 1.0 / 262_144.0);
    /// assert_eq!((x * x - f16::ONE).to_f32(), 1.0 / 256.0);
    /// ```
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// The square root, correctly rounded (CUDA's `hsqrt`).
    fn sqrt(self) -> Self;
    /// `1 / self.sqrt()`, rounded in `f32` and then once more (CUDA's `hrsqrt`).
    fn rsqrt(self) -> Self;
    /// `1 / self`, correctly rounded (CUDA's `hrcp`).
    fn recip(self) -> Self;
    /// The largest integer not above this number (CUDA's `hfloor`).
    fn floor(self) -> Self;
    /// The smallest integer not below this number (CUDA's `hceil`).
    fn ceil(self) -> Self;
    /// The integer part, towards zero (CUDA's `htrunc`).
    fn trunc(self) -> Self;
    /// The nearest integer; halves away from zero.
    fn round(self) -> Self;
    /// The nearest integer; halves to the even one (CUDA's `hrint`).
    fn round_ties_even(self) -> Self;
    /// This number to the power of `n`.
    fn powf(self, n: Self) -> Self;
    /// e to the power of this number (CUDA's `hexp`).
    fn exp(self) -> Self;
    /// 2 to the power of this number (CUDA's `hexp2`).
    fn exp2(self) -> Self;
    /// The natural logarithm; NaN below zero (CUDA's `hlog`).
    fn ln(self) -> Self;
    /// The logarithm to base 2 (CUDA's `hlog2`).
    fn log2(self) -> Self;
    /// The logarithm to base 10 (CUDA's `hlog10`).
    fn log10(self) -> Self;
    /// The sine of an angle in radians (CUDA's `hsin`).
    fn sin(self) -> Self;
    /// The cosine of an angle in radians (CUDA's `hcos`).
    fn cos(self) -> Self;
    /// The tangent of an angle in radians.
    fn tan(self) -> Self;
    /// The hyperbolic tangent (CUDA's `htanh`).
    fn tanh(self) -> Self;
    /// The error function.
    fn erf(self) -> Self;

    /// 2 to the power of this number by one instruction. For `f16` the relative error is at most 2^-9.9 (PTX
    /// `ex2.approx.f16`, ISA 7.0); for `bf16` 2^-7, and results below 2^-126 are 0 (`ex2.approx.ftz.bf16`,
    /// from `sm_90` on). Other architectures use that of `f32`; the CPU device uses
    /// [`exp2`](HalfFloat::exp2).
    fn fast_exp2(self) -> Self;
    /// The hyperbolic tangent by one instruction (CUDA's `htanh_approx`). For `f16` the absolute error is at
    /// most 2^-10.987 (PTX `tanh.approx.f16`, ISA 7.0), for `bf16` 2^-8 (`tanh.approx.bf16`, from `sm_90`
    /// on). Other architectures use that of `f32`; the CPU device uses [`tanh`](HalfFloat::tanh).
    fn fast_tanh(self) -> Self;
}

macro_rules! those_of_half {
    ($ty:ident: $($name:ident($($argument:ident: $argument_ty:ty),*) -> $result:ty;)*) => { $(
        #[inline(always)]
        fn $name(self $(, $argument: $argument_ty)*) -> $result {
            $ty::$name(self $(, $argument)*)
        }
    )* };
}

macro_rules! those_of_f32 {
    ($ty:ident: $($name:ident)*) => { $(
        #[inline(always)]
        fn $name(self) -> Self {
            $ty::from_f32(Float::$name(self.to_f32()))
        }
    )* };
}

macro_rules! half_float {
    ($ty:ident, $pair:ident) => {
        impl HalfFloat for $ty {
            const ZERO: Self = $ty::ZERO;
            const ONE: Self = $ty::ONE;
            const EPSILON: Self = $ty::EPSILON;
            const MAX: Self = $ty::MAX;
            const MIN: Self = $ty::MIN;
            const MIN_POSITIVE: Self = $ty::MIN_POSITIVE;
            const INFINITY: Self = $ty::INFINITY;
            const NEG_INFINITY: Self = $ty::NEG_INFINITY;
            const NAN: Self = $ty::NAN;

            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                $ty::from_f32(value)
            }

            #[inline(always)]
            fn pair_to_bits(numbers: [f32; 2]) -> u32 {
                $pair::from_f32(numbers).to_bits()
            }

            #[inline(always)]
            fn from_bits(bits: u16) -> Self {
                $ty::from_bits(bits)
            }

            those_of_half! { $ty:
                to_f32() -> f32;
                to_bits() -> u16;
                is_nan() -> bool;
                is_finite() -> bool;
                min(other: Self) -> Self;
                max(other: Self) -> Self;
            }

            those_of_f32! { $ty:
                sqrt rsqrt recip floor ceil trunc round round_ties_even exp exp2 ln log2 log10 sin cos tan tanh erf
            }

            #[inline(always)]
            fn abs(self) -> Self {
                $ty::from_bits(self.to_bits() & 0x7FFF)
            }

            #[inline(always)]
            fn powf(self, n: Self) -> Self {
                $ty::from_f32(Float::powf(self.to_f32(), n.to_f32()))
            }

            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                self.fused(a, b)
            }

            #[cfg(not(target_arch = "nvptx64"))]
            #[inline]
            fn mul_add(self, a: Self, b: Self) -> Self {
                $ty::from_f32(super::exact::fused(self.to_f32(), a.to_f32(), b.to_f32()))
            }

            #[inline(always)]
            fn fast_exp2(self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                return self.approximate_exp2();
                #[cfg(not(target_arch = "nvptx64"))]
                $ty::from_f32(FastMath::fast_exp2(self.to_f32()))
            }

            #[inline(always)]
            fn fast_tanh(self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                return self.approximate_tanh();
                #[cfg(not(target_arch = "nvptx64"))]
                $ty::from_f32(FastMath::fast_tanh(self.to_f32()))
            }
        }
    };
}

half_float!(f16, F16x2);
half_float!(bf16, Bf16x2);
