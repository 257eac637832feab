//! Functions that are a line or two in terms of others, as std defines them.

macro_rules! derived {
    ($module:ident, $ty:ident) => {
        pub(crate) mod $module {
            use super::super::$module as chosen;

            #[inline(always)]
            pub(crate) fn fract(x: $ty) -> $ty {
                x - chosen::trunc(x)
            }

            #[inline(always)]
            pub(crate) fn rsqrt(x: $ty) -> $ty {
                1.0 / chosen::sqrt(x)
            }

            #[inline]
            pub(crate) fn div_euclid(x: $ty, y: $ty) -> $ty {
                let quotient = chosen::trunc(x / y);
                if chosen::fmod(x, y) < 0.0 {
                    return if y > 0.0 { quotient - 1.0 } else { quotient + 1.0 };
                }
                quotient
            }

            #[inline]
            pub(crate) fn rem_euclid(x: $ty, y: $ty) -> $ty {
                let remainder = chosen::fmod(x, y);
                if remainder < 0.0 { remainder + y.abs() } else { remainder }
            }

            /// By squaring, in the order of compiler-rt's `__powisf2`, so that it rounds as std does.
            #[inline]
            pub(crate) fn powi(x: $ty, n: i32) -> $ty {
                let (mut square, mut left, mut product) = (x, n.unsigned_abs(), 1.0);
                loop {
                    if left & 1 == 1 {
                        product *= square;
                    }
                    left >>= 1;
                    if left == 0 {
                        break;
                    }
                    square *= square;
                }
                if n < 0 { 1.0 / product } else { product }
            }

            #[inline]
            pub(crate) fn log(x: $ty, base: $ty) -> $ty {
                chosen::ln(x) / chosen::ln(base)
            }
        }
    };
}

derived!(single, f32);
derived!(double, f64);
