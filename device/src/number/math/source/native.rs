//! std's functions, for the CPU device.

extern crate std;

macro_rules! methods_of_std {
    ($ty:ident: $($name:ident($($argument:ident: $argument_ty:ty),*) -> $result:ty;)*) => { $(
        #[inline(always)]
        pub(crate) fn $name($($argument: $argument_ty),*) -> $result {
            $ty::$name($($argument),*)
        }
    )* };
}

macro_rules! native {
    ($module:ident, $ty:ident) => {
        pub(crate) mod $module {
            methods_of_std! { $ty:
                floor(x: $ty) -> $ty;
                ceil(x: $ty) -> $ty;
                round(x: $ty) -> $ty;
                round_ties_even(x: $ty) -> $ty;
                trunc(x: $ty) -> $ty;
                fract(x: $ty) -> $ty;
                mul_add(x: $ty, a: $ty, b: $ty) -> $ty;
                sqrt(x: $ty) -> $ty;
                div_euclid(x: $ty, y: $ty) -> $ty;
                rem_euclid(x: $ty, y: $ty) -> $ty;
                powi(x: $ty, n: i32) -> $ty;
                powf(x: $ty, n: $ty) -> $ty;
                cbrt(x: $ty) -> $ty;
                hypot(x: $ty, y: $ty) -> $ty;
                exp(x: $ty) -> $ty;
                exp2(x: $ty) -> $ty;
                exp_m1(x: $ty) -> $ty;
                ln(x: $ty) -> $ty;
                log(x: $ty, base: $ty) -> $ty;
                log2(x: $ty) -> $ty;
                log10(x: $ty) -> $ty;
                ln_1p(x: $ty) -> $ty;
                sin(x: $ty) -> $ty;
                cos(x: $ty) -> $ty;
                tan(x: $ty) -> $ty;
                sin_cos(x: $ty) -> ($ty, $ty);
                asin(x: $ty) -> $ty;
                acos(x: $ty) -> $ty;
                atan(x: $ty) -> $ty;
                atan2(y: $ty, x: $ty) -> $ty;
                sinh(x: $ty) -> $ty;
                cosh(x: $ty) -> $ty;
                tanh(x: $ty) -> $ty;
                asinh(x: $ty) -> $ty;
                acosh(x: $ty) -> $ty;
                atanh(x: $ty) -> $ty;
            }

            // std's is not stable.
            #[inline]
            pub(crate) fn minimum(x: $ty, y: $ty) -> $ty {
                if x.is_nan() || y.is_nan() {
                    return x + y;
                }
                if x == y && x.is_sign_negative() || x < y { x } else { y }
            }

            #[inline]
            pub(crate) fn maximum(x: $ty, y: $ty) -> $ty {
                if x.is_nan() || y.is_nan() {
                    return x + y;
                }
                if x == y && x.is_sign_positive() || x > y { x } else { y }
            }

            #[inline(always)]
            pub(crate) fn rsqrt(x: $ty) -> $ty {
                1.0 / x.sqrt()
            }

            #[inline(always)]
            pub(crate) fn fmod(x: $ty, y: $ty) -> $ty {
                x % y
            }
        }
    };
}

native!(single, f32);
native!(double, f64);
