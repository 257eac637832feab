//! [`FastMath`]: the hardware's approximations, a few instructions each, with some 20 correct bits. Natively
//! they are the accurate functions.

/// Faster and less accurate functions of `f32`, one hardware approximation or two each; what CUDA
/// calls `__sinf`, `__expf` and so on. Natively they are the accurate functions.
///
/// The error bounds below hold for normal results; subnormal ones may be off by another four units of 2^-149.
/// Bounds of single instructions are the documented ones, except for sine and cosine, whose bounds are a
/// little wider. `docs/src/reference/math-errors.md` has the errors measured on an H200. Results may differ between
/// GPUs and from the CPU. Subnormal numbers are kept, but by `fast_exp2_ftz`. There are no such instructions for `f64`.
///
/// ```
/// use ferrogrid_device::prelude::*;
///
/// /// The logistic function, accurate to about six digits.
/// fn logistic(x: f32) -> f32 {
///     (1.0 + (-x).fast_exp()).fast_recip()
/// }
/// assert!((logistic(0.0) - 0.5).abs() < 1e-6);
/// ```
///
/// Each next to the accurate function, for arguments where all error bounds below are less than a thousandth:
///
/// ```
/// use ferrogrid_device::prelude::*;
///
/// fn is_near(fast: f32, accurate: f32) -> bool {
///     (fast - accurate).abs() < 1e-3
/// }
/// let (x, y) = (0.75_f32, 1.5_f32);
/// assert!(is_near(x.fast_sin(), x.sin()) && is_near(x.fast_cos(), x.cos()) && is_near(x.fast_tanh(), x.tanh()));
/// assert!(is_near(x.fast_exp(), x.exp()) && is_near(x.fast_exp2(), x.exp2()) && is_near(x.fast_powf(y), x.powf(y)));
/// assert!(is_near(x.fast_ln(), x.ln()) && is_near(x.fast_log2(), x.log2()) && is_near(x.fast_div(y), x / y));
/// assert!(is_near(x.fast_sqrt(), x.sqrt()) && is_near(x.fast_rsqrt(), 1.0 / x.sqrt()));
/// assert!(is_near(x.fast_recip(), 1.0 / x));
/// ```
pub trait FastMath: super::Float {
    /// The sine (CUDA's `__sinf`, PTX `sin.approx.f32`): absolute error at most 2^-20.4 in [-2π, 2π]; it grows
    /// with the argument beyond.
    fn fast_sin(self) -> Self;
    /// The cosine (CUDA's `__cosf`, PTX `cos.approx.f32`), with the errors of [`fast_sin`](FastMath::fast_sin).
    fn fast_cos(self) -> Self;
    /// 2 to the power of this number (PTX `ex2.approx.f32`): at most 2 ulp off.
    fn fast_exp2(self) -> Self;
    /// The same, but results below 2^-126 are 0 (PTX `ex2.approx.ftz.f32`): one instruction in place of four, for weights that are added up or
    /// rounded, as those of a softmax.
    fn fast_exp2_ftz(self) -> Self;
    /// e to the power of this number (CUDA's `__expf`): `ex2.approx.f32` of `self * log2(e)`. The product's rounding
    /// adds a relative error that grows with the argument: in all at most 2^-22 + 2^-23.6 * |self|.
    fn fast_exp(self) -> Self;
    /// The logarithm to base 2 (CUDA's `__log2f`, PTX `lg2.approx.f32`): error at most 2^-22, absolute
    /// between 0.5 and 2, relative elsewhere.
    fn fast_log2(self) -> Self;
    /// The natural logarithm (CUDA's `__logf`): `lg2.approx.f32` times ln(2); error at most 2^-21.7, absolute between
    /// 0.5 and 2, relative elsewhere.
    fn fast_ln(self) -> Self;
    /// `self` to the power of `n` (CUDA's `__powf`): `ex2.approx.f32` of `n * lg2.approx.f32(self)`; NaN below zero,
    /// for every `n`. The logarithm's error is multiplied by `n`: relative error at most
    /// 2^-22 * (1 + |n| * max(1, |log2(self)|)).
    fn fast_powf(self, n: Self) -> Self;
    /// `1 / self` (PTX `rcp.approx.f32`): at most 1 ulp off.
    fn fast_recip(self) -> Self;
    /// `self / rhs` (CUDA's `__fdividef`, PTX `div.approx.f32`): at most 2 ulp off for `|rhs|` in [2^-126, 2^126];
    /// above that a finite `self` gives 0.
    fn fast_div(self, rhs: Self) -> Self;
    /// The square root (PTX `sqrt.approx.f32`): relative error at most 2^-23.
    fn fast_sqrt(self) -> Self;
    /// `1 / self.sqrt()` (PTX `rsqrt.approx.f32`): relative error at most 2^-22.9.
    fn fast_rsqrt(self) -> Self;
    /// The hyperbolic tangent (CUDA's `__tanhf`, PTX `tanh.approx.f32`): relative error at most 2^-11. PTX has the
    /// instruction from ISA 7.0 on; device code for an older one (rustc's default for `sm_75`) takes
    /// `ex2.approx` and `rcp.approx` instead, for the same bound.
    fn fast_tanh(self) -> Self;
}

#[cfg(not(target_arch = "nvptx64"))]
macro_rules! accurate {
    ($($name:ident($($argument:ident)?) = $accurate:path;)*) => { $(
        #[inline(always)]
        fn $name(self $(, $argument: Self)?) -> Self {
            $accurate(self $(, $argument)?)
        }
    )* };
}

#[cfg(not(target_arch = "nvptx64"))]
impl FastMath for f32 {
    #[inline(always)]
    fn fast_exp2_ftz(self) -> Self {
        let power = super::Float::exp2(self);
        if power < f32::MIN_POSITIVE { 0.0 } else { power }
    }

    accurate! {
        fast_sin() = super::Float::sin;
        fast_cos() = super::Float::cos;
        fast_exp2() = super::Float::exp2;
        fast_exp() = super::Float::exp;
        fast_log2() = super::Float::log2;
        fast_ln() = super::Float::ln;
        fast_powf(n) = super::Float::powf;
        fast_recip() = super::Float::recip;
        fast_div(rhs) = core::ops::Div::div;
        fast_sqrt() = super::Float::sqrt;
        fast_rsqrt() = super::Float::rsqrt;
        fast_tanh() = super::Float::tanh;
    }
}

/// One instruction from `f32`s to an `f32`.
#[cfg(target_arch = "nvptx64")]
macro_rules! approximation {
    ($instruction:literal, $x:expr $(, $y:expr)?) => {{
        let result: f32;
        // SAFETY: the instruction computes its result from its operands, all of whose values it
        // takes; it touches no memory, and threads need not run it together.
        unsafe {
            core::arch::asm!(
                $instruction,
                out(reg32) result,
                in(reg32) $x,
                $(in(reg32) $y,)?
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        result
    }};
}

#[cfg(target_arch = "nvptx64")]
impl FastMath for f32 {
    #[inline(always)]
    fn fast_sin(self) -> Self {
        approximation!("sin.approx.f32 {}, {};", self)
    }

    #[inline(always)]
    fn fast_cos(self) -> Self {
        approximation!("cos.approx.f32 {}, {};", self)
    }

    #[inline(always)]
    fn fast_exp2(self) -> Self {
        approximation!("ex2.approx.f32 {}, {};", self)
    }

    #[inline(always)]
    fn fast_exp2_ftz(self) -> Self {
        approximation!("ex2.approx.ftz.f32 {}, {};", self)
    }

    #[inline(always)]
    fn fast_exp(self) -> Self {
        (self * core::f32::consts::LOG2_E).fast_exp2()
    }

    #[inline(always)]
    fn fast_log2(self) -> Self {
        approximation!("lg2.approx.f32 {}, {};", self)
    }

    #[inline(always)]
    fn fast_ln(self) -> Self {
        self.fast_log2() * core::f32::consts::LN_2
    }

    #[inline(always)]
    fn fast_powf(self, n: Self) -> Self {
        (n * self.fast_log2()).fast_exp2()
    }

    #[inline(always)]
    fn fast_recip(self) -> Self {
        approximation!("rcp.approx.f32 {}, {};", self)
    }

    #[inline(always)]
    fn fast_div(self, rhs: Self) -> Self {
        approximation!("div.approx.f32 {}, {}, {};", self, rhs)
    }

    #[inline(always)]
    fn fast_sqrt(self) -> Self {
        approximation!("sqrt.approx.f32 {}, {};", self)
    }

    #[inline(always)]
    fn fast_rsqrt(self) -> Self {
        approximation!("rsqrt.approx.f32 {}, {};", self)
    }

    #[cfg(any(target_feature = "sm_80", target_feature = "ptx70"))]
    #[inline(always)]
    fn fast_tanh(self) -> Self {
        approximation!("tanh.approx.f32 {}, {};", self)
    }

    #[cfg(not(any(target_feature = "sm_80", target_feature = "ptx70")))]
    #[inline(always)]
    fn fast_tanh(self) -> Self {
        tanh_by_exp(self)
    }
}

/// 1 - 2 / (e^2x + 1); near zero, where that cancels, the first terms of the series.
#[cfg(any(test, all(target_arch = "nvptx64", not(any(target_feature = "sm_80", target_feature = "ptx70")))))]
#[inline(always)]
fn tanh_by_exp(x: f32) -> f32 {
    use super::Float;
    let square = x * x;
    let series = Float::mul_add(square, 2.0 / 15.0, -1.0 / 3.0);
    let near_zero = Float::mul_add(series * square, x, x);
    let far = Float::mul_add(-2.0_f32, ((x + x).fast_exp() + 1.0).fast_recip(), 1.0);
    if Float::abs(x) < 0.25 { near_zero } else { far }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tangent_by_exponentials_is_within_its_bound() {
        for step in -4000..=4000_i16 {
            let x = f32::from(step) / 400.0;
            let (found, exact) = (tanh_by_exp(x), f64::from(x).tanh());
            let error = (f64::from(found) - exact).abs();
            assert!(error <= exact.abs() * 2.0_f64.powi(-11), "{x}: {found} instead of {exact}");
        }
        assert_eq!([f32::INFINITY, f32::NEG_INFINITY].map(tanh_by_exp), [1.0, -1.0]);
    }
}
