//! Products of sparse matrices and vectors.

use ferrogrid::algorithms::{self, Csr};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("sparse_rows_of_any_length_are_multiplied", sparse_rows_of_any_length_are_multiplied),
    ("sparse_products_have_the_same_bits_everywhere", sparse_products_have_the_same_bits_everywhere),
    ("scalars_of_sparse_products", scalars_of_sparse_products),
    ("no_sparse_matrices", no_sparse_matrices),
    ("columns_beyond_a_sparse_matrix_are_a_panic", columns_beyond_a_sparse_matrix_are_a_panic),
    ("sparse_products_are_recorded_in_graphs", sparse_products_are_recorded_in_graphs),
];

/// Lengths of rows: of a mean below 4, of one for a warp each, and some that are so much longer that they get a block (64 elements for each
/// lane are the limit), in one block and in several.
fn lengths_of(random: &mut fastrand::Rng) -> Vec<Vec<usize>> {
    let mut few = vec![0; 700];
    (few[3], few[255], few[256], few[600]) = (1, 64, 65, 1500);
    let mut some: Vec<usize> = (0..300).map(|_| random.usize(..12)).collect();
    (some[0], some[7], some[299]) = (128, 129, 256);
    let mut long = vec![70, 200, 128, 127, 129, 2048, 2049, 5000, 0];
    long.extend([100; 100]);
    vec![vec![1], vec![0, 0], few, some, long]
}

fn offsets_of(lengths: &[usize]) -> Vec<usize> {
    let mut offsets = vec![0];
    for length in lengths {
        offsets.push(offsets.last().unwrap() + length);
    }
    offsets
}

/// The sums of a matrix of whole numbers, exactly, with offsets of both types and both types of numbers.
fn sparse_rows_of_any_length_are_multiplied(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(361));
    for lengths in lengths_of(&mut random) {
        let (width, offsets) = (1000, offsets_of(&lengths));
        let entries = *offsets.last().unwrap();
        let columns: Vec<u32> = (0..entries).map(|_| random.u32(..width)).collect();
        let values: Vec<f32> = (0..entries).map(|_| f32::from(random.i8(..))).collect();
        let x: Vec<f32> = (0..width).map(|_| f32::from(random.i8(..))).collect();
        let expected: Vec<f32> = offsets
            .windows(2)
            .map(|row| (row[0]..row[1]).map(|i| values[i] * x[columns[i] as usize]).sum())
            .collect();
        let short: Vec<u32> = offsets.iter().map(|&offset| offset as u32).collect();
        let long: Vec<u64> = offsets.iter().map(|&offset| offset as u64).collect();
        let doubles = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let (short, long, columns) =
            (stream.upload(&short)?, stream.upload(&long)?, stream.upload(&columns)?);
        let what = format!("{} rows, {entries} elements", lengths.len());

        let (device_values, device_x) = (stream.upload(&values)?, stream.upload(&x)?);
        let mut y = stream.fill(f32::NAN, lengths.len())?;
        let a = Csr::new(width as usize, &short, &columns, &device_values)?;
        algorithms::spmv(&stream, 1.0, a, &device_x, 0.0, &mut y)?;
        expect(&what, stream.download(&y)?, expected.clone())?;

        let (device_values, device_x) = (stream.upload(&doubles(&values))?, stream.upload(&doubles(&x))?);
        let mut y = stream.fill(f64::NAN, lengths.len())?;
        let a = Csr::new(width as usize, &long, &columns, &device_values)?;
        algorithms::spmv(&stream, 1.0, a, &device_x, 0.0, &mut y)?;
        expect(&format!("{what}, in 64 bits"), stream.download(&y)?, doubles(&expected))?;
    }
    Ok(())
}

fn sparse_products_have_the_same_bits_everywhere(device: &Device) -> Outcome {
    let mut bits = Vec::new();
    for device in [device, &Device::cpu(), device] {
        let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(362));
        let mut of_device = Vec::new();
        for lengths in lengths_of(&mut random) {
            let offsets: Vec<u32> = offsets_of(&lengths).into_iter().map(|offset| offset as u32).collect();
            let entries = *offsets.last().unwrap() as usize;
            let columns: Vec<u32> = (0..entries).map(|_| random.u32(..300)).collect();
            let [values, x] =
                [entries, 300].map(|len| (0..len).map(|_| random.f32() - 0.5).collect::<Vec<_>>());
            let (device_offsets, device_columns) = (stream.upload(&offsets)?, stream.upload(&columns)?);
            let (device_values, device_x) = (stream.upload(&values)?, stream.upload(&x)?);
            let mut y = stream.zeros(lengths.len())?;
            let a = Csr::new(300, &device_offsets, &device_columns, &device_values)?;
            algorithms::spmv(&stream, 1.0, a, &device_x, 0.0, &mut y)?;
            let y = stream.download(&y)?;
            for (y, row) in y.iter().zip(offsets.windows(2)) {
                let row = row[0] as usize..row[1] as usize;
                let exact: f64 =
                    row.clone().map(|i| f64::from(values[i]) * f64::from(x[columns[i] as usize])).sum();
                expect("close to exact", (f64::from(*y) - exact).abs() <= 1e-7 * row.len() as f64, true)?;
            }
            of_device.extend(y.into_iter().map(f32::to_bits));
        }
        bits.push(of_device);
    }
    expect("bits of two devices", &bits[0], &bits[1])?;
    expect("bits of two runs", &bits[0], &bits[2])
}

fn scalars_of_sparse_products(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    // Elements of one place are added, and those of a row have any order.
    let (offsets, columns) = (stream.upload(&[0_u32, 3, 3])?, stream.upload(&[1_u32, 0, 1])?);
    let values = stream.upload(&[1.0, 2.0, 4.0])?;
    let a = Csr::new(2, &offsets, &columns, &values)?;
    let (x, mut y) = (stream.upload(&[10.0, 100.0])?, stream.upload(&[1.0, f64::NAN])?);
    algorithms::spmv(&stream, 2.0, a, &x, 0.0, &mut y)?;
    expect("beta of 0 does not read", stream.download(&y)?, vec![1040.0, 0.0])?;
    algorithms::spmv(&stream, 0.5, a, &x, -1.0, &mut y)?;
    expect("both", stream.download(&y)?, vec![-780.0, 0.0])?;
    // What a matrix does not have is not multiplied: 0 times infinity is NaN.
    let x = stream.upload(&[f64::INFINITY, 1.0])?;
    let offsets = stream.upload(&[0_u32, 1, 1])?;
    let (columns, values) = (columns.slice(..1)?, values.slice(..1)?);
    algorithms::spmv(&stream, 1.0, Csr::new(2, &offsets, columns, values)?, &x, 0.0, &mut y)?;
    expect("infinity", stream.download(&y)?, vec![1.0, 0.0])
}

fn no_sparse_matrices(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (none, one) = (stream.zeros::<u32>(0)?, stream.zeros::<u32>(1)?);
    let (values, x) = (stream.zeros::<f32>(0)?, stream.zeros::<f32>(3)?);
    let error = Csr::new(3, &none, &none, &values).map(drop);
    let is_expected = |error: &Error| matches!(error, Error::Argument { .. });
    names(&expect_error("no offsets", error, is_expected)?, &["Csr::new", "one more than there are rows"])?;
    let differ = |error: &Error| matches!(error, Error::LengthMismatch { .. });
    let error = Csr::new(3, &one, &one, &values).map(drop);
    names(&expect_error("columns", error, differ)?, &["a column for each value", "1", "0"])?;
    let mut y = stream.zeros::<f32>(2)?;
    let a = Csr::new(3, &one, &none, &values)?;
    algorithms::spmv(&stream, 1.0, a, &x, 1.0, y.slice_mut(..0)?)?;
    let error = algorithms::spmv(&stream, 1.0, a, &x, 1.0, &mut y);
    names(&expect_error("rows", error, differ)?, &["a result for each row", "0", "2"])?;
    let error = algorithms::spmv(&stream, 1.0, a, x.slice(..2)?, 1.0, y.slice_mut(..0)?);
    names(&expect_error("width", error, differ)?, &["an element of x for each column", "3", "2"])?;
    // Rows without elements, of a matrix without columns.
    let offsets = stream.zeros::<u32>(3)?;
    algorithms::spmv(&stream, 1.0, Csr::new(0, &offsets, &none, &values)?, x.slice(..0)?, 1.0, &mut y)?;
    expect("rows of nothing", stream.download(&y)?, vec![0.0; 2])
}

fn columns_beyond_a_sparse_matrix_are_a_panic(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let is_expected = |error: &Error| matches!(error, Error::KernelPanic { .. });
    // In a row of a lane, and in one of a block.
    for len in [3, 700_u32] {
        let mut columns = vec![0_u32; len as usize];
        let (values, x) = (stream.fill(1.0_f32, len as usize)?, stream.zeros(5)?);
        let mut y = stream.zeros(300)?;
        for column in [5, u32::MAX] {
            columns[len as usize / 2] = column;
            let (mut offsets, columns) = (vec![len; 301], stream.upload(&columns)?);
            offsets[0] = 0;
            let offsets = stream.upload(&offsets)?;
            algorithms::spmv(&stream, 1.0, Csr::new(5, &offsets, &columns, &values)?, &x, 0.0, &mut y)?;
            names(&expect_error("column", stream.synchronize(), is_expected)?, &["beyond the width"])?;
        }
        for (first, second) in [(5, 2), (0, len + 1)] {
            let mut offsets = vec![second; 301];
            offsets[0] = first;
            let (offsets, columns) = (stream.upload(&offsets)?, stream.zeros(len as usize)?);
            algorithms::spmv(&stream, 1.0, Csr::new(5, &offsets, &columns, &values)?, &x, 0.0, &mut y)?;
            names(&expect_error("offsets", stream.synchronize(), is_expected)?, &["a segment ends"])?;
        }
    }
    Ok(())
}

fn sparse_products_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (offsets, columns) = (stream.upload(&[0_u32, 2])?, stream.upload(&[0_u32, 1])?);
    let (values, x, y) = (stream.fill(2.0_f32, 2)?, stream.zeros(2)?, stream.zeros(1)?);
    let (graph, (x, y)) = stream.capture(|capture| {
        let (offsets, columns, values) =
            (capture.keep(offsets)?, capture.keep(columns)?, capture.keep(values)?);
        let (x, mut y) = (capture.keep(x)?, capture.keep(y)?);
        algorithms::spmv(capture, 1.0, Csr::new(2, &offsets, &columns, &values)?, &x, 0.0, &mut y)?;
        Ok((x.key(), y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in [1.0, 2.5] {
        stream.fill_into(value, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        expect("product", stream.download(graph.view(y)?)?, vec![4.0 * value])?;
    }
    Ok(())
}
