//! Functions of `f64`: random arguments, compared with the reference (`judge`).

use ferrogrid::prelude::*;
use rayon::prelude::*;

use crate::judge::{judge_of_one, judge_of_two};
use crate::kernels::functions as kernels;
use crate::report::{self, Line};
use crate::{Effort, Outcome};

/// The number of arguments on the device at once.
const BATCH: usize = 1 << 23;

const SPECIAL: [f64; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    5e-324,
    -2.2250738585072014e-308,
    f64::MAX,
    f64::MIN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1.633123935319537e16,
    -1e22,
    709.782712893384,
    -745.1332191019412,
];

/// Number `at` of a random sequence: half of any size, half in a range. The first are special.
fn number(at: u64, [low, high]: [f64; 2]) -> f64 {
    if let Some(special) = SPECIAL.get(at as usize) {
        return *special;
    }
    let mut random = fastrand::Rng::with_seed(at);
    if at & 1 == 0 { f64::from_bits(random.u64(..)) } else { low + (high - low) * random.f64() }
}

/// Pair `at`: every special number with every other, then random ones, both of the same kind.
fn numbers(at: u64, domains: [[f64; 2]; 2]) -> [f64; 2] {
    let special = SPECIAL.len() as u64;
    let places = if at < special * special {
        [at / special, at % special]
    } else {
        [4 * at + at % 2, 4 * at + 2 + at % 2]
    };
    [number(places[0], domains[0]), number(places[1], domains[1])]
}

/// The distance of two numbers in units in the last place of the judge's result.
fn ulps(found: f64, exact: f64) -> f64 {
    if found.is_nan() && exact.is_nan() || found == exact {
        return 0.0;
    }
    if found.is_nan() || exact.is_nan() {
        return f64::INFINITY;
    }
    let place = |value: f64| {
        let magnitude = i128::from(value.abs().to_bits());
        if value.is_sign_negative() { -magnitude } else { magnitude }
    };
    (place(found) - place(exact)).unsigned_abs() as f64
}

/// Next to its zeros `ln_gamma` counts as much as for results near 1.
fn weight(name: &str, exact: f64) -> f64 {
    if name == "ln_gamma" && exact.abs() < 1.0 { exact.abs().max(1e-300) } else { 1.0 }
}

/// Numbers with the judge's results, as bits in hexadecimal, for check_judge.py.
pub fn print_judgements(count: u64) {
    for name in kernels::ONE {
        let (judge, domain) = judge_of_one(name);
        for x in (0..count).map(|at| number(at, domain)) {
            println!("{name} {:016x} {:016x}", x.to_bits(), judge(x).to_bits());
        }
    }
    for name in &kernels::TWO[..3] {
        let (judge, domains) = judge_of_two(name);
        for [x, y] in (0..count).map(|at| numbers(at, domains)) {
            println!("{name} {:016x} {:016x} {:016x}", x.to_bits(), y.to_bits(), judge(x, y).to_bits());
        }
    }
}

/// The larger error, with its argument.
fn worse(a: (f64, u64), b: (f64, u64)) -> (f64, u64) {
    if b.0 > a.0 { b } else { a }
}

/// The largest errors of both results over many elements.
fn largest(found: &[[f64; 2]], first: usize, exact: impl Fn(u64) -> (f64, f64) + Sync) -> [(f64, u64); 2] {
    let of_one = |(i, found): (usize, &[f64; 2])| {
        let at = (first + i) as u64;
        let (exact, weight) = exact(at);
        found.map(|found| (ulps(found, exact) * weight, at))
    };
    let both = |a: [(f64, u64); 2], b: [(f64, u64); 2]| [worse(a[0], b[0]), worse(a[1], b[1])];
    found.par_iter().enumerate().map(of_one).reduce(|| [(0.0, 0); 2], both)
}

/// The errors of all functions of one and of two `f64`s.
pub fn measure(device: &Device, effort: Effort) -> Outcome<Vec<Line>> {
    let stream = device.new_stream()?;
    let mut lines = Vec::new();
    let batch = BATCH.min(effort.random);
    let mut out = stream.zeros::<[f64; 2]>(batch)?;
    for (function, name) in kernels::ONE.iter().enumerate() {
        let (judge, domain) = judge_of_one(name);
        let mut worst = [(0.0, 0); 2];
        for first in (0..effort.random).step_by(batch) {
            let x: Vec<f64> =
                (first..first + batch).into_par_iter().map(|at| number(at as u64, domain)).collect();
            let device_x = stream.upload(&x)?;
            for_function!(function, of one kernels::values_of_one(&stream, Grid::cover(batch), &device_x, &mut out));
            let exact = |at: u64| {
                let exact = judge(x[at as usize - first]);
                (exact, weight(name, exact))
            };
            let seen = largest(&stream.download(&out)?, first, exact);
            worst = [worse(worst[0], seen[0]), worse(worst[1], seen[1])];
        }
        let place = |at: u64| format!("{:e}", number(at, domain));
        lines.extend(report::pair(
            device,
            "f64",
            name,
            effort.random as u64,
            worst.map(|it| (it.0, place(it.1))),
        ));
    }
    for (function, name) in kernels::TWO.iter().enumerate() {
        let (judge, domains) = judge_of_two(name);
        let mut worst = [(0.0, 0); 2];
        for first in (0..effort.random).step_by(batch) {
            let x: Vec<[f64; 2]> =
                (first..first + batch).into_par_iter().map(|at| numbers(at as u64, domains)).collect();
            let device_x = stream.upload(&x)?;
            for_function!(function, kernels::values_of_two[0 1 2 3](&stream, Grid::cover(batch), &device_x, &mut out));
            let exact = |at: u64| {
                let [x, y] = x[at as usize - first];
                (judge(x, y), 1.0)
            };
            let seen = largest(&stream.download(&out)?, first, exact);
            worst = [worse(worst[0], seen[0]), worse(worst[1], seen[1])];
        }
        let place = |at: u64| {
            let [x, y] = numbers(at, domains);
            format!("{x:e} and {y:e}")
        };
        lines.extend(report::pair(
            device,
            "f64",
            name,
            effort.random as u64,
            worst.map(|it| (it.0, place(it.1))),
        ));
    }
    Ok(lines)
}
