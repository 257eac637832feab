//! Mathematics: each function of `f32` and `f64` within its bound of the exact value, for ordinary,
//! special and huge arguments; the fast ones within theirs; integer operations bit for bit. With
//! `FERROGRID_SHOW_ERRORS=1` the cases print the largest errors that they saw.
//!
//! `kernels` has the kernels.

mod kernels;

use ferrogrid::MathLibrary;
use ferrogrid::device::math::Float;
use ferrogrid::prelude::*;
use kernels::functions::{self, Function};
use kernels::{fast, integers};

use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("functions_of_f32_are_within_their_bounds", functions_of_f32_are_within_their_bounds),
    ("functions_of_f64_are_within_their_bounds", functions_of_f64_are_within_their_bounds),
    ("generic_functions_are_the_same_functions", generic_functions_are_the_same_functions),
    ("fast_functions_are_within_their_bounds", fast_functions_are_within_their_bounds),
    ("integer_operations_are_exact", integer_operations_are_exact),
];

/// The specification of a function: arguments of interest, its exact value as far as `f64` goes, and the
/// maximum error, in units in the last place.
struct Expectation {
    function: Function,
    /// The range of most arguments x.
    domain: [f64; 2],
    exact: fn(f64, f64) -> f64,
    /// For `f32`, against the exact value; one half is correctly rounded. If [`as_std`] has the function, the
    /// maximum distance from std's.
    single: f64,
    /// For `f64`, against the value that is itself rounded. Zero is equal.
    double: f64,
}

/// Functions of `f32` that round on the way, and must do so as std does.
fn as_std(function: Function) -> Option<fn(f32, f32) -> f32> {
    match function {
        Function::div_euclid => Some(|x, y| x.div_euclid(y)),
        Function::powi => Some(|x, _| x.powi(-5)),
        Function::rsqrt => Some(|x, _| 1.0 / x.sqrt()),
        Function::midpoint => Some(f32::midpoint),
        Function::next_up => Some(|x, _| x.next_up()),
        Function::next_down => Some(|x, _| x.next_down()),
        Function::to_degrees => Some(|x, _| x.to_degrees()),
        Function::to_radians => Some(|x, _| x.to_radians()),
        _ => None,
    }
}

/// The smaller number, -0.0 below 0.0.
fn lesser(x: f64, y: f64) -> f64 {
    if x < y || x == y && x.is_sign_negative() { x } else { y }
}

/// The bounds of libdevice, in ulp of `f32` and of `f64`, where they are wider: from docs/src/reference/math-errors.md.
fn bounds_of_libdevice(function: Function) -> [f64; 2] {
    use Function as F;
    match function {
        F::exp => [2.0, 1.0],
        F::exp2 => [2.5, 1.0],
        F::exp_m1 => [1.4, 1.0],
        F::log10 => [2.2, 2.0],
        F::cbrt => [1.1, 1.0],
        F::sin | F::cos | F::sin_of_both | F::cos_of_both => [1.6, 1.0],
        F::tan => [3.2, 2.0],
        F::asin | F::acos => [1.4, 2.0],
        F::atan => [1.3, 2.0],
        F::atan2 => [1.9, 2.0],
        F::sinh => [3.0, 2.0],
        F::cosh => [2.4, 2.0],
        F::acosh => [2.2, 2.0],
        F::atanh => [3.2, 2.0],
        F::hypot => [1.0, 2.0],
        F::powf => [1.2, 1.0],
        F::erf => [1.1, 1.0],
        F::erfc => [4.6, 4.0],
        F::gamma => [4.4, 6.0],
        F::ln_gamma => [4.0, 6.0],
        _ => [0.0; 2],
    }
}

impl Expectation {
    /// The bounds for a device: libdevice's may be wider.
    fn on(mut self, device: &Device) -> Self {
        let library = functions::apply_single::kernel().math_library();
        if device.is_cuda() && library == Some(MathLibrary::Libdevice) {
            let [single, double] = bounds_of_libdevice(self.function);
            (self.single, self.double) = (self.single.max(single), self.double.max(double));
        }
        self
    }
}

/// The bounds are those of the less accurate of the two sources, the C library and `libm` (which the
/// unit tests of `ferrogrid-device` measure).
fn expectation(function: Function) -> Expectation {
    use Function as F;
    type Exact = fn(f64, f64) -> f64;
    let (domain, exact, single, double): ([f64; 2], Exact, f64, f64) = match function {
        F::floor => ([-5.0, 5.0], |x, _| x.floor(), 0.5, 0.0),
        F::ceil => ([-5.0, 5.0], |x, _| x.ceil(), 0.5, 0.0),
        F::round => ([-5.0, 5.0], |x, _| x.round(), 0.5, 0.0),
        F::round_ties_even => ([-5.0, 5.0], |x, _| x.round_ties_even(), 0.5, 0.0),
        F::trunc => ([-5.0, 5.0], |x, _| x.trunc(), 0.5, 0.0),
        F::fract => ([-5.0, 5.0], |x, _| x.fract(), 0.5, 0.0),
        F::mul_add => ([-5.0, 5.0], |x, y| x.mul_add(y, x), 0.501, 0.0),
        F::sqrt => ([0.0, 10.0], |x, _| x.sqrt(), 0.501, 0.0),
        F::rsqrt => ([0.0, 10.0], |x, _| 1.0 / x.sqrt(), 0.0, 0.0),
        F::recip => ([-5.0, 5.0], |x, _| 1.0 / x, 0.501, 0.0),
        F::fmod => ([-50.0, 50.0], |x, y| x % y, 0.5, 0.0),
        F::div_euclid => ([-50.0, 50.0], |x, y| x.div_euclid(y), 0.0, 0.0),
        F::rem_euclid => ([-50.0, 50.0], |x, y| x.rem_euclid(y), 1.0, 0.0),
        F::powi => ([-5.0, 5.0], |x, _| x.powi(-5), 0.0, 0.0),
        F::powf => ([0.0, 5.0], |x, y| x.powf(y), 1.0, 1.0),
        F::cbrt => ([-5.0, 5.0], |x, _| x.cbrt(), 1.0, 1.0),
        F::hypot => ([-5.0, 5.0], |x, y| x.hypot(y), 1.0, 1.0),
        F::exp => ([-110.0, 90.0], |x, _| x.exp(), 1.0, 1.0),
        F::exp2 => ([-150.0, 130.0], |x, _| x.exp2(), 1.0, 1.0),
        F::exp_m1 => ([-2.0, 90.0], |x, _| x.exp_m1(), 1.0, 1.0),
        F::ln => ([0.0, 10.0], |x, _| x.ln(), 1.0, 1.0),
        F::log => ([0.5, 10.0], |x, y| x.ln() / y.ln(), 3.0, 4.0),
        F::log2 => ([0.0, 10.0], |x, _| x.log2(), 1.0, 1.0),
        F::log10 => ([0.0, 10.0], |x, _| x.log10(), 2.0, 2.0),
        F::ln_1p => ([-1.0, 2.0], |x, _| x.ln_1p(), 1.0, 1.0),
        F::sin => ([-100.0, 100.0], |x, _| x.sin(), 1.0, 1.0),
        F::cos => ([-100.0, 100.0], |x, _| x.cos(), 1.0, 1.0),
        F::tan => ([-100.0, 100.0], |x, _| x.tan(), 1.0, 1.0),
        F::sin_of_both => ([-100.0, 100.0], |x, _| x.sin(), 1.0, 1.0),
        F::cos_of_both => ([-100.0, 100.0], |x, _| x.cos(), 1.0, 1.0),
        F::asin => ([-1.0, 1.0], |x, _| x.asin(), 1.0, 1.0),
        F::acos => ([-1.0, 1.0], |x, _| x.acos(), 1.0, 1.0),
        F::atan => ([-10.0, 10.0], |x, _| x.atan(), 1.0, 1.0),
        F::atan2 => ([-10.0, 10.0], |x, y| x.atan2(y), 1.5, 1.0),
        F::sinh => ([-90.0, 90.0], |x, _| x.sinh(), 2.0, 2.0),
        F::cosh => ([-90.0, 90.0], |x, _| x.cosh(), 2.0, 2.0),
        F::tanh => ([-10.0, 10.0], |x, _| x.tanh(), 2.5, 2.0),
        F::asinh => ([-10.0, 10.0], |x, _| x.asinh(), 2.0, 2.0),
        F::acosh => ([1.0, 10.0], |x, _| x.acosh(), 2.0, 2.0),
        // Not towards -1, where std's function loses digits.
        F::atanh => ([0.0, 1.0], |x, _| x.abs().atanh().copysign(x), 2.0, 3.0),
        F::erf => ([-4.0, 4.0], |x, _| Float::erf(x), 1.0, 1.0),
        F::erfc => ([-4.0, 10.0], |x, _| Float::erfc(x), 3.0, 1.0),
        F::gamma => ([0.0, 30.0], |x, _| Float::gamma(x), 1.0, 1.0),
        F::ln_gamma => ([-3.0, 40.0], |x, _| Float::ln_gamma(x).0, 4.0, 2.0),
        F::abs => ([-5.0, 5.0], |x, _| x.abs(), 0.5, 0.0),
        F::signum => ([-5.0, 5.0], |x, _| x.signum(), 0.5, 0.0),
        F::minimum => {
            ([-5.0, 5.0], |x, y| if x.is_nan() || y.is_nan() { f64::NAN } else { lesser(x, y) }, 0.5, 0.0)
        }
        F::maximum => {
            ([-5.0, 5.0], |x, y| if x.is_nan() || y.is_nan() { f64::NAN } else { -lesser(-x, -y) }, 0.5, 0.0)
        }
        F::midpoint => ([-5.0, 5.0], f64::midpoint, 0.0, 0.0),
        F::next_up => ([-5.0, 5.0], |x, _| x.next_up(), 0.0, 0.0),
        F::next_down => ([-5.0, 5.0], |x, _| x.next_down(), 0.0, 0.0),
        F::to_degrees => ([-7.0, 7.0], |x, _| x.to_degrees(), 0.0, 0.0),
        F::to_radians => ([-400.0, 400.0], |x, _| x.to_radians(), 0.0, 0.0),
        F::copysign => ([-5.0, 5.0], |x, y| x.copysign(y), 0.5, 0.0),
        F::min => ([-5.0, 5.0], |x, y| x.min(y) + 0.0, 0.5, 0.0),
        F::max => ([-5.0, 5.0], |x, y| x.max(y) + 0.0, 0.5, 0.0),
    };
    Expectation { function, domain, exact, single, double }
}

const SPECIAL: [f64; 24] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    -1.0,
    1.5,
    2.0,
    2.5,
    -2.5,
    1e-40,
    -1e-40,
    1e-45,
    f32::MIN_POSITIVE as f64,
    f32::MAX as f64,
    f32::MIN as f64,
    1e22,
    -1e22,
    8_388_607.5,
    -16_777_217.0,
    1e7,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Values of x and y: every two special ones, ones in the function's domain, and ones of any size.
fn arguments(domain: [f64; 2]) -> (Vec<f64>, Vec<f64>) {
    let mut random = fastrand::Rng::with_seed(3);
    let mut all: Vec<_> = SPECIAL.iter().flat_map(|x| SPECIAL.map(|y| (*x, y))).collect();
    let [low, high] = domain;
    all.extend((0..4000).map(|_| (low + (high - low) * random.f64(), random.f64() * 20.0 - 10.0)));
    // Payload and sign of a NaN do not survive every conversion.
    let mut any = || match f32::from_bits(random.u32(..)) {
        nan if nan.is_nan() => f64::NAN,
        number => f64::from(number),
    };
    all.extend((0..2000).map(|_| (any(), any())));
    all.into_iter().unzip()
}

/// The largest error, with its argument.
struct Worst {
    ulps: f64,
    place: String,
}

impl Worst {
    fn none() -> Self {
        Worst { ulps: 0.0, place: String::new() }
    }

    fn see(&mut self, ulps: f64, place: impl Fn() -> String) {
        if ulps > self.ulps || ulps.is_nan() {
            (self.ulps, self.place) = (ulps, place());
        }
    }
}

/// Collects results that exceeded their bound.
#[derive(Default)]
struct Report {
    shown: bool,
    beyond: Vec<String>,
}

impl Report {
    fn new() -> Self {
        Report { shown: std::env::var_os("FERROGRID_SHOW_ERRORS").is_some(), beyond: Vec::new() }
    }

    fn add(&mut self, what: &str, worst: &Worst, bound: f64) {
        let line = format!("{what}: {:.4} of {bound}, at {}", worst.ulps, worst.place);
        if self.shown {
            println!("{line}");
        }
        if worst.ulps.is_nan() || worst.ulps > bound {
            self.beyond.push(line);
        }
    }

    fn outcome(self) -> Outcome {
        expect("functions beyond their bounds", self.beyond, Vec::new())
    }
}

/// Units in the last place of an `f32` between what was found and an exact value.
fn ulps_single(found: f32, exact: f64) -> f64 {
    if found.is_nan() && exact.is_nan() || found == exact as f32 && found.is_infinite() {
        return 0.0;
    }
    if found == 0.0 && exact == 0.0 && found.is_sign_negative() != exact.is_sign_negative() {
        return f64::INFINITY;
    }
    let exponent = exact.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor();
    (f64::from(found) - exact).abs() / (exponent - 23.0).exp2()
}

/// How many `f64`s lie between what was found and what is expected.
fn ulps_double(found: f64, expected: f64) -> f64 {
    if found.is_nan() && expected.is_nan() || found.to_bits() == expected.to_bits() {
        return 0.0;
    }
    if found == expected || found.is_nan() || expected.is_nan() {
        return f64::INFINITY;
    }
    let ordered = |value: f64| {
        let magnitude = (value.abs().to_bits()) as i128;
        if value < 0.0 { -magnitude } else { magnitude }
    };
    (ordered(found) - ordered(expected)).unsigned_abs() as f64
}

/// The error as counted: near the zeros of `ln_gamma` in units of numbers near 1.
fn scale(function: Function, exact: f64) -> f64 {
    let is_near_zero = function == Function::ln_gamma && exact.abs() < 1.0;
    if is_near_zero { exact.abs().max(f64::MIN_POSITIVE) } else { 1.0 }
}

/// Added to a result: either of two zeros may be the smaller, and adding zero makes both positive. For other
/// functions -0.0, which changes nothing.
fn settling(function: Function) -> f64 {
    if matches!(function, Function::min | Function::max) { 0.0 } else { -0.0 }
}

fn functions_of_f32_are_within_their_bounds(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut report = Report::new();
    for expectation in Function::ALL.iter().map(|function| expectation(*function).on(device)) {
        let (x, y) = arguments(expectation.domain);
        let narrow = |wide: &[f64]| wide.iter().map(|value| *value as f32).collect::<Vec<_>>();
        let (x, y) = (narrow(&x), narrow(&y));
        let (device_x, device_y) = (stream.upload(&x)?, stream.upload(&y)?);
        let mut out = stream.upload(&vec![7.0_f32; x.len()])?;
        let grid = Grid::cover(x.len());
        functions::apply_single(&stream, grid, expectation.function, &device_x, &device_y, &mut out)?;
        let mut worst = Worst::none();
        for (i, found) in stream.download(&out)?.into_iter().enumerate() {
            let found = found + settling(expectation.function) as f32;
            let exact = (expectation.exact)(x[i].into(), y[i].into());
            let ulps = match as_std(expectation.function) {
                Some(std) => ulps_double(found.into(), std(x[i], y[i]).into()),
                None => ulps_single(found, exact) * scale(expectation.function, exact),
            };
            worst.see(ulps, || format!("{:e}, {:e}: found {found:e}, expected {exact:e}", x[i], y[i]));
        }
        report.add(&format!("f32 {:?}", expectation.function), &worst, expectation.single);
    }
    report.outcome()
}

fn functions_of_f64_are_within_their_bounds(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut report = Report::new();
    for expectation in Function::ALL.iter().map(|function| expectation(*function).on(device)) {
        let (x, y) = arguments(expectation.domain);
        let (device_x, device_y) = (stream.upload(&x)?, stream.upload(&y)?);
        let mut out = stream.upload(&vec![7.0_f64; x.len()])?;
        let grid = Grid::cover(x.len());
        functions::apply_double(&stream, grid, expectation.function, &device_x, &device_y, &mut out)?;
        let mut worst = Worst::none();
        for (i, found) in stream.download(&out)?.into_iter().enumerate() {
            let found = found + settling(expectation.function);
            let exact = (expectation.exact)(x[i], y[i]);
            let ulps = ulps_double(found, exact) * scale(expectation.function, exact);
            worst.see(ulps, || format!("{:e}, {:e}: found {found:e}, expected {exact:e}", x[i], y[i]));
        }
        report.add(&format!("f64 {:?}", expectation.function), &worst, expectation.double);
    }
    report.outcome()
}

fn generic_functions_are_the_same_functions(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for function in Function::ALL.iter().copied() {
        let (x, y) = arguments(expectation(function).domain);
        let grid = Grid::cover(x.len());
        let narrow = |wide: &[f64]| wide.iter().map(|value| *value as f32).collect::<Vec<_>>();
        let (narrow_x, narrow_y) = (stream.upload(&narrow(&x))?, stream.upload(&narrow(&y))?);
        let (x, y) = (stream.upload(&x)?, stream.upload(&y)?);
        let mut single = stream.upload(&vec![0.0_f32; x.len()])?;
        let mut double = stream.upload(&vec![0.0_f64; x.len()])?;
        let mut generic = stream.upload(&vec![[0.0_f64; 2]; x.len()])?;
        functions::apply_single(&stream, grid, function, &narrow_x, &narrow_y, &mut single)?;
        functions::apply_double(&stream, grid, function, &x, &y, &mut double)?;
        functions::apply_generic(&stream, grid, function, &x, &y, &mut generic)?;
        let bits = |value: f64| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
        let (single, double) = (stream.download(&single)?, stream.download(&double)?);
        for (i, [narrow, wide]) in stream.download(&generic)?.into_iter().enumerate() {
            let expected = (bits(single[i].into()), bits(double[i]));
            expect(&format!("{function:?}, element {i}"), (bits(narrow), bits(wide)), expected)?;
        }
    }
    Ok(())
}

/// A fast function: name, exact value, and the largest error for the numbers tried. Errors are
/// relative, but absolute where the exact value is below `absolute_below`.
struct Fast {
    name: &'static str,
    exact: fn(f64, f64) -> f64,
    error: f64,
    absolute_below: f64,
}

const FAST: [Fast; fast::COUNT] = {
    const fn is(name: &'static str, exact: fn(f64, f64) -> f64, error: f64, absolute_below: f64) -> Fast {
        Fast { name, exact, error, absolute_below }
    }
    let ulp = f32::EPSILON as f64;
    [
        is("fast_sin", |x, _| x.sin(), 7.22e-7, f64::INFINITY),
        is("fast_cos", |x, _| x.cos(), 7.22e-7, f64::INFINITY),
        is("fast_exp2", |x, _| x.exp2(), 2.0 * ulp, 0.0),
        is("fast_exp2_ftz", |x, _| x.exp2(), 2.0 * ulp, 0.0),
        // The product's rounding: 2^-24 of at most 2 pi log2(e), times ln(2).
        is("fast_exp", |x, _| x.exp(), 6.0 * ulp, 0.0),
        is("fast_log2", |x, _| x.log2(), 2.4e-7, 1.0),
        is("fast_ln", |x, _| x.ln(), 4.0 * ulp, 1.0),
        // 2^-22 and 2^-24 of at most |y log2(x)| < 80, times ln(2).
        is("fast_powf", |x, y| x.powf(y), 1.7e-5, 0.0),
        is("fast_recip", |x, _| 1.0 / x, ulp, 0.0),
        is("fast_div", |x, y| x / y, 2.0 * ulp, 0.0),
        is("fast_sqrt", |x, _| x.sqrt(), 1.01 * ulp, 0.0),
        is("fast_rsqrt", |x, _| 1.0 / x.sqrt(), 1.08 * ulp, 0.0),
        is("fast_tanh", |x, _| x.tanh(), 4.9e-4, 0.0),
    ]
};

fn fast_functions_are_within_their_bounds(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(5);
    // Positive, as logarithms and roots require, and within the sine's bounded range.
    let mut x: Vec<f32> = (0..20_000).map(|_| random.f32() * core::f32::consts::TAU).collect();
    x.extend((0..2000).map(|_| random.f32() * 1e-3 + 1e-6));
    let y: Vec<f32> = x.iter().map(|_| random.f32() * 8.0 - 4.0).collect();
    let (device_x, device_y) = (stream.upload(&x)?, stream.upload(&y)?);
    let mut out = stream.upload(&vec![[0.0_f32; fast::COUNT]; x.len()])?;
    fast::all(&stream, Grid::cover(x.len()), &device_x, &device_y, &mut out)?;
    let found = stream.download(&out)?;
    let mut report = Report::new();
    for (at, function) in FAST.iter().enumerate() {
        let mut worst = Worst::none();
        for (i, found) in found.iter().enumerate() {
            let (x, y, found) = (f64::from(x[i]), f64::from(y[i]), f64::from(found[at]));
            let exact = (function.exact)(x, y);
            let scale = if exact.abs() < function.absolute_below { 1.0 } else { exact.abs() };
            worst.see((found - exact).abs() / scale / function.error, || {
                format!("{x:e}, {y:e}: found {found:e}, expected {exact:e}")
            });
        }
        report.add(function.name, &worst, 1.0);
    }
    report.outcome()?;
    let (tiny, mut out) = (stream.upload(&[-130.0, -f32::INFINITY])?, stream.zeros(2)?);
    fast::all(&stream, Grid::cover(2), &tiny, &tiny, &mut out)?;
    let at = FAST.iter().position(|it| it.name == "fast_exp2_ftz").expect("it is listed");
    let found: Vec<f32> = stream.download(&out)?.iter().map(|all: &[f32; fast::COUNT]| all[at]).collect();
    expect("powers below 2^-126", found, vec![0.0; 2])
}

fn integer_operations_are_exact(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(9);
    let corners = [0, 1, 31, 32, 33, 0x80, 0x7fff_ffff, 0x8000_0000, 0x8080_8080, u32::MAX];
    let mut input = Vec::new();
    for a in corners {
        input.extend(corners.iter().flat_map(|b| corners.map(|c| [a, *b, c])));
    }
    input.extend((0..10_000).map(|_| [random.u32(..), random.u32(..), random.u32(..)]));
    let device_input = stream.upload(&input)?;
    let mut out = stream.upload(&vec![[0_u32; 9]; input.len()])?;
    integers::words(&stream, Grid::cover(input.len()), &device_input, &mut out)?;
    for ([a, b, c], found) in input.iter().zip(stream.download(&out)?) {
        expect(&format!("{a:#x}, {b:#x}, {c:#x}"), found, words(*a, *b, *c))?;
    }

    let wide: Vec<[u64; 2]> = input
        .iter()
        .map(|[a, b, c]| [u64::from(*a) << 32 | u64::from(*c), u64::from(*b) << 32 | u64::from(*a)])
        .collect();
    let device_wide = stream.upload(&wide)?;
    let mut out = stream.upload(&vec![[0_u64; 2]; wide.len()])?;
    integers::double_words(&stream, Grid::cover(wide.len()), &device_wide, &mut out)?;
    for ([a, b], found) in wide.iter().zip(stream.download(&out)?) {
        let unsigned = (u128::from(*a) * u128::from(*b)) >> 64;
        let signed = (i128::from(*a as i64) * i128::from(*b as i64)) >> 64;
        expect(&format!("{a:#x}, {b:#x}"), found, [unsigned as u64, signed as u64])?;
    }
    Ok(())
}

/// The operations on three words by their definitions, in wide arithmetic.
fn words(a: u32, b: u32, c: u32) -> [u32; 9] {
    let (signed_a, signed_b) = (i64::from(a as i32), i64::from(b as i32));
    let joined = u128::from(a) << 32 | u128::from(b);
    let byte = |place: u32| {
        let nibble = c >> (4 * place) & 15;
        let byte = (u64::from(b) << 32 | u64::from(a)) >> (8 * (nibble & 7)) & 0xff;
        let byte = if nibble < 8 { byte } else { (byte >> 7) * 0xff };
        (byte as u32) << (8 * place)
    };
    let dot = |byte: fn(u32) -> i64| {
        (0..4).fold(0, |sum, place| sum + byte(a >> (8 * place)) * byte(b >> (8 * place)))
    };
    [
        ((u64::from(a) * u64::from(b)) >> 32) as u32,
        ((signed_a * signed_b) >> 32) as u32,
        (0..4).fold(0, |word, place| word | byte(place)),
        ((joined << (c % 32)) >> 32) as u32,
        (joined >> (c % 32)) as u32,
        ((signed_a - signed_b).unsigned_abs() + u64::from(c)) as u32,
        ((i64::from(a) - i64::from(b)).unsigned_abs() + u64::from(c)) as u32,
        (dot(|word| i64::from(word as i8)) + i64::from(c)) as u32,
        (dot(|word| i64::from(word as u8)) + i64::from(c)) as u32,
    ]
}
