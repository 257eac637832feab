//! A GPU that is reset after a kernel has failed, with a fake driver (`fake_driver/libcuda.rs`): it gives the new context
//! the handle of the old, ends the process where a handle of the old comes back, and takes page-locked memory away.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::kernels::{saxpy, silent_saxpy};
use crate::scenario::{Scenario, count, run, run_requested};
use ferrogrid_host::{Device, DeviceBuffer, Error, EventOptions, Grid, PoolOptions, Result};

const SCENARIOS: &[Scenario] = &[
    ("survives", survives),
    ("old_handles", old_handles),
    ("dropped_before", dropped_before),
    ("panics_unseen", panics_unseen),
    ("host_memory", host_memory),
    ("unopened", unopened),
    ("peers", peers),
    ("does_not_recover", does_not_recover),
    ("no_new_context", no_new_context),
    ("kept_until_work_has_run", kept_until_work_has_run),
];

/// A wait for a stream tells that a kernel has failed, from the second on.
const FAILS: &str = "fail=cuStreamSynchronize:719:2";

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

fn mark(what: &str) {
    use std::io::Write;
    let path = std::env::var("FAKE_CUDA_LOG").unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(format!("mark {what}\n").as_bytes()).unwrap();
}

/// The calls between the mark `what` and the next.
fn after<'a>(calls: &'a [String], what: &str) -> Vec<&'a str> {
    let lines = calls.iter().map(String::as_str).skip_while(|line| line.strip_prefix("mark ") != Some(what));
    lines.skip(1).take_while(|line| !line.starts_with("mark ")).collect()
}

/// Fails if it does not say that the device has been reset.
#[track_caller]
fn is_reset<T: Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::DeviceReset { .. })), "{result:?}");
}

/// What can be computed with a kernel on a fresh stream.
fn compute(device: &Device) -> Result<Vec<f32>> {
    let stream = device.new_stream()?;
    let x = stream.upload(&[1.0_f32; 4])?;
    let mut y = stream.fill(2.0_f32, 4)?;
    saxpy(&stream, Grid::cover(4), 3.0, &x, &mut y)?;
    stream.download(&y)
}

fn is_failure<T: Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::LaunchFailed { .. })), "{result:?}");
}

fn reset(device: &Device) -> Result<Device> {
    // SAFETY: there is no other thread and no other library, and no work of other devices on this one's memory.
    unsafe { device.reset() }
}

#[test]
fn a_process_survives_a_failed_kernel() {
    let calls = run("survives", FAILS);
    assert_eq!(count(&calls, "cuModuleLoadDataEx"), 3, "loaded at first, and after each reset");
    assert_eq!(count(&calls, "cuDevicePrimaryCtxReset_v2"), 2);
    let (retained, released) = ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2");
    assert_eq!((count(&calls, retained), count(&calls, released)), (3, 2));
}

fn survives() -> Result<()> {
    let device = Device::cuda(0)?;
    is_failure(compute(&device));
    is_failure(compute(&device));
    let fresh = reset(&device)?;
    assert_ne!(fresh, device);
    assert_eq!((fresh.ordinal(), Device::cuda(0)?), (Some(0), fresh.clone()));
    assert_eq!(Device::all()[0], fresh);
    assert_eq!(compute(&fresh)?, [5.0; 4]);
    is_reset(compute(&device));
    is_reset(reset(&device));
    let again = reset(&fresh)?; // not only after a failure
    assert_eq!(compute(&again)?, [5.0; 4]);
    is_reset(compute(&fresh));
    Ok(())
}

#[test]
fn old_handles_give_errors_and_are_dropped_without_a_call() {
    let calls = run("old_handles", "");
    assert_eq!(after(&calls, "use old handles"), [""; 0]);
    assert_eq!(after(&calls, "drop old handles"), [""; 0]);
    assert!(calls.iter().any(|call| call == "cuStreamDestroy_v2"), "new ones are destroyed");
}

fn old_handles() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let (legacy, own_thread) = (device.legacy_stream()?, device.per_thread_stream()?);
    let mut x = stream.fill(1.0_f32, 100)?;
    let mut y = other.duplicate(&x)?;
    saxpy(&stream, Grid::cover(100), 1.0, &x, &mut y)?;
    silent_saxpy(&stream, Grid::cover(100), 1.0, &x, &mut y)?;
    let (event, timed) = (stream.record()?, device.new_event(EventOptions::new())?);
    let pool = device.new_memory_pool(PoolOptions::new())?;
    let pooled = pool.fill(&stream, 1_u32, 10)?;
    let mut growable = stream.growable::<u32>(1000)?;
    growable.resize(&stream, 10, 1)?;
    let module = device.load_ptx(".version 7.0\n.target sm_75\n.address_size 64\n")?;
    let function = module.function("saxpy_5eed")?;
    let (graph, key) = stream.capture(|capture| {
        let mut kept = capture.keep(other.zeros::<u32>(10)?)?;
        capture.fill_into(5_u32, kept.view_mut())?;
        Ok(kept.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    let (unlaunched, ()) = stream.capture(|_| Ok(()))?;
    let context = device.context()?;
    let transfer = stream.download_async(&y, device.pinned_zeros(100)?)?;
    drop(transfer.wait()?);
    device.synchronize()?;

    let fresh = reset(&device)?;
    let (new, new_x) = (fresh.new_stream()?, fresh.new_stream()?.fill(3.0_f32, 100)?);
    let new_event = new.record()?;
    mark("use old handles");
    is_reset(stream.synchronize());
    is_reset(stream.is_complete());
    is_reset(stream.priority());
    is_reset(stream.record());
    is_reset(stream.fill(1_u32, 10));
    is_reset(stream.download(&y));
    is_reset(stream.fill_into(1.0, &mut y));
    is_reset(saxpy(&stream, Grid::cover(100), 1.0, &x, &mut y));
    is_reset(silent_saxpy(&stream, Grid::cover(100), 1.0, &x, &mut y));
    is_reset(stream.launch_host_func(|| ()));
    is_reset(stream.wait_stream(&other));
    is_reset(legacy.synchronize());
    is_reset(own_thread.synchronize());
    is_reset(event.synchronize());
    is_reset(event.is_complete());
    is_reset(stream.record_into(&timed));
    is_reset(pool.statistics());
    is_reset(pool.trim(0));
    is_reset(pool.fill(&stream, 1_u32, 1));
    is_reset(growable.resize(&stream, 100_000_000 / 1_000_000, 1));
    is_reset(growable.shrink_to_fit());
    is_reset(module.function("mix_5eed"));
    is_reset(function.attributes());
    // SAFETY: it takes these.
    let launch = |stream| unsafe {
        function.launch(stream, Grid::cover(100), (1.0_f32, &x, 100_usize, &x, 100_usize))
    };
    is_reset(launch(&stream));
    is_reset(launch(&new));
    is_reset(graph.launch(&stream));
    is_reset(graph.upload(&stream));
    is_reset(unlaunched.instantiate().map(drop));
    is_reset(context.set_current());
    is_reset(device.new_stream());
    is_reset(device.synchronize());
    is_reset(device.memory_info());
    is_reset(device.new_event(EventOptions::new()));
    is_reset(device.new_memory_pool(PoolOptions::new()));
    is_reset(device.pinned_zeros::<u32>(10));
    mark("use old with new");
    is_reset(new.download(&y));
    is_reset(saxpy(&new, Grid::cover(100), 1.0, &x, &mut y));
    is_reset(saxpy(&stream, Grid::cover(100), 1.0, &new_x, &mut y));
    is_reset(new.wait(&event));
    is_reset(stream.wait(&new_event));
    is_reset(new.wait_stream(&stream));
    is_reset(new.record_into(&timed));
    is_reset(pool.fill(&new, 1_u32, 1));
    is_reset(graph.launch(&new));
    is_reset(new.copy(&new_x, &mut x));
    is_reset(graph.view(key).and_then(|view| new.download(view)));
    mark("drop old handles");
    drop((legacy, own_thread, x, y, event, timed, pooled, pool, growable, module, graph, context));
    drop((stream, other));
    mark("end");
    drop(new);
    assert_eq!(compute(&fresh)?, [5.0; 4]);
    Ok(())
}

#[test]
fn objects_dropped_before_their_work_are_freed_too() {
    run("dropped_before", "");
}

fn dropped_before() -> Result<()> {
    let device = Device::cuda(0)?;
    let (dropped, called) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let pinned = device.pinned_zeros::<u32>(10)?;
    let x = second.fill(1_u32, 10)?;
    let owner = NoteDrop(dropped.clone());
    let start = x.as_device_ptr().as_raw().cast_mut();
    // SAFETY: `x` is there until the work has run.
    let foreign =
        unsafe { DeviceBuffer::from_raw(&first, ferrogrid_host::DevicePtrMut::from_raw(start), 10, owner)? };
    let note = called.clone();
    first.launch_host_func(move || note.store(true, Ordering::Relaxed))?;
    let transfer = first.upload_async(pinned, &mut first.zeros(10)?)?;
    drop(transfer); // the page-locked memory waits for the copy
    drop((foreign, first));
    let fresh = reset(&device)?;
    assert!(called.load(Ordering::Relaxed), "what was enqueued has run");
    assert!(dropped.load(Ordering::Relaxed), "its owner waits for nothing");
    drop((x, second));
    assert_eq!(compute(&fresh)?, [5.0; 4]);
    Ok(())
}

/// Notes that it was dropped.
struct NoteDrop(Arc<AtomicBool>);

impl Drop for NoteDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Records of panics and printed text are in page-locked memory, which goes with the context.
#[test]
fn panics_and_text_from_before_a_reset_are_not_looked_for() {
    run("panics_unseen", "panic=2,print=3");
}

fn panics_unseen() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut y = stream.fill(1.0_f32, 8)?;
    saxpy(&stream, Grid::cover(8), 2.0, &stream.zeros(8)?, &mut y)?;
    let mut copy = other.zeros::<f32>(8)?;
    other.copy(&y, &mut copy)?;
    other.wait_stream(&stream)?;
    let (mut graph, ()) = {
        let (graph, ()) = stream.capture(|_| Ok(()))?;
        (graph.instantiate()?, ())
    };
    graph.launch(&stream)?;
    // What a dropped stream leaves is settled when the next is made.
    drop(stream);
    device.set_output(|_| ());
    let fresh = reset(&device)?;
    is_reset(other.synchronize());
    is_reset(other.download(&y));
    is_reset(other.download(&copy));
    is_reset(device.new_stream());
    is_reset(device.synchronize());
    drop((y, copy, graph, other));
    assert_eq!(compute(&fresh)?, [5.0; 4]);
    Ok(())
}

#[test]
fn memory_of_the_host_must_be_dropped_before() {
    let calls = run("host_memory", FAILS);
    assert_eq!(count(&calls, "cuDevicePrimaryCtxReset_v2"), 1);
}

fn host_memory() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let (pinned, second) = (device.pinned_zeros::<u32>(10)?, device.pinned_copy(&[1_u8])?);
    let managed = stream.managed_zeros::<u32>(10)?;
    let registered = device.pin(vec![7_u32; 3])?;
    is_failure(compute(&device));
    is_failure(compute(&device));
    let refused = reset(&device).unwrap_err();
    assert!(matches!(refused, Error::HostMemoryInUse { pinned: 2, managed: 1, .. }), "{refused}");
    is_failure(stream.synchronize()); // as before
    drop(managed);
    drop(pinned);
    let refused = reset(&device).unwrap_err();
    assert!(matches!(refused, Error::HostMemoryInUse { pinned: 1, managed: 0, .. }), "{refused}");
    drop(second);
    let fresh = reset(&device)?;
    assert_eq!(compute(&fresh)?, [5.0; 4]);
    assert_eq!(registered.read()?, [7; 3], "it is the host's own");
    assert_eq!(registered.into_vec(), [7; 3]);
    Ok(())
}

/// Page-locked memory that several streams used is kept until all have; a device that has failed runs nothing more.
#[test]
fn memory_that_waits_for_failed_work_does_not_wait_for_ever() {
    run("kept_until_work_has_run", "fail=cuEventCreate:719:2");
}

fn kept_until_work_has_run() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let mut pinned = device.pinned_zeros::<u32>(10)?;
    stream.fill_into(1, &mut pinned)?;
    device.new_event(EventOptions::new())?;
    is_failure(device.new_event(EventOptions::new()));
    drop(pinned);
    reset(&device).map(drop)
}

#[test]
fn an_unopened_gpu_is_not_reset() {
    let calls = run("unopened", "devices=2");
    assert_eq!(count(&calls, "cuDevicePrimaryCtxReset_v2"), 0);
}

fn unopened() -> Result<()> {
    let device = Device::all().swap_remove(1);
    assert_eq!(reset(&device)?, device);
    let cpu = reset(&Device::cpu());
    assert!(matches!(cpu, Err(Error::Unsupported { operation: "a reset", .. })), "{cpu:?}");
    Ok(())
}

#[test]
fn peer_access_is_enabled_again() {
    let calls = run("peers", "devices=2");
    assert_eq!(count(&calls, "cuCtxEnablePeerAccess"), 2);
}

fn peers() -> Result<()> {
    let (device, peer) = (Device::cuda(0)?, Device::cuda(1)?);
    peer.enable_peer_access(&device)?;
    let theirs = peer.new_stream()?;
    let old = device.new_stream()?.fill(1_u32, 10)?;
    let fresh = reset(&device)?;
    let stream = fresh.new_stream()?;
    let mut new = stream.fill(2_u32, 10)?;
    is_reset(theirs.download(&old));
    is_reset(theirs.duplicate_peer(&old));
    let closed = theirs.fill_into(3, &mut new);
    assert!(matches!(closed, Err(Error::DeviceMismatch { .. })), "{closed:?}");
    peer.enable_peer_access(&fresh)?;
    theirs.fill_into(3, &mut new)?;
    is_reset(theirs.download(&old));
    assert_eq!(theirs.download(&new)?, [3; 10]);
    Ok(())
}

#[test]
fn a_driver_that_does_not_recover_is_an_error_and_can_be_retried() {
    // The first call is before the reset, the second asks the new context.
    let calls = run("does_not_recover", "fail=cuCtxSynchronize:719:2:2");
    assert_eq!(count(&calls, "cuDevicePrimaryCtxReset_v2"), 2);
}

fn does_not_recover() -> Result<()> {
    let device = Device::cuda(0)?;
    is_failure(reset(&device));
    is_reset(Device::cuda(0));
    is_reset(device.new_stream());
    let fresh = reset(&device)?;
    assert_eq!(compute(&fresh)?, [5.0; 4]);
    Ok(())
}

/// Driver 580 after an illegal address.
#[test]
fn a_driver_that_creates_no_new_context_is_an_error() {
    run("no_new_context", "fail=cuDevicePrimaryCtxRetain:700:2");
}

fn no_new_context() -> Result<()> {
    let device = Device::cuda(0)?;
    device.new_stream()?;
    for _ in 0..2 {
        let refused = reset(&device).unwrap_err();
        assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
        assert!(refused.to_string().contains("makes no new context"), "{refused}");
    }
    is_reset(device.new_stream());
    Ok(())
}
