//! Algorithms that read and write each element once, beside a device copy of as much.

use std::f64::consts::TAU;

use ferrogrid::bytemuck::Pod;
use ferrogrid::device::half::bf16;
use ferrogrid::{DeviceView, DeviceViewMut, Stream};
use ferrogrid_algorithms::{self as algorithms, Affine, RowNumber};

use super::{Bench, Outcome, ROUND, ROUNDS, near, turns};
use crate::timed::time;

/// Rows and columns.
const SHAPES: [[usize; 2]; 3] = [[8192, 4096], [65_536, 1024], [16_384, 16_384]];
/// Transforms, and the length of each: of one pass over memory, of two and three.
const TRANSFORMS: [[usize; 2]; 4] = [[131_072, 256], [8192, 4096], [128, 262_144], [8, 4_194_304]];
/// The rows that are checked: some from the beginning and the end.
const CHECKED: usize = 3;

type Function<T> = fn(&Stream, DeviceView<T>, [usize; 2], DeviceViewMut<T>) -> ferrogrid::Result<()>;

/// What an element of the result should be, from the matrix, its shape, a row and a column; and what its error is relative to.
type Exact = fn(&[f32], [usize; 2], usize, usize) -> [f64; 2];

pub fn all(bench: &Bench, largest: usize, random: &mut fastrand::Rng) -> Outcome<()> {
    for shape in SHAPES.into_iter().filter(|[rows, columns]| rows * columns <= largest) {
        let x: Vec<f32> = (0..shape[0] * shape[1]).map(|_| random.f32() - 0.25).collect();
        for (name, function, exact) in functions() {
            beside_copy(bench, name, shape, &x, (function, exact), 1e-5)?;
        }
        let x: Vec<bf16> = x.into_iter().map(bf16::from_f32).collect();
        // But for the transpose, which moves bits.
        for (name, function, exact) in &functions()[1..] {
            beside_copy(bench, &format!("{name}_bf16"), shape, &x, (*function, *exact), 1.0 / 256.0)?;
        }
    }
    for shape in TRANSFORMS.into_iter().filter(|[rows, length]| rows * length <= largest) {
        transforms(bench, shape, random)?;
    }
    Ok(())
}

fn functions<T: RowNumber + Pod>() -> [(&'static str, Function<T>, Exact); 4] {
    [
        (
            "transpose",
            |stream, x, [rows, columns], y| algorithms::transpose(stream, x, rows, columns, y),
            // The result has rows of as many elements as the matrix has rows.
            |x, [rows, columns], row, column| {
                let number = row * columns + column;
                [f64::from(x[number % rows * columns + number / rows]); 2]
            },
        ),
        (
            "softmax",
            |stream, x, [_, columns], y| algorithms::softmax(stream, x, columns, y),
            |x, [_, columns], row, column| {
                let row = &x[row * columns..][..columns];
                [f64::from(row[column]).exp() / row.iter().map(|&x| f64::from(x).exp()).sum::<f64>(); 2]
            },
        ),
        (
            "layer_norm",
            |stream, x, [_, columns], y| algorithms::layer_norm(stream, x, columns, Affine::default(), y),
            |x, [_, columns], row, column| {
                let row: Vec<f64> = x[row * columns..][..columns].iter().map(|&x| f64::from(x)).collect();
                let mean = row.iter().sum::<f64>() / columns as f64;
                let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
                let deviation = (variance + 1e-5).sqrt();
                // Near the mean, most digits cancel.
                [(row[column] - mean) / deviation, mean / deviation]
            },
        ),
        (
            "rms_norm",
            |stream, x, [_, columns], y| algorithms::rms_norm(stream, x, columns, Affine::default(), y),
            |x, [_, columns], row, column| {
                let row = &x[row * columns..][..columns];
                let square = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / columns as f64;
                [f64::from(row[column]) / (square + 1e-5).sqrt(); 2]
            },
        ),
    ]
}

/// Times `ours` and a copy of as many elements, and returns the result.
fn duel<T: Pod + ferrogrid::DeviceCopy>(
    bench: &Bench,
    name: &str,
    [rows, columns]: [usize; 2],
    x: &[T],
    ours: impl Fn(&Stream, DeviceView<T>, DeviceViewMut<T>) -> ferrogrid::Result<()>,
) -> Outcome<Vec<T>> {
    let stream = &bench.stream;
    let x = stream.upload(x)?;
    let (mut y, mut copied) = (stream.zeros::<T>(x.len())?, stream.zeros::<T>(x.len())?);
    let once = time(&bench.stream, 1, || stream.copy(&x, &mut copied))?;
    let calls = (ROUND.as_secs_f64() / once).ceil().clamp(1.0, 500.0) as u32;
    turns::duel(
        &format!("{name}_to_copy_{rows}x{columns}"),
        ROUNDS,
        1.0,
        || time(&bench.stream, calls, || ours(stream, x.view(), y.view_mut())),
        || time(&bench.stream, calls, || stream.copy(&x, &mut copied)),
    )?;
    Ok(stream.download(&y)?)
}

/// Times a function of a matrix. Results may differ by `error` of what they should be.
fn beside_copy<T: Pod + ferrogrid::DeviceCopy + Into<f32>>(
    bench: &Bench,
    name: &str,
    shape: [usize; 2],
    x: &[T],
    (ours, exact): (Function<T>, Exact),
    error: f64,
) -> Outcome<()> {
    let y = duel(bench, name, shape, x, |stream, x, y| ours(stream, x, shape, y))?;
    let [rows, columns] = shape;
    let x: Vec<f32> = x.iter().map(|&x| x.into()).collect();
    for row in (0..CHECKED).chain(rows - CHECKED..rows) {
        for column in (0..columns).step_by(columns / 16 - 1) {
            let found: f32 = y[row * columns + column].into();
            let [expected, scale] = exact(&x, shape, row, column);
            if let Some(found) = near(found.into(), expected, expected.abs().max(scale.abs()) + 1e-6, error) {
                return Err(format!("{name} of {shape:?}, row {row}, column {column}: {found}").into());
            }
        }
    }
    Ok(())
}

/// Times transforms of each row.
fn transforms(bench: &Bench, shape: [usize; 2], random: &mut fastrand::Rng) -> Outcome<()> {
    let [rows, length] = shape;
    let x: Vec<[f32; 2]> = (0..rows * length).map(|_| [0; 2].map(|_: i32| random.f32() - 0.5)).collect();
    let y = duel(bench, "fft", shape, &x, |stream, x, y| algorithms::fft(stream, x, length, y))?;
    for row in [0, rows - 1] {
        let (x, y) = (&x[row * length..][..length], &y[row * length..][..length]);
        for k in [0, 1, length / 3, length - 1] {
            let mut expected = [0.0; 2];
            for (j, &[re, im]) in x.iter().enumerate() {
                let (sin, cos) = (-TAU * (j * k % length) as f64 / length as f64).sin_cos();
                expected[0] += f64::from(re) * cos - f64::from(im) * sin;
                expected[1] += f64::from(re) * sin + f64::from(im) * cos;
            }
            for part in 0..2 {
                if let Some(found) = near(y[k][part].into(), expected[part], (length as f64).sqrt(), 1e-6) {
                    return Err(format!("fft of {shape:?}, row {row}, part {part} of {k}: {found}").into());
                }
            }
        }
    }
    Ok(())
}
