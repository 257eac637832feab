//! Functions of NVIDIA's libdevice, which the build step links where it is installed.

use super::hardware;

macro_rules! functions_of_libdevice {
    ($module:ident, $ty:ident, sincos = $sincos:literal, lgamma = $lgamma:literal:
        $($name:ident($($argument:ident),*) = $symbol:literal;)*
    ) => {
        pub(crate) mod $module {
            use super::hardware::$module as hardware;

            // SAFETY: libdevice has these functions with these signatures; each takes all values of its
            // arguments and touches no memory of ours.
            unsafe extern "C" {
                $(
                    #[link_name = $symbol]
                    pub(crate) safe fn $name($($argument: $ty),*) -> $ty;
                )*
                #[link_name = $lgamma]
                safe fn lgamma(x: $ty) -> $ty;
                #[link_name = $sincos]
                fn sincos(x: $ty, sine: *mut $ty, cosine: *mut $ty);
            }

            #[inline]
            pub(crate) fn sin_cos(x: $ty) -> ($ty, $ty) {
                let (mut sine, mut cosine) = (0.0, 0.0);
                // SAFETY: it writes one number to each address; both are those of local variables.
                unsafe { sincos(x, &mut sine, &mut cosine) };
                (sine, cosine)
            }

            /// libdevice leaves out the sign: the gamma function is negative between -1 and 0, and changes
            /// its sign at every negative integer.
            #[inline]
            pub(crate) fn ln_gamma(x: $ty) -> ($ty, i32) {
                let below = hardware::floor(x);
                let is_odd = hardware::floor(below * 0.5) * 2.0 != below;
                let is_negative = if x == 0.0 { x.is_sign_negative() } else { x < 0.0 && x != below && is_odd };
                (lgamma(x), if is_negative { -1 } else { 1 })
            }
        }
    };
}

functions_of_libdevice! { single, f32, sincos = "__nv_sincosf", lgamma = "__nv_lgammaf":
    exp(x) = "__nv_expf";
    exp2(x) = "__nv_exp2f";
    exp_m1(x) = "__nv_expm1f";
    ln(x) = "__nv_logf";
    log2(x) = "__nv_log2f";
    log10(x) = "__nv_log10f";
    ln_1p(x) = "__nv_log1pf";
    cbrt(x) = "__nv_cbrtf";
    sin(x) = "__nv_sinf";
    cos(x) = "__nv_cosf";
    tan(x) = "__nv_tanf";
    asin(x) = "__nv_asinf";
    acos(x) = "__nv_acosf";
    atan(x) = "__nv_atanf";
    sinh(x) = "__nv_sinhf";
    cosh(x) = "__nv_coshf";
    tanh(x) = "__nv_tanhf";
    asinh(x) = "__nv_asinhf";
    acosh(x) = "__nv_acoshf";
    atanh(x) = "__nv_atanhf";
    erf(x) = "__nv_erff";
    erfc(x) = "__nv_erfcf";
    gamma(x) = "__nv_tgammaf";
    powf(x, y) = "__nv_powf";
    hypot(x, y) = "__nv_hypotf";
    atan2(y, x) = "__nv_atan2f";
    fmod(x, y) = "__nv_fmodf";
}

functions_of_libdevice! { double, f64, sincos = "__nv_sincos", lgamma = "__nv_lgamma":
    exp(x) = "__nv_exp";
    exp2(x) = "__nv_exp2";
    exp_m1(x) = "__nv_expm1";
    ln(x) = "__nv_log";
    log2(x) = "__nv_log2";
    log10(x) = "__nv_log10";
    ln_1p(x) = "__nv_log1p";
    cbrt(x) = "__nv_cbrt";
    sin(x) = "__nv_sin";
    cos(x) = "__nv_cos";
    tan(x) = "__nv_tan";
    asin(x) = "__nv_asin";
    acos(x) = "__nv_acos";
    atan(x) = "__nv_atan";
    sinh(x) = "__nv_sinh";
    cosh(x) = "__nv_cosh";
    tanh(x) = "__nv_tanh";
    asinh(x) = "__nv_asinh";
    acosh(x) = "__nv_acosh";
    atanh(x) = "__nv_atanh";
    erf(x) = "__nv_erf";
    erfc(x) = "__nv_erfc";
    gamma(x) = "__nv_tgamma";
    powf(x, y) = "__nv_pow";
    hypot(x, y) = "__nv_hypot";
    atan2(y, x) = "__nv_atan2";
    fmod(x, y) = "__nv_fmod";
}
