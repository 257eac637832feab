//! Which call reports a kernel's failure, and that no call returns the memory that it wrote as a result.
//! `Device::synchronize` reports all failures, so each case runs in a separate process.

use std::fmt::Debug;

use ferrogrid::prelude::*;
use ferrogrid::{DeviceBuffer, Result};

use crate::failure::outcome_kernels::work;
use crate::own_process::in_its_own_process;
use crate::{Case, Outcome, expect, expect_error};

macro_rules! apart {
    ($($case:ident)*) => {
        pub(crate) const CASES: &[Case] =
            &[$( (stringify!($case), |device| in_its_own_process(device, stringify!($case))) ),*];
        /// The cases, as they run in their processes.
        pub(crate) const APART: &[Case] = &[$( (stringify!($case), $case) ),*];
    };
}

apart! {
    an_earlier_report_to_another_thread_does_not_make_the_data_valid
    a_launch_after_a_failed_one_does_not_hide_its_failure
    output_of_failed_work_is_an_error_in_all_copies
    rewritten_memory_is_valid_again_unless_only_a_part_is_written
    managed_memory_that_failed_work_wrote_cannot_be_read
    output_of_a_graph_after_a_failure_in_it_is_invalid
    a_failure_in_a_child_is_told_of_its_buffers_and_the_stream
    page_locked_memory_of_a_graph_that_failed_work_wrote_cannot_be_read
    a_stream_that_waits_for_another_reports_its_failure_and_one_that_shares_a_buffer_does_not
    a_failure_is_reported_once_by_its_stream_and_once_by_the_device
    failures_of_two_streams_at_once_are_told_to_both
    work_that_has_not_failed_is_no_error
    a_wait_for_an_event_before_a_failed_launch_does_not_report_it
}

const LENGTH: usize = 8;

/// The output of `unlucky` after a failure.
fn broken(stream: &Stream) -> Result<DeviceBuffer<u32>> {
    let mut buffer = stream.upload(&[1, 2, 3, 13, 5, 6, 7, 8])?;
    work::unlucky(stream, Grid::cover(LENGTH), &mut buffer)?;
    Ok(buffer)
}

fn increment(stream: &Stream, buffer: &mut DeviceBuffer<u32>) -> Result<()> {
    work::increment(stream, Grid::cover(LENGTH), buffer)
}

fn failed<T: Debug>(what: &str, found: Result<T>) -> Outcome {
    let is_it = |error: &Error| matches!(error, Error::KernelPanic { message, .. } if &**message == "element 3 is 13");
    expect_error(what, found, is_it).map(drop)
}

fn an_earlier_report_to_another_thread_does_not_make_the_data_valid(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut y, other) = (broken(&stream)?, stream.zeros::<u32>(1)?);
    let told = std::thread::scope(|scope| scope.spawn(|| stream.download(&other)).join());
    failed("the other thread", told.map_err(|_| "the other thread panicked")?)?;
    // This thread has not received the failure, so its launches use the invalid contents.
    increment(&stream, &mut y)?;
    failed("the data", stream.download(&y))?;
    // Now it has received it.
    increment(&stream, &mut y)?;
    expect("length", stream.download(&y)?.len(), LENGTH)
}

/// The second launch was enqueued before the failure of the first one was known.
fn a_launch_after_a_failed_one_does_not_hide_its_failure(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut y = broken(&stream)?;
    increment(&stream, &mut y)?;
    failed("the data, elsewhere", other.download(&y))?;
    failed("the stream", stream.synchronize())?;
    Ok(stream.synchronize()?)
}

fn output_of_failed_work_is_an_error_in_all_copies(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let y = broken(&stream)?;
    failed("the stream", stream.synchronize())?;

    let copy = other.duplicate(&y)?;
    let mut derived = other.zeros::<u32>(LENGTH)?;
    work::add(&other, Grid::cover(LENGTH), &copy, &mut derived)?;
    failed("a stream that was given what had failed", other.synchronize())?;
    failed("a copy", other.download(&copy))?;
    failed("a part of what was derived", stream.download(derived.slice(3..4)?))?;
    let transfer = || stream.download_async(&derived, device.pinned_zeros(LENGTH)?);
    failed("a transfer", transfer()?.wait().map(drop))?;
    failed("a transfer that is awaited", pollster::block_on(transfer()?).map(drop))?;
    let mut host = [0; LENGTH];
    failed("a scope", stream.scope(|scope| scope.download_into(&derived, &mut host)))?;
    let far = Device::cpu().new_stream()?;
    failed("another device", far.duplicate_peer(&derived).and_then(|copy| far.download(&copy)))?;
    let rows = derived.view().pitched(4, 2, 4)?;
    failed("rows", stream.download_2d(rows, &mut host, 4))?;
    let mut pitched = stream.zeros_pitched::<u32>(4, 2)?;
    stream.copy_2d(rows, pitched.view_mut())?;
    failed("a pitched copy", stream.download_2d(pitched.view(), &mut host, 4))?;
    Ok(stream.synchronize()?)
}

fn rewritten_memory_is_valid_again_unless_only_a_part_is_written(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let good = stream.upload(&[7_u32; LENGTH])?;
    type Write = fn(&Stream, &DeviceBuffer<u32>, &mut DeviceBuffer<u32>) -> Result<()>;
    let wholes: [(&str, Write); 5] = [
        ("fill", |stream, _, target| stream.fill_into(7, target)),
        ("upload", |stream, _, target| stream.upload_into(&[7; LENGTH], target)),
        ("copy", |stream, good, target| stream.copy(good, target)),
        ("transfer", |stream, _, target| {
            drop(stream.upload_async(stream.device().pinned_copy(&[7; LENGTH])?, target)?);
            Ok(())
        }),
        ("scope", |stream, _, target| stream.scope(|scope| scope.upload_into(&[7; LENGTH], target))?),
    ];
    for (name, write) in wholes {
        let mut y = broken(&stream)?;
        failed("the stream", stream.synchronize())?;
        write(&stream, &good, &mut y)?;
        expect(name, stream.download(&y)?, vec![7; LENGTH])?;
    }
    let parts: [(&str, Write); 4] = [
        ("fill of a part", |stream, _, target| stream.fill_into(7, target.slice_mut(1..)?)),
        ("upload of a part", |stream, _, target| stream.upload_into(&[7; 7], target.slice_mut(..7)?)),
        ("copy of a part", |stream, good, target| stream.copy(good.slice(..3)?, target.slice_mut(..3)?)),
        ("launch with a part", |stream, _, target| {
            work::increment(stream, Grid::cover(7), target.slice_mut(..7)?)
        }),
    ];
    for (name, write) in parts {
        let mut y = broken(&stream)?;
        failed("the stream", stream.synchronize())?;
        write(&stream, &good, &mut y)?;
        let _told = stream.synchronize();
        failed(name, stream.download(&y))?;
    }
    Ok(())
}

fn managed_memory_that_failed_work_wrote_cannot_be_read(device: &Device) -> Outcome {
    let (stream, idle) = (device.new_stream()?, device.new_stream()?);
    let mut managed = stream.managed_copy(&[1, 2, 3, 13])?;
    work::unlucky(&stream, Grid::cover(4), &mut managed)?;
    for _ in 0..2 {
        failed("to read", managed.read().map(drop))?;
        failed("to write", managed.write().map(drop))?;
    }
    idle.fill_into(1, &mut managed)?;
    expect("elements", managed.read()?, &[1; 4][..])?;
    // The stream's own failure is still reported by a wait for the stream.
    failed("the stream", stream.synchronize())?;
    Ok(stream.synchronize()?)
}

fn output_of_a_graph_after_a_failure_in_it_is_invalid(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let (x, y) = (stream.upload(&[1, 2, 3, 13])?, stream.zeros::<u32>(4)?);
    let (graph, (x, y)) = stream.capture(|capture| {
        let (mut x, mut y) = (capture.keep(x)?, capture.keep(y)?);
        work::unlucky(capture, Grid::cover(4), &mut x)?;
        work::increment(capture, Grid::cover(4), &mut y)?;
        Ok((x.key(), y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    failed("what the kernel wrote", other.download(graph.view(x)?))?;
    failed("what another kernel wrote", other.download(graph.view(y)?))?;
    failed("the stream", stream.synchronize())?;
    other.fill_into(0, graph.view_mut(x)?)?;
    expect("written anew", other.download(graph.view(x)?)?, vec![0; 4])?;
    other.fill_into(0, graph.view_mut(y)?)?;
    graph.launch(&stream)?;
    expect("of another launch", stream.download(graph.view(y)?)?, vec![1; 4])
}

fn a_failure_in_a_child_is_told_of_its_buffers_and_the_stream(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let x = stream.upload(&[1, 2, 3, 13])?;
    let (child, x) = stream.capture(|capture| {
        let mut x = capture.keep(x)?;
        work::unlucky(capture, Grid::cover(4), &mut x)?;
        Ok(x.key())
    })?;
    let (graph, ()) = stream.capture(|capture| capture.child_graph(child).map(drop))?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    failed("what the child wrote", other.download(graph.view(x)?))?;
    failed("the stream", stream.synchronize())?;
    stream.fill_into(1, graph.view_mut(x)?)?;
    graph.launch(&stream)?;
    expect("of another launch", stream.download(graph.view(x)?)?, vec![1; 4])
}

fn page_locked_memory_of_a_graph_that_failed_work_wrote_cannot_be_read(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input = device.pinned_copy(&[1, 2, 3, 13, 5, 6, 7, 8])?;
    let output = device.pinned_zeros::<u32>(LENGTH)?;
    let (graph, (input, output)) = stream.capture(|capture| {
        let (input, mut output) = (capture.keep_pinned(input)?, capture.keep_pinned(output)?);
        let mut data = capture.keep(stream.zeros(LENGTH)?)?;
        capture.copy(&input, &mut data)?;
        work::unlucky(capture, Grid::cover(LENGTH), &mut data)?;
        capture.copy(&data, &mut output)?;
        Ok((input.key(), output.key()))
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    failed("what was downloaded", graph.pinned(output))?;
    failed("the stream", stream.synchronize())?;
    failed("the launch that used the input", graph.pinned_mut(input))?;
    // It has received the failure, so the input can be rewritten.
    graph.pinned_mut(input)?[3] = 4;
    graph.launch(&stream)?;
    expect("of another launch", graph.pinned(output)?.len(), LENGTH)
}

fn a_stream_that_waits_for_another_reports_its_failure_and_one_that_shares_a_buffer_does_not(
    device: &Device,
) -> Outcome {
    let (stream, sharing, waiting) = (device.new_stream()?, device.new_stream()?, device.new_stream()?);
    let shared = stream.upload(&[1_u32; LENGTH])?;
    let _broken = broken(&stream)?;
    expect("shared", sharing.download(&shared)?, vec![1; LENGTH])?;
    waiting.wait_stream(&stream)?;
    failed("who waits", waiting.synchronize())?;
    waiting.synchronize()?;
    failed("the stream", stream.synchronize())?;
    // A reported failure is not passed on.
    waiting.wait_stream(&stream)?;
    waiting.synchronize()?;
    Ok(sharing.synchronize()?)
}

fn a_failure_is_reported_once_by_its_stream_and_once_by_the_device(device: &Device) -> Outcome {
    let (stream, short) = (device.new_stream()?, device.new_stream()?);
    let z = broken(&short)?;
    drop(short);
    let unrelated = stream.zeros::<u32>(1)?;
    // Every read of its output returns the failure.
    for _ in 0..2 {
        failed("the data", stream.download(&z))?;
        failed("the data on another stream", device.new_stream()?.download(&z))?;
    }
    drop(z); // and with it the last of the stream
    failed("the device", device.synchronize())?;
    device.synchronize()?;
    stream.synchronize()?;
    expect("unrelated", stream.download(&unrelated)?, vec![0])?;

    let _live = broken(&stream)?;
    failed("the device", device.synchronize())?;
    device.synchronize()?;
    failed("the stream", stream.synchronize())?;
    Ok(stream.synchronize()?)
}

fn failures_of_two_streams_at_once_are_told_to_both(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?];
    let buffers = [broken(&streams[0])?, broken(&streams[1])?];
    for stream in &streams {
        stream.record()?.synchronize()?; // an event reports none
    }
    for (stream, buffer) in streams.iter().zip(&buffers) {
        failed("the stream", stream.synchronize())?;
        failed("its data", stream.download(buffer))?;
        stream.synchronize()?;
    }
    Ok(())
}

fn work_that_has_not_failed_is_no_error(device: &Device) -> Outcome {
    let (failing, other, not_waited_for) = (device.new_stream()?, device.new_stream()?, device.new_stream()?);
    let mut before = other.upload(&[1_u32; LENGTH])?;
    work::unlucky(&other, Grid::cover(LENGTH), &mut before)?;
    other.synchronize()?;
    let mut beside = other.zeros::<u32>(LENGTH)?;
    increment(&other, &mut beside)?; // it cannot panic
    let mut at_once = not_waited_for.upload(&[1_u32; LENGTH])?;
    work::unlucky(&not_waited_for, Grid::cover(LENGTH), &mut at_once)?;
    let _y = broken(&failing)?;
    failed("the stream", failing.synchronize())?;
    other.synchronize()?;
    not_waited_for.synchronize()?;
    expect("what ran at the same time", other.download(&at_once)?, vec![1; LENGTH])?;
    expect("what had ended before", other.download(&before)?, vec![1; LENGTH])?;
    expect("what cannot fail", other.download(&beside)?, vec![1; LENGTH])?;
    let mut after = failing.upload(&[1_u32; LENGTH])?;
    work::unlucky(&failing, Grid::cover(LENGTH), &mut after)?;
    expect("what came after", failing.download(&after)?, vec![1; LENGTH])
}

fn a_wait_for_an_event_before_a_failed_launch_does_not_report_it(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut before = stream.upload(&[1_u32; LENGTH])?;
    work::unlucky(&stream, Grid::cover(LENGTH), &mut before)?;
    let (point, copy) = (stream.completed()?, stream.download_async(&before, device.pinned_zeros(LENGTH)?)?);
    let after = broken(&stream)?;
    failed("what the failed launch wrote", device.new_stream()?.download(&after))?;
    pollster::block_on(point)?;
    expect("what came before", copy.wait()?.to_vec(), vec![1; LENGTH])?;
    failed("the stream", stream.synchronize())?;
    expect("what came before, later", stream.download(&before)?, vec![1; LENGTH])
}
