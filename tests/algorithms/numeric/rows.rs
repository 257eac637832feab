//! Operations on each row of a matrix.

use ferrogrid::DeviceView;
use ferrogrid::algorithms::{self, Affine};
use ferrogrid::device::half::{bf16, f16};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("softmax_of_rows_is_close_to_exact", softmax_of_rows_is_close_to_exact),
    ("normalised_rows_are_close_to_exact", normalised_rows_are_close_to_exact),
    ("rows_of_halves_are_rounded_once", rows_of_halves_are_rounded_once),
    ("special_rows", special_rows),
    ("misaligned_rows", misaligned_rows),
    ("rows_must_be_whole", rows_must_be_whole),
    ("rows_are_recorded_in_graphs", rows_are_recorded_in_graphs),
];

/// Widths around a warp's registers (1024 elements), a block's (32,768), and those that are no multiple of 4.
const WIDTHS: &[usize] =
    &[1, 2, 4, 5, 31, 128, 1020, 1024, 1025, 1028, 4096, 32_764, 32_768, 32_770, 32_772, 40_000];

type Function = fn(&Stream, DeviceView<f32>, usize, &mut DeviceBuffer<f32>) -> ferrogrid::Result<()>;

/// Fails unless each row of the result is as near to `exact` as `f32` let it be, relative to the greatest element there.
fn check(
    what: &str,
    stream: &Stream,
    x: &[f32],
    width: usize,
    function: impl Fn(&Stream, DeviceView<f32>, usize, &mut DeviceBuffer<f32>) -> ferrogrid::Result<()>,
    exact: impl Fn(&[f64]) -> Vec<f64>,
) -> Outcome {
    let (device_x, mut y) = (stream.upload(x)?, stream.fill(f32::NAN, x.len())?);
    function(stream, device_x.view(), width, &mut y)?;
    let y = stream.download(&y)?;
    for (row, (x, y)) in x.chunks(width).zip(y.chunks(width)).enumerate() {
        let exact = exact(&x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        let size = exact.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
        let wrong = |(&y, exact): (&f32, &f64)| (f64::from(y) - exact).abs() > 4e-6 * size || y.is_nan();
        if let Some(at) = y.iter().zip(&exact).position(wrong) {
            let (found, exact) = (y[at], exact[at]);
            return Err(format!("{what}, width {width}, row {row}, column {at}: {found}, not {exact}").into());
        }
    }
    Ok(())
}

/// Some rows of that width, with elements from -8 to 8.
fn matrix(width: usize, random: &mut fastrand::Rng) -> Vec<f32> {
    let rows = if width > 2000 { 2 } else { 5 };
    (0..width * rows).map(|_| random.f32() * 16.0 - 8.0).collect()
}

fn softmax_of(x: &[f64]) -> Vec<f64> {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = x.iter().map(|x| (x - max).exp()).sum();
    x.iter().map(|x| (x - max).exp() / sum).collect()
}

fn softmax_of_rows_is_close_to_exact(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(211);
    let softmax: Function = |stream, x, width, y| algorithms::softmax(stream, x, width, y);
    let log_softmax: Function = |stream, x, width, y| algorithms::log_softmax(stream, x, width, y);
    for &width in WIDTHS {
        let x = matrix(width, &mut random);
        check("softmax", &stream, &x, width, softmax, softmax_of)?;
        let logarithms = |x: &[f64]| softmax_of(x).into_iter().map(f64::ln).collect();
        check("log_softmax", &stream, &x, width, log_softmax, logarithms)?;
        // Beyond what `exp` takes.
        let x: Vec<f32> = x.iter().map(|x| x + 1000.0).collect();
        check("large softmax", &stream, &x, width, softmax, softmax_of)?;
    }
    Ok(())
}

fn normalised_rows_are_close_to_exact(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(212);
    for &width in WIDTHS {
        let x = matrix(width, &mut random);
        let [weight, bias] = [0; 2].map(|_| (0..width).map(|_| random.f32() + 0.5).collect::<Vec<_>>());
        let (device_weight, device_bias) = (stream.upload(&weight)?, stream.upload(&bias)?);
        for (has_weight, has_bias) in [(false, false), (true, false), (false, true), (true, true)] {
            let epsilon = 0.5;
            let affine = Affine {
                epsilon,
                weight: has_weight.then(|| device_weight.view()),
                bias: has_bias.then(|| device_bias.view()),
            };
            let finish = |x: &[f64], scale: f64| -> Vec<f64> {
                let weight = |k: usize| if has_weight { f64::from(weight[k]) } else { 1.0 };
                let bias = |k: usize| if has_bias { f64::from(bias[k]) } else { 0.0 };
                x.iter().enumerate().map(|(k, x)| x * scale * weight(k) + bias(k)).collect()
            };
            let scale = |x: &[f64]| {
                let square = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
                1.0 / (square + f64::from(epsilon)).sqrt()
            };
            let layer = |stream: &Stream, x: DeviceView<f32>, width, y: &mut DeviceBuffer<f32>| {
                algorithms::layer_norm(stream, x, width, affine, y)
            };
            check("layer_norm", &stream, &x, width, layer, |x| {
                let mean = x.iter().sum::<f64>() / x.len() as f64;
                let x: Vec<f64> = x.iter().map(|x| x - mean).collect();
                finish(&x, scale(&x))
            })?;
            let rms = |stream: &Stream, x: DeviceView<f32>, width, y: &mut DeviceBuffer<f32>| {
                algorithms::rms_norm(stream, x, width, affine, y)
            };
            check("rms_norm", &stream, &x, width, rms, |x| finish(x, scale(x)))?;
        }
    }
    Ok(())
}

/// The results in `f32` of the same numbers, rounded; the sums of a row differ in their order, so to a neighbour of that at most.
fn rows_of_halves_are_rounded_once(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(214);
    macro_rules! halves {
        ($($t:ident)*) => {
            $(for width in [1, 8, 12, 1024, 1032, 32_768, 32_776] {
                let x: Vec<$t> = matrix(width, &mut random).into_iter().map($t::from_f32).collect();
                let [weight, bias]: [Vec<$t>; 2] =
                    [0; 2].map(|_| (0..width).map(|_| $t::from_f32(random.f32() + 0.5)).collect());
                let single = |x: &Vec<$t>| stream.upload(&x.iter().map(|x| x.to_f32()).collect::<Vec<_>>());
                let (halves, mut y) = (stream.upload(&x)?, stream.fill($t::NAN, x.len())?);
                let (singles, mut exact) = (single(&x)?, stream.fill(f32::NAN, x.len())?);
                let of_halves = [stream.upload(&weight)?, stream.upload(&bias)?];
                let of_singles = [single(&weight)?, single(&bias)?];
                let affine = Affine { weight: Some(of_halves[0].view()), bias: Some(of_halves[1].view()), epsilon: 0.5 };
                let of_single =
                    Affine { weight: Some(of_singles[0].view()), bias: Some(of_singles[1].view()), epsilon: 0.5 };
                for name in ["softmax", "log_softmax", "layer_norm", "rms_norm"] {
                    match name {
                        "softmax" => algorithms::softmax(&stream, &halves, width, &mut y)?,
                        "log_softmax" => algorithms::log_softmax(&stream, &halves, width, &mut y)?,
                        "layer_norm" => algorithms::layer_norm(&stream, &halves, width, affine, &mut y)?,
                        _ => algorithms::rms_norm(&stream, &halves, width, affine, &mut y)?,
                    }
                    match name {
                        "softmax" => algorithms::softmax(&stream, &singles, width, &mut exact)?,
                        "log_softmax" => algorithms::log_softmax(&stream, &singles, width, &mut exact)?,
                        "layer_norm" => algorithms::layer_norm(&stream, &singles, width, of_single, &mut exact)?,
                        _ => algorithms::rms_norm(&stream, &singles, width, of_single, &mut exact)?,
                    }
                    for (y, exact) in stream.download(&y)?.into_iter().zip(stream.download(&exact)?) {
                        let nearest = $t::from_f32(exact);
                        let is_near = y.to_bits().abs_diff(nearest.to_bits()) <= 1
                            || (y.to_f32() - exact).abs() <= 1e-5;
                        expect(&format!("{name} of {}, width {width}: {y}, not {exact}", stringify!($t)), is_near, true)?;
                    }
                }
            })*
        };
    }
    halves! { f16 bf16 }
    Ok(())
}

fn special_rows(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for width in [4, 33, 1024, 1030] {
        let mut x = vec![0.5_f32; 4 * width];
        x[width - 1] = f32::NAN;
        x[2 * width - 1] = f32::INFINITY;
        x[2 * width..3 * width].fill(f32::NEG_INFINITY);
        x[3 * width..].fill(f32::NEG_INFINITY);
        x[3 * width + width / 2] = -3.0;
        let (x, mut y) = (stream.upload(&x)?, stream.zeros::<f32>(4 * width)?);
        algorithms::softmax(&stream, &x, width, &mut y)?;
        let y = stream.download(&y)?;
        // exp(0.5 - infinity) is 0, exp(infinity - infinity) is NaN, and so is the sum.
        let all_nan = y[..3 * width].iter().all(|y| y.is_nan());
        let one_hot: Vec<f32> = (0..width).map(|i| if i == width / 2 { 1.0 } else { 0.0 }).collect();
        expect(&width.to_string(), (all_nan, &y[3 * width..]), (true, &one_hot[..]))?;
    }
    let (nothing, mut y) = (stream.zeros::<f32>(0)?, stream.zeros::<f32>(0)?);
    algorithms::softmax(&stream, &nothing, 0, &mut y)?;
    algorithms::rms_norm(&stream, &nothing, 7, Affine::default(), &mut y)?;
    Ok(())
}

/// Rows that accesses of 16 bytes cannot read have the same elements, and nothing beside them is written.
fn misaligned_rows(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(213);
    let (width, rows) = (1024, 3);
    let x: Vec<f32> = (0..width * rows).map(|_| random.f32()).collect();
    let mut expected = stream.zeros::<f32>(x.len())?;
    algorithms::log_softmax(&stream, &stream.upload(&x)?, width, &mut expected)?;
    let expected = stream.download(&expected)?;
    for (from, to) in [(0, 1), (1, 0), (3, 2), (0, 0)] {
        let device_x = stream.upload(&[vec![7.0; from], x.clone()].concat())?;
        let mut y = stream.fill(9.0_f32, to + x.len() + 1)?;
        algorithms::log_softmax(&stream, device_x.slice(from..)?, width, y.slice_mut(to..to + x.len())?)?;
        let y = stream.download(&y)?;
        let is_near = y[to..to + x.len()].iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4);
        let beside = y[..to].iter().chain(&y[to + x.len()..]).all(|&y| y == 9.0);
        expect(&format!("{from}, {to}"), (is_near, beside), (true, true))?;
    }
    Ok(())
}

fn rows_must_be_whole(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.zeros::<f32>(12)?, stream.zeros::<f32>(12)?);
    let differ = |error: &Error| matches!(error, Error::LengthMismatch { .. });
    let text = expect_error("width", algorithms::softmax(&stream, &x, 5, &mut y), differ)?;
    names(&text, &["whole rows", "10", "12"])?;
    expect_error("no width", algorithms::softmax(&stream, &x, 0, &mut y), differ)?;
    expect_error("output", algorithms::log_softmax(&stream, &x, 4, y.slice_mut(..8)?), differ)?;
    let weight = stream.zeros::<f32>(3)?;
    let affine = Affine { weight: Some(weight.view()), ..Affine::default() };
    let text = expect_error("weight", algorithms::layer_norm(&stream, &x, 4, affine, &mut y), differ)?;
    names(&text, &["a number for each column", "3", "4"])
}

fn rows_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y) = (stream.zeros::<f32>(64)?, stream.zeros::<f32>(64)?);
    let (graph, (x, y)) = stream.capture(|capture| {
        let (x, mut y) = (capture.keep(x)?, capture.keep(y)?);
        algorithms::softmax(capture, &x, 32, &mut y)?;
        Ok((x.key(), y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in [0.0, 3.5] {
        stream.fill_into(value, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        expect("softmax", stream.download(graph.view(y)?)?, vec![1.0 / 32.0; 64])?;
    }
    Ok(())
}
