//! Launches with attributes, also as nodes of graphs, with a fake driver (`fake_driver/libcuda.rs`); and the same on the CPU
//! device where it has a meaning there.

use std::ptr::from_ref;

use crate::kernels::{SAXPY_KERNEL, dependent_saxpy, saxpy, silent_saxpy};
use crate::scenario::{Scenario, count, run, run_requested};
use ferrogrid_host::__private::launch_with;
use ferrogrid_host::{
    AccessPolicyWindow, AccessProperty, Axis, Device, DeviceBuffer, Error, Event, EventOptions,
    ForeignKernel, GraphError, Grid, LaunchError, MemorySyncDomain, Result, Slice, SliceMut, Stream,
};

const SCENARIOS: &[Scenario] = &[
    ("priorities", priorities),
    ("recorded_priority", recorded_priority),
    ("cooperative", cooperative),
    ("clusters", clusters),
    ("no_clusters", no_clusters),
    ("no_cluster_code", no_cluster_code),
    ("policies", policies),
    ("events", events),
    ("old_driver", old_driver),
    ("dependent", dependent),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

const PTX: &str = include_str!("../kernels/saxpy_cu.ptx");

pub(crate) type Saxpy = ForeignKernel<1, (f32, Slice<f32>, SliceMut<f32>)>;

pub(crate) const LENGTH: usize = 8;

pub(crate) fn foreign(device: &Device) -> Result<Saxpy> {
    // SAFETY: the types of the fake driver's kernel, which keeps to the lengths.
    unsafe { device.load_ptx(PTX)?.function("saxpy_cu")?.typed() }
}

/// The lines that name attributes.
pub(crate) fn attributes(calls: &[String]) -> Vec<&str> {
    calls
        .iter()
        .map(String::as_str)
        .filter(|line| line.contains(" attribute ") && !line.starts_with("pool"))
        .collect()
}

#[test]
fn a_launch_has_the_requested_priority() {
    let calls = run("priorities", "");
    assert_eq!(attributes(&calls), ["launch attribute 8 = [-5, 0, 0]", "launch attribute 8 = [0, 0, 0]"]);
    assert_eq!((count(&calls, "cuLaunchKernelEx"), count(&calls, "cuLaunchKernel")), (2, 1));
}

fn priorities() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let (least, greatest) = stream.device().stream_priority_range()?;
    saxpy(&stream, Grid::cover(LENGTH), 1.0, &x, &mut y)?;
    saxpy(&stream, Grid::cover(LENGTH).with_priority(greatest), 1.0, &x, &mut y)?;
    saxpy(&stream, Grid::new(1, 8).with_priority(0), 1.0, &x, &mut y)?;
    for priority in [greatest - 1, least + 1] {
        let refused = saxpy(&stream, Grid::cover(LENGTH).with_priority(priority), 1.0, &x, &mut y);
        assert_eq!(refused, Err(Error::PriorityOutOfRange { priority, least, greatest }));
    }
    assert_eq!(stream.download(&y)?, [3.0; LENGTH]);
    Ok(())
}

#[test]
fn the_cpu_device_has_one_priority() {
    let stream = Device::cpu().new_stream().unwrap();
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH).unwrap(), stream.zeros::<f32>(LENGTH).unwrap());
    let (_, greatest) = stream.device().stream_priority_range().unwrap();
    saxpy(&stream, Grid::cover(LENGTH).with_priority(greatest), 2.0, &x, &mut y).unwrap();
    let refused = saxpy(&stream, Grid::cover(LENGTH).with_priority(-1), 2.0, &x, &mut y);
    assert_eq!(refused, Err(Error::PriorityOutOfRange { priority: -1, least: 0, greatest: 0 }));
    assert_eq!(stream.download(&y).unwrap(), [2.0; LENGTH]);
}

#[test]
fn a_node_keeps_the_priority_of_its_launch() {
    let calls = run("recorded_priority", "");
    assert_eq!(attributes(&calls), ["node attribute 8 = [-3, 0, 0]"]);
}

fn recorded_priority() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let (graph, (node, key)) = stream.capture(|capture| {
        let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
        let urgent = Grid::cover(LENGTH).with_priority(-3);
        Ok((capture.node(&[], |stream| saxpy(stream, urgent, 1.0, x, &mut y))?, y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    let refused = graph
        .update_kernel(node, |update| saxpy(update, Grid::cover(LENGTH), 2.0, &x, &mut update.buffer(key)?));
    let Err(Error::Graph(GraphError::UpdateRefused { reason })) = refused else { panic!("{refused:?}") };
    assert_eq!(
        &*reason,
        "node 0 is launched with other attributes (cooperative, clusters, priority, domain, access policy)"
    );
    graph.update_kernel(node, |update| {
        saxpy(update, Grid::cover(LENGTH).with_priority(-3), 5.0, &x, &mut update.buffer(key)?)
    })?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(key)?)?, [5.0; LENGTH]);
    Ok(())
}

#[test]
fn a_cooperative_launch_sets_its_attribute_and_too_large_ones_report_the_limit() {
    let calls = run("cooperative", "");
    assert_eq!(attributes(&calls), ["launch attribute 2 = [1, 0, 0]", "launch attribute 8 = [-1, 0, 0]"]);
    assert_eq!((count(&calls, "cuLaunchKernel"), count(&calls, "cuLaunchKernelEx")), (0, 2));
    assert_eq!(count(&calls, "launch attribute 2 = [1, 0, 0]"), 1);
}

/// The fake driver takes cooperative launches of as many blocks as fit on it, 1056 of this kernel.
fn cooperative() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let mut launch = |grid: Grid<1>| {
        let (a, x, y) = (1.0_f32, x.view(), y.view_mut());
        let ([x0, x1, ..], [y0, y1, ..]) = (x.params(), y.params());
        let params = [from_ref(&a).cast(), x0, x1, y0, y1];
        // SAFETY: these are the kernel's parameters, and the accesses of the views among them.
        unsafe { launch_with(&SAXPY_KERNEL, &stream, &grid, 0, true, &params, &[x.access(), y.access()]) }
    };
    let refused = launch(Grid::new(5000, 256)).unwrap_err();
    let expected = "kernel `saxpy`";
    assert!(
        matches!(
            &refused,
            Error::Launch(LaunchError::TooManyResidentBlocks { blocks: 5000, threads: 256, limit: 1056, .. })
        ),
        "{refused}"
    );
    assert!(refused.to_string().contains(expected), "{refused}");
    launch(Grid::new(1, 8).with_priority(-1))?;
    assert_eq!(stream.download(&y)?, [1.0; LENGTH]);
    Ok(())
}

#[test]
fn a_launch_sets_the_cluster_size() {
    let calls = run("clusters", "compiled_for=90");
    let expected = [
        "launch attribute 4 = [2, 1, 1]",
        "launch attribute 4 = [3, 1, 1]",
        "launch attribute 4 = [4, 1, 1]",
        "launch attribute 4 = [8, 1, 1]",
        "function attribute 14 = 1", // more than are portable
        "launch attribute 4 = [16, 1, 1]",
        "launch attribute 4 = [2, 1, 1]",
        "launch attribute 4 = [4, 1, 1]",
        "launch attribute 8 = [-1, 0, 0]",
        "node attribute 4 = [2, 1, 1]",
    ];
    assert_eq!(attributes(&calls), expected);
}

fn clusters() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    // Blocks in whole clusters; blocks that cover, in whole clusters; clusters; as many as are portable, and more.
    let grids = [
        Grid::new(4, 2).with_cluster(2),
        Grid::cover(LENGTH).with_block(2).with_cluster(3),
        Grid::of_clusters(1, 4, 2),
        Grid::new(8, 1).with_cluster(8),
        Grid::new(16, 1).with_cluster(16),
    ];
    grids.into_iter().try_for_each(|grid| saxpy(&stream, grid, 1.0, &x, &mut y))?;
    saxpy(&stream, Grid::new(1, 8).with_cluster(1), 1.0, &x, &mut y)?;
    assert_eq!(stream.download(&y)?, [6.0; LENGTH]);

    let function =
        stream.device().load_ptx(PTX)?.function("saxpy_cu")?.with_clusters([2])?.with_priority(-1)?;
    // SAFETY: as in `foreign`.
    let typed: Saxpy = unsafe { foreign(stream.device())?.function().with_clusters([2])?.typed()? };
    typed.launch(&stream, Grid::cover(LENGTH).with_block(4), (1.0, &x, &mut y))?;
    // SAFETY: as in `foreign`.
    let typed: Saxpy = unsafe { function.typed()? };
    typed.launch(&stream, Grid::new(4, 2).with_cluster(4), (1.0, &x, &mut y))?;
    let (graph, ()) = stream.capture(|capture| {
        let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
        saxpy(capture, Grid::of_clusters(2, 2, 2), 1.0, x, &mut y)
    })?;
    graph.instantiate()?.launch(&stream)?;
    assert_eq!(stream.download(&y)?, [9.0; LENGTH]);
    refused_clusters(&stream, &x, &mut y)
}

/// What does not depend on a device.
fn refused_clusters(stream: &Stream, x: &DeviceBuffer<f32>, y: &mut DeviceBuffer<f32>) -> Result<()> {
    let before = stream.download(&*y)?;
    let mut refused = |grid: Grid<1>| saxpy(stream, grid, 1.0, x, &mut *y).unwrap_err();
    let kernel = "saxpy";
    let size = |value| Error::Launch(LaunchError::ClusterSize { kernel, axis: Axis::X, value, limit: 16 });
    for (cluster, value) in [(0_i32, 0), (17, 17), (-3, -3)] {
        assert_eq!(refused(Grid::new(4, 2).with_cluster(cluster)), size(value));
    }
    assert_eq!(refused(Grid::new(4, 2).with_cluster(1_usize << 40)), size(1 << 40));
    let partial = Error::Launch(LaunchError::PartialCluster { kernel, axis: Axis::X, blocks: 4, cluster: 3 });
    assert_eq!(refused(Grid::new(4, 2).with_cluster(3)), partial);
    let too_many = Error::Launch(LaunchError::GridTooLarge {
        kernel,
        axis: Axis::X,
        value: 16 << 30,
        limit: i32::MAX as u32,
    });
    assert_eq!(refused(Grid::of_clusters(1 << 30, 16, 2)), too_many);
    let none = silent_saxpy(stream, Grid::new(4, 2).with_cluster(2), 1.0, x, &mut *y).unwrap_err();
    assert_eq!(
        none,
        Error::Launch(LaunchError::ClusterMismatch {
            kernel: "silent_saxpy",
            required: None,
            found: [2, 1, 1]
        })
    );
    assert!(
        none.to_string().contains("write `#[kernel(cluster)]`; the launch asks for clusters of 2 x 1 x 1")
    );
    assert_eq!(stream.download(&*y)?, before, "what is refused does not run");
    Ok(())
}

#[test]
fn clusters_at_the_launch_are_checked_on_the_cpu_device() {
    let stream = Device::cpu().new_stream().unwrap();
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH).unwrap(), stream.zeros::<f32>(LENGTH).unwrap());
    saxpy(&stream, Grid::cover(LENGTH).with_block(2).with_cluster(3), 2.0, &x, &mut y).unwrap();
    assert_eq!(stream.download(&y).unwrap(), [2.0; LENGTH]);
    refused_clusters(&stream, &x, &mut y).unwrap();
}

#[test]
fn a_device_without_clusters_takes_those_of_one_block() {
    let calls = run("no_clusters", "capability=80");
    assert_eq!(attributes(&calls), [""; 0]);
    run("no_cluster_code", "compiled_for=80");
}

fn no_cluster_code() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    saxpy(&stream, Grid::new(1, 8), 1.0, &x, &mut y)?;
    let refused = saxpy(&stream, Grid::new(2, 4).with_cluster(2), 1.0, &x, &mut y);
    assert!(
        matches!(
            refused,
            Err(Error::Launch(LaunchError::NoClusterCode { kernel: "saxpy", architecture: 80, .. }))
        ),
        "{refused:?}"
    );
    // `FERROGRID_ARCH` only selects from what a module names.
    assert!(refused.unwrap_err().to_string().contains("in the module's `arch = [..]`, if it has one"));
    Ok(())
}

fn no_clusters() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    saxpy(&stream, Grid::new(1, 8).with_cluster(1), 1.0, &x, &mut y)?;
    let refused = saxpy(&stream, Grid::new(2, 4).with_cluster(2), 1.0, &x, &mut y);
    let named = matches!(
        refused,
        Err(Error::Launch(LaunchError::NoClusters {
            kernel: "saxpy",
            cluster: [2, 1, 1],
            capability: (8, 0),
            ..
        }))
    );
    assert!(named, "{refused:?}");
    assert_eq!(stream.download(&y)?, [1.0; LENGTH]);
    Ok(())
}

#[test]
fn launches_streams_and_nodes_have_the_requested_policies() {
    let calls = run("policies", "");
    let expected = [
        "launch attribute 1 = 16 bytes, 0.5, 2, 1",
        "launch attribute 10 = [1, 0, 0]",
        "stream attribute 1 = 16 bytes, 1, 1, 0",
        "stream attribute 10 = 1",
        "stream attribute 10 = 0",
        "stream attribute 1 = 0 bytes, 0, 0, 0",
        "node attribute 10 = [0, 0, 0]",
        "node attribute 1 = 16 bytes, 0.5, 2, 1",
    ];
    assert_eq!(attributes(&calls), expected);
    let limits: Vec<&String> = calls.iter().filter(|call| call.starts_with("limit ")).collect();
    assert_eq!(limits, ["limit 6 = 1048576", "limit 6 = 39321601"]);
    assert_eq!(count(&calls, "cuCtxResetPersistingL2Cache"), 1);
}

fn policies() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    // Half of what is left of `x` persists.
    let window = AccessPolicyWindow::new(x.slice(4..)?, AccessProperty::Persisting);
    let grid =
        Grid::cover(LENGTH).with_access_policy_window(window.with_hit_ratio(0.5)?.with_streaming_misses());
    saxpy(&stream, grid, 1.0, &x, &mut y)?;
    saxpy(&stream, Grid::cover(LENGTH).with_memory_sync_domain(MemorySyncDomain::Remote), 1.0, &x, &mut y)?;
    let streaming = AccessPolicyWindow::new(x.slice(4..)?, AccessProperty::Streaming);
    stream.set_access_policy_window(Some(streaming))?;
    stream.set_memory_sync_domain(MemorySyncDomain::Remote)?;
    stream.set_memory_sync_domain(MemorySyncDomain::Default)?;
    stream.set_access_policy_window(None)?;
    let (graph, ()) = stream.capture(|capture| {
        let none = capture.set_access_policy_window(None);
        assert!(matches!(none, Err(Error::Graph(GraphError::NotRecordable { .. }))), "{none:?}");
        let none = capture.set_memory_sync_domain(MemorySyncDomain::Remote);
        assert!(matches!(none, Err(Error::Graph(GraphError::NotRecordable { .. }))), "{none:?}");
        let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
        saxpy(capture, grid.with_memory_sync_domain(MemorySyncDomain::Default), 1.0, x, &mut y)
    })?;
    graph.instantiate()?.launch(&stream)?;
    assert_eq!(stream.download(&y)?, [3.0; LENGTH]);

    let device = stream.device();
    device.set_persisting_l2_cache_size(1 << 20)?;
    device.reset_persisting_l2_cache()?;
    let refused = device.set_persisting_l2_cache_size(39_321_601);
    assert!(matches!(refused, Err(Error::Driver { operation: "cuCtxSetLimit", .. })), "{refused:?}");
    let large = stream.uninit::<u8>(134_213_633)?;
    // SAFETY: nothing reads it.
    let large = unsafe { large.assume_init() };
    let window = AccessPolicyWindow::new(&large, AccessProperty::Persisting);
    let expected = |error| {
        matches!(error, Error::AccessPolicyWindowTooLarge { bytes: 134_213_633, limit: 134_213_632, .. })
    };
    assert!(expected(stream.set_access_policy_window(Some(window)).unwrap_err()));
    let launched = saxpy(&stream, Grid::cover(LENGTH).with_access_policy_window(window), 1.0, &x, &mut y);
    assert!(expected(launched.unwrap_err()));
    Ok(())
}

#[test]
fn policies_change_nothing_on_the_cpu_device() {
    let stream = Device::cpu().new_stream().unwrap();
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH).unwrap(), stream.zeros::<f32>(LENGTH).unwrap());
    let window = AccessPolicyWindow::new(&x, AccessProperty::Persisting);
    stream.set_access_policy_window(Some(window)).unwrap();
    stream.set_memory_sync_domain(MemorySyncDomain::Remote).unwrap();
    stream.device().set_persisting_l2_cache_size(1 << 20).unwrap();
    stream.device().reset_persisting_l2_cache().unwrap();
    let grid = Grid::cover(LENGTH).with_access_policy_window(window);
    saxpy(&stream, grid.with_memory_sync_domain(MemorySyncDomain::Remote), 2.0, &x, &mut y).unwrap();
    assert_eq!(stream.download(&y).unwrap(), [2.0; LENGTH]);
}

#[test]
fn a_launch_records_an_event_when_its_blocks_have_begun() {
    let calls = run("events", "devices=2");
    assert_eq!(attributes(&calls), ["launch attribute 12 = event, 0"; 3]);
    assert_eq!(count(&calls, "cuEventRecord"), 0);
}

fn events() -> Result<()> {
    let (stream, other) = (Device::cuda(0)?.new_stream()?, Device::cuda(0)?.new_stream()?);
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    stream.synchronize()?;
    let untimed = EventOptions::new().without_timing();
    let begun = stream.device().new_event(untimed)?;
    let grid = Grid::cover(LENGTH).with_launch_completion_event(&begun);
    saxpy(&stream, grid, 1.0, &x, &mut y)?;
    assert!(!begun.is_complete()?);
    begun.synchronize()?;
    assert!(begun.is_complete()? && !stream.is_complete()?, "the blocks have begun, and not ended");
    foreign(stream.device())?.launch(&stream, grid, (1.0, &x, &mut y))?;
    assert!(!begun.is_complete()?, "it stands for the last launch");
    other.wait(&begun)?;
    other.synchronize()?;
    assert!(begun.is_complete()? && !stream.is_complete()?);

    let timed = stream.device().new_event(EventOptions::new())?;
    let shared = stream.device().new_event(untimed.interprocess())?;
    let elsewhere = Device::cuda(1)?.new_event(untimed)?;
    let reasons = ["it has timing;", "shared with other processes", "of another device"];
    for (event, expected) in [&timed, &shared, &elsewhere].into_iter().zip(reasons) {
        refused_event(&stream, Grid::cover(LENGTH).with_launch_completion_event(event), expected)?;
    }
    let recorded = stream.capture(|capture| {
        let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
        saxpy(capture, grid, 1.0, x, &mut y)
    });
    assert!(matches!(recorded, Err(Error::Graph(GraphError::NotRecordable { .. }))), "{recorded:?}");
    // SAFETY: the event lives longer.
    let theirs = unsafe { Event::from_raw(stream.device(), begun.as_raw().unwrap())? };
    saxpy(&stream, Grid::cover(LENGTH).with_launch_completion_event(&theirs), 1.0, &x, &mut y)?;
    drop((theirs, begun));
    refused_event(&stream, grid, "it was dropped")?;
    assert_eq!(stream.download(&y)?, [3.0; LENGTH]);
    Ok(())
}

fn refused_event(stream: &Stream, grid: Grid<1>, expected: &str) -> Result<()> {
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let refused = saxpy(stream, grid, 1.0, &x, &mut y);
    let Err(Error::Launch(LaunchError::LaunchEvent { kernel: "saxpy", reason })) = refused else {
        panic!("{refused:?}")
    };
    assert!(reason.contains(expected), "{reason}");
    assert_eq!(stream.download(&y)?, [0.0; LENGTH], "what is refused does not run");
    Ok(())
}

#[test]
fn an_old_driver_records_no_events_at_launches() {
    run("old_driver", "version=12020");
}

fn old_driver() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let begun = stream.device().new_event(EventOptions::new().without_timing())?;
    let refused = saxpy(&stream, Grid::cover(LENGTH).with_launch_completion_event(&begun), 1.0, &x, &mut y);
    let Err(Error::MissingSymbol { symbol, found: (12, 2), needed: (12, 3) }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(symbol, "CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT");
    Ok(())
}

#[test]
fn a_launch_records_an_event_on_the_cpu_device() {
    let device = Device::cpu();
    let stream = device.new_stream().unwrap();
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH).unwrap(), stream.zeros::<f32>(LENGTH).unwrap());
    let begun = device.new_event(EventOptions::new().without_timing()).unwrap();
    let (open, gate) = std::sync::mpsc::channel::<()>();
    stream.launch_host_func(move || assert!(gate.recv().is_err())).unwrap();
    let grid = Grid::cover(LENGTH).with_launch_completion_event(&begun);
    saxpy(&stream, grid, 2.0, &x, &mut y).unwrap();
    assert!(!begun.is_complete().unwrap());
    drop(open);
    begun.synchronize().unwrap();
    assert_eq!(stream.download(&y).unwrap(), [2.0; LENGTH]);
    let timed = device.new_event(EventOptions::new()).unwrap();
    refused_event(&stream, Grid::cover(LENGTH).with_launch_completion_event(&timed), "it has timing")
        .unwrap();
    drop(begun);
    refused_event(&stream, grid, "it was dropped").unwrap();
}

#[test]
fn a_dependent_launch_begins_early_if_its_code_can_wait() {
    let early = "launch attribute 6 = [1, 0, 0]";
    for (settings, expected) in [
        ("compiled_for=90", &[early, early, "launch attribute 8 = [-1, 0, 0]", early][..]),
        ("compiled_for=75", &["launch attribute 8 = [-1, 0, 0]"]),
        ("compiled_for=90,capability=89", &["launch attribute 8 = [-1, 0, 0]"]),
    ] {
        let calls = run("dependent", settings);
        assert_eq!(attributes(&calls), expected, "{settings}");
        assert_eq!(count(&calls, "cuGraphAddKernelNode_v2"), 1);
    }
}

fn dependent() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    dependent_saxpy(&stream, Grid::cover(LENGTH), 1.0, &x, &mut y)?;
    dependent_saxpy(&stream, Grid::cover(LENGTH).with_priority(-1), 1.0, &x, &mut y)?;
    // SAFETY: it does what the fake driver does.
    let function = unsafe { foreign(stream.device())?.function().with_dependent_launch() };
    // SAFETY: as in `foreign`.
    let typed: Saxpy = unsafe { function.typed()? };
    typed.launch(&stream, Grid::cover(LENGTH), (1.0, &x, &mut y))?;
    let (graph, ()) = stream.capture(|capture| {
        let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
        dependent_saxpy(capture, Grid::cover(LENGTH), 1.0, x, &mut y)
    })?;
    graph.instantiate()?.launch(&stream)?;
    assert_eq!(stream.download(&y)?, [4.0; LENGTH]);
    Ok(())
}
