//! Errors of the portable functions, measured natively, because they round the same on every machine. `f32`
//! is compared with std's `f64`, `f64` with std's own, which is itself within one unit in the last place, and
//! functions that std lacks with digits from mpmath.

extern crate std;

use std::format;
use std::vec::Vec;

use super::{derived, portable};

/// Units in the last place of an `f32` between `found` and `exact`; none if both are NaN.
fn ulps_single(found: f32, exact: f64) -> f64 {
    if found.is_nan() && exact.is_nan() || f64::from(found) == exact || found == exact as f32 {
        return (f64::from(found) - exact).abs().min(0.5);
    }
    let exponent = (exact.abs().max(f64::from(f32::MIN_POSITIVE))).log2().floor();
    (f64::from(found) - exact).abs() / (exponent - 23.0).exp2()
}

/// The same for an `f64`, of which `expected` is the nearest or next to it.
fn ulps_double(found: f64, expected: f64) -> f64 {
    if found.is_nan() && expected.is_nan() || found == expected {
        return 0.0;
    }
    let ordered = |value: f64| {
        let bits = value.to_bits() as i64;
        if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits }
    };
    (ordered(found) as i128 - ordered(expected) as i128).unsigned_abs() as f64
}

const SPECIAL: [f64; 22] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    -1.0,
    2.0,
    -2.0,
    1e-40,
    -1e-40,
    1e-45,
    1e-320,
    f64::MIN_POSITIVE,
    f64::MAX,
    f64::MIN,
    1e22,
    -1e30,
    3.0e38,
    1e300,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Arguments of a function: special ones, evenly spread ones in a range, and ones of any size.
fn arguments(low: f64, high: f64) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut all = SPECIAL.to_vec();
    all.extend((0..20_000).map(|_| low + (high - low) * random.f64()));
    all.extend((0..20_000).map(|_| f64::from(f32::from_bits(random.u32(..)))));
    all
}

macro_rules! check {
    ($($name:ident in [$low:expr, $high:expr]: single $single:expr, double $double:expr;)*) => { $({
        let (mut worst_single, mut worst_double) = ((0.0, 0.0), (0.0, 0.0));
        for x in arguments($low, $high) {
            let narrow = x as f32;
            let off = ulps_single(portable::single::$name(narrow), f64::from(narrow).$name());
            if off > worst_single.0 {
                worst_single = (off, f64::from(narrow));
            }
            let off = ulps_double(portable::double::$name(x), x.$name());
            if off > worst_double.0 {
                worst_double = (off, x);
            }
        }
        let line = format!("{}: single {worst_single:?}, double {worst_double:?}", stringify!($name));
        assert!(worst_single.0 <= $single && worst_double.0 <= $double, "{line}");
    })* };
}

#[test]
fn functions_of_one_number_are_within_their_bounds() {
    check! {
        exp in [-110.0, 90.0]: single 1.0, double 1.0;
        exp2 in [-150.0, 130.0]: single 1.0, double 1.0;
        exp_m1 in [-2.0, 90.0]: single 1.0, double 1.0;
        ln in [0.0, 10.0]: single 1.0, double 1.0;
        log2 in [0.0, 10.0]: single 1.0, double 1.0;
        log10 in [0.0, 10.0]: single 1.0, double 2.0;
        ln_1p in [-1.0, 2.0]: single 1.0, double 1.0;
        cbrt in [-10.0, 10.0]: single 0.5, double 1.0;
        sin in [-100.0, 100.0]: single 0.6, double 1.0;
        cos in [-100.0, 100.0]: single 0.6, double 1.0;
        tan in [-100.0, 100.0]: single 1.0, double 1.0;
        asin in [-1.0, 1.0]: single 1.0, double 1.0;
        acos in [-1.0, 1.0]: single 1.0, double 1.0;
        atan in [-10.0, 10.0]: single 1.0, double 1.0;
        sinh in [-90.0, 90.0]: single 2.0, double 2.0;
        cosh in [-90.0, 90.0]: single 1.5, double 2.0;
        tanh in [-10.0, 10.0]: single 2.0, double 2.0;
        asinh in [-10.0, 10.0]: single 2.0, double 1.0;
        acosh in [1.0, 10.0]: single 2.0, double 1.0;
    }
}

/// std's `atanh` loses digits towards -1, so the reference is its value for the positive number.
#[test]
fn atanh_is_within_its_bounds() {
    let exact = |x: f64| x.abs().atanh().copysign(x);
    let all = arguments(-1.0, 1.0);
    let single =
        all.iter().map(|x| ulps_single(portable::single::atanh(*x as f32), exact((*x as f32).into())));
    let double = all.iter().map(|x| ulps_double(portable::double::atanh(*x), exact(*x)));
    let worst = (single.fold(0.0, f64::max), double.fold(0.0, f64::max));
    assert!(worst.0 <= 2.0 && worst.1 <= 2.0, "{worst:?}");
}

#[test]
fn functions_of_two_numbers_are_within_their_bounds() {
    macro_rules! check {
        ($($name:ident: single $single:expr, double $double:expr;)*) => { $({
            let (mut worst_single, mut worst_double) = (0.0_f64, 0.0_f64);
            for (x, y) in pairs() {
                let (narrow_x, narrow_y) = (x as f32, y as f32);
                let exact = f64::from(narrow_x).$name(f64::from(narrow_y));
                worst_single = worst_single.max(ulps_single(portable::single::$name(narrow_x, narrow_y), exact));
                worst_double = worst_double.max(ulps_double(portable::double::$name(x, y), x.$name(y)));
            }
            let line = format!("{}: single {worst_single}, double {worst_double}", stringify!($name));
            assert!(worst_single <= $single && worst_double <= $double, "{line}");
        })* };
    }
    check! {
        powf: single 1.0, double 1.0;
        hypot: single 1.0, double 1.0;
        atan2: single 1.5, double 1.0;
    }
}

/// Every two special numbers, ones of moderate size, and ones of any size.
fn pairs() -> Vec<(f64, f64)> {
    let mut random = fastrand::Rng::with_seed(11);
    let mut all: Vec<_> = SPECIAL.iter().flat_map(|x| SPECIAL.map(|y| (*x, y))).collect();
    all.extend((0..20_000).map(|_| (random.f64() * 10.0, random.f64() * 40.0 - 20.0)));
    let mut any = || f64::from(f32::from_bits(random.u32(..)));
    all.extend((0..20_000).map(|_| (any(), any())));
    all
}

#[test]
fn derived_functions_are_those_of_std_bit_for_bit() {
    for (x, y) in pairs() {
        let (narrow_x, narrow_y) = (x as f32, y as f32);
        let n = y as i32 % 200;
        let double = [
            (derived::double::fract(x), x.fract()),
            (derived::double::div_euclid(x, y), x.div_euclid(y)),
            (derived::double::rem_euclid(x, y), x.rem_euclid(y)),
            (derived::double::powi(x, n), x.powi(n)),
            (derived::double::log(x, y), x.log(y)),
            (derived::double::rsqrt(x), 1.0 / x.sqrt()),
            (portable::double::fmod(x, y), x % y),
        ];
        let single = [
            (derived::single::fract(narrow_x), narrow_x.fract()),
            (derived::single::div_euclid(narrow_x, narrow_y), narrow_x.div_euclid(narrow_y)),
            (derived::single::rem_euclid(narrow_x, narrow_y), narrow_x.rem_euclid(narrow_y)),
            (derived::single::powi(narrow_x, n), narrow_x.powi(n)),
            (derived::single::log(narrow_x, narrow_y), narrow_x.log(narrow_y)),
            (derived::single::rsqrt(narrow_x), 1.0 / narrow_x.sqrt()),
            (portable::single::fmod(narrow_x, narrow_y), narrow_x % narrow_y),
        ];
        for (at, (found, expected)) in double.into_iter().enumerate() {
            let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
            assert!(same, "f64, function {at}, x = {x:e}, y = {y:e}: {found:e}, not {expected:e}");
        }
        for (at, (found, expected)) in single.into_iter().enumerate() {
            let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
            assert!(same, "f32, function {at}, x = {x:e}, y = {y:e}: {found:e}, not {expected:e}");
        }
    }
}

#[test]
fn sine_and_cosine_at_once_are_sine_and_cosine() {
    for x in arguments(-100.0, 100.0).into_iter().filter(|x| x.is_finite() && (*x as f32).is_finite()) {
        let narrow = x as f32;
        let both = (portable::single::sin(narrow), portable::single::cos(narrow));
        assert_eq!(portable::single::sin_cos(narrow), both, "{narrow:e}");
        assert_eq!(
            portable::double::sin_cos(x),
            (portable::double::sin(x), portable::double::cos(x)),
            "{x:e}"
        );
    }
}

/// x, erf(x), erfc(x), gamma(x) and the logarithm of its absolute value, to 17 digits by mpmath 1.3.
/// Near the zeros of the last one its error is counted in units of numbers near 1.
#[rustfmt::skip]
const MPMATH: [[f64; 5]; 25] = [
    [-4.3125, -0.9999999989312964, 1.9999999989312964, -0.0972965257227284, -2.3299919972855614],
    [-3.5, -0.9999992569016276, 1.9999992569016276, 0.2700882058522691, -1.309006684993042],
    [-2.75, -0.9998993780778803, 1.9998993780778804, -1.0044979832303123, 0.004487897535955773],
    [-1.5, -0.9661051464753108, 1.9661051464753108, 2.363271801207355, 0.860047015376481],
    [-0.75, -0.7111556336535151, 1.7111556336535152, -4.834146544295877, 1.5757045971498584],
    [-0.125, -0.1403162048013338, 1.1403162048013338, -8.717218859383175, 2.16530024890517],
    [0.03125, 0.035250373867322826, 0.9647496261326772, 31.45283517707606, 3.4484891277979584],
    [0.25, 0.27632639016823696, 0.7236736098317631, 3.625609908221908, 1.2880225246980774],
    [0.5, 0.5204998778130465, 0.4795001221869535, 1.772453850905516, 0.5723649429247001],
    [0.75, 0.7111556336535151, 0.28884436634648486, 1.2254167024651776, 0.20328095143129538],
    [0.84375, 0.7672256612323416, 0.23277433876765838, 1.118492328631577, 0.11198164330278074],
    [0.9375, 0.8151024010343998, 0.1848975989656002, 1.0401770111867672, 0.039390901734582304],
    [1.25, 0.9229001282564583, 0.07709987174354177, 0.906402477055477, -0.09827183642181316],
    [1.625, 0.9784437332399837, 0.021556266760016336, 0.896574280056598, -0.10917413375679537],
    [2.5, 0.999593047982555, 0.0004069520174449589, 1.329340388179137, 0.2846828704729192],
    [2.859375, 0.9999474007853637, 5.2599214636261925e-05, 1.7636033138121676, 0.5673590535042846],
    [3.1875, 0.999993449849224, 6.550150776030468e-06, 2.3939578565086395, 0.872948003183272],
    [3.75, 0.9999998862727434, 1.1372725656979665e-07, 4.422988410460251, 1.486815578593417],
    [5.0, 0.9999999999984626, 1.537459794428035e-12, 24.0, 3.1780538303479458],
    [6.0, 1.0, 2.1519736712498913e-17, 120.0, 4.787491742782046],
    [7.5, 1.0, 2.776649386030569e-26, 1871.2543057977884, 7.534364236758733],
    [9.25, 1.0, 4.202037214919711e-39, 69106.22689508938, 11.143400119951712],
    [12.5, 1.0, 6.231942781979911e-70, 136843365.46556586, 18.734347511936445],
    [20.0, 1.0, 5.395865611607901e-176, 1.21645100408832e+17, 39.339884187199495],
    [33.0, 1.0, 0.0, 2.631308369336935e+35, 81.55795945611504],
];

#[test]
fn functions_that_std_lacks_are_within_their_bounds() {
    let mut worst = [0.0_f64; 8];
    for [x, erf, erfc, gamma, ln_gamma] in MPMATH {
        let narrow = x as f32;
        assert_eq!(f64::from(narrow), x, "arguments are exact in both types");
        let off = [
            ulps_single(portable::single::erf(narrow), erf),
            ulps_single(portable::single::erfc(narrow), erfc),
            ulps_single(portable::single::gamma(narrow), gamma),
            ln_gamma.abs().min(1.0) * ulps_single(portable::single::ln_gamma(narrow).0, ln_gamma),
            ulps_double(portable::double::erf(x), erf),
            ulps_double(portable::double::erfc(x), erfc),
            ulps_double(portable::double::gamma(x), gamma),
            ln_gamma.abs().min(1.0) * ulps_double(portable::double::ln_gamma(x).0, ln_gamma),
        ];
        assert_eq!(portable::double::ln_gamma(x).1, gamma.signum() as i32, "sign at {x}");
        assert_eq!(portable::single::ln_gamma(narrow).1, gamma.signum() as i32, "sign at {x}");
        worst = core::array::from_fn(|at| worst[at].max(off[at]));
    }
    let bounds = [1.0, 1.5, 1.0, 2.0, 1.0, 1.0, 4.0, 1.0];
    assert!(worst.iter().zip(bounds).all(|(worst, bound)| *worst <= bound), "{worst:?}");
}
