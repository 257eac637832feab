//! Algorithms that read and write each element once, beside a device copy of as much.

use ferrogrid::algorithms::{self, Affine, RowNumber};
use ferrogrid::bytemuck::Pod;
use ferrogrid::device::half::bf16;
use ferrogrid::{DeviceView, DeviceViewMut, Stream};

use super::{Bench, Outcome, ROUND, ROUNDS, near, turns};

/// Rows and columns.
const SHAPES: [[usize; 2]; 3] = [[8192, 4096], [65_536, 1024], [16_384, 16_384]];
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

/// Times `ours` and a copy of the matrix. Results may differ by `error` of what they should be.
fn beside_copy<T: Pod + ferrogrid::DeviceCopy + Into<f32>>(
    bench: &Bench,
    name: &str,
    shape: [usize; 2],
    x: &[T],
    (ours, exact): (Function<T>, Exact),
    error: f64,
) -> Outcome<()> {
    let stream = &bench.stream;
    let device_x = stream.upload(x)?;
    let (mut y, mut copied) = (stream.zeros::<T>(x.len())?, stream.zeros::<T>(x.len())?);
    let once = bench.time(1, || Ok(stream.copy(&device_x, &mut copied)?))?;
    let calls = (ROUND.as_secs_f64() / once).ceil().clamp(1.0, 500.0) as u32;
    let [rows, columns] = shape;
    turns::duel(
        &format!("{name}_to_copy_{rows}x{columns}"),
        ROUNDS,
        1.0,
        || bench.time(calls, || Ok(ours(stream, device_x.view(), shape, y.view_mut())?)),
        || bench.time(calls, || Ok(stream.copy(&device_x, &mut copied)?)),
    )?;
    let y = stream.download(&y)?;
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
