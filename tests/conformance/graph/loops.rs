//! Loops in graphs whose bodies panic must end. Each case runs in a separate process with a timeout.

use std::thread;
use std::time::Duration;

use ferrogrid::prelude::*;
use ferrogrid::{ExecutableGraph, GraphKey};

use crate::graph::loop_kernels::loops;
use crate::own_process::in_its_own_process;
use crate::{Case, Outcome, expect, expect_error, names};

macro_rules! apart {
    ($($case:ident)*) => {
        pub(crate) const CASES: &[Case] =
            &[$( (stringify!($case), |device| in_its_own_process(device, stringify!($case))) ),*];
        /// The cases, as they run in their processes.
        pub(crate) const APART: &[Case] = &[$( (stringify!($case), $case) ),*];
    };
}

apart! {
    a_panic_in_its_body_ends_a_loop
    a_panic_ends_the_loops_around_it
    a_panic_before_a_loop_leaves_it_alone
    a_panic_ends_a_loop_whatever_is_waited_for_meanwhile
}

/// The time limit of a case, which an endless loop would exceed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the process if it lives much longer: a device that runs forever cannot be stopped otherwise.
fn limit_time() {
    thread::spawn(|| {
        thread::sleep(PATIENCE);
        eprintln!("the loop has not ended after {PATIENCE:?}");
        std::process::abort();
    });
}

/// A loop of `loops::step`, five runs of it. Its buffers: how many runs there were, and how many are left.
fn five_runs(
    stream: &Stream,
    good: u32,
) -> ferrogrid::Result<(ExecutableGraph<'static>, [GraphKey<u32>; 2])> {
    let (runs, left) = (stream.zeros::<u32>(1)?, stream.upload(&[5_u32])?);
    let (graph, keys) = stream.capture(|capture| {
        let (mut runs, mut left) = (capture.keep(runs)?, capture.keep(left)?);
        capture
            .while_node(left.key(), |body| loops::step(body, Grid::new(1, 1), good, &mut left, &mut runs))?;
        Ok([runs.key(), left.key()])
    })?;
    Ok((graph.instantiate()?, keys))
}

fn expect_panic(what: &str, found: ferrogrid::Result<()>, message: &str) -> Outcome {
    let text = expect_error(what, found, |error| matches!(error, Error::KernelPanic { .. }))?;
    names(&text, &["loops::step", "loop_kernels.rs", message])
}

/// A number that a kernel wrote before it failed. It is not a result, so the driver's calls read it.
fn left_by_failed_work(
    stream: &Stream,
    number: DeviceView<'_, u32>,
) -> Result<u32, Box<dyn std::error::Error>> {
    expect_error("what failed work wrote", stream.download(number), |it| {
        matches!(it, Error::KernelPanic { .. })
    })?;
    let mut found = stream.zeros::<u32>(1)?;
    // SAFETY: a number of the device; the download has waited for all work on it, and it is borrowed until the next one.
    unsafe { loops::peek(stream, Grid::new(1, 1), number.as_device_ptr(), &mut found)? };
    Ok(stream.download(&found)?[0])
}

fn a_panic_in_its_body_ends_a_loop(device: &Device) -> Outcome {
    limit_time();
    let stream = device.new_stream()?;
    let (mut graph, [runs, left]) = five_runs(&stream, 2)?;
    graph.launch(&stream)?;
    expect_panic("the loop", stream.synchronize(), "in run 3")?;
    expect("runs", left_by_failed_work(&stream, graph.view(runs)?)?, 3)?;
    expect("runs that were left", left_by_failed_work(&stream, graph.view(left)?)?, 3)?;
    // The condition still holds, and the body panics at once.
    graph.launch(&stream)?;
    expect_panic("the loop, again", stream.synchronize(), "in run 4")?;
    // Without panics it runs to its end as usual.
    stream.fill_into(0, graph.view_mut(runs)?)?;
    stream.fill_into(2, graph.view_mut(left)?)?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    expect("runs without a panic", stream.download(graph.view(runs)?)?, vec![2])
}

fn a_panic_ends_the_loops_around_it(device: &Device) -> Outcome {
    limit_time();
    let stream = device.new_stream()?;
    let (outer, inner) = (stream.upload(&[1_u32])?, stream.upload(&[5_u32])?);
    let runs = stream.zeros::<u32>(1)?;
    let (graph, runs) = stream.capture(|capture| {
        let (outer, mut inner) = (capture.keep(outer)?, capture.keep(inner)?);
        let mut runs = capture.keep(runs)?;
        // The outer loop has no other end.
        capture.while_node(outer.key(), |body| {
            body.while_node(inner.key(), |body| loops::step(body, Grid::new(1, 1), 3, &mut inner, &mut runs))
        })?;
        Ok(runs.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    expect_panic("the loops", stream.synchronize(), "in run 4")?;
    expect("runs", left_by_failed_work(&stream, graph.view(runs)?)?, 4)
}

fn a_panic_before_a_loop_leaves_it_alone(device: &Device) -> Outcome {
    limit_time();
    let stream = device.new_stream()?;
    let (mut left, mut runs) = (stream.zeros::<u32>(1)?, stream.zeros::<u32>(1)?);
    let (mut graph, [all, _]) = five_runs(&stream, u32::MAX)?;
    loops::step(&stream, Grid::new(1, 1), 0, &mut left, &mut runs)?;
    graph.launch(&stream)?;
    expect_panic("what came before", stream.synchronize(), "in run 1")?;
    // On a GPU both launches report to one place: for the runtime the panic may have been the graph's.
    let runs = match device.is_cuda() {
        true => left_by_failed_work(&stream, graph.view(all)?)?,
        false => stream.download(graph.view(all)?)?[0],
    };
    expect("runs", runs, 5)
}

/// A wait for other work does not receive the failure.
fn a_panic_ends_a_loop_whatever_is_waited_for_meanwhile(device: &Device) -> Outcome {
    limit_time();
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let data = stream.zeros::<u32>(1)?;
    let (runs, left) = (stream.zeros::<u32>(1)?, stream.upload(&[5_u32])?);
    let (graph, runs) = stream.capture(|capture| {
        let (mut runs, mut left) = (capture.keep(runs)?, capture.keep(left)?);
        let mut data = capture.keep(data)?;
        capture.while_node(left.key(), |body| {
            loops::step(body, Grid::new(1, 1), 0, &mut left, &mut runs)?;
            loops::linger(body, Grid::new(1, 1), &mut data)
        })?;
        Ok(runs.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    let done = stream.record()?;
    while !done.is_complete()? {
        other.synchronize()?;
    }
    other.synchronize()?;
    expect_panic("the loop", stream.synchronize(), "in run 1")?;
    expect("runs", left_by_failed_work(&stream, graph.view(runs)?)?, 1)
}
