//! Mathematical functions of `f32` and `f64` in kernels, under std's names. Natively `x.sqrt()` is std's own
//! method; on the device, where core lacks it, it is a method of [`Float`]. `float` implements the trait,
//! `fast` has the hardware's approximations, and `source` chooses the implementation of each function.

mod fast;
mod float;
mod source;

use core::cmp::Ordering;
use core::fmt::{Debug, Display};
use core::iter::{Product, Sum};
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign};

use crate::DeviceCopy;

pub use fast::FastMath;

/// Only `f32` and `f64` are floating-point types here, so methods may be added later.
mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A floating-point number of a kernel: `f32` or `f64`, with the mathematical functions of std.
///
/// With the prelude in scope, `x.sin()` and `a.mul_add(b, c)` mean the same in a kernel on both sides:
/// natively std's inherent methods, which take precedence over a trait's, and on the device the methods of
/// this trait. A function that is generic over `T: Float` works for both types.
///
/// ```
/// use ferrogrid_device::prelude::*;
///
/// /// The length of a vector, in either precision.
/// fn length<T: Float>(vector: [T; 3]) -> T {
///     let [x, y, z] = vector;
///     x.mul_add(x, y.mul_add(y, z * z)).sqrt()
/// }
///
/// assert_eq!(length([2.0_f32, 3.0, 6.0]), 7.0);
/// assert_eq!(length([2.0_f64, 3.0, 6.0]), 7.0);
/// ```
///
/// Classification, neighbours, sign and limits:
///
/// ```
/// use ferrogrid_device::prelude::*;
///
/// fn kinds<T: Float>() {
///     let (zero, one, two) = (T::ZERO, T::ONE, T::from_f64(2.0));
///     assert!(T::NAN.is_nan() && T::INFINITY.is_infinite() && T::MAX.is_finite());
///     assert!(one.next_up() == one + T::EPSILON && one.next_up().next_down() == one);
///     assert!(T::MIN_POSITIVE.is_normal() && T::MIN_POSITIVE.next_down().is_subnormal());
///     assert!((-zero).is_sign_negative() && zero.is_sign_positive() && (-zero).total_cmp(&zero).is_lt());
///     assert_eq!(((-two).abs(), (-two).signum(), one.copysign(-two)), (two, -one, -one));
///     // Of a number and a NaN `min` and `max` take the number, `minimum` and `maximum` the NaN.
///     assert_eq!((one.min(two), one.max(T::NAN), two.maximum(one)), (one, one, two));
///     assert!(one.minimum(T::NAN).is_nan() && one.maximum(T::NAN).is_nan());
///     assert_eq!((two.clamp(zero, one), T::MAX.midpoint(T::MAX)), (one, T::MAX));
/// }
/// kinds::<f32>();
/// kinds::<f64>();
/// ```
///
/// Integers near a number, and remainders:
///
/// ```
/// use ferrogrid_device::prelude::*;
///
/// fn integers<T: Float>() -> [f64; 9] {
///     let (x, two) = (T::from_f64(-2.5), T::from_f64(2.0));
///     let integers = [x.floor(), x.ceil(), x.round(), x.round_ties_even(), x.trunc()];
///     let rest = [x.fract(), x.fmod(two), x.div_euclid(two), x.rem_euclid(two)];
///     core::array::from_fn(|k| if k < 5 { integers[k] } else { rest[k - 5] }.into())
/// }
/// let expected = [-3.0, -2.0, -3.0, -2.0, -2.0, -0.5, -0.5, -2.0, 1.5];
/// assert_eq!((integers::<f32>(), integers::<f64>()), (expected, expected));
/// ```
///
/// Powers, roots, exponentials and logarithms:
///
/// ```
/// use ferrogrid_device::prelude::*;
///
/// /// Whether `a` is `b` but for eight units in the last place.
/// fn near<T: Float>(a: T, b: f64) -> bool {
///     (a - T::from_f64(b)).abs() <= T::from_f64(8.0) * T::EPSILON * T::from_f64(b).abs()
/// }
///
/// fn powers<T: Float>() {
///     let [two, three, four, eight] = [2.0, 3.0, 4.0, 8.0].map(T::from_f64);
///     assert!(four.recip() == T::from_f64(0.25) && three.powi(4) == T::from_f64(81.0));
///     assert!(near(two.powf(T::from_f64(0.5)), 2.0_f64.sqrt()) && near(eight.cbrt(), 2.0));
///     assert!(near(three.hypot(four), 5.0) && (T::MAX / two).hypot(T::ONE).is_finite());
///     assert!(near(T::ONE.exp(), core::f64::consts::E) && near(T::E.ln(), 1.0) && near(three.exp2(), 8.0));
///     assert!(near(eight.log2(), 3.0) && near(T::from_f64(1000.0).log10(), 3.0) && near(eight.log(two), 3.0));
///     // `1 + small` is 1.
///     let small = T::EPSILON / four;
///     assert!(small.exp() - T::ONE == T::ZERO && small.exp_m1() == small && small.ln_1p() == small);
/// }
/// powers::<f32>();
/// powers::<f64>();
/// ```
///
/// Angles, in radians, hyperbolic functions, and the error function:
///
/// ```
/// use ferrogrid_device::prelude::*;
///
/// fn near<T: Float>(a: T, b: T) -> bool {
///     (a - b).abs() <= T::from_f64(8.0) * T::EPSILON
/// }
///
/// fn angles<T: Float>() {
///     let [half, one, two] = [0.5, 1.0, 2.0].map(T::from_f64);
///     let angle = T::from_f64(30.0).to_radians();
///     assert!(near(angle, T::PI / T::from_f64(6.0)) && near(T::PI.to_degrees() / T::from_f64(180.0), one));
///     assert!(near(angle.sin(), half) && near((angle + angle).cos(), half) && near((T::PI / (two + two)).tan(), one));
///     let (sin, cos) = angle.sin_cos();
///     assert!(near(sin * sin + cos * cos, one) && near(sin.atan2(cos), angle));
///     assert!(near(sin.asin(), angle) && near(cos.acos(), angle) && near((sin / cos).atan(), angle));
///     assert!(near(-one.atan2(-one), -T::PI * T::from_f64(0.75))); // the quadrant comes from both signs
///     let (sinh, cosh, tanh) = (half.sinh(), half.cosh(), half.tanh());
///     assert!(near(cosh * cosh - sinh * sinh, one) && near(sinh / cosh, tanh));
///     assert!(near(sinh.asinh(), half) && near(cosh.acosh(), half) && near(tanh.atanh(), half));
///     assert!(near(half.erf() + half.erfc(), one) && T::from_f64(6.0).erfc() > T::ZERO);
/// }
/// angles::<f32>();
/// angles::<f64>();
/// ```
///
/// # Precision
/// `+ - * /`, [`sqrt`](Float::sqrt), [`mul_add`](Float::mul_add) and the functions that round are exact
/// or correctly rounded on every device, and so equal bit for bit. So is [`fmod`](Float::fmod), but the
/// operator `%` is not: on the device it is `x - (x / y).trunc() * y`, which loses the remainder when
/// the quotient is large. The transcendental functions are within a few units in the last place: on
/// the device they are those of NVIDIA's libdevice where the build found that, else those of the crate
/// `libm` (`ferrogrid_build::Build::math` pins one), natively those of the platform's C library; the
/// conformance suite states and checks the bounds. Nothing is contracted to a fused multiply-add
/// unless `mul_add` is written. Subnormal numbers are kept.
///
/// For `f32`, [`FastMath`] has faster and less accurate forms.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point type of kernels",
    label = "neither `f32` nor `f64`",
    note = "`Float` is implemented for `f32` and `f64`; convert integers with `as`"
)]
pub trait Float:
    DeviceCopy
    + sealed::Sealed
    + Default
    + Debug
    + Display
    + PartialEq
    + PartialOrd
    + From<f32>
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
    /// The ratio of a circle's circumference to its diameter.
    const PI: Self;
    /// The base of the natural logarithm.
    const E: Self;
    /// The difference between 1 and the next larger number.
    const EPSILON: Self;
    /// The largest finite number.
    const MAX: Self;
    /// The smallest finite number, `-MAX`.
    const MIN: Self;
    /// The smallest positive normal number.
    const MIN_POSITIVE: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// Negative infinity.
    const NEG_INFINITY: Self;
    /// Not a number.
    const NAN: Self;

    /// The nearest number to `value` of this type (PTX `cvt.rn.f32.f64`).
    fn from_f64(value: f64) -> Self;
    /// Whether this is not a number (CUDA's `isnan`).
    fn is_nan(self) -> bool;
    /// Whether this is neither infinite nor not a number (CUDA's `isfinite`).
    fn is_finite(self) -> bool;
    /// Whether this is positive or negative infinity (CUDA's `isinf`).
    fn is_infinite(self) -> bool;
    /// Whether this is neither zero, nor subnormal, nor infinite, nor not a number.
    fn is_normal(self) -> bool;
    /// Whether this is nearer to zero than every normal number, and not zero.
    fn is_subnormal(self) -> bool;
    /// Whether the sign bit is set, as in -0.0 (CUDA's `signbit`).
    fn is_sign_negative(self) -> bool;
    /// Whether the sign bit is not set, as in 0.0.
    fn is_sign_positive(self) -> bool;
    /// The order of all bit patterns, as IEEE 754 has it: -0.0 below 0.0, NaNs at the ends.
    fn total_cmp(&self, other: &Self) -> Ordering;
    /// The next number above this one (CUDA's `nextafter` towards infinity).
    fn next_up(self) -> Self;
    /// The next number below this one (CUDA's `nextafter` towards negative infinity).
    fn next_down(self) -> Self;
    /// The absolute value (CUDA's `fabs`).
    fn abs(self) -> Self;
    /// 1 or -1 with this number's sign, also for zeros; NaN for NaN.
    fn signum(self) -> Self;
    /// This number with the sign of `sign` (CUDA's `copysign`).
    fn copysign(self, sign: Self) -> Self;
    /// The smaller of two numbers; the other one if one is NaN (CUDA's `fmin`).
    fn min(self, other: Self) -> Self;
    /// The larger of two numbers; the other one if one is NaN (CUDA's `fmax`).
    fn max(self, other: Self) -> Self;
    /// The smaller of two numbers, -0.0 below 0.0; NaN if one is NaN (PTX `min.NaN` from `sm_80` on).
    ///
    /// ```
    /// use ferrogrid_device::math::Float;
    /// assert!(Float::minimum(1.0_f32, f32::NAN).is_nan());
    /// ```
    fn minimum(self, other: Self) -> Self;
    /// The larger of two numbers, 0.0 above -0.0; NaN if one is NaN (PTX `max.NaN` from `sm_80` on).
    fn maximum(self, other: Self) -> Self;
    /// `(self + other) / 2` without overflow on the way.
    fn midpoint(self, other: Self) -> Self;
    /// This number, or the nearer of `min` and `max` if it is not between them.
    ///
    /// # Panics
    /// Unless `min <= max`.
    fn clamp(self, min: Self, max: Self) -> Self;
    /// 1 / self, correctly rounded (CUDA's `__frcp_rn`, `__drcp_rn`).
    fn recip(self) -> Self;
    /// This angle in radians in degrees.
    fn to_degrees(self) -> Self;
    /// This angle in degrees in radians.
    fn to_radians(self) -> Self;

    /// The largest integer not above this number (CUDA's `floor`, PTX `cvt.rmi`).
    fn floor(self) -> Self;
    /// The smallest integer not below this number (CUDA's `ceil`, PTX `cvt.rpi`).
    fn ceil(self) -> Self;
    /// The nearest integer; halves away from zero (CUDA's `round`).
    fn round(self) -> Self;
    /// The nearest integer; halves to the even one (CUDA's `rint`, PTX `cvt.rni`).
    fn round_ties_even(self) -> Self;
    /// The integer part, towards zero (CUDA's `trunc`, PTX `cvt.rzi`).
    fn trunc(self) -> Self;
    /// `self - self.trunc()`.
    fn fract(self) -> Self;

    /// `self * a + b` with one rounding (CUDA's `fma`, PTX `fma.rn`).
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// The square root, correctly rounded; NaN below zero (CUDA's `sqrt`, PTX `sqrt.rn`).
    fn sqrt(self) -> Self;
    /// `1 / self.sqrt()`, each step correctly rounded (CUDA's `rsqrt`, which rounds once).
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    /// assert_eq!(16.0_f32.rsqrt(), 0.25);
    /// ```
    fn rsqrt(self) -> Self;
    /// The remainder of `self / rhs` with the sign of `self`, exact: C's and CUDA's `fmod`, and natively `%`.
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    /// assert_eq!((-7.5_f64).fmod(2.0), -1.5);
    /// ```
    fn fmod(self, rhs: Self) -> Self;
    /// The integer `n` for which `self - n * rhs` is [`rem_euclid`](Float::rem_euclid), as std has it:
    /// the quotient is rounded before its integer part is taken.
    fn div_euclid(self, rhs: Self) -> Self;
    /// The remainder that is not negative: in `[0, |rhs|)` but for rounding.
    fn rem_euclid(self, rhs: Self) -> Self;
    /// This number to the power of an integer, by repeated multiplication.
    fn powi(self, n: i32) -> Self;
    /// This number to the power of `n` (CUDA's `pow`).
    fn powf(self, n: Self) -> Self;
    /// The cube root (CUDA's `cbrt`).
    fn cbrt(self) -> Self;
    /// `(self² + other²).sqrt()` without overflow on the way (CUDA's `hypot`).
    fn hypot(self, other: Self) -> Self;

    /// e to the power of this number (CUDA's `exp`).
    fn exp(self) -> Self;
    /// 2 to the power of this number (CUDA's `exp2`).
    fn exp2(self) -> Self;
    /// `self.exp() - 1`, accurate near zero (CUDA's `expm1`).
    fn exp_m1(self) -> Self;
    /// The natural logarithm; NaN below zero (CUDA's `log`).
    fn ln(self) -> Self;
    /// The logarithm to `base`: `self.ln() / base.ln()`.
    fn log(self, base: Self) -> Self;
    /// The logarithm to base 2 (CUDA's `log2`).
    fn log2(self) -> Self;
    /// The logarithm to base 10 (CUDA's `log10`).
    fn log10(self) -> Self;
    /// `(1 + self).ln()`, accurate near zero (CUDA's `log1p`).
    fn ln_1p(self) -> Self;

    /// The sine of an angle in radians, accurate for angles of every size (CUDA's `sin`).
    fn sin(self) -> Self;
    /// The cosine of an angle in radians, accurate for angles of every size (CUDA's `cos`).
    fn cos(self) -> Self;
    /// The tangent of an angle in radians, accurate for angles of every size (CUDA's `tan`).
    fn tan(self) -> Self;
    /// Sine and cosine at once (CUDA's `sincos`).
    fn sin_cos(self) -> (Self, Self);
    /// The angle in [-π/2, π/2] with this sine; NaN outside [-1, 1] (CUDA's `asin`).
    fn asin(self) -> Self;
    /// The angle in [0, π] with this cosine; NaN outside [-1, 1] (CUDA's `acos`).
    fn acos(self) -> Self;
    /// The angle in [-π/2, π/2] with this tangent (CUDA's `atan`).
    fn atan(self) -> Self;
    /// The angle in [-π, π] of the point with y = `self` and x = `other` (CUDA's `atan2`).
    fn atan2(self, other: Self) -> Self;
    /// The hyperbolic sine (CUDA's `sinh`).
    fn sinh(self) -> Self;
    /// The hyperbolic cosine (CUDA's `cosh`).
    fn cosh(self) -> Self;
    /// The hyperbolic tangent (CUDA's `tanh`).
    fn tanh(self) -> Self;
    /// The number with this hyperbolic sine (CUDA's `asinh`).
    fn asinh(self) -> Self;
    /// The number with this hyperbolic cosine that is not negative; NaN below 1 (CUDA's `acosh`).
    fn acosh(self) -> Self;
    /// The number with this hyperbolic tangent; NaN outside [-1, 1] (CUDA's `atanh`).
    fn atanh(self) -> Self;

    /// The error function (CUDA's `erf`).
    ///
    /// ```
    /// use ferrogrid_device::math::Float;
    /// assert!((Float::erf(1.0_f64) - 0.842_700_792_949_714_9).abs() < 1e-15);
    /// ```
    fn erf(self) -> Self;
    /// `1 - self.erf()`, accurate where that is small (CUDA's `erfc`).
    fn erfc(self) -> Self;
    /// The gamma function (CUDA's `tgamma`): `(n + 1).gamma()` is n!.
    ///
    /// ```
    /// use ferrogrid_device::math::Float;
    /// assert_eq!(Float::gamma(5.0_f32), 24.0);
    /// ```
    fn gamma(self) -> Self;
    /// The natural logarithm of the gamma function's absolute value, and its sign (CUDA's `lgamma`).
    ///
    /// ```
    /// use ferrogrid_device::math::Float;
    /// assert_eq!(Float::ln_gamma(1.0_f64), (0.0, 1));
    /// ```
    fn ln_gamma(self) -> (Self, i32);
}
