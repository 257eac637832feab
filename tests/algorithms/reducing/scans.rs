//! Scans: running sums.

use ferrogrid::LaunchError;
use ferrogrid::algorithms;
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect, expect_error};
use crate::{FEW_LENGTHS, LENGTHS};

pub(crate) const CASES: &[Case] = &[
    ("running_sums_of_integers_are_exact", running_sums_of_integers_are_exact),
    ("running_sums_of_floats_are_close_to_exact", running_sums_of_floats_are_close_to_exact),
    ("running_sums_write_nothing_else", running_sums_write_nothing_else),
    ("scans_take_equal_lengths", scans_take_equal_lengths),
    ("long_inputs_are_scanned", long_inputs_are_scanned),
    ("scans_are_recorded_in_graphs", scans_are_recorded_in_graphs),
];

fn running_sums_of_integers_are_exact(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(187);
    macro_rules! sums {
        ($($t:ident),*) => {
            $(for &n in FEW_LENGTHS {
                let x: Vec<$t> = (0..n).map(|_| random.$t(..)).collect();
                let (mut sum, first) = (0, random.$t(..));
                let inclusive: Vec<$t> = x.iter().map(|&x| { sum = x.wrapping_add(sum); sum }).collect();
                let exclusive: Vec<$t> = x.iter().zip(&inclusive).map(|(x, sum)| sum.wrapping_sub(*x).wrapping_add(first)).collect();
                let (x, mut y) = (stream.upload(&x)?, stream.zeros(n)?);
                let what = format!("{n} {}", stringify!($t));
                algorithms::inclusive_sum(&stream, &x, &mut y)?;
                expect(&what, stream.download(&y)?, inclusive)?;
                algorithms::exclusive_sum(&stream, &x, first, &mut y)?;
                expect(&what, stream.download(&y)?, exclusive)?;
            })*
        };
    }
    sums!(i8, i16, i32, i64, u8, u16, u32, u64);
    Ok(())
}

fn running_sums_of_floats_are_close_to_exact(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(188);
    for &n in LENGTHS {
        let x: Vec<f32> = (0..n).map(|_| random.f32() - 0.25).collect();
        let wide: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        let (device_x, device_wide) = (stream.upload(&x)?, stream.upload(&wide)?);
        let (mut y, mut wide_y) = (stream.zeros(n)?, stream.zeros(n)?);
        algorithms::inclusive_sum(&stream, &device_x, &mut y)?;
        algorithms::exclusive_sum(&stream, &device_wide, 1000.0, &mut wide_y)?;
        let (y, wide_y) = (stream.download(&y)?, stream.download(&wide_y)?);
        let mut sum = 0.0;
        for i in 0..n {
            let before = sum + 1000.0;
            sum += wide[i];
            if (f64::from(y[i]) - sum).abs() > 1e-6 * (i + 1) as f64 || (wide_y[i] - before).abs() > 1e-10 {
                return Err(
                    format!("{n}, {i}: {} and {}, expected {sum} and {before}", y[i], wide_y[i]).into()
                );
            }
        }
    }
    Ok(())
}

fn running_sums_write_nothing_else(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.fill(1_u16, 9000)?;
    for n in [1, 33, 4097] {
        let mut y = stream.fill(7_u16, 9000)?;
        algorithms::inclusive_sum(&stream, x.slice(3..3 + n)?, y.slice_mut(5..5 + n)?)?;
        let mut expected = vec![7; 9000];
        (0..n).for_each(|i| expected[5 + i] = i as u16 + 1);
        expect(&format!("{n}"), stream.download(&y)?, expected)?;
    }
    Ok(())
}

fn scans_take_equal_lengths(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let is_expected = |error: &Error| matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }));
    for (n, m) in [(0, 1), (1, 0), (5000, 4999)] {
        let (x, mut y) = (stream.zeros::<u32>(n)?, stream.zeros::<u32>(m)?);
        let what = format!("{n} and {m}");
        expect_error(&what, algorithms::inclusive_sum(&stream, &x, &mut y), is_expected)?;
        expect_error(&what, algorithms::exclusive_sum(&stream, &x, 1, &mut y), is_expected)?;
    }
    Ok(())
}

/// Many blocks that look back. Fewer on the CPU device, where it is slow without optimisation.
fn long_inputs_are_scanned(device: &Device) -> Outcome {
    let n: usize = if device.is_cuda() { 30_000_001 } else { 200_003 };
    let stream = device.new_stream()?;
    let x: Vec<u64> = (0..n as u64).map(|i| i % 1000).collect();
    let (device_x, mut y) = (stream.upload(&x)?, stream.zeros(n)?);
    algorithms::inclusive_sum(&stream, &device_x, &mut y)?;
    let mut sum = 0;
    let expected: Vec<u64> = x
        .iter()
        .map(|x| {
            sum += x;
            sum
        })
        .collect();
    expect("all sums", stream.download(&y)? == expected, true)
}

fn scans_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y) = (stream.zeros::<u32>(10_000)?, stream.zeros::<u32>(10_000)?);
    let (graph, (x, y)) = stream.capture(|capture| {
        let (x, mut y) = (capture.keep(x)?, capture.keep(y)?);
        algorithms::inclusive_sum(capture, &x, &mut y)?;
        Ok((x.key(), y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in 1..4 {
        stream.fill_into(value, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        let sums = stream.download(graph.view(y)?)?;
        expect("sums", sums, (1..=10_000).map(|i| i * value).collect::<Vec<u32>>())?;
    }
    Ok(())
}
