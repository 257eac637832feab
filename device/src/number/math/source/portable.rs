//! Functions of the crate `libm`: plain Rust, with the same results on every machine.

macro_rules! functions_of_libm {
    ($module:ident, $ty:ident, acosh = $acosh:ident:
        unary { $($unary:ident = $unary_libm:ident;)* }
        binary { $($binary:ident = $binary_libm:ident;)* }
        pairs { $($pair:ident -> $second:ty = $pair_libm:ident;)* }
    ) => {
        #[cfg_attr(not(target_arch = "nvptx64"), allow(dead_code, reason = "std has most"))]
        pub(crate) mod $module {
            $(
                #[inline]
                pub(crate) fn $unary(x: $ty) -> $ty {
                    libm::$unary_libm(x)
                }
            )*

            /// `libm` answers some numbers far below 1 with a number.
            #[inline]
            pub(crate) fn acosh(x: $ty) -> $ty {
                if x < 1.0 { $ty::NAN } else { libm::$acosh(x) }
            }

            $(
                #[inline]
                pub(crate) fn $binary(x: $ty, y: $ty) -> $ty {
                    libm::$binary_libm(x, y)
                }
            )*
            $(
                #[inline]
                pub(crate) fn $pair(x: $ty) -> ($ty, $second) {
                    libm::$pair_libm(x)
                }
            )*
        }
    };
}

functions_of_libm! { single, f32, acosh = acoshf:
    unary {
        exp = expf;
        exp2 = exp2f;
        exp_m1 = expm1f;
        ln = logf;
        log2 = log2f;
        log10 = log10f;
        ln_1p = log1pf;
        cbrt = cbrtf;
        sin = sinf;
        cos = cosf;
        tan = tanf;
        asin = asinf;
        acos = acosf;
        atan = atanf;
        sinh = sinhf;
        cosh = coshf;
        tanh = tanhf;
        asinh = asinhf;
        atanh = atanhf;
        erf = erff;
        erfc = erfcf;
        gamma = tgammaf;
    }
    binary {
        powf = powf;
        hypot = hypotf;
        atan2 = atan2f;
        fmod = fmodf;
    }
    pairs {
        sin_cos -> f32 = sincosf;
        ln_gamma -> i32 = lgammaf_r;
    }
}

functions_of_libm! { double, f64, acosh = acosh:
    unary {
        exp = exp;
        exp2 = exp2;
        exp_m1 = expm1;
        ln = log;
        log2 = log2;
        log10 = log10;
        ln_1p = log1p;
        cbrt = cbrt;
        sin = sin;
        cos = cos;
        tan = tan;
        asin = asin;
        acos = acos;
        atan = atan;
        sinh = sinh;
        cosh = cosh;
        tanh = tanh;
        asinh = asinh;
        atanh = atanh;
        erf = erf;
        erfc = erfc;
        gamma = tgamma;
    }
    binary {
        powf = pow;
        hypot = hypot;
        atan2 = atan2;
        fmod = fmod;
    }
    pairs {
        sin_cos -> f64 = sincos;
        ln_gamma -> i32 = lgamma_r;
    }
}
