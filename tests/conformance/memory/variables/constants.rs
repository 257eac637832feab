//! Constant memory: kernels read the initial value or the last one that the host set, in stream order.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ferrogrid::prelude::*;
use ferrogrid::{CpuOptions, Device};

use crate::language::kernels::elementwise;
use crate::memory::variables::constant_kernels::constants::{self, LINE, Line, STEPS, WEIGHTS, ZERO};
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("constants_have_the_initial_value_of_the_source", constants_have_the_initial_value_of_the_source),
    ("constants_are_set_and_read_in_the_order_of_a_stream", constants_are_set_and_read_in_order),
    ("constants_are_ordered_across_streams", constants_are_ordered_across_streams),
    ("each_device_has_constants_of_its_own", each_device_has_constants_of_its_own),
    ("a_barrier_may_depend_on_a_constant", a_barrier_may_depend_on_a_constant),
    ("graphs_set_and_read_constants", graphs_set_and_read_constants),
    ("graphs_keep_the_values_that_they_set_constants_to", graphs_keep_the_values_that_they_set_constants_to),
    ("children_read_constants_that_their_parent_sets", children_read_constants_that_their_parent_sets),
    ("bodies_of_graphs_set_constants", bodies_of_graphs_set_constants),
    ("bodies_of_graphs_read_constants", bodies_of_graphs_read_constants),
    ("threads_set_constants_and_launch", threads_set_constants_and_launch),
];

const AT_FIRST: [f32; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];

/// Cases run at the same time, and a device has each constant once.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn constants_have_the_initial_value_of_the_source(device: &Device) -> Outcome {
    let _alone = alone();
    let stream = device.new_stream()?;
    let mut y = stream.zeros::<[f64; 4]>(100)?;
    constants::everything(&stream, Grid::cover(100), &mut y)?;
    for (i, found) in stream.download(&y)?.into_iter().enumerate() {
        let square = ((i % 64) * (i % 64)) as f64;
        expect("everything", found, [31.0, -3.0 + 0.5 * i as f64, square, 0.0])?;
    }
    expect("weights", WEIGHTS.get(&stream)?, AT_FIRST)?;
    expect("line", LINE.get(&stream)?, Line { slope: 0.5, start: -3, upwards: true })?;
    expect("zero", ZERO.get(&stream)?, [0; 3])?;
    let mut ones = stream.fill(1.0_f64, 10)?;
    constants::scaled(&stream, Grid::cover(10), &mut ones)?;
    expect("in generic code", stream.download(&ones)?, vec![0.5; 10])?;
    names(WEIGHTS.name(), &["constant_kernels::constants::WEIGHTS"])
}

fn constants_are_set_and_read_in_order(device: &Device) -> Outcome {
    let _alone = alone();
    let stream = device.new_stream()?;
    let (mut first, mut second) = (stream.zeros::<f32>(10)?, stream.zeros::<f32>(10)?);
    WEIGHTS.set(&stream, &[5.0; 5])?;
    constants::weights(&stream, Grid::cover(10), &mut first)?;
    WEIGHTS.set(&stream, &[7.0, 8.0, 9.0, 10.0, 11.0])?;
    constants::weights(&stream, Grid::cover(10), &mut second)?;
    expect("first", stream.download(&first)?, vec![5.0; 10])?;
    expect("second", stream.download(&second)?, [7.0, 8.0, 9.0, 10.0, 11.0].repeat(2))?;
    expect("read back", WEIGHTS.get(&stream)?, [7.0, 8.0, 9.0, 10.0, 11.0])?;

    let many = stream.upload(&[[3.0_f32; 5], [4.0; 5], [5.0; 5]])?;
    WEIGHTS.copy_from(&stream, many.slice(1..2)?)?;
    constants::weights(&stream, Grid::cover(10), &mut first)?;
    expect("from a buffer", stream.download(&first)?, vec![4.0; 10])?;
    let error = expect_error("of three elements", WEIGHTS.copy_from(&stream, &many), |error| {
        matches!(error, Error::LengthMismatch { source_length: 3, target_length: 1, .. })
    })?;
    names(&error, &["3", "1"])?;
    WEIGHTS.set(&stream, &AT_FIRST)?;
    Ok(stream.synchronize()?)
}

fn constants_are_ordered_across_streams(device: &Device) -> Outcome {
    let _alone = alone();
    let rounds = if device.is_cuda() { 1_000_000 } else { 2_000 };
    let (launching, setting) = (device.new_stream()?, device.new_stream()?);
    let mut all = launching.zeros::<u64>(256)?;
    for round in 0..20_u64 {
        constants::late(&launching, Grid::cover(256), rounds, &mut all)?;
        // Runs after the launch, which reads twice.
        ZERO.set(&setting, &[round + 1, 0, 0])?;
        expect("old", launching.download(&all)?, vec![2 * round; 256])?;
        expect("new", ZERO.get(&launching)?, [round + 1, 0, 0])?;
    }
    ZERO.set(&setting, &[0; 3])?;
    expect("on the other", ZERO.get(&launching)?, [0; 3])
}

fn each_device_has_constants_of_its_own(device: &Device) -> Outcome {
    let _alone = alone();
    let other = Device::cpu_with(CpuOptions::new().workers(2))?;
    let (here, there) = (device.new_stream()?, other.new_stream()?);
    WEIGHTS.set(&there, &[6.0; 5])?;
    let (mut ours, mut theirs) = (here.zeros::<f32>(5)?, there.zeros::<f32>(5)?);
    constants::weights(&here, Grid::cover(5), &mut ours)?;
    constants::weights(&there, Grid::cover(5), &mut theirs)?;
    expect("here", here.download(&ours)?, AT_FIRST.to_vec())?;
    expect("there", there.download(&theirs)?, vec![6.0; 5])
}

fn a_barrier_may_depend_on_a_constant(device: &Device) -> Outcome {
    let _alone = alone();
    let stream = device.new_stream()?;
    let mut y = stream.zeros::<u32>(64)?;
    constants::doubled(&stream, Grid::cover(64), &mut y)?;
    expect("three steps", stream.download(&y)?, vec![8; 64])?;
    STEPS.set(&stream, &5)?;
    constants::doubled(&stream, Grid::cover(64), &mut y)?;
    STEPS.set(&stream, &3)?;
    expect("five steps", stream.download(&y)?, vec![32; 64])
}

fn graphs_set_and_read_constants(device: &Device) -> Outcome {
    let _alone = alone();
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut weights = stream.upload(&[[2.0_f32; 5]])?;
    let (mut before, mut after) = (stream.zeros::<f32>(10)?, stream.zeros::<f32>(10)?);
    let (graph, (key, last)) = stream.capture(|capture| {
        let mut before = capture.write(&mut before)?;
        constants::weights(capture, Grid::cover(10), &mut before)?;
        // Buffers that the graph gets after it has used a constant.
        let (weights, mut after) = (capture.write(&mut weights)?, capture.write(&mut after)?);
        let branch = capture.node(&[], |stream| WEIGHTS.copy_from(stream, &weights))?;
        // Ordered by the constant alone.
        let last = capture.node(&[], |stream| constants::weights(stream, Grid::cover(10), &mut after))?;
        assert_ne!(branch, last);
        Ok((weights.key(), last))
    })?;
    expect("nodes", graph.len(), 3)?;
    expect("the copy comes before", graph.dependencies(last)?.len(), 1)?;
    let mut graph = graph.instantiate()?;
    for round in 0..5 {
        let value = 10.0 * round as f32;
        WEIGHTS.set(&other, &AT_FIRST)?;
        stream.upload_into(&[[value; 5]], graph.view_mut(key)?)?;
        graph.launch(&stream)?;
        expect("left by the graph", WEIGHTS.get(&other)?, [value; 5])?;
    }
    drop(graph);
    WEIGHTS.set(&other, &AT_FIRST)?;
    expect("before", stream.download(&before)?, AT_FIRST.repeat(2))?;
    expect("after", stream.download(&after)?, vec![40.0; 10])
}

fn children_read_constants_that_their_parent_sets(device: &Device) -> Outcome {
    let _alone = alone();
    let stream = device.new_stream()?;
    WEIGHTS.set(&stream, &AT_FIRST)?;
    let reading = || {
        let y = stream.zeros::<f32>(10)?;
        stream.capture(|capture| {
            let mut y = capture.keep(y)?;
            constants::weights(capture, Grid::cover(10), &mut y)?;
            Ok(y.key())
        })
    };
    let ((first, before), (second, after)) = (reading()?, reading()?);
    let (graph, nodes) = stream.capture(|capture| {
        let first = capture.child_node(&[], first)?;
        let set = capture.node(&[], |line| WEIGHTS.set(line, &[7.0; 5]))?;
        Ok([first, set, capture.child_node(&[], second)?])
    })?;
    // Ordered by the constant alone.
    expect("set", graph.dependencies(nodes[1])?, vec![nodes[0]])?;
    expect("the second child", graph.dependencies(nodes[2])?, vec![nodes[1]])?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    expect("before", stream.download(graph.view(before)?)?, AT_FIRST.repeat(2))?;
    expect("after", stream.download(graph.view(after)?)?, vec![7.0; 10])?;
    drop(graph);
    Ok(WEIGHTS.set(&stream, &AT_FIRST)?)
}

fn graphs_keep_the_values_that_they_set_constants_to(device: &Device) -> Outcome {
    let _alone = alone();
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let y = || other.zeros::<f32>(5);
    let record = |value: f32, first: DeviceBuffer<f32>, second: DeviceBuffer<f32>| {
        stream.capture(move |capture| {
            let short_lived = Box::new([value; 5]);
            WEIGHTS.set(capture, &short_lived)?;
            drop(short_lived);
            let mut first = capture.keep(first)?;
            constants::weights(capture, Grid::cover(5), &mut first)?;
            WEIGHTS.set(capture, &[value + 1.0; 5])?;
            let mut second = capture.keep(second)?;
            constants::weights(capture, Grid::cover(5), &mut second)?;
            Ok([first.key(), second.key()])
        })
    };
    let (graph, keys) = record(3.0, y()?, y()?)?;
    expect("nodes", graph.len(), 4)?;
    let mut graph = graph.instantiate()?;
    for _ in 0..3 {
        WEIGHTS.set(&other, &AT_FIRST)?;
        graph.launch(&stream)?;
        expect("first", stream.download(graph.view(keys[0])?)?, vec![3.0; 5])?;
        expect("second", stream.download(graph.view(keys[1])?)?, vec![4.0; 5])?;
    }
    let (updated, keys) = record(7.0, y()?, y()?)?;
    graph.update(updated)?;
    graph.launch(&stream)?;
    expect("first, updated", stream.download(graph.view(keys[0])?)?, vec![7.0; 5])?;
    drop(graph);
    expect("left by the graph", WEIGHTS.get(&other)?, [8.0; 5])?;
    Ok(WEIGHTS.set(&other, &AT_FIRST)?)
}

fn bodies_of_graphs_set_constants(device: &Device) -> Outcome {
    let _alone = alone();
    let stream = device.new_stream()?;
    let (rounds, y) = (stream.upload(&[3_u32])?, stream.zeros::<f32>(5)?);
    let (graph, y) = stream.capture(|capture| {
        let (mut rounds, mut y) = (capture.keep(rounds)?, capture.keep(y)?);
        capture.while_node(rounds.key(), |body| {
            WEIGHTS.set(body, &[6.0; 5])?;
            constants::weights(body, Grid::cover(5), &mut y)?;
            WEIGHTS.set(body, &AT_FIRST)?;
            elementwise::count_down(body, Grid::cover(1), &mut rounds)
        })?;
        Ok(y.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    expect("read in the body", stream.download(graph.view(y)?)?, vec![6.0; 5])?;
    expect("left by the body", WEIGHTS.get(&stream)?, AT_FIRST)
}

fn bodies_of_graphs_read_constants(device: &Device) -> Outcome {
    let _alone = alone();
    let stream = device.new_stream()?;
    let mut condition = stream.upload(&[1_u32])?;
    let mut y = stream.zeros::<f32>(5)?;
    let recorded = stream.capture(|capture| {
        let (mut y, condition) = (capture.write(&mut y)?, capture.write(&mut condition)?);
        capture.if_node(condition.key(), |body| constants::weights(body, Grid::cover(5), &mut y))?;
        // Another use, and another buffer, after the body.
        constants::weights(capture, Grid::cover(5), &mut y)
    });
    let (graph, ()) = recorded?;
    expect("nodes", graph.len(), 2)?;
    let graph = graph.instantiate();
    let mut graph = match graph {
        Err(Error::Unsupported { .. }) => return crate::table::not_for_this_device("conditional nodes"),
        graph => graph?,
    };
    WEIGHTS.set(&stream, &[3.0; 5])?;
    graph.launch(&stream)?;
    WEIGHTS.set(&stream, &AT_FIRST)?;
    drop(graph);
    expect("read", stream.download(&y)?, vec![3.0; 5])
}

/// Each launch sees one value as a whole: no setter comes between its first and its last thread.
fn threads_set_constants_and_launch(device: &Device) -> Outcome {
    let _alone = alone();
    std::thread::scope(|scope| {
        let setter = scope.spawn(|| -> ferrogrid::Result<()> {
            let stream = device.new_stream()?;
            (0..200).try_for_each(|round| WEIGHTS.set(&stream, &[round as f32; 5]))?;
            stream.synchronize()
        });
        let launchers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| -> ferrogrid::Result<bool> {
                    let stream = device.new_stream()?;
                    let mut y = stream.zeros::<f32>(5000)?;
                    let mut whole = true;
                    for _ in 0..100 {
                        constants::weights(&stream, Grid::new(50, 100), &mut y)?;
                        let y = stream.download(&y)?;
                        let is_first = y[..5] == AT_FIRST;
                        whole &= y.iter().zip(y.iter().skip(5)).all(|(a, b)| a == b || is_first);
                        whole &= is_first || y.iter().all(|value| *value == y[0]);
                    }
                    Ok(whole)
                })
            })
            .collect();
        setter.join().expect("no panic")?;
        for launcher in launchers {
            expect("whole values", launcher.join().expect("no panic")?, true)?;
        }
        let stream = device.new_stream()?;
        expect("the last", WEIGHTS.get(&stream)?, [199.0; 5])?;
        WEIGHTS.set(&stream, &AT_FIRST)?;
        Ok(())
    })
}
