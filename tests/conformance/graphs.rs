//! Graphs of typed launches. What needs no kernel is in `runtime/graphs.rs`.

use ferrogrid::prelude::*;
use ferrogrid::{Device, Error, GraphError};

use super::kernels::elementwise;
use super::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("typed_launches_are_recorded_and_replayed", typed_launches_are_recorded_and_replayed),
    ("a_graph_of_branches_gives_what_streams_give", a_graph_of_branches_gives_what_streams_give),
    ("a_kernel_of_a_graph_takes_other_arguments", a_kernel_of_a_graph_takes_other_arguments),
    (
        "a_launch_over_the_limits_is_refused_in_a_recording",
        a_launch_over_the_limits_is_refused_in_a_recording,
    ),
];

const LENGTH: usize = 100_000;

fn typed_launches_are_recorded_and_replayed(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut data = stream.zeros::<u32>(LENGTH)?;
    let (graph, key) = stream.capture(|capture| {
        let mut data = capture.write(&mut data)?;
        for _ in 0..20 {
            elementwise::increment(capture, Grid::cover(LENGTH), &mut data)?;
        }
        Ok(data.key())
    })?;
    expect("nodes", graph.len(), 20)?;
    let mut graph = graph.instantiate()?;
    for round in 0..10 {
        graph.launch(if round % 2 == 0 { &stream } else { &other })?;
        elementwise::increment(&stream, Grid::cover(LENGTH), graph.view_mut(key)?)?;
    }
    let result = other.download(graph.view(key)?)?;
    expect("all", result.iter().all(|&value| value == 10 * 21), true)
}

fn a_graph_of_branches_gives_what_streams_give(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let source = stream.upload(&(0..LENGTH as u32).collect::<Vec<_>>())?;
    let (mut left, mut right) = (stream.zeros::<u32>(LENGTH)?, stream.zeros::<u32>(LENGTH)?);
    let (graph, ()) = stream.capture(|capture| {
        let source = capture.read(&source)?;
        let (mut left, mut right) = (capture.write(&mut left)?, capture.write(&mut right)?);
        let branch = capture.fork()?;
        elementwise::copy(capture, Grid::cover(LENGTH), source, &mut left)?;
        elementwise::increment(&branch, Grid::cover(LENGTH), &mut right)?;
        elementwise::increment(capture, Grid::cover(LENGTH), &mut left)?;
        capture.join([&branch])?;
        // Across the branches, ordered by the buffers.
        elementwise::copy(&branch, Grid::cover(LENGTH), &left, &mut right)?;
        elementwise::increment(capture, Grid::cover(LENGTH), &mut left)
    })?;
    let mut graph = graph.instantiate()?;
    for _ in 0..20 {
        graph.launch(&stream)?;
    }
    let (left, right) = (stream.download(&left)?, stream.download(&right)?);
    let all = (0..LENGTH as u32).all(|i| left[i as usize] == i + 2 && right[i as usize] == i + 1);
    expect("both", all, true)
}

fn a_kernel_of_a_graph_takes_other_arguments(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let (graph, (node, key)) = stream.capture(|capture| {
        let x = capture.read(&x)?;
        let mut y = capture.write(&mut y)?;
        let launch = |stream: &Stream| elementwise::saxpy(stream, Grid::cover(LENGTH), 1.0, x, &mut y);
        let node = capture.node(&[], launch)?;
        Ok((node, y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for factor in 1..=10_u8 {
        graph.update_kernel(node, |update| {
            let mut y = update.buffer(key)?;
            elementwise::saxpy(update, Grid::cover(LENGTH), f32::from(factor), &x, &mut y)
        })?;
        graph.launch(&stream)?;
    }
    expect("sum", stream.download(graph.view(key)?)?, vec![55.0; LENGTH])?;
    let refused = graph.update_kernel(node, |update| {
        let _y = update.buffer(key)?;
        Ok(())
    });
    expect("no launch", refused, Err(Error::Graph(GraphError::NotOneLaunch { count: 0 })))
}

fn a_launch_over_the_limits_is_refused_in_a_recording(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.zeros::<u32>(4)?;
    let refused = stream.capture(|capture| {
        let mut data = capture.write(&mut data)?;
        elementwise::increment(capture, Grid::new(1, 2048), &mut data)
    });
    expect("refused", matches!(refused, Err(Error::BlockTooLarge { .. })), true)?;
    elementwise::increment(&stream, Grid::cover(4), &mut data)?;
    expect("still usable", stream.download(&data)?, vec![1; 4])
}
