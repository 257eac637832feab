//! `#[elementwise]` functions.

use ferrogrid::prelude::*;
use ferrogrid::{In, InOut, LaunchError};

use super::kernels::templates;
use crate::{Case, Outcome, expect, expect_error};

pub(crate) const CASES: &[Case] = &[
    (
        "elements_are_computed_for_any_length_and_alignment",
        elements_are_computed_for_any_length_and_alignment,
    ),
    ("small_elements_have_their_index", small_elements_have_their_index),
    (
        "an_element_has_several_outputs_and_reads_whole_slices",
        an_element_has_several_outputs_and_reads_whole_slices,
    ),
    (
        "elementwise_functions_are_generic_and_read_constants",
        elementwise_functions_are_generic_and_read_constants,
    ),
    ("elementwise_functions_take_equal_lengths", elementwise_functions_take_equal_lengths),
    ("elementwise_functions_are_recorded_in_graphs", elementwise_functions_are_recorded_in_graphs),
    ("elementwise_functions_take_slices_of_the_host", elementwise_functions_take_slices_of_the_host),
];

/// Lengths around a group of each size, and around the elements of a block.
const LENGTHS: &[usize] = &[0, 1, 2, 3, 4, 5, 15, 16, 17, 255, 257, 1023, 1024, 1025, 4095, 4096, 4097, 9001];

fn elements_are_computed_for_any_length_and_alignment(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let numbers = |n: usize, step: f32| -> Vec<f32> { (0..n).map(|i| i as f32 * step).collect() };
    for &n in LENGTHS {
        // Both slices begin at a multiple of 16 bytes, one of them, or none.
        for (from_x, from_y) in [(0, 0), (1, 0), (4, 3), (2, 2)] {
            let (x, y) = (numbers(n + from_x + 2, 0.5), numbers(n + from_y + 2, 3.0));
            let (device_x, mut device_y) = (stream.upload(&x)?, stream.upload(&y)?);
            templates::axpy(
                &stream,
                2.0,
                device_x.slice(from_x..from_x + n)?,
                device_y.slice_mut(from_y..from_y + n)?,
            )?;
            let mut expected = y.clone();
            for i in 0..n {
                expected[from_y + i] += 2.0 * x[from_x + i];
            }
            expect(&format!("{n}, {from_x}, {from_y}"), stream.download(&device_y)?, expected)?;
        }
    }
    Ok(())
}

fn small_elements_have_their_index(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for &n in LENGTHS {
        for first in [0, 3] {
            let x: Vec<u8> = (0..n + first).map(|i| (i * 7) as u8).collect();
            let (device_x, mut y) = (stream.upload(&x)?, stream.fill(9_u8, n + 1)?);
            templates::add_index(&stream, device_x.slice(first..)?, y.slice_mut(..n)?)?;
            let mut expected: Vec<u8> = (0..n).map(|i| x[first + i].wrapping_add(i as u8)).collect();
            expected.push(9);
            expect(&format!("{n}, {first}"), stream.download(&y)?, expected)?;
        }
    }
    Ok(())
}

fn an_element_has_several_outputs_and_reads_whole_slices(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for &n in LENGTHS {
        let x: Vec<f32> = (0..n).map(|i| i as f32 - 40.0).collect();
        let names: Vec<u16> = (0..n).map(|i| (i * 3) as u16).collect();
        let table = [0.25_f32, 1.5, 2.0];
        let (device_x, device_names) = (stream.upload(&x)?, stream.upload(&names)?);
        let table_on_device = stream.upload(&table)?;
        let poison = templates::Span { least: 7.0, greatest: 7.0, rank: 7 };
        let (mut count, mut sum) = (stream.fill(10_u64, n)?, stream.fill(f64::NAN, n)?);
        let mut spans = stream.upload(&vec![poison; n])?;
        templates::spans(
            &stream,
            (0.0, 100.0),
            &device_x,
            &device_names,
            &table_on_device,
            &mut count,
            &mut sum,
            &mut spans,
        )?;
        let expected: Vec<_> = (0..n)
            .map(|i| {
                let span =
                    templates::Span { least: x[i].min(0.0), greatest: x[i].max(100.0), rank: names[i] as u8 };
                (
                    10 + u64::from(names[i]),
                    f64::from(x[i]) + f64::from(table[usize::from(names[i]) % 3]),
                    span,
                )
            })
            .collect();
        let (count, sum, spans) =
            (stream.download(&count)?, stream.download(&sum)?, stream.download(&spans)?);
        let found: Vec<_> = (0..n).map(|i| (count[i], sum[i], spans[i])).collect();
        expect(&n.to_string(), found, expected)?;
    }
    Ok(())
}

fn elementwise_functions_are_generic_and_read_constants(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut x, mut y) = (stream.upload(&[-1.5_f32, 2.0])?, stream.upload(&[-1.5_f64; 9])?);
    templates::magnitudes::<f32, 1>(&stream, &mut x)?;
    templates::magnitudes::<f64, 2>(&stream, &mut y)?;
    expect("f32", stream.download(&x)?, vec![2.5, 3.0])?;
    expect("f64", stream.download(&y)?, vec![3.5; 9])?;
    templates::OFFSET.set(&stream, &2.0)?;
    templates::magnitudes::<f64, 2>(&stream, &mut y)?;
    expect("by the constant", stream.download(&y)?, vec![0.0; 9])?;
    Ok(templates::OFFSET.set(&stream, &0.5)?)
}

fn elementwise_functions_take_equal_lengths(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.zeros(5)?, stream.zeros(4)?);
    let text = expect_error("lengths", templates::axpy(&stream, 1.0, &x, &mut y), |error| {
        matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }))
    })?;
    expect(&text, text.contains("`x`") && text.contains("`y`"), true)
}

fn elementwise_functions_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y) = (stream.fill(1.0_f32, 3000)?, stream.zeros::<f32>(3000)?);
    let (graph, y) = stream.capture(|capture| {
        let (x, mut y) = (capture.keep(x)?, capture.keep(y)?);
        templates::axpy(capture, 2.0, &x, &mut y)?;
        templates::axpy(capture, 1.0, &x, &mut y)?;
        Ok(y.key())
    })?;
    let mut graph = graph.instantiate()?;
    for launch in 1..4 {
        graph.launch(&stream)?;
        expect("y", stream.download(graph.view(y)?)?, vec![3.0 * launch as f32; 3000])?;
    }
    Ok(())
}

fn elementwise_functions_take_slices_of_the_host(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut y) = ([1.0_f32, 2.0, 3.0], [10.0_f32; 3]);
    templates::axpy(&stream, 2.0, In(&x), InOut(&mut y))?;
    expect("y", y, [12.0, 14.0, 16.0])
}
