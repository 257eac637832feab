//! Fourier transforms of powers of two.

use std::f64::consts::TAU;

use ferrogrid::algorithms;
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("transforms_are_sums_of_turned_elements", transforms_are_sums_of_turned_elements),
    ("long_transforms_are_those_of_halves", long_transforms_are_those_of_halves),
    ("an_inverse_transform_returns_the_elements", an_inverse_transform_returns_the_elements),
    ("lengths_of_transforms_are_checked", lengths_of_transforms_are_checked),
    ("transforms_are_recorded_in_graphs", transforms_are_recorded_in_graphs),
];

type Complex = [f64; 2];

/// `a` + `b` exp(-2 pi i `turns`).
fn turned_sum(a: Complex, b: Complex, turns: f64) -> Complex {
    let (sin, cos) = (-TAU * turns).sin_cos();
    [a[0] + b[0] * cos - b[1] * sin, a[1] + b[0] * sin + b[1] * cos]
}

/// The definition.
fn exact(x: &[Complex]) -> Vec<Complex> {
    let n = x.len();
    let of = |k: usize| {
        let turns = |j: usize| (j * k % n) as f64 / n as f64;
        x.iter().enumerate().fold([0.0; 2], |sum, (j, &x)| turned_sum(sum, x, turns(j)))
    };
    (0..n).map(of).collect()
}

/// Halves of even and odd elements, each transformed.
fn by_halves(x: &[Complex]) -> Vec<Complex> {
    let n = x.len();
    if n <= 4 {
        return exact(x);
    }
    let half = |first: usize| by_halves(&x.iter().copied().skip(first).step_by(2).collect::<Vec<_>>());
    let (even, odd) = (half(0), half(1));
    (0..n).map(|k| turned_sum(even[k % (n / 2)], odd[k % (n / 2)], k as f64 / n as f64)).collect()
}

fn random(len: usize) -> Vec<Complex> {
    let mut random = fastrand::Rng::with_seed(len as u64);
    (0..len).map(|_| [0; 2].map(|_: i32| random.f64() * 2.0 - 1.0)).collect()
}

/// Fails if the difference to `expected` is more than `error` of its root mean square, anywhere.
fn expect_near(what: &str, found: &[Complex], expected: &[Complex], error: f64) -> Outcome {
    let squares: f64 = expected.iter().flatten().map(|x| x * x).sum();
    let scale = (squares / expected.len().max(1) as f64).sqrt();
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        let difference = (found[0] - expected[0]).hypot(found[1] - expected[1]);
        if difference.is_nan() || difference > error * scale {
            return Err(format!("{what}: element {k} is {found:?}, expected {expected:?}").into());
        }
    }
    expect(what, found.len(), expected.len())
}

/// Transforms `batch` times `length` elements in both precisions.
fn check(device: &Device, length: usize, batch: usize, model: fn(&[Complex]) -> Vec<Complex>) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<[f32; 2]> = random(length * batch).iter().map(|x| x.map(|x| x as f32)).collect();
    let wide: Vec<Complex> = x.iter().map(|x| x.map(f64::from)).collect();
    let expected: Vec<Complex> = wide.chunks(length).flat_map(model).collect();
    let what = format!("{batch} transforms of {length} elements");
    let mut y = stream.upload(&vec![[f32::NAN; 2]; x.len()])?;
    algorithms::fft(&stream, &stream.upload(&x)?, length, &mut y)?;
    let found: Vec<Complex> = stream.download(&y)?.iter().map(|x| x.map(f64::from)).collect();
    expect_near(&what, &found, &expected, 2e-6)?;
    let mut y = stream.upload(&vec![[f64::NAN; 2]; x.len()])?;
    algorithms::fft(&stream, &stream.upload(&wide)?, length, &mut y)?;
    expect_near(&what, &stream.download(&y)?, &expected, 1e-14)
}

fn transforms_are_sums_of_turned_elements(device: &Device) -> Outcome {
    for (length, batch) in
        [(1, 5), (2, 3), (4, 1), (8, 513), (16, 256), (32, 129), (128, 1), (256, 17), (512, 9)]
    {
        check(device, length, batch, exact)?;
    }
    Ok(())
}

/// One pass, two and three; columns of equal and of different lengths.
fn long_transforms_are_those_of_halves(device: &Device) -> Outcome {
    for (log, batch) in [(10, 5), (11, 2), (12, 3), (13, 3), (14, 1), (19, 1)] {
        check(device, 1 << log, batch, by_halves)?;
    }
    Ok(())
}

fn an_inverse_transform_returns_the_elements(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (length, batch) in [(1, 2), (64, 7), (4096, 2), (8192, 2)] {
        let x = random(length * batch);
        let (mut y, mut back) = (stream.zeros::<Complex>(x.len())?, stream.zeros::<Complex>(x.len())?);
        algorithms::fft(&stream, &stream.upload(&x)?, length, &mut y)?;
        algorithms::inverse_fft(&stream, &y, length, &mut back)?;
        expect_near(&format!("{length}"), &stream.download(&back)?, &x, 1e-14)?;
    }
    // Not the same as a forward one.
    let mut y = stream.zeros::<[f32; 2]>(4)?;
    algorithms::inverse_fft(
        &stream,
        &stream.upload(&[[0.0; 2], [4.0, 0.0], [0.0; 2], [0.0; 2]])?,
        4,
        &mut y,
    )?;
    expect(
        "turns the other way",
        stream.download(&y)?,
        vec![[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]],
    )
}

fn lengths_of_transforms_are_checked(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.zeros::<[f32; 2]>(12)?, stream.zeros::<[f32; 2]>(12)?);
    for length in [0, 3, 8, 1 << 40] {
        let result = algorithms::fft(&stream, &x, length, &mut y);
        let text = expect_error("length", result, |error| matches!(error, Error::Argument { .. }))?;
        names(&text, &["fft", &length.to_string(), "12", "power of two"])?;
    }
    let result = algorithms::inverse_fft(&stream, &x, 4, y.slice_mut(..8)?);
    let text = expect_error("short", result, |error| matches!(error, Error::LengthMismatch { .. }))?;
    names(&text, &["inverse_fft", "12", "8"])?;
    let none = stream.zeros::<[f64; 2]>(0)?;
    Ok(algorithms::fft(&stream, &none, 4, &mut stream.zeros(0)?)?)
}

fn transforms_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = random(8192);
    let (device_x, y) = (stream.upload(&x)?, stream.zeros::<Complex>(8192)?);
    let (graph, y) = stream.capture(|capture| {
        let (x, mut y) = (capture.keep(device_x)?, capture.keep(y)?);
        algorithms::fft(capture, &x, 8192, &mut y)?;
        Ok(y.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    expect_near("recorded", &stream.download(graph.view(y)?)?, &by_halves(&x), 1e-14)
}
