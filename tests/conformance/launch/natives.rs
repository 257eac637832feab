//! Native bodies: what the CPU device runs in place of a kernel.

use ferrogrid::prelude::*;

use crate::devices::label;
use crate::launch::native_kernels::natives;
use crate::{Case, Outcome, expect, expect_error};

pub(crate) const CASES: &[Case] = &[
    ("native_bodies_run_on_the_cpu_device", native_bodies_run_on_the_cpu_device),
    ("native_bodies_get_values_slices_and_the_grid", native_bodies_get_values_slices_and_the_grid),
    (
        "native_bodies_are_ordered_and_recorded_as_launches",
        native_bodies_are_ordered_and_recorded_as_launches,
    ),
    ("panics_of_native_bodies_are_those_of_kernels", panics_of_native_bodies_are_those_of_kernels),
];

/// Whether `device` runs native bodies: `cpu_small` runs kernels.
fn is_native(device: &Device) -> bool {
    label(device) == "cpu"
}

fn native_bodies_run_on_the_cpu_device(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [1, 5, 1000] {
        let (x, mut y) = (stream.fill(3_u32, n)?, stream.zeros(n)?);
        natives::natively_scaled(&stream, Grid::cover(n), &x, 2, &mut y)?;
        expect("u32", stream.download(&y)?, vec![if is_native(device) { 7 } else { 6 }; n])?;
        let (x, mut y) = (stream.fill(0.25_f64, n + 1)?, stream.zeros(n + 1)?);
        natives::natively_scaled(&stream, Grid::cover(n), x.slice(1..)?, 2.0, y.slice_mut(..n)?)?;
        let mut expected = vec![if is_native(device) { 1.5 } else { 0.5 }; n + 1];
        expected[n] = 0.0;
        expect("f64", stream.download(&y)?, expected)?;
    }
    let (x, mut y) = (stream.zeros::<u32>(5)?, stream.zeros::<u32>(4)?);
    let refused = natives::natively_scaled(&stream, Grid::cover(5), &x, 2, &mut y);
    expect_error("lengths", refused, |error| matches!(error, Error::Launch(_))).map(drop)
}

fn native_bodies_get_values_slices_and_the_grid(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [0, 1, 64, 65, 300] {
        let x = stream.upload(&(0..n).collect::<Vec<u32>>())?;
        let (mut counted, mut y) = (stream.zeros::<u32>(2)?, stream.zeros::<u32>(6)?);
        natives::natively_summed(&stream, Grid::blocks(6), (9, 1), &x, counted.as_atomic(), &mut y)?;
        let sums = (0..6).map(|block| match n.min(64 * block)..n.min(64 * block + 64) {
            own if own.is_empty() => 9,
            own => own.sum(),
        });
        expect("sums", stream.download(&y)?, sums.collect::<Vec<u32>>())?;
        expect("blocks", stream.download(&counted)?, vec![6, if is_native(device) { 6 } else { 0 }])?;
    }
    Ok(())
}

fn native_bodies_are_ordered_and_recorded_as_launches(device: &Device) -> Outcome {
    let n = 100_000;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let (x, y) = (stream.zeros::<u32>(n)?, stream.zeros::<u32>(n)?);
    let (graph, (x, y)) = stream.capture(|capture| {
        let (mut x, mut y) = (capture.keep(x)?, capture.keep(y)?);
        natives::natively_scaled(capture, Grid::cover(n), &x, 2, &mut y)?;
        natives::natively_scaled(capture, Grid::cover(n), &y, 3, &mut x)?;
        Ok((x.key(), y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    let one = u32::from(is_native(device));
    for value in 1..4 {
        other.fill_into(value, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        let mut sum = other.zeros::<u32>(n)?;
        natives::natively_scaled(&other, Grid::cover(n), graph.view(x)?, 10, &mut sum)?;
        let expected = (value * 2 + one) * 3 + one;
        expect("the other stream", other.download(&sum)?, vec![expected * 10 + one; n])?;
        expect("the graph", stream.download(graph.view(y)?)?, vec![value * 2 + one; n])?;
    }
    Ok(())
}

fn panics_of_native_bodies_are_those_of_kernels(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut x = stream.upload(&[7_u32])?;
    natives::natively_failing(&stream, Grid::cover(1), &mut x)?;
    if is_native(device) {
        let text = expect_error("a panic", stream.synchronize(), |error| {
            matches!(error, Error::KernelPanic { block: [0, 0, 0], thread: [0, 0, 0], .. })
        })?;
        expect("its message", text.contains("element 0 is 7") && text.contains("native_kernels.rs"), true)?;
        stream.upload_into(&[0], &mut x)?;
    }
    natives::natively_failing(&stream, Grid::cover(1), &mut x)?;
    expect("the next launch", stream.download(&x)?, vec![if is_native(device) { 2 } else { 1 }])
}
