//! `#[matmul]` functions, beside sums of the host.

use std::fmt::Debug;

use ferrogrid::device::half::{bf16, f16};
use ferrogrid::prelude::*;
use ferrogrid::{CpuOptions, LaunchError, PitchedViewMut};

use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("products_pass_through_a_function", products_pass_through_a_function),
    ("products_of_integers_are_scaled_to_bytes", products_of_integers_are_scaled_to_bytes),
    ("parts_of_matrices_are_multiplied_into_parts", parts_of_matrices_are_multiplied_into_parts),
    ("batches_of_products_pass_through_a_function", batches_of_products_pass_through_a_function),
    ("groups_of_products_pass_through_a_function", groups_of_products_pass_through_a_function),
    ("deep_products_pass_through_a_function", deep_products_pass_through_a_function),
    ("products_with_functions_are_recorded", products_with_functions_are_recorded),
    ("shapes_of_products_with_functions_are_checked", shapes_of_products_with_functions_are_checked),
    ("a_panic_of_a_function_of_sums_is_an_error", a_panic_of_a_function_of_sums_is_an_error),
];

#[ferrogrid::module]
pub mod multiplying {
    use ferrogrid::device::half::{HalfFloat, bf16, f16};
    use ferrogrid::device::prelude::*;

    /// out <- scale (a b^T) + bias + residual, less the row's number.
    #[matmul(factors = bf16, transpose_b)]
    pub fn layer(sum: f32, scale: f32, #[row] i: usize, #[column] bias: &f32, residual: &bf16) -> bf16 {
        bf16::from_f32(scale * sum + bias + residual.to_f32() - i as f32)
    }

    /// out <- a b
    #[matmul(factors = f16)]
    pub fn product(sum: f32) -> f32 {
        sum
    }

    /// out <- a^T b with a factor for each row, which is one of a table, rounded.
    #[matmul(factors = f16, transpose_a)]
    pub fn weighted(sum: f32, table: Plane<f32>, #[row] which: &u8) -> f16 {
        f16::from_f32(sum * table.get(0, *which as usize).copied().unwrap_or(1.0))
    }

    /// out <- a b of each batch, plus its number
    #[matmul(factors = f16, batches)]
    pub fn in_batches(sum: f32, #[batch] batch: usize) -> f32 {
        sum + batch as f32
    }

    /// out <- a b^T of each group, plus the bias of its columns, less the row's number
    #[matmul(factors = bf16, transpose_b, groups)]
    pub fn by_experts(
        sum: f32,
        #[group] expert: usize,
        #[row] i: usize,
        #[column] j: usize,
        bias: Plane<f32>,
    ) -> bf16 {
        bf16::from_f32(sum + bias.get(expert, j).copied().unwrap_or(f32::NAN) - i as f32)
    }

    /// out <- a b^T / divisors of the columns
    #[matmul(factors = i8, transpose_b)]
    pub fn scaled(sum: i32, divisors: &[i32], #[column] j: usize) -> i8 {
        (sum / divisors[j]).clamp(-128, 127) as i8
    }
}

/// Rows, columns and depth. The last ones are for large tiles, with whole and with odd rows of results, and for small tiles, and only some of their sums are checked.
const SHAPES: [[usize; 3]; 7] =
    [[70, 40, 72], [1, 7, 8], [65, 130, 136], [5, 3, 0], [1500, 2304, 72], [1499, 2300, 72], [700, 900, 200]];

/// Factors as they are stored, and as they are multiplied.
struct Factors {
    shape: [usize; 3],
    /// Whether they are stored by columns of the factor.
    turned: [bool; 2],
    numbers: [Vec<i8>; 2],
}

impl Factors {
    fn new(shape @ [rows, columns, depth]: [usize; 3], turned: [bool; 2], seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let numbers = [rows, columns].map(|rows| (0..rows * depth).map(|_| random.i8(-5..=5)).collect());
        Factors { shape, turned, numbers }
    }

    /// Width and height of a factor as it is stored.
    fn extent(&self, which: usize) -> [usize; 2] {
        let (rows, depth) = (self.shape[which], self.shape[2]);
        if self.turned[which] { [rows, depth] } else { [depth, rows] }
    }

    fn upload<T: DeviceCopy>(
        &self,
        stream: &Stream,
        of: impl Fn(i8) -> T,
    ) -> ferrogrid::Result<[DeviceBuffer<T>; 2]> {
        let upload = |which: usize| {
            stream.upload(&self.numbers[which].iter().map(|number| of(*number)).collect::<Vec<_>>())
        };
        Ok([upload(0)?, upload(1)?])
    }

    fn sum(&self, row: usize, column: usize) -> i32 {
        let number = |which: usize, line: usize, k: usize| {
            let [width, _] = self.extent(which);
            let place = if self.turned[which] { k * width + line } else { line * width + k };
            i32::from(self.numbers[which][place])
        };
        (0..self.shape[2]).map(|k| number(0, row, k) * number(1, column, k)).sum()
    }

    /// Compares some results with `expected(row, column, sum)`, those at all edges among them.
    fn check<C: PartialEq + Debug + Copy>(
        &self,
        what: &str,
        found: &[C],
        expected: impl Fn(usize, usize, i32) -> C,
    ) -> Outcome {
        let [rows, columns, _] = self.shape;
        let step = (rows * columns / 5000) | 1;
        let ends = [0, columns.saturating_sub(1), rows.saturating_sub(1) * columns];
        for place in (0..rows * columns).step_by(step).chain(ends).filter(|place| *place < rows * columns) {
            let (row, column) = (place / columns, place % columns);
            let expected = expected(row, column, self.sum(row, column));
            expect(&format!("{what} {:?} at {row}, {column}", self.shape), found[place], expected)?;
        }
        Ok(())
    }
}

fn shapes(device: &Device) -> &'static [[usize; 3]] {
    if device.is_cuda() { &SHAPES } else { &SHAPES[..4] }
}

fn products_pass_through_a_function(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for shape @ [rows, columns, _] in shapes(device).iter().copied() {
        let factors = Factors::new(shape, [false; 2], 701);
        let bias: Vec<f32> = (0..columns).map(|j| (j % 9) as f32).collect();
        let residual: Vec<bf16> = (0..rows * columns).map(|at| bf16::from_f32((at % 5) as f32)).collect();
        let [a, b] = factors.upload(&stream, |it| bf16::from_f32(f32::from(it)))?;
        let (device_bias, device_residual) = (stream.upload(&bias)?, stream.upload(&residual)?);
        let mut out = stream.fill(bf16::NAN, rows * columns)?;
        let ([width_a, height_a], [width_b, height_b]) = (factors.extent(0), factors.extent(1));
        multiplying::layer(
            &stream,
            a.view_2d(width_a, height_a)?,
            b.view_2d(width_b, height_b)?,
            0.5,
            &device_bias,
            device_residual.view_2d(columns, rows)?,
            out.view_2d_mut(columns, rows)?,
        )?;
        factors.check("layer", &stream.download(&out)?, |row, column, sum| {
            let residual = residual[row * columns + column].to_f32();
            bf16::from_f32(0.5 * sum as f32 + bias[column] + residual - row as f32)
        })?;
    }
    // Rows of factors that are not turned have multiples of 8 elements.
    for shape @ [rows, columns, _] in [[72, 40, 72], [8, 136, 16], [16, 8, 0]] {
        let factors = Factors::new(shape, [false, true], 702);
        let [a, b] = factors.upload(&stream, |it| f16::from_f32(f32::from(it)))?;
        let mut out = stream.fill(f32::NAN, rows * columns)?;
        let ([width_a, height_a], [width_b, height_b]) = (factors.extent(0), factors.extent(1));
        let (a, b) = (a.view_2d(width_a, height_a)?, b.view_2d(width_b, height_b)?);
        multiplying::product(&stream, a, b, out.view_2d_mut(columns, rows)?)?;
        factors.check("product", &stream.download(&out)?, |_, _, sum| sum as f32)?;

        let factors = Factors::new(shape, [true, true], 703);
        let [a, b] = factors.upload(&stream, |it| f16::from_f32(f32::from(it)))?;
        let mut out = stream.fill(f16::NAN, rows * columns)?;
        let ([width_a, height_a], [width_b, height_b]) = (factors.extent(0), factors.extent(1));
        let (a, b) = (a.view_2d(width_a, height_a)?, b.view_2d(width_b, height_b)?);
        let which: Vec<u8> = (0..rows).map(|row| (row % 3) as u8).collect();
        let (table, which) = (stream.upload(&[2.0, -1.0])?, stream.upload(&which)?);
        multiplying::weighted(&stream, a, b, table.view_2d(2, 1)?, &which, out.view_2d_mut(columns, rows)?)?;
        factors.check("weighted", &stream.download(&out)?, |row, _, sum| {
            f16::from_f32([2.0, -1.0, 1.0][row % 3] * sum as f32)
        })?;
    }
    Ok(())
}

fn products_of_integers_are_scaled_to_bytes(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for [rows, columns, depth] in shapes(device).iter().copied() {
        let shape @ [rows, columns, depth] = [rows, columns, depth * 2];
        let factors = Factors::new(shape, [false; 2], 704);
        let divisors: Vec<i32> = (0..columns).map(|j| j as i32 % 7 + 1).collect();
        let ([a, b], device_divisors) = (factors.upload(&stream, |it| it)?, stream.upload(&divisors)?);
        let mut out = stream.fill(99_i8, rows * columns)?;
        let (a, b) = (a.view_2d(depth, rows)?, b.view_2d(depth, columns)?);
        multiplying::scaled(&stream, a, b, &device_divisors, out.view_2d_mut(columns, rows)?)?;
        factors.check("scaled", &stream.download(&out)?, |_, column, sum| {
            (sum / divisors[column]).clamp(-128, 127) as i8
        })?;
    }
    Ok(())
}

fn parts_of_matrices_are_multiplied_into_parts(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    // Factors are parts of matrices.
    let factors = Factors::new([70, 40, 70], [false, true], 712);
    let [a, b] = factors.upload(&stream, |it| f16::from_f32(f32::from(it)))?;
    let (mut wide_a, mut wide_b) = (stream.fill(f16::NAN, 70 * 96)?, stream.fill(f16::NAN, 70 * 64)?);
    stream
        .copy_2d(a.view().pitched(70, 70, 70)?, wide_a.view_mut().pitched(96, 70, 96)?.slice(16..86, ..)?)?;
    stream
        .copy_2d(b.view().pitched(40, 70, 40)?, wide_b.view_mut().pitched(64, 70, 64)?.slice(8..48, ..)?)?;
    let a = wide_a.view().pitched(96, 70, 96)?.slice(16..86, ..)?;
    let b = wide_b.view().pitched(64, 70, 64)?.slice(8..48, ..)?;
    let mut out = stream.fill(f32::NAN, 70 * 40)?;
    multiplying::product(&stream, a, b, out.view_2d_mut(40, 70)?)?;
    factors.check("of parts", &stream.download(&out)?, |_, _, sum| sum as f32)?;
    // A pitch, and rows that begin at any element.
    for (pitch, first) in [(50, 0), (40, 3), (41, 1)] {
        let factors = Factors::new([70, 40, 72], [false, true], 705);
        let [a, b] = factors.upload(&stream, |it| f16::from_f32(f32::from(it)))?;
        let mut all = stream.fill(7.5_f32, 70 * pitch + first)?;
        let out: PitchedViewMut<f32> = all.slice_mut(first..)?.pitched(40, 70, pitch)?;
        multiplying::product(&stream, a.view_2d(72, 70)?, b.view_2d(40, 72)?, out)?;
        let all = stream.download(&all)?;
        let rows: Vec<f32> = (0..70).flat_map(|row| &all[first + row * pitch..][..40]).copied().collect();
        factors.check("product", &rows, |_, _, sum| sum as f32)?;
        let between = (0..69).flat_map(|row| &all[first + row * pitch + 40..first + (row + 1) * pitch]);
        expect("what is between", all[..first].iter().chain(between).all(|it| *it == 7.5), true)?;
    }
    Ok(())
}

/// Small whole numbers.
fn numbers(random: &mut fastrand::Rng, len: usize) -> Vec<f32> {
    (0..len).map(|_| f32::from(random.i8(-5..=5))).collect()
}

fn batches_of_products_pass_through_a_function(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(707));
    // The right factors are below each other along the depth: whole tiles of it, unless there is one.
    for (batches, shape) in [(3, [72, 40, 64]), (2, [5, 136, 128]), (1, [9, 8, 24])] {
        check_batches(&stream, &mut random, batches, shape)?;
    }
    let x = stream.zeros::<f16>(16 * 48)?;
    let mut out = stream.fill(7.0_f32, 16 * 16)?;
    for (batches, [height_a, height_b], words) in [
        (3, [16, 48], ["the number of batches", "3 for 16 rows"]),
        (0, [16, 48], ["the number of batches", "0 for"]),
        (2, [16, 32], ["the depth", "16"]),
    ] {
        let (a, b) = (x.view_2d(16, height_a)?, x.view_2d(16, height_b)?);
        let refused = multiplying::in_batches(&stream, a, b, batches, out.view_2d_mut(16, 16)?);
        let is_argument = |error: &Error| matches!(error, Error::Argument { function: "matmul", .. });
        names(&expect_error("batches", refused, is_argument)?, &words)?;
    }
    expect("after refused products", stream.download(&out)?, vec![7.0; 256])
}

/// Compares so many products of random matrices below each other.
fn check_batches(
    stream: &Stream,
    random: &mut fastrand::Rng,
    batches: usize,
    [rows, columns, depth]: [usize; 3],
) -> Outcome {
    let (a, b) = (numbers(random, batches * rows * depth), numbers(random, batches * depth * columns));
    let upload =
        |numbers: &[f32]| stream.upload(&numbers.iter().map(|it| f16::from_f32(*it)).collect::<Vec<_>>());
    let (device_a, device_b) = (upload(&a)?, upload(&b)?);
    let mut out = stream.fill(f32::NAN, batches * rows * columns)?;
    multiplying::in_batches(
        stream,
        device_a.view_2d(depth, batches * rows)?,
        device_b.view_2d(columns, batches * depth)?,
        batches,
        out.view_2d_mut(columns, batches * rows)?,
    )?;
    let expected = |at: usize| -> f32 {
        let (row, column) = (at / columns, at % columns);
        let batch = row / rows;
        let products = (0..depth).map(|k| a[row * depth + k] * b[(batch * depth + k) * columns + column]);
        products.sum::<f32>() + batch as f32
    };
    let expected: Vec<f32> = (0..batches * rows * columns).map(expected).collect();
    expect(&format!("{batches} batches"), stream.download(&out)?, expected)
}

fn groups_of_products_pass_through_a_function(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(708));
    // The rows of the first result are no whole groups of four.
    let shapes: [([usize; 3], &[u32]); 3] = [
        ([75, 7, 16], &[2, 2, 70, 71, 74]),
        ([9, 136, 72], &[0, 9]),
        ([400, 264, 136], &[3, 132, 132, 391, 392]),
    ];
    for ([rows, columns, depth], offsets) in
        if device.is_cuda() { &shapes[..] } else { &shapes[..2] }.iter().copied()
    {
        let groups = offsets.len() - 1;
        let (a, b) = (numbers(&mut random, rows * depth), numbers(&mut random, groups * columns * depth));
        let bias = numbers(&mut random, groups * columns);
        let upload = |numbers: &[f32]| {
            stream.upload(&numbers.iter().map(|it| bf16::from_f32(*it)).collect::<Vec<_>>())
        };
        let (device_a, device_b) = (upload(&a)?, upload(&b)?);
        let (device_bias, device_offsets) = (stream.upload(&bias)?, stream.upload(offsets)?);
        let before = bf16::from_f32(7.5);
        let mut out = stream.fill(before, rows * columns)?;
        multiplying::by_experts(
            &stream,
            device_a.view_2d(depth, rows)?,
            device_b.view_2d(depth, groups * columns)?,
            &device_offsets,
            device_bias.view_2d(columns, groups)?,
            out.view_2d_mut(columns, rows)?,
        )?;
        let expected = |at: usize| -> bf16 {
            let (row, column) = (at / columns, at % columns);
            let Some(group) = offsets.windows(2).position(|ends| (ends[0]..ends[1]).contains(&(row as u32)))
            else {
                return before;
            };
            let of_b = &b[(group * columns + column) * depth..][..depth];
            let sum: f32 = a[row * depth..][..depth].iter().zip(of_b).map(|(a, b)| a * b).sum();
            bf16::from_f32(sum + bias[group * columns + column] - row as f32)
        };
        let expected: Vec<bf16> = (0..rows * columns).map(expected).collect();
        expect(&format!("{rows} rows in {groups} groups"), stream.download(&out)?, expected)?;
    }
    let (x, bias) = (stream.zeros::<bf16>(64)?, stream.zeros::<f32>(8)?);
    let (x, bias, mut out) = (x.view_2d(8, 8)?, bias.view_2d(8, 1)?, stream.zeros(8 * 8)?);
    let offsets = stream.upload(&[0_u32, 9])?;
    let launch = line!() + 1;
    multiplying::by_experts(&stream, x, x, &offsets, bias, out.view_2d_mut(8, 8)?)?;
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    let error = expect_error("a group beyond the rows", stream.synchronize(), is_panic)?;
    names(&error, &["ascend up to", &format!("launched at {}:{launch}", file!())])?;
    Ok(())
}

/// Parts of the depth are multiplied by a block each, so on a device with more multiprocessors than a CPU may have.
fn deep_products_pass_through_a_function(device: &Device) -> Outcome {
    let other =
        if device.is_cuda() { device.clone() } else { Device::cpu_with(CpuOptions::new().workers(16))? };
    let (stream, mut random) = (other.new_stream()?, fastrand::Rng::with_seed(709));
    let [rows, columns, depth] = [9, 39, 64 * 48 + 8];
    let factors = Factors::new([rows, columns, depth], [false; 2], 710);
    let [a, b] = factors.upload(&stream, |it| bf16::from_f32(f32::from(it)))?;
    let residual = stream.fill(bf16::ONE, rows * columns)?;
    let bias: Vec<f32> = (0..columns).map(|j| (j % 9) as f32).collect();
    let device_bias = stream.upload(&bias)?;
    let mut all = stream.fill(bf16::from_f32(7.5), rows * 50)?;
    multiplying::layer(
        &stream,
        a.view_2d(depth, rows)?,
        b.view_2d(depth, columns)?,
        0.5,
        &device_bias,
        residual.view_2d(columns, rows)?,
        all.view_mut().pitched(columns, rows, 50)?,
    )?;
    let all = stream.download(&all)?;
    expect("what is between", all.chunks(50).all(|row| row[columns..] == [bf16::from_f32(7.5); 11]), true)?;
    let found: Vec<bf16> = all.chunks(50).flat_map(|row| &row[..columns]).copied().collect();
    factors.check("layer", &found, |row, column, sum| {
        bf16::from_f32(0.5 * sum as f32 + bias[column] + 1.0 - row as f32)
    })?;

    let [rows, columns, depth] = [5, 6, 128 * 48 + 16];
    let factors = Factors::new([rows, columns, depth], [false; 2], 711);
    let ([a, b], divisors) = (factors.upload(&stream, |it| it)?, stream.upload(&[3; 6])?);
    let mut out = stream.fill(99_i8, rows * columns)?;
    let (a, b) = (a.view_2d(depth, rows)?, b.view_2d(depth, columns)?);
    multiplying::scaled(&stream, a, b, &divisors, out.view_2d_mut(columns, rows)?)?;
    factors.check("scaled", &stream.download(&out)?, |_, _, sum| (sum / 3).clamp(-128, 127) as i8)?;

    check_batches(&stream, &mut random, 2, [7, 40, 64 * 56])
}

fn products_with_functions_are_recorded(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let factors = Factors::new([6, 5, 16], [false; 2], 706);
    let [a, b] = factors.upload(&stream, |it| it)?;
    let (divisors, out) = (stream.upload(&[1; 5])?, stream.zeros::<i8>(30)?);
    let (graph, (a, out)) = stream.capture(|capture| {
        let (a, b, mut out) = (capture.keep(a)?, capture.keep(b)?, capture.keep(out)?);
        let divisors = capture.keep(divisors)?;
        let (view_a, view_b) = (a.view_2d(16, 6)?, b.view_2d(16, 5)?);
        multiplying::scaled(capture, view_a, view_b, &divisors, out.view_2d_mut(5, 6)?)?;
        Ok((a.key(), out.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for factor in [1, -1] {
        let numbers: Vec<i8> = factors.numbers[0].iter().map(|it| it * factor).collect();
        stream.upload_into(&numbers, graph.view_mut(a)?)?;
        graph.launch(&stream)?;
        let found = stream.download(graph.view(out)?)?;
        factors.check("recorded", &found, |_, _, sum| (sum * i32::from(factor)).clamp(-128, 127) as i8)?;
    }
    Ok(())
}

fn shapes_of_products_with_functions_are_checked(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, bias) = (stream.zeros::<bf16>(64 * 16)?, stream.zeros::<f32>(16)?);
    let mut out = stream.zeros::<bf16>(64 * 16)?;
    let mut layer = |a: [usize; 2], b: [usize; 2], of_columns, residual: [usize; 2], of_out: [usize; 2]| {
        let view = |[width, height]: [usize; 2]| x.view_2d(width, height);
        let out = out.view_2d_mut(of_out[0], of_out[1])?;
        multiplying::layer(&stream, view(a)?, view(b)?, 1.0, bias.slice(..of_columns)?, view(residual)?, out)
    };
    layer([16, 3], [16, 4], 4, [4, 3], [4, 3])?;
    layer([16, 0], [16, 4], 4, [4, 0], [4, 0])?;
    layer([16, 3], [16, 0], 0, [0, 3], [0, 3])?;
    let is_length =
        |error: &Error| matches!(error, Error::LengthMismatch { source_length: 16, target_length: 8, .. });
    let refused = layer([16, 3], [8, 4], 4, [4, 3], [4, 3]);
    names(&expect_error("depths", refused, is_length)?, &["columns of the left factor"])?;
    let is_length =
        |error: &Error| matches!(error, Error::LengthMismatch { source_length: 5, target_length: 4, .. });
    let refused = layer([16, 3], [16, 4], 5, [4, 3], [4, 3]);
    names(&expect_error("columns", refused, is_length)?, &["an input for each column"])?;
    let is_shape = |error: &Error| matches!(error, Error::ShapeMismatch { from: [4, 3], to: [3, 4], .. });
    let refused = layer([16, 3], [16, 4], 4, [3, 4], [4, 3]);
    names(&expect_error("an input", refused, is_shape)?, &["an input"])?;
    let refused = layer([16, 3], [16, 4], 4, [4, 3], [3, 4]);
    names(&expect_error("the output", refused, is_shape)?, &["`out`"])?;
    let is_unaligned =
        |error: &Error| matches!(error, Error::Launch(LaunchError::TensorMapUnaligned { row: 24, .. }));
    let refused = layer([12, 3], [12, 4], 4, [4, 3], [4, 3]);
    names(&expect_error("rows of 24 bytes", refused, is_unaligned)?, &["`a`", "24"])?;
    Ok(stream.synchronize()?)
}

fn a_panic_of_a_function_of_sums_is_an_error(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (a, b, divisors) = (stream.fill(1_i8, 70 * 16)?, stream.fill(1_i8, 9 * 16)?, stream.upload(&[1; 8])?);
    let mut out = stream.zeros::<i8>(70 * 9)?;
    let (a, b) = (a.view_2d(16, 70)?, b.view_2d(16, 9)?);
    multiplying::scaled(&stream, a, b, &divisors, out.view_2d_mut(9, 70)?)?;
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    names(&expect_error("too few divisors", stream.synchronize(), is_panic)?, &["index out of bounds", "8"])?;
    Ok(())
}
