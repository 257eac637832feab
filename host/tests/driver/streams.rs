//! The CUDA backend's driver calls for streams, events, host functions and memory of all kinds, with
//! a fake one (`fake_driver/libcuda.rs`). That results are right is for the cases of `runtime.rs`.

use std::ffi::c_void;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use crate::kernels::saxpy;
use crate::scenario::{count, run};
use ferrogrid_host::{
    Device, Error, EventOptions, ExecutableGraph, Grid, Result, Stream, StreamOptions, WaitValue,
};

type Scenario = (&'static str, fn() -> Result<()>);

const SCENARIOS: &[Scenario] = &[
    ("streams", streams),
    ("events", events),
    ("foreign_context", foreign_context),
    ("foreign_end", foreign_end),
    ("foreign_both_ways", foreign_both_ways),
    ("foreign_for_each_call", foreign_for_each_call),
    ("legacy_for_each_call", legacy_for_each_call),
    ("graphs_and_waits", graphs_and_waits),
    ("failed_device", failed_device),
    ("refused_callback", refused_callback),
    ("values", values),
    ("per_thread", per_thread),
    ("unmarked", unmarked),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    let Ok(name) = std::env::var("FERROGRID_TEST_SCENARIO") else { return };
    let (_, scenario) = SCENARIOS.iter().find(|(known, _)| *known == name).unwrap();
    scenario().unwrap();
}

#[test]
fn streams_have_the_requested_flags_and_priority() {
    let calls = run("streams", "");
    let made: Vec<&str> = calls.iter().filter_map(|call| call.strip_prefix("stream ")).collect();
    assert_eq!(
        made,
        ["flags=1 priority=0", "flags=0 priority=0", "flags=1 priority=-5", "flags=1 priority=0"]
    );
    assert_eq!(count(&calls, "cuStreamDestroy_v2"), 4, "the legacy stream is not destroyed");
}

fn streams() -> Result<()> {
    let device = Device::cuda(0)?;
    drop(device.new_stream()?);
    drop(device.new_stream_with(StreamOptions::new().ordered_with_legacy())?);
    drop(device.new_stream_with(StreamOptions::new().with_priority(-5))?);
    let legacy = device.legacy_stream()?;
    assert_eq!(legacy.as_raw().map(|raw| raw.addr()), Some(1));
    assert_eq!(legacy, device.legacy_stream()?);
    let stream = device.new_stream()?;
    // SAFETY: it is a stream of this device, and lives longer.
    let same = unsafe { Stream::from_raw(&device, stream.as_raw().unwrap())? };
    assert!(same == stream && same != legacy && same.is_nonblocking()?);
    drop((same, stream));
    assert_eq!(legacy.download(&legacy.fill(1_u8, 2)?)?, [1, 1]);
    Ok(())
}

#[test]
fn the_default_stream_of_a_thread_is_cudas() {
    let calls = run("per_thread", "");
    assert_eq!(count(&calls, "cuStreamDestroy_v2"), 1, "that of a thread is not destroyed");
    let first = calls.iter().position(|call| call == "cuMemAllocFromPoolAsync").unwrap();
    let from_there = calls[first..].iter().filter(|call| !call.starts_with("cuCtx"));
    let marked = [
        "cuMemAllocFromPoolAsync",
        "cuEventRecord",
        "cuMemsetD8Async",
        "cuEventRecord",
        "cuMemcpyAsync",
        "cuEventRecord",
        "cuStreamSynchronize",
    ];
    assert!(from_there.take(marked.len()).eq(marked.iter()), "{calls:?}");
}

fn per_thread() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.per_thread_stream()?;
    assert_eq!(stream.as_raw().map(|raw| raw.addr()), Some(2));
    assert!(!stream.is_nonblocking()?);
    assert_eq!(stream.download(&stream.fill(1_u8, 3)?)?, [1; 3]);
    // SAFETY: it is there as long as this thread, which alone can use it.
    let same = unsafe { Stream::from_raw(&device, stream.as_raw().unwrap())? };
    assert_eq!(same, *stream);
    // SAFETY: it is there as long as the context.
    let legacy = unsafe { Stream::from_raw(&device, std::ptr::null_mut())? };
    assert_eq!(legacy, device.legacy_stream()?);
    std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            // SAFETY: as above.
            let there = unsafe { Stream::from_raw(&device, stream.as_raw().unwrap())? };
            assert!(there != same && there == *device.per_thread_stream()?);
            assert!(matches!(same.fill(1_u8, 3), Err(Error::StreamOfOtherThread { .. })));
            Ok::<_, Error>(())
        });
        there.join().unwrap()
    })?;
    let other = device.new_stream()?;
    let buffer = same.fill(4_u32, 3)?;
    assert_eq!(other.download(&buffer)?, [4; 3]);
    Ok(())
}

#[test]
fn work_that_could_not_be_marked_is_an_error_for_other_threads() {
    run("unmarked", "fail=cuEventRecord:999:3");
}

/// The first record is that of the stream itself, the second that of an allocation, the third fails.
fn unmarked() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.per_thread_stream()?;
    let buffer = stream.fill(1_u8, 3)?;
    std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            let other = device.new_stream().unwrap();
            for refused in [stream.synchronize(), stream.is_complete().map(drop), other.wait_stream(&stream)]
            {
                assert!(
                    matches!(refused, Err(Error::Driver { operation: "cuEventRecord", .. })),
                    "{refused:?}"
                );
            }
            assert!(other.download(&buffer).is_err(), "it is not known when it was filled");
        });
        there.join().unwrap();
    });
    assert_eq!(stream.download(&buffer)?, [1; 3]);
    Ok(())
}

#[test]
fn events_have_the_requested_flags() {
    let calls = run("events", "");
    let made: Vec<&str> = calls.iter().filter_map(|call| call.strip_prefix("event ")).collect();
    assert_eq!(made, ["flags=0", "flags=1", "flags=2", "flags=3"]);
    assert_eq!(count(&calls, "cuEventRecord"), 3, "one event is recorded as often as asked");
    assert_eq!(count(&calls, "cuEventDestroy_v2"), 4);
}

fn events() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let event = device.new_event(EventOptions::new())?;
    device.new_event(EventOptions::new().blocking_sync())?;
    device.new_event(EventOptions::new().without_timing())?;
    device.new_event(EventOptions::new().without_timing().blocking_sync())?;
    for _ in 0..3 {
        stream.record_into(&event)?;
        assert!(!event.is_complete()?);
        event.synchronize()?;
        assert!(event.is_complete()?);
    }
    Ok(())
}

#[test]
fn a_stream_of_another_context_is_refused() {
    run("foreign_context", "foreign_context=77");
}

fn foreign_context() -> Result<()> {
    let device = Device::cuda(0)?;
    let owner = device.new_stream()?;
    // SAFETY: `owner` lives longer.
    let error = unsafe { Stream::from_raw(&device, owner.as_raw().unwrap()) }.unwrap_err();
    assert!(matches!(&error, Error::ForeignContext { device } if device.contains("Fake GPU")), "{error}");
    // SAFETY: the driver refuses what is no stream (this fake one at least).
    let error = unsafe { Stream::from_raw(&device, std::ptr::without_provenance_mut(0x77)) }.unwrap_err();
    assert!(matches!(&error, Error::Driver { operation: "cuStreamGetCtx", code: 400, .. }), "{error}");
    Ok(())
}

#[test]
fn an_ended_foreign_stream_gets_no_calls() {
    let calls = run("foreign_end", "");
    assert_eq!(count(&calls, "cuMemAllocFromPoolAsync"), count(&calls, "cuMemFreeAsync"));
    assert_eq!(count(&calls, "cuStreamDestroy_v2"), 3, "the borrowed handle destroys nothing");
}

/// The fake driver panics if a stream that is destroyed is used.
fn foreign_end() -> Result<()> {
    let device = Device::cuda(0)?;
    let others = [device.new_stream()?, device.new_stream()?];
    let owner = device.new_stream()?;
    // SAFETY: `owner` is dropped after it.
    let borrowed = unsafe { Stream::from_raw(&device, owner.as_raw().unwrap())? };
    let mut buffers = Vec::new();
    for value in 0..4_u32 {
        buffers.push(borrowed.fill(value, 100)?);
    }
    let shared = others[0].fill(9_u32, 100)?;
    let copy = borrowed.duplicate(&shared)?;
    drop(borrowed);
    drop(owner);
    assert_eq!(others[1].download(&copy)?, [9; 100]);
    others[0].fill_into(7, &mut buffers[0])?;
    assert_eq!(others[1].download(&buffers[0])?, [7; 100]);
    others[1].download(&buffers[1])?;
    drop(buffers);
    drop((shared, copy));
    device.synchronize()
}

#[test]
fn foreign_streams_wait_for_each_other_from_two_threads() {
    let calls = run("foreign_both_ways", "");
    assert_eq!(count(&calls, "cuStreamWaitEvent"), 2 * WAITS);
}

const WAITS: usize = 200;

/// With the two streams' locks taken in either order, this would wait forever.
fn foreign_both_ways() -> Result<()> {
    let device = Device::cuda(0)?;
    let owners = [device.new_stream()?, device.new_stream()?];
    // SAFETY: the owners are dropped after them.
    let [one, two] =
        owners.each_ref().map(|owner| unsafe { Stream::from_raw(&device, owner.as_raw().unwrap()) });
    let (one, two) = (one?, two?);
    let begun = Arc::new(AtomicUsize::new(0));
    let watched = begun.clone();
    std::thread::spawn(move || {
        let mut before = usize::MAX;
        while before != watched.load(Ordering::Relaxed) {
            before = watched.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_secs(20));
        }
        eprintln!("two streams wait for each other's locks");
        std::process::exit(1);
    });
    // Both begin each wait at the same time; who sleeps until then would come too late. On a busy machine the
    // other may not be running: then its turn is not waited out.
    let waits = |stream: &Stream, other: &Stream| {
        (1..=WAITS).try_for_each(|turn| {
            begun.fetch_add(1, Ordering::Relaxed);
            let mut spins = 0;
            while begun.load(Ordering::Relaxed) < 2 * turn {
                spins += 1;
                if spins % 100_000 == 0 {
                    std::thread::yield_now();
                }
            }
            stream.wait_stream(other)
        })
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| waits(&two, &one));
        waits(&one, &two)?;
        other.join().unwrap()
    })
}

/// An extension module of Python makes a handle for each call, and may never wait for the device.
#[test]
fn handles_for_each_call_leave_nothing() {
    for scenario in ["foreign_for_each_call", "legacy_for_each_call"] {
        let calls = run(scenario, "");
        let (records, launches) = (count(&calls, "cuMemHostAlloc"), count(&calls, "cuLaunchKernel"));
        assert!(launches == 300 && records < 10, "{records} allocations of records for {launches} launches");
    }
}

fn foreign_for_each_call() -> Result<()> {
    let owner = Device::cuda(0)?.new_stream()?;
    for_each_call(&owner, owner.as_raw().unwrap())
}

fn legacy_for_each_call() -> Result<()> {
    for_each_call(&Device::cuda(0)?.legacy_stream()?, std::ptr::null_mut())
}

/// Launches a kernel that may panic on a new handle of `owner` each time.
fn for_each_call(owner: &Stream, raw: *mut c_void) -> Result<()> {
    let (x, mut y) = (owner.upload(&[1.0_f32; 4])?, owner.upload(&[0.0_f32; 4])?);
    for _ in 0..300 {
        // SAFETY: it is a stream of this device, and lives longer.
        let stream = unsafe { Stream::from_raw(owner.device(), raw)? };
        saxpy(&stream, Grid::cover(4), 1.0, &x, &mut y)?;
        drop(stream);
        owner.synchronize()?;
    }
    assert_eq!(owner.download(&y)?, [300.0; 4]);
    Ok(())
}

/// The fake driver loses a wait that comes in the middle of a graph's launch, as CUDA's does.
#[test]
fn graphs_on_a_stream_lose_no_wait_of_another_handle_of_it() {
    run("graphs_and_waits", "");
}

fn graphs_and_waits() -> Result<()> {
    let device = Device::cuda(0)?;
    let owner = device.new_stream()?;
    // SAFETY: the owner is dropped after it.
    let foreign = || unsafe { Stream::from_raw(&device, owner.as_raw().unwrap()) };
    for handles in [[device.legacy_stream()?, device.legacy_stream()?], [foreign()?, foreign()?]] {
        graphs_beside_waits(&device, &handles, |graph, stream| graph.launch(stream))?;
        graphs_beside_waits(&device, &handles, |graph, stream| graph.upload(stream))?;
    }
    Ok(())
}

/// One thread launches or uploads graphs on `first`, the other has what comes later on `second` wait for work elsewhere:
/// the same stream both times.
fn graphs_beside_waits(
    device: &Device,
    [first, second]: &[Stream; 2],
    send: fn(&mut ExecutableGraph<'_>, &Stream) -> Result<()>,
) -> Result<()> {
    const TURNS: u32 = 100;
    let (elsewhere, ended) = (device.new_stream()?, AtomicBool::new(false));
    let (mut filled, mut other) = (elsewhere.zeros::<u32>(8)?, elsewhere.zeros::<u32>(8)?);
    let (graph, ()) = elsewhere.capture(|capture| {
        let mut other = capture.write(&mut other)?;
        (0..8).try_for_each(|value| capture.fill_into(value, &mut other))
    })?;
    let mut graph = graph.instantiate()?;
    let arrived = std::thread::scope(|scope| {
        let launches = scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                send(&mut graph, first)?;
            }
            Ok(())
        });
        let arrived = (1..=TURNS).map(|turn| {
            elsewhere.fill_into(turn, &mut filled)?;
            Ok(second.download(&filled)? == [turn; 8])
        });
        let arrived = arrived.collect::<Result<Vec<bool>>>();
        ended.store(true, Ordering::Relaxed);
        launches.join().unwrap().and(arrived)
    })?;
    assert!(arrived.iter().all(|arrived| *arrived), "waits for fills were lost");
    Ok(())
}

struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn when_the_device_fails_functions_are_dropped_and_futures_woken() {
    run("failed_device", "fail=cuStreamSynchronize:719,held=1");
}

fn failed_device() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let held = Arc::new(());
    let (first, second) = (held.clone(), held.clone());
    let _ones = stream.fill(1_u32, 100)?;
    let mut done = pin!(stream.completed()?);
    let count = Arc::new(Count(AtomicU32::new(0)));
    let waker = Waker::from(count.clone());
    assert!(done.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    stream.launch_host_func(move || unreachable!("{first:?} is not called"))?;
    stream.launch_host_func(move || drop(second))?;
    assert!(matches!(stream.synchronize(), Err(Error::LaunchFailed { code: 719, .. })));
    assert_eq!((Arc::strong_count(&held), count.0.load(Ordering::SeqCst)), (1, 1));
    Ok(())
}

#[test]
fn a_function_that_the_driver_refuses_is_dropped() {
    run("refused_callback", "fail=cuStreamAddCallback:304");
}

fn refused_callback() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let held = Arc::new(());
    let captured = held.clone();
    let error = stream.launch_host_func(move || drop(captured)).unwrap_err();
    assert!(matches!(&error, Error::Driver { operation: "cuStreamAddCallback", code: 304, .. }), "{error}");
    assert_eq!(Arc::strong_count(&held), 1);
    // A future cannot be woken, so it waits itself.
    let ones = stream.fill(1_u32, 100)?;
    let error = pollster::block_on(stream.completed()?).unwrap_err();
    assert!(matches!(&error, Error::Driver { code: 304, .. }), "{error}");
    assert!(stream.is_complete()?);
    assert_eq!(stream.download(&ones)?, [1; 100]);
    Ok(())
}

#[test]
fn values_are_written_and_waited_for_by_the_driver() {
    let calls = run("values", "");
    let waits: Vec<&str> = calls.iter().filter_map(|line| line.strip_prefix("waits for ")).collect();
    let expected = [
        "7 of 32 bits, kind 0",
        "8 of 64 bits, kind 1",
        "9 of 32 bits, kind 2",
        "10 of 64 bits, kind 3",
        "11 of 32 bits, kind 3",
    ];
    assert_eq!(waits, expected);
}

fn values() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let (mut short, mut long) = (device.pinned_zeros::<u32>(3)?, device.pinned_zeros::<u64>(3)?);
    let (narrow, wide) =
        (short.view_mut().as_device_ptr_mut().add(1), long.view_mut().as_device_ptr_mut().add(1));
    let mut pooled = stream.zeros::<u32>(1)?;
    // SAFETY: the numbers are there until the stream has run, and it alone uses them.
    unsafe {
        stream.write_value(narrow, u32::MAX)?;
        stream.write_value(wide, 1 << 40)?;
        stream.wait_value(narrow.cast_const(), WaitValue::GreaterOrEqual(7))?;
        stream.wait_value(wide.cast_const(), WaitValue::Equal(8))?;
        stream.wait_value(narrow.cast_const(), WaitValue::And(9))?;
        stream.wait_value(wide.cast_const(), WaitValue::Nor(10))?;
        let refused = stream.wait_value(narrow.cast_const(), WaitValue::Nor(11)).unwrap_err();
        assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
        let refused = stream.write_value(pooled.as_device_ptr_mut(), 1).unwrap_err();
        assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    }
    stream.synchronize()?;
    assert_eq!((&short[..], &long[..]), (&[0, u32::MAX, 0][..], &[0, 1 << 40, 0][..]));
    Ok(())
}
