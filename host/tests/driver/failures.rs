//! Reports of kernel panics on a GPU, and errors for reads of the output of failed kernels; with a fake driver
//! (`fake_driver/libcuda.rs`), where `saxpy` panics if its factor is `BAD`: into the record that its launch was given.
//! `silent_saxpy` takes none.

use std::fmt::Debug;

use crate::kernels::{saxpy, silent_saxpy};
use crate::scenario::{Scenario, run, run_requested};
use ferrogrid_host::{Device, DeviceBuffer, Error, Grid, Result, Stream};

const SCENARIOS: &[Scenario] = &[
    ("told_first", told_first),
    ("launched_after", launched_after),
    ("wherever_it_gets_to", wherever_it_gets_to),
    ("written_anew", written_anew),
    ("other_streams", other_streams),
    ("two_panics", two_panics),
    ("points", points),
    ("many_intervals", many_intervals),
    ("graph_again", graph_again),
    ("waiters", waiters),
    ("joined", joined),
    ("device_tells", device_tells),
    ("graphs", graphs),
    ("managed", managed),
    ("peers", peers),
    ("many_threads", many_threads),
];

const BAD: f32 = 2.0;
const GOOD: f32 = 3.0;

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

#[track_caller]
fn with_panics(scenario: &str) {
    run(scenario, "panic=2");
}

/// Fails if it is not the panic of a kernel.
#[track_caller]
fn is_panic<T: Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::KernelPanic { kernel: "saxpy", line: 33, .. })), "{result:?}");
}

fn launch(stream: &Stream, factor: f32, y: &mut DeviceBuffer<f32>) -> Result<()> {
    let x = stream.zeros::<f32>(y.len())?;
    saxpy(stream, Grid::cover(y.len()), factor, &x, y)
}

/// What a launch that has panicked leaves.
fn broken(stream: &Stream) -> Result<DeviceBuffer<f32>> {
    let mut y = stream.fill(1.0_f32, 8)?;
    launch(stream, BAD, &mut y)?;
    Ok(y)
}

#[test]
fn an_earlier_report_to_another_thread_does_not_make_the_data_valid() {
    with_panics("told_first");
}

fn told_first() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (mut y, other) = (broken(&stream)?, stream.zeros::<f32>(1)?);
    std::thread::scope(|scope| {
        scope.spawn(|| is_panic(stream.download(&other))).join().unwrap();
    });
    // The failure was not reported to this thread, so its launches read the contents as they are.
    silent_saxpy(&stream, Grid::cover(8), GOOD, &stream.zeros::<f32>(8)?, &mut y)?;
    is_panic(stream.download(&y));
    // Now it was reported.
    silent_saxpy(&stream, Grid::cover(8), GOOD, &stream.zeros::<f32>(8)?, &mut y)?;
    assert_eq!(stream.download(&y)?, [1.0; 8]);
    stream.synchronize()
}

/// The second launch was enqueued before the panic of the first was known.
#[test]
fn a_launch_after_a_failed_one_does_not_hide_its_failure() {
    with_panics("launched_after");
}

fn launched_after() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut y = broken(&stream)?;
    silent_saxpy(&stream, Grid::cover(8), GOOD, &stream.zeros::<f32>(8)?, &mut y)?;
    is_panic(other.download(&y));
    is_panic(stream.synchronize());
    stream.synchronize()
}

#[test]
fn output_of_failed_work_is_an_error_in_all_copies() {
    with_panics("wherever_it_gets_to");
}

fn wherever_it_gets_to() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let y = broken(&stream)?;
    is_panic(stream.synchronize());

    let copy = other.duplicate(&y)?;
    let mut derived = other.zeros::<f32>(8)?;
    silent_saxpy(&other, Grid::cover(8), GOOD, &copy, &mut derived)?;
    is_panic(other.synchronize()); // it was given what had failed
    is_panic(other.download(&copy));
    is_panic(stream.download(derived.slice(3..4)?));
    is_panic(stream.download_async(&derived, device.pinned_zeros(8)?)?.wait());
    is_panic(pollster::block_on(stream.download_async(&derived, device.pinned_zeros(8)?)?));
    let mut host = [0.0; 8];
    is_panic(stream.scope(|scope| scope.download_into(&derived, &mut host)));
    let far = Device::cpu().new_stream()?;
    is_panic(far.duplicate_peer(&derived).and_then(|far_copy| far.download(&far_copy)));
    let rows = derived.view().pitched(4, 2, 4)?;
    is_panic(stream.download_2d(rows, &mut host, 4));
    let mut pitched = stream.zeros_pitched::<f32>(4, 2)?;
    stream.copy_2d(rows, pitched.view_mut())?;
    is_panic(stream.download_2d(pitched.view(), &mut host, 4));
    stream.synchronize()
}

#[test]
fn rewritten_memory_is_valid_again_unless_only_a_part_is_written() {
    with_panics("written_anew");
}

fn written_anew() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let mut y = broken(&stream)?;
    is_panic(stream.download(&y));
    stream.fill_into(5.0, y.slice_mut(1..)?)?;
    is_panic(stream.download(&y));
    stream.fill_into(5.0, &mut y)?;
    assert_eq!(stream.download(&y)?, [5.0; 8]);

    launch(&stream, BAD, &mut y)?;
    is_panic(stream.synchronize());
    stream.upload_into(&[6.0; 8], &mut y)?;
    assert_eq!(stream.download(&y)?, [6.0; 8]);

    launch(&stream, BAD, &mut y)?;
    is_panic(stream.synchronize());
    launch(&stream, GOOD, &mut y)?;
    assert_eq!(stream.download(&y)?, [6.0; 8]);
    Ok(())
}

#[test]
fn work_that_cannot_have_panicked_is_no_error() {
    with_panics("other_streams");
}

fn other_streams() -> Result<()> {
    let device = Device::cuda(0)?;
    let [failing, silent, waited_for, not_waited_for] = [0; 4].map(|_| device.new_stream());
    let (failing, silent, waited_for, not_waited_for) = (failing?, silent?, waited_for?, not_waited_for?);
    let mut of_silent = silent.fill(1.0_f32, 8)?;
    silent_saxpy(&silent, Grid::cover(8), GOOD, &silent.zeros::<f32>(8)?, &mut of_silent)?;
    let mut of_waited_for = waited_for.fill(1.0_f32, 8)?;
    launch(&waited_for, GOOD, &mut of_waited_for)?;
    waited_for.synchronize()?;
    let mut of_not_waited_for = not_waited_for.fill(1.0_f32, 8)?;
    launch(&not_waited_for, GOOD, &mut of_not_waited_for)?;

    let y = broken(&failing)?;
    is_panic(failing.synchronize());
    for (stream, good) in
        [(&silent, &of_silent), (&waited_for, &of_waited_for), (&not_waited_for, &of_not_waited_for)]
    {
        stream.synchronize()?;
        assert_eq!(stream.download(good)?, [1.0; 8]);
    }
    is_panic(not_waited_for.download(&y));
    Ok(())
}

#[test]
fn a_wait_for_an_event_before_a_failed_launch_does_not_report_it() {
    with_panics("points");
}

fn points() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let mut before = stream.fill(1.0_f32, 8)?;
    launch(&stream, GOOD, &mut before)?;
    let (point, copy) = (stream.completed()?, stream.download_async(&before, device.pinned_zeros(8)?)?);
    let after = broken(&stream)?;
    // It is found before they are asked.
    is_panic(device.new_stream()?.download(&after));
    pollster::block_on(point)?;
    assert_eq!(*copy.wait()?, [1.0; 8]);
    is_panic(stream.synchronize());
    assert_eq!(stream.download(&before)?, [1.0; 8]);
    is_panic(stream.download(&after));
    Ok(())
}

#[test]
fn of_two_simultaneous_panics_each_is_reported_to_its_stream() {
    with_panics("two_panics");
}

fn two_panics() -> Result<()> {
    let device = Device::cuda(0)?;
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let (x, y) = (broken(&first)?, broken(&second)?);
    first.record()?.synchronize()?;
    second.record()?.synchronize()?;
    for _ in 0..2 {
        is_panic(first.download(&x));
        is_panic(second.download(&y));
    }
    first.synchronize()?;
    second.synchronize()
}

#[test]
fn a_failure_is_reported_once_by_its_stream_and_by_no_event() {
    with_panics("waiters");
}

fn waiters() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, unrelated) = (device.new_stream()?, device.new_stream()?);
    for wait in [
        |stream: &Stream| stream.synchronize(),
        |stream: &Stream| pollster::block_on(stream.completed()?),
        |stream: &Stream| stream.scope(|_| ()),
    ] {
        let _y = broken(&stream)?;
        stream.record()?.synchronize()?;
        unrelated.synchronize()?;
        is_panic(wait(&stream));
        wait(&stream)?;
    }
    Ok(())
}

#[test]
fn a_stream_that_waits_for_another_reports_its_failure() {
    with_panics("joined");
}

fn joined() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, waiting, sharing) = (device.new_stream()?, device.new_stream()?, device.new_stream()?);
    let shared = stream.upload(&[1.0_f32])?;
    let _y = broken(&stream)?;
    waiting.wait_stream(&stream)?;
    assert_eq!(sharing.download(&shared)?, [1.0]);
    is_panic(waiting.synchronize());
    waiting.synchronize()?;
    is_panic(stream.synchronize());
    // What has been told is not handed on.
    waiting.wait_stream(&stream)?;
    waiting.synchronize()?;
    sharing.synchronize()
}

#[test]
fn the_device_reports_unreported_failures_also_of_dropped_streams() {
    with_panics("device_tells");
}

fn device_tells() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    drop(broken(&device.new_stream()?)?);
    is_panic(device.synchronize());
    device.synchronize()?;
    stream.synchronize()?;

    // One that ran well is no longer in doubt once another stream is made.
    let short = device.new_stream()?;
    let mut y = short.fill(1.0_f32, 8)?;
    launch(&short, GOOD, &mut y)?;
    let short_end = short.record()?;
    let copy = stream.duplicate(&y)?;
    drop((short, y));
    short_end.synchronize()?;
    stream.record()?.synchronize()?;
    std::thread::sleep(std::time::Duration::from_millis(200)); // the work of a stream that is gone runs by itself
    let other = device.new_stream()?;
    drop(broken(&other)?);
    is_panic(other.synchronize());
    assert_eq!(stream.download(&copy)?, [1.0; 8]);

    let _live = broken(&stream)?;
    is_panic(device.synchronize());
    device.synchronize()?;
    is_panic(stream.synchronize());
    stream.synchronize()
}

#[test]
fn output_of_a_graph_after_a_failure_in_it_is_invalid() {
    with_panics("graphs");
}

fn graphs() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let (x, y, z) = (stream.zeros::<f32>(8)?, stream.zeros::<f32>(8)?, stream.fill(1.0_f32, 8)?);
    let graph = |factor| {
        stream.capture(|capture| {
            let z = capture.read(&z)?;
            let (mut x, mut y) = (capture.keep(stream.duplicate(&x)?)?, capture.keep(stream.duplicate(&y)?)?);
            saxpy(capture, Grid::cover(8), factor, z, &mut x)?;
            silent_saxpy(capture, Grid::cover(8), GOOD, z, &mut y)?;
            Ok((x.key(), y.key()))
        })
    };
    let (bad, (in_bad, beside)) = graph(BAD)?;
    let (good, (in_good, _)) = graph(GOOD)?;
    let (mut bad, mut good) = (bad.instantiate()?, good.instantiate()?);
    good.launch(&other)?;
    other.synchronize()?;
    bad.launch(&stream)?;
    is_panic(other.download(bad.view(in_bad)?));
    is_panic(other.download(bad.view(beside)?));
    is_panic(stream.synchronize());
    assert_eq!(other.download(&z)?, [1.0; 8]);
    assert_eq!(other.download(good.view(in_good)?)?, [3.0; 8]);
    stream.fill_into(0.0, bad.view_mut(in_bad)?)?;
    assert_eq!(stream.download(bad.view(in_bad)?)?, [0.0; 8]);
    Ok(())
}

#[test]
fn a_graph_that_has_failed_is_good_again_when_it_has_been_waited_for() {
    with_panics("graph_again");
}

fn graph_again() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let x = stream.fill(1.0_f32, 8)?;
    let y = stream.zeros::<f32>(8)?;
    let (graph, (node, key)) = stream.capture(|capture| {
        let x = capture.read(&x)?;
        let mut y = capture.keep(stream.duplicate(&y)?)?;
        let node = capture.node(&[], |stream| saxpy(stream, Grid::cover(8), BAD, x, &mut y))?;
        Ok((node, y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&other)?;
    is_panic(other.synchronize());
    is_panic(stream.synchronize());
    is_panic(stream.download(graph.view(key)?));
    graph.update_kernel(node, |update| {
        let mut y = update.buffer(key)?;
        saxpy(update, Grid::cover(8), GOOD, &x, &mut y)
    })?;
    stream.fill_into(0.0, graph.view_mut(key)?)?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    assert_eq!(stream.download(graph.view(key)?)?, [3.0; 8]);
    other.synchronize()
}

#[test]
fn unawaited_events_do_not_accumulate_records() {
    let calls = run("many_intervals", "panic=2");
    // Of 16 records each, for 64 open intervals and the last one.
    assert_eq!(calls.iter().filter(|call| call.starts_with("cuMemHostAlloc")).count(), 5);
}

fn many_intervals() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let mut y = stream.fill(0.0_f32, 8)?;
    let mut points = Vec::new();
    for _ in 0..200 {
        launch(&stream, GOOD, &mut y)?;
        points.push(stream.completed()?);
    }
    launch(&stream, BAD, &mut y)?;
    pollster::block_on(points.remove(0))?;
    is_panic(stream.synchronize());
    points.into_iter().try_for_each(pollster::block_on)?;
    is_panic(stream.download(&y));
    stream.synchronize()
}

#[test]
fn managed_memory_that_failed_work_wrote_cannot_be_read() {
    with_panics("managed");
}

fn managed() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let mut managed = stream.managed_copy(&[1.0_f32; 4])?;
    saxpy(&stream, Grid::cover(4), BAD, &stream.zeros::<f32>(4)?, &mut managed)?;
    for _ in 0..2 {
        is_panic(managed.read());
        is_panic(managed.write());
    }
    stream.fill_into(1.0, &mut managed)?;
    assert_eq!(managed.read()?, [1.0; 4]);
    // The stream's own failure is still there for who waits for the stream.
    is_panic(stream.synchronize());
    stream.synchronize()
}

#[test]
fn a_panic_on_one_gpu_is_found_by_reads_of_memory_on_another() {
    run("peers", "panic=2,devices=2");
}

fn peers() -> Result<()> {
    let (device, peer) = (Device::cuda(0)?, Device::cuda(1)?);
    device.enable_peer_access(&peer)?;
    let (stream, far) = (device.new_stream()?, peer.new_stream()?);
    let mut y = far.fill(1.0_f32, 8)?;
    launch(&stream, BAD, &mut y)?;
    is_panic(far.download(&y));
    is_panic(stream.synchronize());
    stream.synchronize()?;
    far.synchronize()
}

/// Threads with one stream each and one that all share, at random; streams run by themselves.
#[test]
fn many_threads_do_not_read_output_of_a_failed_kernel() {
    run("many_threads", "panic=2,alive=1");
}

fn many_threads() -> Result<()> {
    let device = Device::cuda(0)?;
    let common = device.new_stream()?;
    std::thread::scope(|scope| {
        let work = |seed: u64| {
            let mut random = fastrand::Rng::with_seed(seed);
            let own = device.new_stream()?;
            for _ in 0..200 {
                let stream = if random.bool() { &own } else { &common };
                let reader = if random.bool() { &own } else { &common };
                let factor = if random.u32(..4) == 0 { BAD } else { GOOD };
                let mut y = stream.fill(1.0_f32, 4)?;
                launch(stream, factor, &mut y)?;
                if random.bool() {
                    own.record()?.synchronize()?;
                }
                // The first time it may report the failure of another thread's work on the stream.
                for _ in 0..2 {
                    match reader.download(&y) {
                        Err(Error::KernelPanic { .. }) => {}
                        Ok(found) => {
                            assert_eq!((factor, found), (GOOD, vec![1.0; 4]), "what a failed kernel wrote");
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
            Ok(())
        };
        let threads: Vec<_> = (0..6).map(|seed| scope.spawn(move || work(seed))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })
}
