//! Statistics and tests: moments, norms, counts, all and any.

use ferrogrid::algorithms::{self, Moments, Real};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect};
use crate::{FEW_LENGTHS, LENGTHS};

pub(crate) const CASES: &[Case] = &[
    ("moments_of_all_types_are_close_to_exact", moments_of_all_types_are_close_to_exact),
    ("a_large_mean_costs_the_variance_no_digits", a_large_mean_costs_the_variance_no_digits),
    ("statistics_of_nothing_and_of_nan", statistics_of_nothing_and_of_nan),
    ("norms_are_close_to_exact", norms_are_close_to_exact),
    ("norms_reach_beyond_single_precision", norms_reach_beyond_single_precision),
    ("statistics_have_the_same_bits_on_every_device", statistics_have_the_same_bits_on_every_device),
    ("equal_elements_are_counted", equal_elements_are_counted),
    ("zeros_are_found", zeros_are_found),
    ("statistics_stay_on_the_device", statistics_stay_on_the_device),
    ("statistics_are_recorded_in_graphs", statistics_are_recorded_in_graphs),
];

/// Fails unless `found` is as near to `exact` as rounding errors of `f64` let it be.
fn near(what: &str, found: f64, exact: f64) -> Outcome {
    let is_near = (found - exact).abs() <= 1e-12 * exact.abs();
    expect(&format!("{what}: {found} near {exact}"), is_near, true)
}

fn moments_of_all_types_are_close_to_exact(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(191);
    macro_rules! check {
        ($($t:ident: $of:expr),*) => {
            $(for &n in &FEW_LENGTHS[1..] {
                let x: Vec<$t> = (0..n).map(|_| $of).collect();
                let mean = x.iter().map(|&x| x as f64).sum::<f64>() / n as f64;
                let deviations: f64 = x.iter().map(|&x| (x as f64 - mean).powi(2)).sum();
                let x = stream.upload(&x)?;
                let (what, found) = (format!("{n} {}", stringify!($t)), algorithms::moments(&stream, &x)?);
                expect(&what, found.count, n as u64)?;
                near(&what, found.deviations, deviations)?;
                near(&what, found.sample_variance(), deviations / (n as f64 - 1.0))?;
                // Relative to the spread, because a mean may be near 0.
                let spread = (deviations / n as f64).sqrt();
                near(&what, algorithms::mean(&stream, &x)? + spread, mean + spread)?;
                near(&what, algorithms::variance(&stream, &x)?, deviations / n as f64)?;
            })*
        };
    }
    check!(
        i8: random.i8(..), i16: random.i16(..), i32: random.i32(..), i64: random.i64(..),
        u8: random.u8(..), u16: random.u16(..), u32: random.u32(..), u64: random.u64(..),
        f32: random.f32() - 0.25, f64: random.f64() * 1e10
    );
    for &n in LENGTHS {
        // Exact, as multiples of 1/4 and sums of few integers are.
        let x: Vec<u32> = (0..n).map(|i| i as u32 % 2).collect();
        let ones = (n / 2) as f64;
        let found = algorithms::moments(&stream, &stream.upload(&x)?)?;
        expect(&n.to_string(), (found.count, found.sum), (n as u64, ones))?;
        let exact = ones - if n == 0 { 0.0 } else { ones * ones / n as f64 };
        near(&n.to_string(), found.deviations, exact)?;
    }
    Ok(())
}

/// Sums of squares would lose them all.
fn a_large_mean_costs_the_variance_no_digits(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for &n in &LENGTHS[2..] {
        let x: Vec<f64> = (0..n).map(|i| 1e9 + (i % 3) as f64).collect();
        let exact = Moments { count: n as u64, ..Default::default() };
        let mean = (0..n).map(|i| (i % 3) as f64).sum::<f64>() / n as f64;
        let deviations: f64 = (0..n).map(|i| ((i % 3) as f64 - mean).powi(2)).sum();
        let found = algorithms::moments(&stream, &stream.upload(&x)?)?;
        let is_near = (found.deviations - deviations).abs() < 1e-8 * deviations;
        expect(&format!("{n}: {found:?}, {deviations}"), (found.count, is_near), (exact.count, true))?;
    }
    Ok(())
}

fn statistics_of_nothing_and_of_nan(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let nothing = stream.zeros::<f32>(0)?;
    expect("moments", algorithms::moments(&stream, &nothing)?, Moments::default())?;
    expect("mean", algorithms::mean(&stream, &nothing)?.is_nan(), true)?;
    expect("variance", algorithms::variance(&stream, &nothing)?.is_nan(), true)?;
    let one = stream.upload(&[3_u8])?;
    let found = algorithms::moments(&stream, &one)?;
    expect("one", (found.mean(), found.variance(), found.sample_variance().is_nan()), (3.0, 0.0, true))?;
    expect("norms of nothing", norms(&stream, &nothing)?, [0.0; 3])?;
    for n in [1, 40, 5000, 9000] {
        // The last, the first, and one in between.
        for place in [n - 1, 0, n / 2] {
            let mut x = vec![-1.0_f32; n];
            x[place] = f32::NEG_INFINITY;
            expect("infinite", norms(&stream, &stream.upload(&x)?)?, [f64::INFINITY; 3])?;
            x[place] = f32::NAN;
            let x = stream.upload(&x)?;
            expect("NaN", norms(&stream, &x)?.map(f64::is_nan), [true; 3])?;
            expect("mean of NaN", algorithms::mean(&stream, &x)?.is_nan(), true)?;
            let variance = algorithms::variance(&stream, &x)?;
            expect("variance of NaN", variance.is_nan() || n == 1 && variance == 0.0, true)?;
        }
    }
    Ok(())
}

fn norms_are_close_to_exact(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(192);
    macro_rules! check {
        ($($t:ident),*) => {
            $(for &n in LENGTHS {
                let x: Vec<$t> = (0..n).map(|_| (random.f64() - 0.5) as $t).collect();
                let real = || x.iter().map(|&x| f64::from(x).abs());
                let exact = [real().sum(), real().map(|x| x * x).sum::<f64>().sqrt(), real().fold(0.0, f64::max)];
                let found = norms(&stream, &stream.upload(&x)?)?;
                for (found, exact) in found.into_iter().zip(exact) {
                    near(&format!("{n} {}", stringify!($t)), found, exact)?;
                }
            })*
        };
    }
    check!(f32, f64);
    Ok(())
}

/// All three norms.
fn norms<T: Real>(stream: &Stream, x: &DeviceBuffer<T>) -> ferrogrid::Result<[f64; 3]> {
    Ok([algorithms::asum(stream, x)?, algorithms::nrm2(stream, x)?, algorithms::amax(stream, x)?])
}

fn norms_reach_beyond_single_precision(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&[f32::MAX, -f32::MAX])?;
    let greatest = f64::from(f32::MAX);
    near("L1", algorithms::asum(&stream, &x)?, 2.0 * greatest)?;
    near("L2", algorithms::nrm2(&stream, &x)?, 2.0_f64.sqrt() * greatest)?;
    let x = stream.upload(&[1e-30_f32, 1e-30])?;
    near("small", algorithms::nrm2(&stream, &x)?, 2.0_f64.sqrt() * f64::from(1e-30_f32))
}

/// A change of these bits breaks a promise to users.
fn statistics_have_the_same_bits_on_every_device(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(193);
    let x: Vec<f32> =
        (0..100_003).map(|_| ((random.f64() - 0.5) * 10_f64.powi(random.i32(-6..6))) as f32).collect();
    let x = stream.upload(&x)?;
    let Moments { sum, deviations, .. } = algorithms::moments(&stream, &x)?;
    let found = [sum, deviations, algorithms::asum(&stream, &x)?, algorithms::nrm2(&stream, &x)?];
    let bits = [13929206814873656924, 4799083045533578500, 4732116397485595072, 4702969788282026472];
    expect("bits", found.map(f64::to_bits), bits)
}

fn equal_elements_are_counted(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(194);
    macro_rules! check {
        ($($t:ident),*) => {
            $(for &n in LENGTHS {
                let x: Vec<$t> = (0..n).map(|_| random.u8(0..4) as $t).collect();
                let device_x = stream.upload(&x)?;
                let count = |value: $t| x.iter().filter(|&&x| x == value).count();
                let what = format!("{n} {}", stringify!($t));
                expect(&what, algorithms::count(&stream, &device_x, 3 as $t)?, count(3 as $t))?;
                expect(&what, algorithms::count_nonzero(&stream, &device_x)?, n - count(0 as $t))?;
            })*
        };
    }
    check!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
    let x = stream.upload(&[f32::NAN, -f32::NAN, -0.0, 0.0, 1.0, -1.0])?;
    let of = |value| algorithms::count(&stream, &x, value);
    expect("special", [of(f32::NAN)?, of(0.0)?, of(-0.0)?, of(-1.0)?], [2, 2, 2, 1])?;
    expect("nonzero", algorithms::count_nonzero(&stream, &x)?, 4)
}

fn zeros_are_found(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut found = stream.fill(false, 2)?;
    for &n in LENGTHS {
        for (background, other) in [(0.0_f32, 2.0), (f32::NAN, -0.0)] {
            for place in [None, Some(0), Some(n / 2), Some(n.saturating_sub(1))] {
                let mut x = vec![background; n];
                if let Some(element) = place.and_then(|at| x.get_mut(at)) {
                    *element = other;
                }
                let expected = [x.iter().all(|x| *x != 0.0), x.iter().any(|x| *x != 0.0)];
                let (what, x) = (format!("{n}, {background}, {place:?}"), stream.upload(&x)?);
                expect(&what, [algorithms::all(&stream, &x)?, algorithms::any(&stream, &x)?], expected)?;
                algorithms::all_into(&stream, &x, found.slice_mut(..1)?)?;
                algorithms::any_into(&stream, &x, found.slice_mut(1..)?)?;
                expect(&what, stream.download(&found)?, expected.to_vec())?;
            }
        }
    }
    Ok(())
}

fn statistics_stay_on_the_device(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [100_u64, 10_000] {
        let x = stream.upload(&(1..=n as i32).collect::<Vec<i32>>())?;
        let (mut reals, mut counts) = (stream.zeros::<f64>(5)?, stream.zeros::<u64>(2)?);
        let mut moments = stream.fill(Moments::default(), 1)?;
        algorithms::mean_into(&stream, &x, reals.slice_mut(..1)?)?;
        algorithms::variance_into(&stream, &x, reals.slice_mut(1..2)?)?;
        let minus = stream.upload(&(1..=n).map(|i| -(i as f32)).collect::<Vec<f32>>())?;
        algorithms::asum_into(&stream, &minus, reals.slice_mut(2..3)?)?;
        algorithms::nrm2_into(&stream, &minus, reals.slice_mut(3..4)?)?;
        algorithms::amax_into(&stream, &minus, reals.slice_mut(4..)?)?;
        algorithms::count_into(&stream, &x, 7, counts.slice_mut(..1)?)?;
        algorithms::count_nonzero_into(&stream, &x, counts.slice_mut(1..)?)?;
        algorithms::moments_into(&stream, &x, &mut moments)?;
        let (m, reals) = (n as f64, stream.download(&reals)?);
        expect("mean", (reals[0], reals[2], reals[4]), ((m + 1.0) / 2.0, m * (m + 1.0) / 2.0, m))?;
        near("variance", reals[1], (m * m - 1.0) / 12.0)?;
        near("norm", reals[3], (m * (m + 1.0) * (2.0 * m + 1.0) / 6.0).sqrt())?;
        expect("counts", stream.download(&counts)?, vec![1, n])?;
        let found = stream.download(&moments)?[0];
        expect("moments", (found.count, found.sum, found.variance()), (n, reals[2], reals[1]))?;
    }
    Ok(())
}

fn statistics_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, out) = (stream.zeros::<u32>(10_000)?, stream.zeros::<f64>(2)?);
    let flag = stream.fill(true, 1)?;
    let (graph, (x, out, flag)) = stream.capture(|capture| {
        let (x, mut out, mut flag) = (capture.keep(x)?, capture.keep(out)?, capture.keep(flag)?);
        algorithms::mean_into(capture, &x, out.slice_mut(..1)?)?;
        algorithms::variance_into(capture, &x, out.slice_mut(1..)?)?;
        algorithms::any_into(capture, &x, &mut flag)?;
        Ok((x.key(), out.key(), flag.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in 0..3 {
        stream.fill_into(value, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        let mean = f64::from(value);
        expect("statistics", stream.download(graph.view(out)?)?, vec![mean, 0.0])?;
        expect("any", stream.download(graph.view(flag)?)?, vec![value != 0])?;
    }
    Ok(())
}
