//! The driver calls of each operation, and their context, with a fake driver
//! (`fake_driver/libcuda.rs`).

use std::ffi::c_void;
use std::io::Write;

use crate::kernels::{SAXPY_KERNEL, saxpy, silent_saxpy};
use crate::scenario::{Scenario, run, run_requested};
use ferrogrid_host::__private::OrderMemory;
use ferrogrid_host::{Device, EventOptions, Grid, Result, Stream};

const SCENARIOS: &[Scenario] = &[
    ("one_stream", one_stream),
    ("two_streams", two_streams),
    ("bare_thread", bare_thread),
    ("legacy", legacy),
    ("ended_handle", ended_handle),
    ("variables", variables),
    ("block_orders", block_orders),
    ("unordered", unordered),
    ("ordered", ordered),
];

/// The made-up driver ends the process where work is given to it in no order: so a wait that is missing fails any test.
#[test]
fn the_fake_driver_detects_unordered_work() {
    for (scenario, is_found) in [("unordered", true), ("ordered", false)] {
        let outcome = std::panic::catch_unwind(|| run(scenario, ""));
        let text = outcome.err().and_then(|text| text.downcast::<String>().ok());
        let says = text.as_ref().is_some_and(|text| {
            text.contains("no order: a fill on stream") && text.contains("a fill, and both use")
        });
        assert_eq!((text.is_some(), says), (is_found, is_found), "{scenario}: {text:?}");
    }
}

fn unordered() -> Result<()> {
    two_fills(false)
}

fn ordered() -> Result<()> {
    two_fills(true)
}

/// By the driver's own calls, which this crate knows nothing of.
fn two_fills(with_a_wait: bool) -> Result<()> {
    type Fill = unsafe extern "C" fn(u64, u32, usize, *mut c_void) -> u32;
    let device = Device::cuda(0)?;
    let [first, second] = [device.new_stream()?, device.new_stream()?];
    let buffer = first.zeros::<u32>(64)?;
    first.synchronize()?;
    // SAFETY: it has been loaded before.
    let driver = unsafe { libloading::Library::new("libcuda.so.1") }.unwrap();
    // SAFETY: the function has that type.
    let fill = unsafe { driver.get::<Fill>(b"cuMemsetD32Async") }.unwrap();
    let address = buffer.as_device_ptr().as_raw() as u64;
    // SAFETY: the memory is there, and nothing reads it.
    unsafe { fill(address, 1, 32, first.as_raw().unwrap()) };
    if with_a_wait {
        second.wait(&first.record()?)?;
    }
    // SAFETY: as above.
    unsafe { fill(address + 64, 2, 32, second.as_raw().unwrap()) };
    first.synchronize()?;
    second.synchronize()
}

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

/// Names what the calls from here on belong to.
pub(crate) fn mark(what: &str) {
    let path = std::env::var("FAKE_CUDA_LOG").unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(format!("mark {what}\n").as_bytes()).unwrap();
}

/// The calls between the mark `what` and the next.
pub(crate) fn after<'a>(calls: &'a [String], what: &str) -> Vec<&'a str> {
    let lines = calls.iter().map(String::as_str).skip_while(|line| line.strip_prefix("mark ") != Some(what));
    lines.skip(1).take_while(|line| !line.starts_with("mark ")).collect()
}

/// Does `work` under the mark `what`, in a thread in which no context has been bound.
fn on_a_bare_thread(what: &str, work: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    mark(what);
    let done = std::thread::scope(|scope| scope.spawn(work).join()).unwrap();
    mark("end");
    done
}

#[test]
fn an_operation_is_one_call_of_the_driver() {
    let calls = run("one_stream", "");
    assert_eq!(after(&calls, "launch"), ["cuLaunchKernel"; 3]);
    assert_eq!(after(&calls, "record"), ["cuEventRecord"; 2]);
    assert_eq!(after(&calls, "query"), ["cuEventQuery"; 2]);
    assert_eq!(after(&calls, "query the stream"), ["cuStreamQuery"]);
    assert_eq!(after(&calls, "wait for an event"), ["cuStreamWaitEvent"]);
    assert_eq!(after(&calls, "synchronize"), ["cuStreamSynchronize", "cuEventSynchronize"]);
}

fn one_stream() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let x = stream.upload(&[1.0_f32; 10])?;
    let mut y = stream.zeros::<f32>(10)?;
    let event = device.new_event(EventOptions::new().without_timing())?;
    saxpy(&stream, Grid::cover(10), 1.0, &x, &mut y)?;
    mark("launch");
    (0..3).try_for_each(|_| saxpy(&stream, Grid::cover(10), 1.0, &x, &mut y))?;
    mark("record");
    (0..2).try_for_each(|_| stream.record_into(&event))?;
    mark("query");
    let _complete = (event.is_complete()?, event.is_complete()?);
    mark("query the stream");
    let _complete = stream.is_complete()?;
    mark("wait for an event");
    stream.wait(&event)?;
    mark("synchronize");
    stream.synchronize()?;
    event.synchronize()?;
    mark("end");
    assert_eq!(stream.download(&y)?, [4.0; 10]);
    Ok(())
}

#[test]
fn an_input_that_two_streams_share_costs_no_calls_once_each_has_read_it() {
    let calls = run("two_streams", "");
    assert_eq!(after(&calls, "launch by turns"), ["cuLaunchKernel"; 4]);
    let written = after(&calls, "write what both have read");
    let expected = ["cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernel"];
    assert_eq!(written, expected, "a wait for the other stream, with an event that was there already");
}

fn two_streams() -> Result<()> {
    let device = Device::cuda(0)?;
    let (a, b) = (device.new_stream()?, device.new_stream()?);
    let mut x = a.upload(&[1.0_f32; 10])?;
    let ones = a.upload(&[1.0_f32; 10])?;
    let (mut y, mut z) = (a.zeros::<f32>(10)?, b.zeros::<f32>(10)?);
    saxpy(&a, Grid::cover(10), 1.0, &x, &mut y)?;
    saxpy(&b, Grid::cover(10), 1.0, &x, &mut z)?;
    mark("launch by turns");
    for _ in 0..2 {
        saxpy(&a, Grid::cover(10), 1.0, &x, &mut y)?;
        saxpy(&b, Grid::cover(10), 1.0, &x, &mut z)?;
    }
    mark("write what both have read");
    saxpy(&a, Grid::cover(10), 1.0, &ones, &mut x)?;
    mark("end");
    assert_eq!((a.download(&y)?, b.download(&z)?), (vec![3.0; 10], vec![3.0; 10]));
    assert_eq!(a.download(&x)?, [2.0; 10]);
    Ok(())
}

#[test]
fn a_thread_without_a_context_is_given_one_only_if_the_driver_asks_for_it() {
    let calls = run("bare_thread", "");
    let expected = ["cuLaunchKernel", "cuEventRecord", "cuEventQuery", "cuStreamSynchronize"];
    assert_eq!(after(&calls, "bare"), expected);
    let calls = run("bare_thread", "context=needed");
    let expected = [
        "cuLaunchKernel",
        "cuCtxGetCurrent",
        "cuCtxSetCurrent",
        "cuLaunchKernel",
        "cuEventRecord",
        "cuEventQuery",
        "cuStreamSynchronize",
    ];
    assert_eq!(after(&calls, "bare"), expected, "once: the context stays bound");
}

fn bare_thread() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let x = stream.upload(&[1.0_f32; 10])?;
    let mut y = stream.zeros::<f32>(10)?;
    let event = device.new_event(EventOptions::new())?;
    saxpy(&stream, Grid::cover(10), 1.0, &x, &mut y)?;
    on_a_bare_thread("bare", || {
        saxpy(&stream, Grid::cover(10), 1.0, &x, &mut y)?;
        stream.record_into(&event)?;
        let _complete = event.is_complete()?;
        stream.synchronize()
    })?;
    assert_eq!(stream.download(&y)?, [2.0; 10]);
    Ok(())
}

/// Zeroing takes a GPU as long as a small kernel.
#[test]
fn a_stream_keeps_the_memory_of_a_block_order() {
    let takes_memory = |calls: &[String], what| {
        let calls = after(calls, what);
        assert!(!calls.is_empty(), "{what}");
        calls.iter().any(|call| call.starts_with("cuMemAlloc"))
    };
    let of_all = |settings| {
        let calls = run("block_orders", settings);
        let count = |name: &str| calls.iter().filter(|call| call.starts_with(name)).count();
        assert_eq!(count("cuMemAlloc"), count("cuMemFree"), "nothing is left: {calls:#?}");
        [
            "the first",
            "a later one",
            "one with more blocks",
            "a later one of those",
            "one with too many blocks",
        ]
        .map(|what| takes_memory(&calls, what))
    };
    assert_eq!(of_all(""), [true, false, true, false, true]);
    assert_eq!(of_all("capturing=1"), [true; 5], "a graph of another library would use it again");
}

fn block_orders() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let order = |what, blocks: u32| {
        mark(what);
        OrderMemory::new::<u32, 1>(&SAXPY_KERNEL, Grid::new(blocks, 32), &stream).map(drop)
    };
    order("the first", 4)?;
    order("a later one", 5)?;
    order("one with more blocks", 5000)?;
    order("a later one of those", 4)?;
    order("one with too many blocks", 70_000)?;
    mark("end");
    {
        // Each has its own while both are there.
        let of = || OrderMemory::new::<u32, 1>(&SAXPY_KERNEL, Grid::new(9, 32), &stream);
        let (first, second) = (of()?, of()?);
        // SAFETY: the parameter of the kernel is a pointer.
        let [first, second] =
            [&first, &second].map(|order| unsafe { order.param().cast::<*const u8>().read() });
        assert_ne!(first, second);
    }
    drop(stream);
    Ok(())
}

/// `cuModuleGetGlobal` fails for what is not there, and tools that watch the driver report that.
#[test]
fn a_module_is_queried_only_for_its_variables() {
    let calls = run("variables", "");
    let asked = |what| after(&calls, what).iter().filter(|call| **call == "cuModuleGetGlobal_v2").count();
    assert_eq!((asked("load silent"), asked("load")), (0, 1));
    assert!(!calls.iter().any(|call| call.starts_with("refused symbol")));
}

fn variables() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let x = stream.upload(&[1.0_f32; 10])?;
    let mut y = stream.zeros::<f32>(10)?;
    mark("load silent");
    silent_saxpy(&stream, Grid::cover(10), 1.0, &x, &mut y)?;
    mark("load");
    saxpy(&stream, Grid::cover(10), 1.0, &x, &mut y)?;
    mark("end");
    assert_eq!(stream.download(&y)?, [2.0; 10]);
    Ok(())
}

/// The buffer was last used by a stream that may be gone, so another frees it, after that use.
#[test]
fn memory_of_an_ended_handle_is_freed_after_its_work() {
    let calls = run("ended_handle", "");
    let freed = after(&calls, "free");
    let place = |name: &str| freed.iter().position(|call| *call == name);
    let (wait, free) = (place("cuStreamWaitEvent"), place("cuMemFreeAsync"));
    assert!(wait.is_some() && free.is_some() && wait < free, "{freed:?}");
}

fn ended_handle() -> Result<()> {
    let device = Device::cuda(0)?;
    let owner = device.new_stream()?;
    // SAFETY: `owner` is dropped after it.
    let borrowed = unsafe { Stream::from_raw(&device, owner.as_raw().unwrap())? };
    let buffer = borrowed.fill(1_u32, 100)?;
    drop(borrowed);
    mark("free");
    drop(buffer);
    mark("end");
    device.synchronize()
}

#[test]
fn the_legacy_stream_is_never_used_without_its_context() {
    let calls = run("legacy", "");
    let bind = ["cuCtxGetCurrent", "cuCtxSetCurrent"];
    assert_eq!(after(&calls, "launch"), [bind[0], bind[1], "cuLaunchKernel"]);
    assert_eq!(after(&calls, "record"), [bind[0], bind[1], "cuEventRecord"]);
    assert_eq!(after(&calls, "synchronize"), [bind[0], bind[1], "cuStreamSynchronize"]);
}

fn legacy() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.legacy_stream()?;
    let x = stream.upload(&[1.0_f32; 10])?;
    let mut y = stream.zeros::<f32>(10)?;
    let event = device.new_event(EventOptions::new())?;
    saxpy(&stream, Grid::cover(10), 1.0, &x, &mut y)?;
    on_a_bare_thread("launch", || saxpy(&stream, Grid::cover(10), 1.0, &x, &mut y))?;
    on_a_bare_thread("record", || stream.record_into(&event))?;
    on_a_bare_thread("synchronize", || stream.synchronize())?;
    assert_eq!(stream.download(&y)?, [2.0; 10]);
    Ok(())
}
