//! Graphs of typed launches. Cases without kernels are in `runtime/graph`.

use ferrogrid::prelude::*;
use ferrogrid::{Device, DotOptions, Error, GraphError, LaunchError};

use crate::language::kernels::elementwise;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("typed_launches_are_recorded_and_replayed", typed_launches_are_recorded_and_replayed),
    (
        "a_graph_with_branches_gives_the_results_of_streams",
        a_graph_with_branches_gives_the_results_of_streams,
    ),
    ("a_kernel_of_a_graph_takes_other_arguments", a_kernel_of_a_graph_takes_other_arguments),
    (
        "a_launch_over_the_limits_is_refused_in_a_recording",
        a_launch_over_the_limits_is_refused_in_a_recording,
    ),
    ("a_body_runs_if_its_condition_holds", a_body_runs_if_its_condition_holds),
    ("a_body_runs_while_its_condition_holds", a_body_runs_while_its_condition_holds),
    ("loops_in_loops_run_as_often_as_they_say", loops_in_loops_run_as_often_as_they_say),
    ("unsupported_nodes_in_a_body_are_refused", unsupported_nodes_in_a_body_are_refused),
    ("a_picture_has_the_requested_details", a_picture_has_the_requested_details),
    ("kernels_use_page_locked_memory_of_a_graph", kernels_use_page_locked_memory_of_a_graph),
    ("kernels_use_memory_that_a_graph_allocates", kernels_use_memory_that_a_graph_allocates),
];

const LENGTH: usize = 10_000;

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

fn a_graph_with_branches_gives_the_results_of_streams(device: &Device) -> Outcome {
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
    expect("refused", matches!(refused, Err(Error::Launch(LaunchError::BlockTooLarge { .. }))), true)?;
    elementwise::increment(&stream, Grid::cover(4), &mut data)?;
    expect("still usable", stream.download(&data)?, vec![1; 4])
}

fn a_body_runs_if_its_condition_holds(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut chosen = stream.zeros::<u32>(1)?;
    let mut data = stream.zeros::<u32>(LENGTH)?;
    let (graph, (chosen, data, node)) = stream.capture(|capture| {
        let chosen = capture.write(&mut chosen)?;
        let mut data = capture.write(&mut data)?;
        elementwise::increment(capture, Grid::cover(LENGTH), &mut data)?;
        let node = capture.if_node(chosen.key(), |body| {
            elementwise::increment(body, Grid::cover(LENGTH), &mut data)?;
            elementwise::increment(body, Grid::cover(LENGTH), &mut data)
        })?;
        elementwise::increment(capture, Grid::cover(LENGTH), &mut data)?;
        Ok((chosen.key(), data.key(), node))
    })?;
    expect("nodes", graph.len(), 3)?;
    expect("it comes after the first", graph.dependencies(node)?.len(), 1)?;
    names(&graph.to_dot(), &["n0 -> n1;", "n1 -> n2;", "cluster_n1", "n1_0 -> n1_1;", "if"])?;
    let mut graph = graph.instantiate()?;
    let mut expected = 0;
    for value in [0, 1, 0, u32::MAX, 2] {
        stream.fill_into(value, graph.view_mut(chosen)?)?;
        graph.launch(&stream)?;
        expected += if value == 0 { 2 } else { 4 };
        let found = stream.download(graph.view(data)?)?;
        expect(&format!("after {value}"), found == vec![expected; LENGTH], true)?;
    }
    let disabled = graph.set_enabled(node, false);
    let is_expected =
        |error: &Error| matches!(error, Error::Graph(GraphError::CannotDisable { node: 1, .. }));
    expect_error("a conditional node", disabled, is_expected).map(drop)
}

fn a_body_runs_while_its_condition_holds(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let data = stream.zeros::<u32>(1000)?;
    let mut rounds = stream.zeros::<u32>(1)?;
    let (graph, (rounds, data)) = stream.capture(|capture| {
        let mut rounds = capture.write(&mut rounds)?;
        let mut data = capture.keep(data)?;
        capture.while_node(rounds.key(), |body| {
            elementwise::increment(body, Grid::cover(1000), &mut data)?;
            elementwise::count_down(body, Grid::cover(1), &mut rounds)
        })?;
        Ok((rounds.key(), data.key()))
    })?;
    let mut graph = graph.instantiate()?;
    let mut expected = 0;
    for count in [0, 1, 100, 3] {
        stream.fill_into(count, graph.view_mut(rounds)?)?;
        graph.launch(&stream)?;
        // A second launch: the condition is 0 by then.
        graph.launch(&stream)?;
        expected += count;
        let found = stream.download(graph.view(data)?)?;
        expect(&format!("after {count} rounds"), found == vec![expected; 1000], true)?;
        expect("rounds left", stream.download(graph.view(rounds)?)?, vec![0])?;
    }
    Ok(())
}

fn loops_in_loops_run_as_often_as_they_say(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (outer, inner) = (stream.upload(&[5_u32])?, stream.zeros::<u32>(1)?);
    let (three, total) = (stream.upload(&[3_u32])?, stream.zeros::<u32>(1)?);
    let (graph, (outer, total)) = stream.capture(|capture| {
        let (mut outer, mut inner) = (capture.keep(outer)?, capture.keep(inner)?);
        let (three, mut total) = (capture.keep(three)?, capture.keep(total)?);
        capture.while_node(outer.key(), |body| {
            body.copy(&three, &mut inner)?;
            body.while_node(inner.key(), |body| {
                elementwise::increment(body, Grid::cover(1), &mut total)?;
                elementwise::count_down(body, Grid::cover(1), &mut inner)
            })?;
            elementwise::count_down(body, Grid::cover(1), &mut outer)
        })?;
        Ok((outer.key(), total.key()))
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    expect("5 times 3 rounds", stream.download(graph.view(total)?)?, vec![15])?;
    stream.fill_into(2, graph.view_mut(outer)?)?;
    graph.launch(&stream)?;
    expect("and 2 times 3", stream.download(graph.view(total)?)?, vec![21])
}

fn unsupported_nodes_in_a_body_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut flag = stream.zeros::<u32>(1)?;
    let mut data = stream.zeros::<u32>(10)?;
    let mut empty = stream.zeros::<u32>(0)?;
    let (graph, key) = stream.capture(|capture| {
        let mut flag = capture.write(&mut flag)?;
        let mut data = capture.write(&mut data)?;
        let empty = capture.write(&mut empty)?;
        let no_condition = capture.if_node(empty.key(), |_| Ok(())).map(drop);
        is_graph_error("an empty condition", no_condition, GraphError::NoCondition);
        let elsewhere = capture.if_node(flag.key(), |_| capture.fill_into(1, &mut data)).map(drop);
        is_graph_error("work outside the body", elsewhere, GraphError::OtherBody);
        let mut kept = None;
        capture.if_node(flag.key(), |body| {
            kept = Some(body.fork()?);
            body.fill_into(3, &mut data)
        })?;
        let later = kept.map_or(Ok(()), |stream| stream.fill_into(1, &mut data));
        is_graph_error("a stream of the body, later", later, GraphError::OtherBody);
        let call = capture.if_node(flag.key(), |body| body.launch_host_func(|| ())).map(drop);
        assert!(matches!(call, Err(Error::Graph(GraphError::NotRecordable { .. }))), "{call:?}");
        // Refused calls leave nothing in the graph.
        capture.fill_into(1, &mut flag)?;
        Ok(flag.key())
    })?;
    expect("nodes", graph.len(), 2)?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    expect("flag", stream.download(graph.view(key)?)?, vec![1])?;
    drop(graph);
    expect("data", stream.download(&data)?, vec![3; 10])
}

/// Fails unless `found` is the error `expected`.
#[track_caller]
fn is_graph_error(what: &str, found: ferrogrid::Result<()>, expected: GraphError) {
    assert_eq!(found, Err(Error::Graph(expected)), "{what}");
}

fn a_picture_has_the_requested_details(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (data, host) = (stream.zeros::<u32>(LENGTH)?, device.pinned_zeros::<u32>(LENGTH)?);
    let (bytes, width) = (4 * LENGTH, format!("width {}, height 1", 4 * LENGTH));
    let from = format!("from {:p}, pitch {bytes}", data.as_device_ptr().as_raw());
    let to = format!("to {:p}, pitch {bytes}", host.as_ptr());
    let (graph, ()) = stream.capture(|capture| {
        let (mut data, mut host) = (capture.keep(data)?, capture.keep_pinned(host)?);
        capture.fill_into(0x1234_5678, &mut data)?;
        elementwise::increment(capture, Grid::cover(LENGTH).with_priority(0), &mut data)?;
        capture.copy(&data, &mut host)?;
        capture.launch_host_func(|| ()).map(drop)
    })?;
    let plain = graph.to_dot_with(DotOptions::new())?;
    let options = [
        ("parameters", DotOptions::new().params()),
        ("attributes", DotOptions::new().attributes()),
        ("handles", DotOptions::new().handles()),
        ("all", DotOptions::new().verbose()),
    ];
    for (what, options) in options {
        let text = graph.to_dot_with(options)?;
        expect("a graph", text.starts_with("digraph"), true)?;
        expect(what, text.len() > plain.len(), true)?;
    }
    if device.is_cuda() {
        return Ok(()); // The words are the driver's.
    }
    expect("what is not asked for", plain == graph.to_dot(), true)?;
    let params = graph.to_dot_with(DotOptions::new().params())?;
    names(&params, &["value 0x12345678 of 4 bytes", "2 parameters", &width, "function 0x", &from, &to])?;
    expect("no attributes", params.contains("priority"), false)?;
    names(&graph.to_dot_with(DotOptions::new().attributes())?, &["cooperative false", "priority 0"])?;
    let handles = graph.to_dot_with(DotOptions::new().handles())?;
    expect("handles", handles.matches("handle 0x").count(), 4)?;
    let all = graph.to_dot_with(DotOptions::new().verbose())?;
    names(&all, &["handle 0x", "priority 0", "value 0x12345678"])
}

fn kernels_use_page_locked_memory_of_a_graph(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (allocated, registered) = (device.pinned_zeros::<u32>(LENGTH)?, device.pin(vec![0_u32; LENGTH])?);
    let (graph, (first, second)) = stream.capture(|capture| {
        let (mut first, mut second) = (capture.keep_pinned(allocated)?, capture.keep_pinned(registered)?);
        elementwise::increment(capture, Grid::cover(LENGTH), &mut first)?;
        elementwise::copy(capture, Grid::cover(LENGTH), &first, &mut second)?;
        capture.fill_into(9, second.view_mut().slice(..1)?)?;
        Ok((first.key(), second.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for round in 1..5 {
        graph.launch(&stream)?;
        let (first, second) = (graph.pinned(first)?, graph.pinned(second)?);
        expect("in place", first.iter().all(|&value| value == round), true)?;
        expect("a copy", second[0] == 9 && second[1..].iter().all(|&value| value == round), true)?;
    }
    Ok(())
}

/// Also in a body.
fn kernels_use_memory_that_a_graph_allocates(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (rounds, mut data) = (stream.zeros::<u32>(1)?, stream.zeros::<u32>(LENGTH)?);
    let (graph, (rounds, data)) = stream.capture(|capture| {
        let (mut rounds, mut data) = (capture.keep(rounds)?, capture.write(&mut data)?);
        let mut sums = capture.zeros::<u32>(LENGTH)?;
        capture.while_node(rounds.key(), |body| {
            elementwise::increment(body, Grid::cover(LENGTH), &mut sums)?;
            elementwise::count_down(body, Grid::cover(1), &mut rounds)
        })?;
        elementwise::copy(capture, Grid::cover(LENGTH), &sums, &mut data)?;
        drop(sums);
        let mut more = capture.zeros::<u32>(LENGTH)?;
        elementwise::increment(capture, Grid::cover(LENGTH), &mut more)?;
        capture.copy(more.slice(1..)?, data.slice_mut(1..)?)?;
        Ok((rounds.key(), data.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for count in [3, 0, 10] {
        stream.fill_into(count, graph.view_mut(rounds)?)?;
        graph.launch(&stream)?;
        let found = stream.download(graph.view(data)?)?;
        expect("from the body", found[0], count)?;
        expect("from the node after it", found[1..].iter().all(|&value| value == 1), true)?;
    }
    Ok(())
}
