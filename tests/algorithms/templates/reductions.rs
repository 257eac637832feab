//! `#[reduction]` functions.

use ferrogrid::prelude::*;
use ferrogrid::{LaunchError, algorithms};

use super::kernels::templates::{self, Moments};
use crate::{Case, Outcome, expect, expect_error};

pub(crate) const CASES: &[Case] = &[
    ("a_reduction_has_the_bits_of_the_ready_made_sum", a_reduction_has_the_bits_of_the_ready_made_sum),
    ("a_reduction_is_finished_once", a_reduction_is_finished_once),
    ("accumulators_have_any_size", accumulators_have_any_size),
    ("reductions_find_positions", reductions_find_positions),
    ("reductions_are_generic_and_read_whole_slices", reductions_are_generic_and_read_whole_slices),
    ("reductions_take_equal_lengths", reductions_take_equal_lengths),
    ("reductions_of_functions_are_recorded_in_graphs", reductions_of_functions_are_recorded_in_graphs),
];

/// Lengths around a warp, a tile of a block (4096 elements), and the next block.
const LENGTHS: &[usize] = &[0, 1, 31, 33, 255, 256, 257, 4095, 4096, 4097, 8192, 12_301];

/// A change of these bits breaks a promise to users: the order of additions is part of the function.
fn a_reduction_has_the_bits_of_the_ready_made_sum(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(183);
    let x: Vec<f32> =
        (0..100_003).map(|_| ((random.f64() - 0.5) * 10_f64.powi(random.i32(-6..6))) as f32).collect();
    let x = stream.upload(&x)?;
    expect("bits", templates::sum(&stream, &x)?.to_bits(), 1248352338)?;
    for &n in LENGTHS {
        // Also of a misaligned view.
        for first in [0, 3] {
            let x = x.slice(first..first + n)?;
            let expected = algorithms::sum(&stream, x)?.to_bits();
            expect(&format!("{n}, {first}"), templates::sum(&stream, x)?.to_bits(), expected)?;
        }
    }
    Ok(())
}

fn a_reduction_is_finished_once(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for &n in LENGTHS {
        let (x, y) = (stream.fill(3.0_f32, n)?, stream.fill(1.0_f32, n)?);
        expect(&n.to_string(), templates::distance(&stream, 0.5, &x, &y)?, (n as f64).sqrt())?;
    }
    Ok(())
}

fn accumulators_have_any_size(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for &n in LENGTHS {
        let x: Vec<f64> = (0..n).map(|i| (i % 10) as f64).collect();
        let found = templates::moments(&stream, &stream.upload(&x)?)?;
        let mean = x.iter().sum::<f64>() / n.max(1) as f64;
        let deviations: f64 = x.iter().map(|x| (x - mean).powi(2)).sum();
        let is_close = (found.mean - mean).abs() < 1e-12
            && (found.deviations - deviations).abs() < 1e-9 * (n as f64 + 1.0);
        expect(&format!("{n}: {found:?}, {mean}, {deviations}"), (found.count, is_close), (n as u64, true))?;
    }
    let bits = |n: usize| -> Result<_, Box<dyn std::error::Error>> {
        let x: Vec<f64> = (0..n).map(|i| (i * i % 1013) as f64 * 0.1).collect();
        let Moments { mean, deviations, .. } = templates::moments(&stream, &stream.upload(&x)?)?;
        Ok((mean.to_bits(), deviations.to_bits()))
    };
    expect("bits", bits(20_001)?, (4632320425312034826, 4715476724461528667))
}

fn reductions_find_positions(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for &n in LENGTHS {
        let mut x: Vec<i32> = (0..n).map(|i| (i * 31 % 97) as i32 - 50).collect();
        let places = if n > 2 { vec![n - 1, n / 2] } else { Vec::new() };
        places.iter().for_each(|&at| x[at] = 1000);
        let expected = (0..n).rev().max_by_key(|&i| x[i]).map_or(u32::MAX, |i| i as u32);
        expect(&n.to_string(), templates::first_greatest(&stream, &stream.upload(&x)?)?, expected)?;
    }
    Ok(())
}

fn reductions_are_generic_and_read_whole_slices(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let kept = stream.upload(&[1_u8, 0])?;
    let x = stream.upload(&[2_u8, 100, 3, 100, 5])?;
    expect("u8", templates::product::<u8>(&stream, &kept, &x)?, 30)?;
    let x = stream.upload(&[2_u32, 100, 3, 100, 500])?;
    expect("u32", templates::product(&stream, &kept, &x)?, 3000)
}

fn reductions_take_equal_lengths(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y) = (stream.zeros(5)?, stream.zeros(4)?);
    let text = expect_error("lengths", templates::distance(&stream, 1.0, &x, &y), |error| {
        matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }))
    })?;
    expect(&text, text.contains("`x`") && text.contains("`y`"), true)
}

fn reductions_of_functions_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, sum) = (stream.zeros::<f32>(10_000)?, stream.zeros::<f32>(1)?);
    let (graph, (x, sum)) = stream.capture(|capture| {
        let (x, mut sum) = (capture.keep(x)?, capture.keep(sum)?);
        templates::sum_into(capture, &x, &mut sum)?;
        Ok((x.key(), sum.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in 1..4 {
        stream.fill_into(value as f32, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        expect("sum", stream.download(graph.view(sum)?)?, vec![10_000.0 * value as f32])?;
    }
    Ok(())
}
