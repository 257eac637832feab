//! The CUDA backend without a driver, and with a fake one (`fake_driver/libcuda.rs`): which error it
//! returns and when, which calls it makes, and the order of work. Each scenario runs in a separate
//! process, because a process loads one driver. Results on a real one are for the conformance suite.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

use crate::kernels::{missing, saxpy, silent_saxpy, unlucky};
use crate::scenario::{Scenario, count, fake_driver, run, run_with};
use ferrogrid_host::profile::Timeline;
use ferrogrid_host::{Device, DeviceKind, Error, Grid, LaunchError, NEEDED_DRIVER, Result};

/// Counts allocations of the calling thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const SCENARIOS: &[Scenario] = &[
    ("too_old", too_old),
    ("nothing_found", nothing_found),
    ("broken_driver", broken_driver),
    ("missing_symbol", missing_symbol),
    ("ordinals", ordinals),
    ("variable", variable),
    ("arithmetic", arithmetic),
    ("order", order),
    ("no_allocation", no_allocation),
    ("one_module", one_module),
    ("nothing_loads", nothing_loads),
    ("nothing_fits", nothing_fits),
    ("no_code", no_code),
    ("failed_kernel", failed_kernel),
    ("refused_launch", refused_launch),
    ("unknown_code", unknown_code),
    ("out_of_memory", out_of_memory),
    ("events", events),
    ("panicking_kernel", panicking_kernel),
    ("printing_kernel", printing_kernel),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    crate::scenario::run_requested(SCENARIOS);
}

#[test]
fn without_a_driver_the_cpu_works_and_the_error_has_advice() {
    if Path::new("/proc/driver/nvidia").exists() {
        return;
    }
    let error = Device::cuda(0).unwrap_err();
    assert!(matches!(error, Error::NoDriver { .. }), "{error}");
    for part in ["no CUDA driver: libcuda.so.1: cannot open", "install the NVIDIA driver"] {
        assert!(error.to_string().contains(part), "{part:?} is missing in {error}");
    }
    assert_eq!(Device::all(), [Device::cpu()]);
}

#[test]
fn a_driver_that_is_too_old_is_named() {
    let calls = run("too_old", "version=11080");
    assert_eq!(calls, ["cuDriverGetVersion"], "nothing else is called");
}

fn too_old() -> Result<()> {
    let error = Device::cuda(0).unwrap_err();
    assert_eq!(error, Error::DriverTooOld { found: (11, 8), needed: NEEDED_DRIVER });
    assert!(error.to_string().contains("supports CUDA 11.8, this crate requires 12.0"), "{error}");
    assert_eq!(Device::best()?, Device::cpu());
    Ok(())
}

#[test]
fn a_driver_without_a_gpu_is_no_device() {
    run("nothing_found", "devices=0");
    run("nothing_found", "fail=cuInit:100");
    run("nothing_found", "fail=cuDeviceGetCount:100");
}

fn nothing_found() -> Result<()> {
    assert_eq!(Device::cuda(0).unwrap_err(), Error::NoDevice);
    assert_eq!(Device::best()?, Device::cpu());
    Ok(())
}

#[test]
fn a_driver_that_does_not_start_is_an_error_and_best_is_the_cpu() {
    run("broken_driver", "fail=cuInit:803");
    run("broken_driver", "fail=cuDriverGetVersion:34");
    run("broken_driver", "fail=cuDevicePrimaryCtxRetain:46");
}

fn broken_driver() -> Result<()> {
    assert!(matches!(Device::cuda(0), Err(Error::Driver { code: 803 | 34 | 46, .. })));
    assert_eq!(Device::best()?, Device::cpu());
    Ok(())
}

#[test]
fn a_missing_function_is_an_error_that_names_it() {
    run_with("missing_symbol", "version=12000", &fake_driver(&["pools"]));
}

fn missing_symbol() -> Result<()> {
    let expected = Error::MissingSymbol { symbol: "cuMemPoolCreate", found: (12, 0), needed: NEEDED_DRIVER };
    assert_eq!(Device::cuda(0).unwrap_err(), expected);
    Ok(())
}

#[test]
fn devices_are_numbered_and_do_not_share_buffers() {
    run("ordinals", "devices=2");
}

fn ordinals() -> Result<()> {
    assert_eq!(Device::cuda(2).unwrap_err(), Error::InvalidDevice { ordinal: 2, count: 2 });
    let kinds: Vec<DeviceKind> = Device::all().iter().map(Device::kind).collect();
    assert_eq!(kinds, [DeviceKind::Cuda, DeviceKind::Cuda, DeviceKind::Cpu]);
    let (first, second) = (Device::cuda(0)?, Device::cuda(1)?);
    assert_ne!(first, second);
    assert_eq!(Device::best()?, first);
    assert_eq!((first.name(), first.compute_capability()), ("Fake GPU", Some((9, 0))));
    let buffer = first.new_stream()?.upload(&[1_u8])?;
    for other in [second, Device::cpu()] {
        let error = other.new_stream()?.download(&buffer).unwrap_err();
        assert!(matches!(&error, Error::DeviceMismatch { buffer, .. } if buffer.contains("CUDA device 0")));
    }
    Ok(())
}

#[test]
fn the_variable_chooses_the_device() {
    run("variable", "devices=2");
}

fn variable() -> Result<()> {
    let choose = |value: &str| {
        // SAFETY: this process has no other thread that reads the environment.
        unsafe { std::env::set_var("FERROGRID_DEVICE", value) };
        Device::best()
    };
    assert_eq!(choose("cpu")?, Device::cpu());
    assert_eq!(choose("cuda")?, Device::cuda(0)?);
    assert_eq!(choose("cuda:1")?, Device::cuda(1)?);
    assert_eq!(choose("cuda:7"), Err(Error::InvalidDevice { ordinal: 7, count: 2 }));
    let error = choose("gpu").unwrap_err();
    assert!(matches!(&error, Error::Environment { value, .. } if &**value == "gpu"), "{error}");
    Ok(())
}

#[test]
fn a_kernel_runs_and_all_memory_is_freed() {
    for (settings, allocation, free) in [
        ("pools=1", "cuMemAllocFromPoolAsync", "cuMemFreeAsync"),
        ("pools=0", "cuMemAlloc_v2", "cuMemFree_v2"),
    ] {
        let calls = run("arithmetic", settings);
        assert!(count(&calls, allocation) > 3, "{settings}");
        assert_eq!(count(&calls, allocation), count(&calls, free), "{settings}");
        assert_eq!(count(&calls, "cuEventRecord"), 0, "one stream needs no events");
    }
}

fn arithmetic() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let x = stream.upload(&[1.0_f32, 2.0, 3.0])?;
    let mut y = stream.zeros::<f32>(3)?;
    silent_saxpy(&stream, Grid::cover(3), 2.0, &x, &mut y)?;
    assert_eq!(stream.download(&y)?, [2.0, 4.0, 6.0]);
    assert_eq!(stream.download(&stream.fill([1_u64, 2], 3)?)?, [[1, 2]; 3]);
    assert_eq!(stream.download(&stream.fill(5_u16, 3)?)?, [5; 3]);
    let mut empty = stream.upload::<f32>(&[])?;
    silent_saxpy(&stream, Grid::cover(0), 2.0, &x, &mut empty)?;
    assert!(stream.download(&empty)?.is_empty());
    std::thread::spawn(move || drop((x, y))).join().unwrap();
    stream.synchronize()
}

#[test]
fn random_work_on_several_streams_is_ordered() {
    run("order", "pools=1");
    run("order", "pools=0");
}

fn order() -> Result<()> {
    crate::model::random_work_equals_the_model(&Device::cuda(0)?, 400)
}

#[test]
fn a_launch_allocates_nothing_and_binds_once() {
    let calls = run("no_allocation", "");
    assert_eq!(count(&calls, "cuLaunchKernel"), 102);
    assert!(count(&calls, "cuCtxSetCurrent") <= 1);
    assert_eq!(count(&calls, "cuModuleGetFunction"), 1);
}

fn no_allocation() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let x = stream.upload(&[1.0_f32; 10])?;
    let mut y = stream.zeros::<f32>(10)?;
    saxpy(&stream, Grid::cover(10), 1.0, &x, &mut y)?;
    let timeline = Timeline::start(stream.device())?;
    saxpy(&stream, Grid::cover(10), 1.0, &x, &mut y)?;
    assert_eq!(timeline.finish().device_spans().count(), 1);
    let before = ALLOCATIONS.get();
    for _ in 0..100 {
        saxpy(&stream, Grid::cover(10), 1.0, &x, &mut y)?;
    }
    assert_eq!(ALLOCATIONS.get(), before, "also after a timeline");
    assert_eq!(stream.download(&y)?, [102.0; 10]);
    Ok(())
}

#[test]
fn the_best_image_that_the_driver_supports_is_loaded_once() {
    assert_eq!(count(&run("one_module", ""), "cuModuleLoadDataEx"), 1);
    assert_eq!(count(&run("one_module", "refuse=sm_90a"), "cuModuleLoadDataEx"), 2);
    assert_eq!(count(&run("one_module", "refuse=sm_90a+sm_90"), "cuModuleLoadDataEx"), 3);
    assert_eq!(count(&run("one_module", "capability=86"), "cuModuleLoadDataEx"), 1);
}

fn one_module() -> Result<()> {
    let device = Device::cuda(0)?;
    let (a, b) = (device.new_stream()?, device.new_stream()?);
    let x = a.upload(&[1.0_f32])?;
    let mut y = b.upload(&[1.0_f32])?;
    saxpy(&a, Grid::cover(1), 1.0, &x, &mut y)?;
    saxpy(&b, Grid::cover(1), 1.0, &x, &mut y)?;
    let error = missing(&a, &x, &mut y).unwrap_err();
    assert!(matches!(&error, Error::Driver { operation: "cuModuleGetFunction", code: 500, .. }));
    assert!(error.to_string().contains("kernel `missing` (missing_5eed)"), "{error}");
    assert_eq!(a.download(&y)?, [3.0]);
    Ok(())
}

#[test]
fn a_module_that_does_not_load_gives_the_compilers_log() {
    run("nothing_loads", "refuse=sm_90a+sm_90+sm_75");
}

fn nothing_loads() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let x = stream.upload(&[1.0_f32])?;
    let mut y = stream.upload(&[1.0_f32])?;
    let Err(Error::ModuleLoad { kernel: "saxpy", log, .. }) = saxpy(&stream, Grid::cover(1), 1.0, &x, &mut y)
    else {
        panic!("the module was loaded");
    };
    for part in ["sm_90a (PTX 8.0)", "sm_75 (PTX 6.3)", "UNSUPPORTED_PTX_VERSION", "this driver is too old"] {
        assert!(log.contains(part), "{part:?} is missing in {log}");
    }
    assert_eq!(stream.download(&y)?, [1.0]);
    Ok(())
}

#[test]
fn a_device_older_than_all_images_is_named() {
    run("nothing_fits", "capability=61");
}

fn nothing_fits() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let x = stream.upload(&[1.0_f32])?;
    let mut y = stream.upload(&[1.0_f32])?;
    let error = saxpy(&stream, Grid::cover(1), 1.0, &x, &mut y).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `saxpy` was compiled for sm_75, sm_90, sm_90a, but CUDA device 0 (Fake GPU) has compute capability 6.1"
    );
    Ok(())
}

#[test]
fn a_host_only_kernel_does_not_run_on_a_gpu() {
    run("no_code", "");
}

fn no_code() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let mut y = stream.upload(&[1_u32])?;
    assert_eq!(
        unlucky(&stream, Grid::cover(1), &mut y),
        Err(Error::Launch(LaunchError::NoDeviceCode { kernel: "unlucky", reason: None }))
    );
    Ok(())
}

#[test]
fn a_failed_kernel_is_named() {
    run("failed_kernel", "fail=cuStreamSynchronize:719:3");
}

fn failed_kernel() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let x = stream.upload(&[1.0_f32])?;
    let mut y = stream.upload(&[1.0_f32])?;
    let first = line!() + 2;
    for _ in 0..2 {
        saxpy(&stream, Grid::cover(1), 1.0, &x, &mut y)?;
    }
    saxpy(&stream, Grid::cover(1), 1.0, &x, &mut y)?;
    let error = stream.download(&y).unwrap_err();
    let Error::LaunchFailed { code: 719, kernels, .. } = &error else { panic!("{error}") };
    let launches: Vec<_> =
        kernels.iter().map(|launch| (launch.name, launch.site.file(), launch.site.line())).collect();
    assert_eq!(launches, [("saxpy", file!(), first), ("saxpy", file!(), first + 2)], "each place once");
    assert!(error.to_string().contains("unspecified launch failure"), "{error}");
    Ok(())
}

#[test]
fn a_launch_that_the_driver_refuses_is_explained() {
    run("refused_launch", "fail=cuLaunchKernel:701");
}

fn refused_launch() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let x = stream.upload(&[1.0_f32])?;
    let mut y = stream.upload(&[1.0_f32])?;
    let mut launch = |threads: u32| saxpy(&stream, Grid::new(1, threads), 1.0, &x, &mut y);
    let too_many = Error::Launch(LaunchError::TooManyThreads {
        kernel: "saxpy",
        block: [256, 1, 1],
        threads: 256,
        limit: 128,
    });
    assert_eq!(launch(256), Err(too_many));
    let error = launch(64).unwrap_err();
    assert!(error.to_string().starts_with("cuLaunchKernel failed for kernel `saxpy`"), "{error}");
    Ok(())
}

#[test]
fn a_code_that_no_header_lists_is_an_ordinary_error() {
    run("unknown_code", "fail=cuStreamCreateWithPriority:123456789");
}

fn unknown_code() -> Result<()> {
    let error = Device::cuda(0)?.new_stream().unwrap_err();
    assert!(
        matches!(&error, Error::Driver { code: 123_456_789, operation: "cuStreamCreateWithPriority", .. }),
        "{error}"
    );
    Ok(())
}

#[test]
fn out_of_memory_says_how_much_there_is() {
    run("out_of_memory", "memory=1000");
    run("out_of_memory", "memory=1000,pools=0");
}

fn out_of_memory() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let _some = stream.zeros::<u8>(400)?;
    let error = stream.zeros::<u8>(601).unwrap_err();
    assert_eq!(
        error.to_string(),
        "CUDA device 0 (Fake GPU) is out of memory: 601 bytes requested, 600 of 1000 are free"
    );
    assert_eq!(stream.download(&stream.zeros::<u8>(600)?)?, [0; 600]);
    Ok(())
}

#[test]
fn events_mark_wait_and_time() {
    run("events", "");
}

fn events() -> Result<()> {
    let device = Device::cuda(0)?;
    let (a, b) = (device.new_stream()?, device.new_stream()?);
    let start = a.record()?;
    let end = a.record()?;
    assert!(!end.is_complete()?);
    b.wait(&end)?;
    b.synchronize()?;
    assert!(end.is_complete()?);
    assert_eq!(end.elapsed_since(&start)?.as_micros(), 1500);
    let cpu = Device::cpu().new_stream()?;
    cpu.wait(&end)?;
    assert!(matches!(cpu.record()?.elapsed_since(&start), Err(Error::EventTime { .. })));
    Ok(())
}

#[test]
fn a_panic_is_reported_once_and_the_device_stays_usable() {
    run("panicking_kernel", "panic=2");
}

fn panicking_kernel() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let x = stream.upload(&[1.0_f32])?;
    let mut y = stream.upload(&[1.0_f32])?;
    let expected = |launched| Error::KernelPanic {
        kernel: "saxpy",
        launched,
        message: "index out of bounds: the len is 5 but the index is 7".into(),
        file: "src/kernels.rs".into(),
        line: 33,
        column: 9,
        block: [1, 0, 0],
        thread: [2, 0, 0],
    };
    type Wait = fn(&Device, &ferrogrid_host::Stream) -> Result<()>;
    let waits: [Wait; 3] = [
        |_, stream| stream.synchronize(),
        |device, _| device.synchronize(),
        |_, stream| pollster::block_on(stream.completed()?),
    ];
    for wait in waits {
        saxpy(&stream, Grid::cover(1), 2.0, &x, &mut y)?;
        let line = line!() - 1;
        let error = wait(&device, &stream).unwrap_err();
        let Error::KernelPanic { launched, .. } = &error else { panic!("{error}") };
        let sites: Vec<_> = launched.iter().map(|site| (site.file(), site.line())).collect();
        assert_eq!(sites, [(file!(), line)]);
        assert_eq!(error, expected(launched.clone()));
        assert_eq!(wait(&device, &stream), Ok(()));
        // What the device has told of is the stream's nevertheless.
        let _told = stream.synchronize();
    }
    saxpy(&stream, Grid::cover(1), 2.0, &x, &mut y)?;
    let other = stream.upload(&[5.0_f32])?; // waits, but has no say in what ran before
    assert!(matches!(stream.download(&y), Err(Error::KernelPanic { kernel: "saxpy", line: 33, .. })));
    saxpy(&stream, Grid::cover(1), 3.0, &x, &mut y)?;
    assert_eq!(stream.download(&y)?, [12.0]);
    assert_eq!(stream.download(&other)?, [5.0]);
    Ok(())
}

#[test]
fn printed_text_arrives_at_a_wait() {
    run("printing_kernel", "print=3");
    run("printing_kernel", "print=200");
}

fn printing_kernel() -> Result<()> {
    let device = Device::cuda(0)?;
    assert!(matches!(device.set_output_capacity(100), Err(Error::OutputCapacity { bytes: 100, .. })));
    device.set_output_capacity(8000)?;
    let texts = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = texts.clone();
    device.set_output(move |text| kept.lock().unwrap().push(text.to_owned()));
    let taken = || std::mem::take(&mut *texts.lock().unwrap());
    let stream = device.new_stream()?;
    let x = stream.upload(&[1.0_f32])?;
    let mut y = stream.upload(&[1.0_f32])?;
    let many = std::env::var("FAKE_CUDA").unwrap() == "print=200";
    for round in 0..100 {
        saxpy(&stream, Grid::cover(1), 2.0, &x, &mut y)?;
        assert_eq!(taken(), Vec::<String>::new(), "round {round}: no thread has waited");
        stream.synchronize()?;
        let found = taken();
        let (last, whole) = found.split_last().unwrap();
        if many {
            // 170 pieces of 48 bytes fit into 8192.
            assert_eq!((whole.len(), whole[169].as_str()), (170, "odd\n"), "round {round}");
            assert_eq!(last, "[30 printed texts were lost: the buffer of 8192 bytes was full]\n");
        } else {
            assert_eq!(found, ["even\n", "odd\n", "even\n"], "round {round}");
        }
    }
    assert_eq!(device.set_output_capacity(1 << 20), Err(Error::OutputInUse { capacity: 8192 }));
    stream.synchronize()?;
    assert_eq!(taken(), Vec::<String>::new());
    Ok(())
}
