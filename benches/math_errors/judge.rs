//! The reference for functions of `f64`: those of the crate `pxfm`, which computes in double-double
//! arithmetic and rounds once, except for special numbers that it gets wrong. `check_judge.py` compares it
//! with mpmath.

pub type One = fn(f64) -> f64;
pub type Two = fn(f64, f64) -> f64;

/// The reference for a function of one number, and the range of half of the numbers.
pub fn judge_of_one(name: &str) -> (One, [f64; 2]) {
    match name {
        "exp" => (exp, [-745.0, 710.0]),
        "exp2" => (pxfm::f_exp2, [-1075.0, 1024.0]),
        "exp_m1" => (pxfm::f_expm1, [-40.0, 710.0]),
        "ln" => (pxfm::f_log, [0.0, 4.0]),
        "log2" => (pxfm::f_log2, [0.0, 4.0]),
        "log10" => (pxfm::f_log10, [0.0, 4.0]),
        "ln_1p" => (pxfm::f_log1p, [-1.0, 4.0]),
        "cbrt" => (pxfm::f_cbrt, [-8.0, 8.0]),
        "rsqrt" => (pxfm::f_rsqrt, [0.0, 4.0]),
        "sin" => (pxfm::f_sin, [-100.0, 100.0]),
        "cos" => (pxfm::f_cos, [-100.0, 100.0]),
        "tan" => (pxfm::f_tan, [-100.0, 100.0]),
        "asin" => (pxfm::f_asin, [-1.0, 1.0]),
        "acos" => (pxfm::f_acos, [-1.0, 1.0]),
        "atan" => (pxfm::f_atan, [-10.0, 10.0]),
        "sinh" => (pxfm::f_sinh, [-20.0, 20.0]),
        "cosh" => (pxfm::f_cosh, [-20.0, 20.0]),
        "tanh" => (pxfm::f_tanh, [-20.0, 20.0]),
        "asinh" => (pxfm::f_asinh, [-10.0, 10.0]),
        "acosh" => (pxfm::f_acosh, [1.0, 10.0]),
        "atanh" => (pxfm::f_atanh, [-1.0, 1.0]),
        "erf" => (pxfm::f_erf, [-6.0, 6.0]),
        "erfc" => (pxfm::f_erfc, [-6.0, 27.0]),
        "gamma" => (gamma, [-20.0, 171.0]),
        "ln_gamma" => (ln_gamma, [-10.0, 100.0]),
        _ => (f64::sqrt, [0.0, 4.0]),
    }
}

/// The reference for a function of two numbers, and the ranges of half of the first and second numbers.
pub fn judge_of_two(name: &str) -> (Two, [[f64; 2]; 2]) {
    match name {
        "powf" => (powf, [[0.0, 8.0], [-200.0, 200.0]]),
        "hypot" => (pxfm::f_hypot, [[-10.0, 10.0]; 2]),
        "atan2" => (pxfm::f_atan2, [[-10.0, 10.0]; 2]),
        _ => (|x, y| x % y, [[-1000.0, 1000.0], [-10.0, 10.0]]),
    }
}

/// `pxfm` (0.1.30) flushes subnormal results; for these the C library, which states less than one ulp, is the reference.
fn exp(x: f64) -> f64 {
    if x < -708.0 { x.exp() } else { pxfm::f_exp(x) }
}

/// `pxfm` has one infinity for both zeros.
fn gamma(x: f64) -> f64 {
    if x == 0.0 { 1.0 / x } else { pxfm::f_tgamma(x) }
}

/// `pxfm` ends too early; for large numbers the first terms of Stirling's series suffice, within 1.5 ulp.
fn ln_gamma(x: f64) -> f64 {
    if x > 1e17 { x * (pxfm::f_log(x) - 1.0) } else { pxfm::f_lgamma(x) }
}

/// IEEE 754: 1 for these, whatever the other is.
fn powf(x: f64, n: f64) -> f64 {
    if x == 1.0 || n == 0.0 { 1.0 } else { pxfm::f_pow(x, n) }
}
