//! Reductions of rows and columns.

use ferrogrid::PitchedView;
use ferrogrid::algorithms::{self, Number};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("rows_and_columns_are_reduced", rows_and_columns_are_reduced),
    ("matrices_of_all_types_are_reduced", matrices_of_all_types_are_reduced),
    ("rows_and_columns_of_nothing", rows_and_columns_of_nothing),
    ("matrices_of_floats_have_the_same_bits_everywhere", matrices_of_floats_have_the_same_bits_everywhere),
    ("each_row_and_column_has_a_result", each_row_and_column_has_a_result),
    ("reductions_of_matrices_are_recorded", reductions_of_matrices_are_recorded),
];

/// Width and height: a lane, some lanes, a warp, a block and two parts (8193) to a row; 8, 16 and 32 columns to a block, and two
/// parts of a column (513).
const SHAPES: &[[usize; 2]] = &[
    [1, 1],
    [4, 70],
    [5, 257],
    [33, 513],
    [129, 40],
    [1024, 2],
    [1025, 3],
    [8193, 1],
    [20_000, 2],
    [1, 1500],
    [9, 512],
    [40, 1100],
];

fn dense<T: DeviceCopy>(
    x: &DeviceBuffer<T>,
    width: usize,
    height: usize,
) -> ferrogrid::Result<PitchedView<'_, T>> {
    Ok(x.view_2d(width, height)?.into())
}

/// The rows of `x`, and its columns.
fn lines<T: Copy>(x: &[T], width: usize) -> [Vec<Vec<T>>; 2] {
    let columns = (0..width).map(|column| x.iter().skip(column).step_by(width).copied().collect()).collect();
    [x.chunks(width).map(<[T]>::to_vec).collect(), columns]
}

/// Sums, extrema and means of rows, then of columns.
type Results<T, S> = [(Vec<S>, Vec<T>, Vec<T>, Vec<f64>); 2];

fn results<T: Number + bytemuck::Zeroable>(
    stream: &Stream,
    x: PitchedView<T>,
) -> ferrogrid::Result<Results<T, T::Total>>
where
    T::Total: bytemuck::Zeroable,
{
    let (rows, columns) = (x.height(), x.width());
    let (mut sums, mut least) = (stream.zeros::<T::Total>(rows)?, stream.zeros::<T>(rows)?);
    let (mut greatest, mut means) = (stream.zeros::<T>(rows)?, stream.zeros(rows)?);
    algorithms::row_sums(stream, x, &mut sums)?;
    algorithms::row_minima(stream, x, &mut least)?;
    algorithms::row_maxima(stream, x, &mut greatest)?;
    algorithms::row_means(stream, x, &mut means)?;
    let read = |sums: &_, least: &_, greatest: &_, means: &_| -> ferrogrid::Result<_> {
        let (sums, least) = (stream.download::<T::Total>(sums)?, stream.download::<T>(least)?);
        Ok((sums, least, stream.download::<T>(greatest)?, stream.download::<f64>(means)?))
    };
    let of_rows = read(&sums, &least, &greatest, &means)?;
    let (mut sums, mut least) = (stream.zeros::<T::Total>(columns)?, stream.zeros::<T>(columns)?);
    let (mut greatest, mut means) = (stream.zeros::<T>(columns)?, stream.zeros(columns)?);
    algorithms::column_sums(stream, x, &mut sums)?;
    algorithms::column_minima(stream, x, &mut least)?;
    algorithms::column_maxima(stream, x, &mut greatest)?;
    algorithms::column_means(stream, x, &mut means)?;
    Ok([of_rows, read(&sums, &least, &greatest, &means)?])
}

fn rows_and_columns_are_reduced(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(341);
    for &[width, height] in SHAPES {
        let x: Vec<i32> = (0..width * height).map(|_| random.i32(..)).collect();
        let expected = lines(&x, width).map(|lines| {
            let sums: Vec<i64> = lines.iter().map(|line| line.iter().map(|x| i64::from(*x)).sum()).collect();
            let means = lines.iter().zip(&sums).map(|(line, sum)| *sum as f64 / line.len() as f64).collect();
            let least = lines.iter().map(|line| *line.iter().min().unwrap()).collect();
            (sums, least, lines.iter().map(|line| *line.iter().max().unwrap()).collect(), means)
        });
        let device_x = stream.upload(&x)?;
        let found = results(&stream, dense(&device_x, width, height)?)?;
        expect(&format!("{width} x {height}"), &found, &expected)?;
        // In the middle of a larger matrix, whose other elements would change every result.
        let pitch = width + 3;
        let larger: Vec<i32> =
            (0..pitch * (height + 2)).map(|i| if i % 2 == 0 { i32::MIN } else { i32::MAX }).collect();
        let mut larger = stream.upload(&larger)?;
        let middle = larger.view_mut().pitched(pitch, height + 2, pitch)?.slice(1..=width, 1..=height)?;
        stream.copy_2d(dense(&device_x, width, height)?, middle)?;
        let middle = larger.view().pitched(pitch, height + 2, pitch)?.slice(1..=width, 1..=height)?;
        expect(&format!("{width} x {height}, pitch {pitch}"), &results(&stream, middle)?, &expected)?;
    }
    Ok(())
}

fn matrices_of_all_types_are_reduced(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(342);
    // Two parts to a column; then to a row.
    for [width, height] in [[9, 600], [8200, 2]] {
        macro_rules! matrices {
            ($($t:ident as $total:ident: $of:expr, $min:expr, $max:expr;)*) => {
                $({
                    let x: Vec<$t> = (0..width * height).map(|_| $of).collect();
                    let expected = lines(&x, width).map(|lines| {
                        let sum = |line: &Vec<$t>| line.iter().fold(0 as $total, |a, b| a + *b as $total);
                        let sums: Vec<$total> = lines.iter().map(sum).collect();
                        let least = lines.iter().map(|line| line.iter().copied().reduce($min).unwrap()).collect();
                        let most = lines.iter().map(|line| line.iter().copied().reduce($max).unwrap()).collect();
                        let means = lines.iter().map(|line| sum(line) as f64 / line.len() as f64).collect();
                        (sums, least, most, means)
                    });
                    let x = stream.upload(&x)?;
                    expect(stringify!($t), &results(&stream, dense(&x, width, height)?)?, &expected)?;
                })*
            };
        }
        // Sums of the floats are exact.
        matrices! {
            i8 as i64: random.i8(..), i8::min, i8::max;
            i16 as i64: random.i16(..), i16::min, i16::max;
            i64 as i64: random.i64(-1 << 40..1 << 40), i64::min, i64::max;
            u8 as u64: random.u8(..), u8::min, u8::max;
            u16 as u64: random.u16(..), u16::min, u16::max;
            u32 as u64: random.u32(..), u32::min, u32::max;
            u64 as u64: random.u64(..1 << 40), u64::min, u64::max;
            f32 as f32: f32::from(random.i8(..)), f32::min, f32::max;
            f64 as f64: f64::from(random.i32(..)), f64::min, f64::max;
        }
    }
    Ok(())
}

fn rows_and_columns_of_nothing(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.zeros::<i16>(0)?;
    let empty =
        |[sums, means]: [usize; 2]| (vec![0; sums], vec![i16::MAX; sums], vec![i16::MIN; sums], means);
    for [width, height] in [[0, 0], [0, 3], [3, 0]] {
        let found = results(&stream, dense(&x, width, height)?)?;
        let nan = found.each_ref().map(|(.., means)| means.iter().filter(|mean| mean.is_nan()).count());
        let [rows, columns] = found;
        expect("rows", (rows.0, rows.1, rows.2, nan[0]), empty([height; 2]))?;
        expect("columns", (columns.0, columns.1, columns.2, nan[1]), empty([width; 2]))?;
    }
    // NaN is skipped by extrema only, and -0.0 is 0.0 to them.
    let x = stream.upload(&[f32::NAN, -0.0, f32::NAN, f32::NEG_INFINITY, f32::NAN, f32::INFINITY])?;
    let [rows, columns] = results(&stream, dense(&x, 2, 3)?)?;
    expect("least", &rows.1, &vec![0.0, f32::NEG_INFINITY, f32::INFINITY])?;
    expect("the sign of zero", rows.1[0].to_bits(), 0)?;
    expect(
        "sums",
        rows.0.iter().all(|x| x.is_nan()) && columns.0[0].is_nan() && columns.0[1].is_nan(),
        true,
    )?;
    expect("all NaN", (columns.1[0].is_nan(), columns.2[0].is_nan()), (true, true))?;
    expect("infinity", (columns.1[1], columns.2[1]), (f32::NEG_INFINITY, f32::INFINITY))
}

/// The bits of a second run, of the CPU device, and of a view with a pitch: lanes, blocks, two steps of rows and of columns.
fn matrices_of_floats_have_the_same_bits_everywhere(device: &Device) -> Outcome {
    for [width, height] in [[129, 40], [1025, 3], [20_000, 2], [40, 1100]] {
        let mut found = Vec::new();
        let devices = [device, &Device::cpu(), device];
        for device in &devices[usize::from(!device.is_cuda())..] {
            let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(343));
            let x: Vec<f32> = (0..width * height).map(|_| random.f32() - 0.5).collect();
            let (device_x, mut pitched) = (stream.upload(&x)?, stream.zeros_pitched(width, height)?);
            let of_device = results(&stream, dense(&device_x, width, height)?)?;
            for ((sums, ..), lines) in of_device.iter().zip(lines(&x, width)) {
                for (sum, line) in sums.iter().zip(lines) {
                    let exact: f64 = line.iter().map(|x| f64::from(*x)).sum();
                    let is_near = (f64::from(*sum) - exact).abs() <= 1e-7 * line.len() as f64;
                    expect(&format!("{width} x {height}, {sum} for {exact}"), is_near, true)?;
                }
            }
            stream.copy_2d(dense(&device_x, width, height)?, pitched.view_mut())?;
            expect("with a pitch", &results(&stream, pitched.view())?, &of_device)?;
            found.push(of_device);
        }
        for other in &found[1..] {
            expect("bits of another device or run", &found[0], other)?;
        }
    }
    Ok(())
}

fn each_row_and_column_has_a_result(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.zeros::<f64>(12)?, stream.zeros::<f64>(12)?);
    let differ = |error: &Error| matches!(error, Error::LengthMismatch { .. });
    let sums = algorithms::row_sums(&stream, x.view_2d(4, 3)?, y.slice_mut(..4)?);
    names(&expect_error("rows", sums, differ)?, &["a result for each row", "3", "4"])?;
    let least = algorithms::column_minima(&stream, x.view_2d(4, 3)?, y.slice_mut(..3)?);
    names(&expect_error("columns", least, differ)?, &["a result for each column", "4", "3"])?;
    expect_error("means", algorithms::row_means(&stream, x.view_2d(4, 3)?, y.slice_mut(..0)?), differ)
        .map(drop)
}

fn reductions_of_matrices_are_recorded(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (width, height) = (2, 1100); // in two steps
    let (x, y) = (stream.zeros::<f64>(width * height)?, stream.zeros(width)?);
    let (graph, (x, y)) = stream.capture(|capture| {
        let (x, mut y) = (capture.keep(x)?, capture.keep(y)?);
        algorithms::column_means(capture, x.view_2d(width, height)?, &mut y)?;
        Ok((x.key(), y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in [0.5, -2.0] {
        stream.fill_into(value, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        expect("means", stream.download(graph.view(y)?)?, vec![value; 2])?;
    }
    Ok(())
}
