//! Raw driver handles exported to and imported from other code, on a fake driver
//! (`fake_driver/libcuda.rs`) and on the CPU device. Driver calls beside this crate, on a GPU, are for the conformance suite.

use std::ffi::c_void;
use std::ptr::{null_mut, without_provenance_mut};

use crate::kernels::SAXPY_KERNEL;
use crate::scenario::{Scenario, count, fake_driver, run, run_with};
use ferrogrid_host::{
    Context, Device, Error, Event, EventOptions, ExecutableGraph, ForeignFunction, ForeignModule, GraphError,
    Grid, MemoryPool, Result,
};

const SCENARIOS: &[Scenario] = &[
    ("contexts", contexts),
    ("kernels", kernels_go_out),
    ("events", events),
    ("foreign_pool", foreign_pool),
    ("own_pool", own_pool),
    ("modules", modules),
    ("unnamed_function", unnamed_function),
    ("graphs", graphs),
    ("nulls", nulls),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    crate::scenario::run_requested(SCENARIOS);
}

const PTX: &str = include_str!("../kernels/saxpy_cu.ptx");

fn handle(address: usize) -> *mut c_void {
    without_provenance_mut(address)
}

#[test]
fn a_context_is_that_of_its_device() {
    let calls = run("contexts", "devices=2");
    let last = calls.iter().rposition(|call| call == "cuCtxGetDevice").unwrap();
    assert_eq!(calls[last + 1], "cuCtxSetCurrent", "what was current before is so again");
}

/// The fake driver's primary contexts are 0x100 and 0x101.
fn contexts() -> Result<()> {
    let (first, second) = (Device::cuda(0)?, Device::cuda(1)?);
    assert_eq!(second.context()?.as_raw(), handle(0x101));
    first.context()?.set_current()?;
    // SAFETY: it is a context.
    let found = unsafe { Context::from_raw(handle(0x101))? };
    assert_eq!((found.device(), &found), (&second, &second.context()?));
    // SAFETY: the fake driver takes it for another context of the second device.
    let other = unsafe { Context::from_raw(handle(0x201)) }.unwrap_err();
    assert!(matches!(&other, Error::ForeignContext { device } if device.contains("device 1")), "{other}");
    assert_eq!((second.as_raw(), Device::from_raw(1)?), (Some(1), second));
    assert_eq!(Device::from_raw(7), Err(Error::InvalidDevice { ordinal: 7, count: 2 }));
    Ok(())
}

#[test]
fn a_kernel_returns_its_function_handle() {
    assert_eq!(count(&run("kernels", ""), "cuModuleGetFunction"), 1);
}

fn kernels_go_out() -> Result<()> {
    let device = Device::cuda(0)?;
    assert_eq!(SAXPY_KERNEL.as_raw(&device)?, Some(handle(0x15a)));
    assert_eq!(SAXPY_KERNEL.as_raw(&device)?, Some(handle(0x15a)));
    assert_eq!(SAXPY_KERNEL.as_raw(&Device::cpu())?, None);
    Ok(())
}

#[test]
fn a_foreign_event_is_used_and_not_destroyed() {
    let calls = run("events", "");
    assert_eq!(count(&calls, "cuEventDestroy_v2"), 1, "by its owner");
    assert_eq!(count(&calls, "cuEventRecord"), 2);
}

fn events() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let owner = device.new_event(EventOptions::new())?;
    // SAFETY: `owner` lives longer.
    let event = unsafe { Event::from_raw(&device, owner.as_raw().unwrap())? };
    stream.record_into(&owner)?;
    assert!(!event.is_complete()?, "they are one event");
    other.wait(&event)?;
    stream.record_into(&event)?;
    event.synchronize()?;
    assert!(owner.is_complete()?);
    // What was recorded by others has a time that only the driver knows.
    assert_eq!(event.elapsed_since(&event)?.as_micros(), 1500);
    Ok(())
}

#[test]
fn a_foreign_pool_is_used_queried_and_trimmed() {
    let calls = run("foreign_pool", "");
    assert_eq!(count(&calls, "allocated from pool 0"), 1);
    assert_eq!(count(&calls, "cuMemPoolCreate"), 0, "nothing is asked of the device's own");
    assert_eq!((count(&calls, "cuMemPoolGetAttribute"), count(&calls, "cuMemPoolTrimTo")), (4, 1));
    assert!(calls.contains(&"pool attribute 4 = 4096".to_owned()));
}

fn foreign_pool() -> Result<()> {
    let device = Device::cuda(0)?;
    // SAFETY: a pool of the fake driver.
    let pool = unsafe { MemoryPool::from_raw(&device, handle(0xa00))? };
    assert_eq!((pool.as_raw()?, pool.statistics()?.used), (Some(handle(0xa00)), 0));
    let stream = device.new_stream()?;
    let buffer = pool.fill(&stream, 7_u32, 10)?;
    assert_eq!(stream.download(&buffer)?, [7; 10]);
    pool.set_release_threshold(4096)?;
    pool.trim(0)
}

#[test]
fn a_device_returns_its_pool_if_it_has_one() {
    run("own_pool", "");
    run("own_pool", "pools=0");
}

fn own_pool() -> Result<()> {
    let device = Device::cuda(0)?;
    let has_one = device.properties()?.memory_pools_supported;
    assert_eq!(device.memory_pool().as_raw()?, has_one.then(|| handle(0x1_0900)));
    Ok(())
}

#[test]
fn foreign_modules_and_functions_are_launched() {
    let calls = run("modules", "");
    assert_eq!((count(&calls, "cuModuleLoadDataEx"), count(&calls, "cuModuleUnload")), (1, 0));
}

fn modules() -> Result<()> {
    let device = Device::cuda(0)?;
    let owner = device.load_ptx(PTX)?;
    // SAFETY: it stays loaded, and is no module of this program's kernels.
    let module = unsafe { ForeignModule::from_raw(&device, owner.as_raw())? };
    assert_eq!((module.as_raw(), module.kernel_names()), (owner.as_raw(), Some(vec!["saxpy_cu"])));
    let found = module.function("saxpy_cu")?;
    // SAFETY: its module stays loaded.
    let function = unsafe { ForeignFunction::from_raw(&device, found.as_raw())? };
    assert_eq!((function.as_raw(), function.name()), (handle(0x5a), "saxpy_cu"));
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.upload(&[1.0_f32, 2.0])?, stream.zeros::<f32>(2)?);
    // SAFETY: the kernel takes these types, and keeps to the lengths.
    unsafe { function.launch(&stream, Grid::cover(2), (3.0_f32, &x, 2_usize, &mut y, 2_usize))? };
    assert_eq!(stream.download(&y)?, [3.0, 6.0]);
    Ok(())
}

#[test]
fn a_foreign_function_has_a_name_on_old_drivers_too() {
    run_with("unnamed_function", "version=12000", &fake_driver(&["param_info"]));
}

fn unnamed_function() -> Result<()> {
    let device = Device::cuda(0)?;
    let found = device.load_ptx(PTX)?.function("saxpy_cu")?;
    // SAFETY: its module stays loaded.
    let function = unsafe { ForeignFunction::from_raw(&device, found.as_raw())? };
    assert_eq!((function.name(), function.parameters()), ("a function of another library", None));
    Ok(())
}

#[test]
fn a_foreign_graph_is_launched_and_not_destroyed() {
    let calls = run("graphs", "");
    assert_eq!((count(&calls, "cuGraphLaunch"), count(&calls, "cuGraphExecDestroy")), (2, 1));
    assert_eq!(count(&calls, "cuGraphUpload"), 1);
}

fn graphs() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let mut y = stream.zeros::<u32>(2)?;
    let record = |y| {
        stream.capture(|capture| {
            let mut y = capture.write(y)?;
            capture.fill_into(7, &mut y)
        })
    };
    let owner = record(&mut y)?.0.instantiate()?;
    assert_ne!(owner.as_raw(), owner.definition_as_raw());
    // SAFETY: `owner` lives longer, and `y` is not used otherwise before the download.
    let mut graph = unsafe { ExecutableGraph::from_raw(&device, owner.as_raw().unwrap())? };
    assert_eq!((graph.as_raw(), graph.definition_as_raw()), (owner.as_raw(), None));
    graph.upload(&stream)?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    let mut z = stream.zeros::<u32>(2)?;
    let refused = {
        let (other, ()) = stream.capture(|capture| {
            let mut z = capture.keep(std::mem::replace(&mut z, stream.zeros(2)?))?;
            capture.fill_into(8, &mut z)
        })?;
        graph.update(other).unwrap_err()
    };
    assert!(
        matches!(&refused, Error::Graph(GraphError::UpdateRefused { reason }) if reason.contains("handle"))
    );
    stream.synchronize()?;
    drop((graph, owner));
    assert_eq!(stream.download(&y)?, [7, 7]);
    Ok(())
}

/// Every way in, with the name of its function.
fn ways_in(device: &Device, raw: *mut c_void) -> [(&'static str, Option<Error>); 5] {
    // SAFETY: both are refused: handles on the CPU device, and null.
    unsafe {
        [
            ("Event::from_raw", Event::from_raw(device, raw).err()),
            ("MemoryPool::from_raw", MemoryPool::from_raw(device, raw).err()),
            ("ForeignModule::from_raw", ForeignModule::from_raw(device, raw).err()),
            ("ForeignFunction::from_raw", ForeignFunction::from_raw(device, raw).err()),
            ("ExecutableGraph::from_raw", ExecutableGraph::from_raw(device, raw).err()),
        ]
    }
}

#[test]
fn null_is_no_handle() {
    run("nulls", "");
}

fn nulls() -> Result<()> {
    let null = Some(Error::InvalidPointer { address: 0, reason: "it is null" });
    for (name, error) in ways_in(&Device::cuda(0)?, null_mut()) {
        assert_eq!(error, null, "{name}");
    }
    // SAFETY: refused.
    assert_eq!(unsafe { Context::from_raw(null_mut()) }.err(), null);
    Ok(())
}

#[test]
fn the_cpu_device_has_no_raw_handles() -> Result<()> {
    let device = Device::cpu();
    for (name, error) in ways_in(&device, handle(0x100)) {
        assert!(
            matches!(&error, Some(Error::Unsupported { operation, .. }) if *operation == name),
            "{error:?}"
        );
    }
    assert!(matches!(device.context(), Err(Error::Unsupported { operation: "Device::context", .. })));
    assert_eq!((device.as_raw(), device.memory_pool().as_raw()?), (None, None));
    Ok(())
}
