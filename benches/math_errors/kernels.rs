//! Every function on a device, and the errors of the `f32` functions, which are computed there. Each library
//! is compared with the other's `f64` functions, so that none is its own reference.

#[ferrogrid::module]
pub mod functions {
    use ferrogrid::device::atomic::Ordering;
    use ferrogrid::device::prelude::*;

    /// 1 / sqrt(x), and ln |gamma(x)|, which `libm` lacks in this form.
    fn rsqrtf(x: f32) -> f32 {
        1.0 / libm::sqrtf(x)
    }

    fn rsqrt(x: f64) -> f64 {
        1.0 / libm::sqrt(x)
    }

    /// `libm` returns numbers for some arguments below 1; Ferrogrid's functions by `libm` return NaN.
    fn acoshf(x: f32) -> f32 {
        if x < 1.0 { f32::NAN } else { libm::acoshf(x) }
    }

    fn acosh(x: f64) -> f64 {
        if x < 1.0 { f64::NAN } else { libm::acosh(x) }
    }

    fn ln_gamma<T: Float>(x: T) -> T {
        Float::ln_gamma(x).0
    }

    macro_rules! functions {
        (
            one { $($number:literal $name:ident = $own:path, $single:path, $double:path;)* }
            two { $($number_two:literal $name_two:ident = $own_two:path, $single_two:path, $double_two:path;)* }
        ) => {
            /// The functions of one number, by their numbers.
            pub const ONE: &[&str] = &[$(stringify!($name)),*];
            /// The functions of two numbers, by their numbers.
            pub const TWO: &[&str] = &[$(stringify!($name_two)),*];

            /// The kernels' function, and that of `libm`.
            fn single(function: u32, x: f32) -> [f32; 2] {
                match function {
                    $($number => [$own(x), $single(x)],)*
                    _ => [x; 2],
                }
            }

            fn double(function: u32, x: f64) -> [f64; 2] {
                match function {
                    $($number => [$own(x), $double(x)],)*
                    _ => [x; 2],
                }
            }

            fn single_two(function: u32, x: f32, y: f32) -> [f32; 2] {
                match function {
                    $($number_two => [$own_two(x, y), $single_two(x, y)],)*
                    _ => [x; 2],
                }
            }

            fn double_two(function: u32, x: f64, y: f64) -> [f64; 2] {
                match function {
                    $($number_two => [$own_two(x, y), $double_two(x, y)],)*
                    _ => [x; 2],
                }
            }
        };
    }

    functions! {
        one {
            0 exp = Float::exp, libm::expf, libm::exp;
            1 exp2 = Float::exp2, libm::exp2f, libm::exp2;
            2 exp_m1 = Float::exp_m1, libm::expm1f, libm::expm1;
            3 ln = Float::ln, libm::logf, libm::log;
            4 log2 = Float::log2, libm::log2f, libm::log2;
            5 log10 = Float::log10, libm::log10f, libm::log10;
            6 ln_1p = Float::ln_1p, libm::log1pf, libm::log1p;
            7 cbrt = Float::cbrt, libm::cbrtf, libm::cbrt;
            8 rsqrt = Float::rsqrt, rsqrtf, rsqrt;
            9 sin = Float::sin, libm::sinf, libm::sin;
            10 cos = Float::cos, libm::cosf, libm::cos;
            11 tan = Float::tan, libm::tanf, libm::tan;
            12 asin = Float::asin, libm::asinf, libm::asin;
            13 acos = Float::acos, libm::acosf, libm::acos;
            14 atan = Float::atan, libm::atanf, libm::atan;
            15 sinh = Float::sinh, libm::sinhf, libm::sinh;
            16 cosh = Float::cosh, libm::coshf, libm::cosh;
            17 tanh = Float::tanh, libm::tanhf, libm::tanh;
            18 asinh = Float::asinh, libm::asinhf, libm::asinh;
            19 acosh = Float::acosh, acoshf, acosh;
            20 atanh = Float::atanh, libm::atanhf, libm::atanh;
            21 erf = Float::erf, libm::erff, libm::erf;
            22 erfc = Float::erfc, libm::erfcf, libm::erfc;
            23 gamma = Float::gamma, libm::tgammaf, libm::tgamma;
            24 ln_gamma = ln_gamma, libm::lgammaf, libm::lgamma;
            25 sqrt = Float::sqrt, libm::sqrtf, libm::sqrt;
        }
        two {
            0 powf = Float::powf, libm::powf, libm::pow;
            1 hypot = Float::hypot, libm::hypotf, libm::hypot;
            2 atan2 = Float::atan2, libm::atan2f, libm::atan2;
            3 fmod = Float::fmod, libm::fmodf, libm::fmod;
        }
    }

    /// Units in the last place of an `f32` between what was found and an exact value; infinite where one is a
    /// number and the other is none.
    fn ulps(found: f32, exact: f64) -> f64 {
        if found.is_nan() || exact.is_nan() {
            return if found.is_nan() == exact.is_nan() { 0.0 } else { f64::INFINITY };
        }
        if found == exact as f32 && found.is_infinite() {
            return 0.0;
        }
        if exact.is_infinite() {
            return f64::INFINITY;
        }
        let found =
            if found.is_infinite() { 2.0_f64.powi(128).copysign(f64::from(found)) } else { f64::from(found) };
        (found - exact).abs() * units(exact)
    }

    /// 1 / the unit in the last place that an `f32` of this size has.
    fn units(exact: f64) -> f64 {
        let exponent = ((exact.abs().to_bits() >> 52) as i64 - 1023).max(-126);
        f64::from_bits(((1023 + 23 - exponent) as u64) << 52)
    }

    /// The error as reported: near its zeros, errors of `ln_gamma` count as for results near 1.
    fn weight(function: u32, exact: f64) -> f64 {
        if function == 24 && exact.abs() < 1.0 { exact.abs().max(1e-30) } else { 1.0 }
    }

    /// An error above, the arguments' bits below: the largest of such words names the worst arguments.
    fn word(error: f64, at: u32) -> u64 {
        u64::from((error as f32).to_bits()) << 32 | u64::from(at)
    }

    /// The errors of one `f32` function of one argument: of the kernels' function, compared with `libm`'s for
    /// `f64`, and of `libm`'s, compared with the kernels' for `f64`. Tries each `step`-th number; the
    /// arguments are in the low half of the words.
    #[kernel(F = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25])]
    pub fn errors_of_one<const F: u32>(t: Thread<1>, count: u64, step: u32, worst: &[DeviceAtomic<u64>]) {
        let mut largest = [0_u64; 2];
        for i in t.grid_stride(count as usize) {
            let bits = (i.get() as u32).wrapping_mul(step);
            let x = f32::from_bits(bits);
            let (found, exact) = (single(F, x), double(F, f64::from(x)));
            for own in 0..2 {
                let judge = exact[1 - own];
                let error = ulps(found[own], judge) * weight(F, judge);
                largest[own] = largest[own].max(word(error, bits));
            }
        }
        for own in 0..2 {
            worst[own].fetch_max(largest[own], Ordering::Relaxed);
        }
    }

    /// Random pairs: half of them of any size, half of moderate size with a positive first number.
    pub fn pair(number: u32) -> [f32; 2] {
        // SplitMix64.
        let mut bits = (u64::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        let [x, y] = [bits as u32, (bits >> 32) as u32];
        if number & 1 == 0 {
            return [f32::from_bits(x), f32::from_bits(y)];
        }
        let unit = 1.0 / 4_294_967_296.0;
        [x as f32 * (8.0 * unit), y as f32 * (40.0 * unit) - 20.0]
    }

    /// As `errors_of_one`, for two `f32`s; the low half of the words is the number of the pair.
    #[kernel(F = [0, 1, 2, 3])]
    pub fn errors_of_two<const F: u32>(t: Thread<1>, count: u64, worst: &[DeviceAtomic<u64>]) {
        let mut largest = [0_u64; 2];
        for i in t.grid_stride(count as usize) {
            let number = i.get() as u32;
            let [x, y] = pair(number);
            let (found, exact) = (single_two(F, x, y), double_two(F, f64::from(x), f64::from(y)));
            for own in 0..2 {
                largest[own] = largest[own].max(word(ulps(found[own], exact[1 - own]), number));
            }
        }
        for own in 0..2 {
            worst[own].fetch_max(largest[own], Ordering::Relaxed);
        }
    }

    /// Both results of a function of one `f64`.
    #[kernel(F = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25])]
    pub fn values_of_one<const F: u32>(t: Thread<1>, x: &[f64], mut out: DisjointSlice<[f64; 2]>) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            *out = double(F, x[i.get()]);
        }
    }

    /// Both results of a function of two `f64`s.
    #[kernel(F = [0, 1, 2, 3])]
    pub fn values_of_two<const F: u32>(t: Thread<1>, x: &[[f64; 2]], mut out: DisjointSlice<[f64; 2]>) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            let [x, y] = x[i.get()];
            *out = double_two(F, x, y);
        }
    }
}

#[ferrogrid::module]
pub mod approximations {
    use ferrogrid::device::atomic::Ordering;
    use ferrogrid::device::prelude::*;

    /// The approximate functions, by their numbers.
    pub const NAMES: [&str; 12] = [
        "fast_sin",
        "fast_cos",
        "fast_exp2",
        "fast_exp",
        "fast_log2",
        "fast_ln",
        "fast_powf",
        "fast_recip",
        "fast_div",
        "fast_sqrt",
        "fast_rsqrt",
        "fast_tanh",
    ];

    /// An approximation: the result, the exact value by `libm`, and the documented bound of their difference here;
    /// no bound is promised where that is infinite.
    fn approximation(function: u32, x: f32, y: f32) -> (f32, f64, f64) {
        let (wide, wide_y) = (f64::from(x), f64::from(y));
        let power = |n: f64| libm::exp2(n);
        // Where the exact result is 0, as that of e^-inf is, so is the bound, however large the part.
        let relative = |exact: f64, error: f64| if exact == 0.0 { 0.0 } else { exact.abs() * error };
        let ulp = 1.0 / 8_388_608.0;
        let none = f64::INFINITY;
        match function {
            0 | 1 => {
                let is_near = wide.abs() <= core::f64::consts::TAU;
                let bound = if is_near { power(-20.4) } else { none };
                if function == 0 {
                    (x.fast_sin(), libm::sin(wide), bound)
                } else {
                    (x.fast_cos(), libm::cos(wide), bound)
                }
            }
            2 => {
                let exact = libm::exp2(wide);
                (x.fast_exp2(), exact, relative(exact, 2.0 * ulp))
            }
            3 => {
                let exact = libm::exp(wide);
                (x.fast_exp(), exact, relative(exact, power(-22.0) + power(-23.6) * wide.abs()))
            }
            4 | 5 => {
                let natural = libm::log(wide);
                let exact = if function == 4 { libm::log2(wide) } else { natural };
                let found = if function == 4 { x.fast_log2() } else { x.fast_ln() };
                let error = if function == 4 { power(-22.0) } else { power(-21.7) };
                let is_between = (0.5..=2.0).contains(&wide);
                (found, exact, if is_between { error } else { relative(exact, error) })
            }
            6 => {
                let (exact, logarithm) = (libm::pow(wide, wide_y), libm::log2(wide).abs());
                let error = power(-22.0) * (1.0 + wide_y.abs() * logarithm.max(1.0));
                (x.fast_powf(y), exact, if wide > 0.0 { relative(exact, error) } else { none })
            }
            7 => (x.fast_recip(), 1.0 / wide, relative(1.0 / wide, ulp)),
            8 => {
                let exact = wide / wide_y;
                let is_near = (power(-126.0)..=power(126.0)).contains(&wide_y.abs());
                (x.fast_div(y), exact, if is_near { relative(exact, 2.0 * ulp) } else { none })
            }
            9 => (x.fast_sqrt(), libm::sqrt(wide), relative(libm::sqrt(wide), ulp)),
            10 => {
                let exact = 1.0 / libm::sqrt(wide);
                (x.fast_rsqrt(), exact, relative(exact, power(-22.9)))
            }
            _ => (x.fast_tanh(), libm::tanh(wide), relative(libm::tanh(wide), power(-11.0))),
        }
    }

    /// The error as a part of its bound; results that no normal `f32` is near count only where they are numbers.
    fn part_of_bound(found: f32, exact: f64, bound: f64) -> f64 {
        if bound == f64::INFINITY || exact.is_nan() {
            return 0.0;
        }
        let (smallest, largest) = (f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX));
        if exact.abs() > largest || (found.is_infinite() && exact.abs() + bound >= largest) {
            return if found.is_infinite() || f64::from(found.abs()) + bound >= largest {
                0.0
            } else {
                f64::INFINITY
            };
        }
        if found.is_nan() {
            return f64::INFINITY;
        }
        // The bounds are those of normal results; subnormal ones may be four units further off.
        let unit = smallest / 8_388_608.0;
        let allowed = if exact.abs() < smallest { bound + 4.0 * unit } else { bound.max(unit) };
        (f64::from(found) - exact).abs() / allowed
    }

    fn word(error: f64, at: u32) -> u64 {
        u64::from((error as f32).to_bits()) << 32 | u64::from(at)
    }

    /// The largest part of its bound that an approximation's error is.
    #[kernel(F = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])]
    pub fn errors<const F: u32>(t: Thread<1>, count: u64, step: u32, worst: &[DeviceAtomic<u64>]) {
        let mut largest = 0;
        for i in t.grid_stride(count as usize) {
            let number = (i.get() as u32).wrapping_mul(step);
            let [x, y] =
                if F == 6 || F == 8 { super::functions::pair(number) } else { [f32::from_bits(number), 0.0] };
            let (found, exact, bound) = approximation(F, x, y);
            largest = largest.max(word(part_of_bound(found, exact, bound), number));
        }
        worst[0].fetch_max(largest, Ordering::Relaxed);
    }
}
