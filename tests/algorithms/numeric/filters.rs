//! Correlation and convolution.

use ferrogrid::PitchedView;
use ferrogrid::algorithms::{self, Border};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("filters_are_sums_in_the_order_of_the_weights", filters_are_sums_in_the_order_of_the_weights),
    ("filters_wider_than_the_signal_or_shared_memory", filters_wider_than_the_signal_or_shared_memory),
    ("separable_filters_are_two_filters", separable_filters_are_two_filters),
    ("filters_of_parts", filters_of_parts),
    ("filters_without_weights_are_refused", filters_without_weights_are_refused),
    ("filters_are_recorded_in_graphs", filters_are_recorded_in_graphs),
];

const BORDERS: [Border; 4] = [Border::Zero, Border::Clamp, Border::Reflect, Border::Wrap];

/// Where an element beyond the edges is, step by step.
fn place(mut i: isize, len: usize, border: Border) -> Option<usize> {
    let len = len as isize;
    while !(0..len).contains(&i) {
        i = match (border, i < 0) {
            (Border::Zero, _) => return None,
            (Border::Clamp, true) => 0,
            (Border::Clamp, false) => len - 1,
            (Border::Reflect, true) => -1 - i,
            (Border::Reflect, false) => 2 * len - 1 - i,
            (Border::Wrap, true) => i + len,
            (Border::Wrap, false) => i - len,
        };
    }
    Some(i as usize)
}

/// The definition of both: the weight of element `at + k` is that in the middle plus `k`, or minus `k`.
fn filtered(
    x: &[f32],
    width: usize,
    weights: &[f32],
    columns: usize,
    border: Border,
    is_convolution: bool,
) -> Vec<f32> {
    let (height, rows) = (x.len() / width, weights.len() / columns);
    let mut order: Vec<usize> = (0..weights.len()).collect();
    if is_convolution {
        order.reverse();
    }
    let offset = |number: usize, len: usize| {
        let offset = number as isize - (len / 2) as isize;
        if is_convolution { -offset } else { offset }
    };
    let one = |at: usize| {
        order.iter().fold(0.0, |sum, &number| {
            let row = place((at / width) as isize + offset(number / columns, rows), height, border);
            let column = place((at % width) as isize + offset(number % columns, columns), width, border);
            let item = row.zip(column).map_or(0.0, |(row, column)| x[row * width + column]);
            sum + weights[number] * item
        })
    };
    (0..x.len()).map(one).collect()
}

fn numbers(len: usize, random: &mut fastrand::Rng) -> Vec<f32> {
    (0..len).map(|_| random.f32() - 0.25).collect()
}

/// Fails unless both filters give what the definition says.
fn check(
    stream: &Stream,
    [width, height]: [usize; 2],
    [columns, rows]: [usize; 2],
    border: Border,
    random: &mut fastrand::Rng,
) -> Outcome {
    let (x, weights) = (numbers(width * height, random), numbers(columns * rows, random));
    let (device_x, device_weights) = (stream.upload(&x)?, stream.upload(&weights)?);
    let (x_view, weights_view) = (device_x.view_2d(width, height)?, device_weights.view_2d(columns, rows)?);
    let what = format!("{width} x {height}, {columns} x {rows} weights, {border:?}");
    let mut y = stream.fill(f32::NAN, x.len())?;
    algorithms::correlate(stream, x_view, weights_view, border, &mut y)?;
    expect(&what, stream.download(&y)?, filtered(&x, width, &weights, columns, border, false))?;
    let mut y = stream.fill(f32::NAN, x.len())?;
    algorithms::convolve(stream, x_view, weights_view, border, &mut y)?;
    expect(&what, stream.download(&y)?, filtered(&x, width, &weights, columns, border, true))
}

/// Tiles of 1024 x 1, 512 x 2, 128 x 8 and 32 x 32, and their neighbours.
fn filters_are_sums_in_the_order_of_the_weights(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(351);
    for (shape, weights) in [
        ([1025, 1], [3, 1]),
        ([513, 2], [4, 2]),
        ([129, 5], [2, 3]),
        ([33, 33], [3, 3]),
        ([31, 65], [5, 2]),
        ([7, 9], [1, 1]),
    ] {
        for border in BORDERS {
            check(&stream, shape, weights, border, &mut random)?;
        }
    }
    Ok(())
}

fn filters_wider_than_the_signal_or_shared_memory(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(352);
    for border in BORDERS {
        check(&stream, [1, 1], [3, 5], border, &mut random)?;
        check(&stream, [3, 2], [19, 12], border, &mut random)?;
    }
    check(&stream, [20, 3], [12_000, 1], Border::Wrap, &mut random)
}

fn separable_filters_are_two_filters(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(353);
    let ([width, height], x) = ([40, 35], numbers(40 * 35, &mut random));
    let (across, down) = (numbers(5, &mut random), numbers(4, &mut random));
    let device_x = stream.upload(&x)?;
    let (device_across, device_down) = (stream.upload(&across)?, stream.upload(&down)?);
    for border in BORDERS {
        let rows = filtered(&x, width, &across, 5, border, true);
        let mut y = stream.zeros(x.len())?;
        let (across, down_view) = (device_across.view(), device_down.view());
        let x = device_x.view_2d(width, height)?;
        algorithms::convolve_separable(&stream, x, across, down_view, border, &mut y)?;
        expect(&format!("{border:?}"), stream.download(&y)?, filtered(&rows, width, &down, 1, border, true))?;
    }
    Ok(())
}

/// A part of a matrix has its own edges, and nothing beside the result is written; in `f64`, with whole numbers.
fn filters_of_parts(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&(0..60).map(f64::from).collect::<Vec<_>>())?; // 6 rows of 10
    let part: PitchedView<f64> = x.view().pitched(10, 6, 10)?.slice(2..5, 1..3)?; // 12 13 14, 22 23 24
    let weights = stream.upload(&[1.0, 0.0, 100.0])?;
    let mut y = stream.fill(-1.0, 9)?;
    algorithms::correlate(&stream, part, weights.view_2d(3, 1)?, Border::Reflect, y.slice_mut(1..7)?)?;
    let expected = [-1.0, 1312.0, 1412.0, 1413.0, 2322.0, 2422.0, 2423.0, -1.0, -1.0];
    expect("reflected", stream.download(&y)?, expected.to_vec())?;
    algorithms::convolve(&stream, part, weights.view_2d(1, 3)?, Border::Zero, y.slice_mut(1..7)?)?;
    let expected = [-1.0, 22.0, 23.0, 24.0, 1200.0, 1300.0, 1400.0, -1.0, -1.0];
    expect("zero", stream.download(&y)?, expected.to_vec())?;
    let nothing = stream.zeros::<f64>(0)?;
    algorithms::convolve(
        &stream,
        nothing.view_2d(0, 7)?,
        weights.view_2d(3, 1)?,
        Border::Wrap,
        y.slice_mut(..0)?,
    )?;
    Ok(())
}

fn filters_without_weights_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.zeros::<f32>(12)?, stream.zeros::<f32>(12)?);
    let weights = stream.zeros::<f32>(0)?;
    let is_expected = |error: &Error| matches!(error, Error::Argument { .. });
    let result =
        algorithms::convolve(&stream, x.view_2d(4, 3)?, weights.view_2d(3, 0)?, Border::Zero, &mut y);
    names(&expect_error("weights", result, is_expected)?, &["convolve", "3 x 0", "from 1"])?;
    let result = algorithms::convolve_separable(
        &stream,
        x.view_2d(4, 3)?,
        x.view(),
        weights.view(),
        Border::Zero,
        &mut y,
    );
    names(&expect_error("separable", result, is_expected)?, &["convolve_separable", "1 x 0"])?;
    let differ = |error: &Error| matches!(error, Error::LengthMismatch { .. });
    let result =
        algorithms::correlate(&stream, x.view_2d(4, 3)?, x.view_2d(1, 1)?, Border::Zero, y.slice_mut(..11)?);
    names(&expect_error("output", result, differ)?, &["correlate", "12", "11"])
}

fn filters_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y, weights) = (stream.zeros::<f32>(6)?, stream.zeros(6)?, stream.fill(0.5_f32, 3)?);
    let (graph, (x, y)) = stream.capture(|capture| {
        let (x, mut y, weights) = (capture.keep(x)?, capture.keep(y)?, capture.keep(weights)?);
        let rows = x.view_2d(3, 2)?;
        algorithms::convolve_separable(capture, rows, weights.view(), weights.view(), Border::Clamp, &mut y)?;
        Ok((x.key(), y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in [1.0, -4.0] {
        stream.fill_into(value, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        expect("filtered", stream.download(graph.view(y)?)?, vec![value * 2.25; 6])?;
    }
    Ok(())
}
