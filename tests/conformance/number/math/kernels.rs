//! Kernels that apply one mathematical function to all elements.

/// Every function, by name, in both types, and as generic code.
#[ferrogrid::module]
pub mod functions {
    use ferrogrid::device::prelude::*;

    macro_rules! functions {
        ($($name:ident($x:ident, $y:ident) = $call:expr;)*) => {
            /// The functions, by std's names.
            #[allow(non_camel_case_types)]
            #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
            #[repr(u32)]
            pub enum Function {
                $(
                    /// The function of this name.
                    $name,
                )*
            }

            impl Function {
                /// All of them.
                pub const ALL: &[Function] = &[$(Function::$name),*];
            }

            fn single(function: Function, x: f32, y: f32) -> f32 {
                match function {
                    $(Function::$name => { let ($x, $y) = (x, y); $call })*
                }
            }

            fn double(function: Function, x: f64, y: f64) -> f64 {
                match function {
                    $(Function::$name => { let ($x, $y) = (x, y); $call })*
                }
            }

            fn generic<T: Float>(function: Function, x: T, y: T) -> T {
                match function {
                    $(Function::$name => { let ($x, $y) = (x, y); $call })*
                }
            }
        };
    }

    functions! {
        floor(x, _y) = x.floor();
        ceil(x, _y) = x.ceil();
        round(x, _y) = x.round();
        round_ties_even(x, _y) = x.round_ties_even();
        trunc(x, _y) = x.trunc();
        fract(x, _y) = x.fract();
        mul_add(x, y) = x.mul_add(y, x);
        sqrt(x, _y) = x.sqrt();
        rsqrt(x, _y) = x.rsqrt();
        recip(x, _y) = x.recip();
        fmod(x, y) = x.fmod(y);
        div_euclid(x, y) = x.div_euclid(y);
        rem_euclid(x, y) = x.rem_euclid(y);
        powi(x, _y) = x.powi(-5);
        powf(x, y) = x.powf(y);
        cbrt(x, _y) = x.cbrt();
        hypot(x, y) = x.hypot(y);
        exp(x, _y) = x.exp();
        exp2(x, _y) = x.exp2();
        exp_m1(x, _y) = x.exp_m1();
        ln(x, _y) = x.ln();
        log(x, y) = x.log(y);
        log2(x, _y) = x.log2();
        log10(x, _y) = x.log10();
        ln_1p(x, _y) = x.ln_1p();
        sin(x, _y) = x.sin();
        cos(x, _y) = x.cos();
        tan(x, _y) = x.tan();
        sin_of_both(x, _y) = x.sin_cos().0;
        cos_of_both(x, _y) = x.sin_cos().1;
        asin(x, _y) = x.asin();
        acos(x, _y) = x.acos();
        atan(x, _y) = x.atan();
        atan2(x, y) = x.atan2(y);
        sinh(x, _y) = x.sinh();
        cosh(x, _y) = x.cosh();
        tanh(x, _y) = x.tanh();
        asinh(x, _y) = x.asinh();
        acosh(x, _y) = x.acosh();
        atanh(x, _y) = x.atanh();
        erf(x, _y) = x.erf();
        erfc(x, _y) = x.erfc();
        gamma(x, _y) = x.gamma();
        ln_gamma(x, _y) = x.ln_gamma().0;
        abs(x, _y) = x.abs();
        signum(x, _y) = x.signum();
        minimum(x, y) = Float::minimum(x, y);
        maximum(x, y) = Float::maximum(x, y);
        midpoint(x, y) = x.midpoint(y);
        next_up(x, _y) = x.next_up();
        next_down(x, _y) = x.next_down();
        to_degrees(x, _y) = x.to_degrees();
        to_radians(x, _y) = x.to_radians();
        copysign(x, y) = x.copysign(y);
        min(x, y) = x.min(y);
        max(x, y) = x.max(y);
    }

    /// function(x, y) in `f32`.
    #[kernel]
    pub fn apply_single(t: Thread<1>, function: Function, x: &[f32], y: &[f32], mut out: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            *out = single(function, x[i.get()], y[i.get()]);
        }
    }

    /// function(x, y) in `f64`.
    #[kernel]
    pub fn apply_double(t: Thread<1>, function: Function, x: &[f64], y: &[f64], mut out: DisjointSlice<f64>) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            *out = double(function, x[i.get()], y[i.get()]);
        }
    }

    /// function(x, y) in both types by generic code, the narrower result made wide.
    #[kernel]
    pub fn apply_generic(
        t: Thread<1>,
        function: Function,
        x: &[f64],
        y: &[f64],
        mut out: DisjointSlice<[f64; 2]>,
    ) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            let (x, y) = (x[i.get()], y[i.get()]);
            *out = [generic(function, x as f32, y as f32).into(), generic(function, x, y)];
        }
    }
}

/// The hardware's approximations.
#[ferrogrid::module]
pub mod fast {
    use ferrogrid::device::prelude::*;

    /// The number of functions that [`all`] computes.
    pub const COUNT: usize = 13;

    /// Each fast function of x, and of x and y where it takes two.
    #[kernel]
    pub fn all(t: Thread<1>, x: &[f32], y: &[f32], mut out: DisjointSlice<[f32; COUNT]>) {
        let i = t.index();
        let Some(out) = out.get_mut(i) else { return };
        let (x, y) = (x[i.get()], y[i.get()]);
        *out = [
            x.fast_sin(),
            x.fast_cos(),
            x.fast_exp2(),
            x.fast_exp2_ftz(),
            x.fast_exp(),
            x.fast_log2(),
            x.fast_ln(),
            x.fast_powf(y),
            x.fast_recip(),
            x.fast_div(y),
            x.fast_sqrt(),
            x.fast_rsqrt(),
            x.fast_tanh(),
        ];
    }
}

/// Integer operations.
#[ferrogrid::module]
pub mod integers {
    use ferrogrid::device::integer::*;
    use ferrogrid::device::prelude::*;

    /// All operations on three words.
    #[kernel]
    pub fn words(t: Thread<1>, input: &[[u32; 3]], mut out: DisjointSlice<[u32; 9]>) {
        let i = t.index();
        let Some(out) = out.get_mut(i) else { return };
        let [a, b, c] = input[i.get()];
        *out = [
            a.mul_hi(b),
            (a as i32).mul_hi(b as i32) as u32,
            byte_permute(a, b, c),
            funnel_shift_left(a, b, c),
            funnel_shift_right(a, b, c),
            sum_of_abs_diff(a as i32, b as i32, c),
            sum_of_abs_diff_unsigned(a, b, c),
            dp4a(a, b, c as i32) as u32,
            dp4a_unsigned(a, b, c),
        ];
    }

    /// The high halves of 128-bit products.
    #[kernel]
    pub fn double_words(t: Thread<1>, input: &[[u64; 2]], mut out: DisjointSlice<[u64; 2]>) {
        let i = t.index();
        let Some(out) = out.get_mut(i) else { return };
        let [a, b] = input[i.get()];
        *out = [a.mul_hi(b), (a as i64).mul_hi(b as i64) as u64];
    }
}
