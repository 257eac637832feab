//! [`Float`] for `f32` and `f64`: core's functions where core has them, those of `source` otherwise.

use core::cmp::Ordering;

use super::Float;
use super::source::{double, single};

macro_rules! forward {
    ($from:ident: $($name:ident($($argument:ident: $ty:ty),*) -> $result:ty;)*) => { $(
        #[inline(always)]
        fn $name(self $(, $argument: $ty)*) -> $result {
            $from::$name(self $(, $argument)*)
        }
    )* };
}

macro_rules! float {
    ($ty:ident, $functions:ident) => {
        impl Float for $ty {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const PI: Self = core::$ty::consts::PI;
            const E: Self = core::$ty::consts::E;
            const EPSILON: Self = $ty::EPSILON;
            const MAX: Self = $ty::MAX;
            const MIN: Self = $ty::MIN;
            const MIN_POSITIVE: Self = $ty::MIN_POSITIVE;
            const INFINITY: Self = $ty::INFINITY;
            const NEG_INFINITY: Self = $ty::NEG_INFINITY;
            const NAN: Self = $ty::NAN;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $ty
            }

            forward! { $ty:
                is_nan() -> bool;
                is_finite() -> bool;
                is_infinite() -> bool;
                is_normal() -> bool;
                is_subnormal() -> bool;
                is_sign_negative() -> bool;
                is_sign_positive() -> bool;
                next_up() -> Self;
                next_down() -> Self;
                midpoint(other: Self) -> Self;
                to_degrees() -> Self;
                to_radians() -> Self;
                abs() -> Self;
                signum() -> Self;
                copysign(sign: Self) -> Self;
                min(other: Self) -> Self;
                max(other: Self) -> Self;
                clamp(min: Self, max: Self) -> Self;
                recip() -> Self;
            }

            #[inline(always)]
            fn total_cmp(&self, other: &Self) -> Ordering {
                $ty::total_cmp(self, other)
            }

            forward! { $functions:
                minimum(other: Self) -> Self;
                maximum(other: Self) -> Self;
                floor() -> Self;
                ceil() -> Self;
                round() -> Self;
                round_ties_even() -> Self;
                trunc() -> Self;
                fract() -> Self;
                mul_add(a: Self, b: Self) -> Self;
                sqrt() -> Self;
                rsqrt() -> Self;
                fmod(rhs: Self) -> Self;
                div_euclid(rhs: Self) -> Self;
                rem_euclid(rhs: Self) -> Self;
                powi(n: i32) -> Self;
                powf(n: Self) -> Self;
                cbrt() -> Self;
                hypot(other: Self) -> Self;
                exp() -> Self;
                exp2() -> Self;
                exp_m1() -> Self;
                ln() -> Self;
                log(base: Self) -> Self;
                log2() -> Self;
                log10() -> Self;
                ln_1p() -> Self;
                sin() -> Self;
                cos() -> Self;
                tan() -> Self;
                sin_cos() -> (Self, Self);
                asin() -> Self;
                acos() -> Self;
                atan() -> Self;
                atan2(other: Self) -> Self;
                sinh() -> Self;
                cosh() -> Self;
                tanh() -> Self;
                asinh() -> Self;
                acosh() -> Self;
                atanh() -> Self;
                erf() -> Self;
                erfc() -> Self;
                gamma() -> Self;
                ln_gamma() -> (Self, i32);
            }
        }
    };
}

float!(f32, single);
float!(f64, double);
