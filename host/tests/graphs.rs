//! Graphs of kernels: launches that are recorded, replayed and updated, on the CPU device and on a fake
//! driver (`fake_driver/libcuda.rs`). Cases without kernels are in `runtime.rs`.

mod kernels;
#[cfg(target_os = "linux")]
mod scenario;

use ferrogrid_host::__private::{
    LaunchInput, LaunchOutput, LaunchZeros, Staged, StagedInput, StagedOutput, launch_with,
};
#[cfg(target_os = "linux")]
use ferrogrid_host::DotOptions;
use ferrogrid_host::{Device, Error, Graph, GraphError, GraphKey, GraphNode, Grid, Result, Stream};
use kernels::{SAXPY_KERNEL, saxpy};
use std::ptr::from_ref;

const LENGTH: usize = 1000;

/// `y <- 2*x + y`, `y <- 3*x + y`.
fn two_kernels<'b>(
    stream: &Stream,
    x: &'b ferrogrid_host::DeviceBuffer<f32>,
    y: &'b mut ferrogrid_host::DeviceBuffer<f32>,
) -> Result<(Graph<'b>, (GraphNode, GraphKey<f32>))> {
    stream.capture(|capture| {
        let x = capture.read(x)?;
        let mut y = capture.write(y)?;
        saxpy(capture, Grid::cover(LENGTH), 2.0, x, &mut y)?;
        let second = capture.node(&[], |stream| saxpy(stream, Grid::cover(LENGTH), 3.0, x, &mut y))?;
        Ok((second, y.key()))
    })
}

fn kernels_are_replayed(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let (graph, (second, key)) = two_kernels(&stream, &x, &mut y)?;
    let first = graph.nodes().next().unwrap();
    assert_eq!(graph.dependencies(second)?, [first], "both write `y`");
    let mut graph = graph.instantiate()?;
    for round in 1..=10_u16 {
        graph.launch(&stream)?;
        assert_eq!(stream.download(graph.view(key)?)?, [f32::from(round) * 5.0; LENGTH]);
    }
    Ok(())
}

/// It had announced that it reads `x`.
fn a_refused_launch_leaves_no_trace(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let (x, z) = (stream.zeros::<f32>(LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let mut unknown = stream.zeros::<f32>(LENGTH)?;
    let (graph, last) = stream.capture(|capture| {
        let (mut x, mut z) = (capture.keep(x)?, capture.keep(z)?);
        let refused = saxpy(capture, Grid::cover(LENGTH), 2.0, &x, &mut unknown);
        assert_eq!(refused, Err(Error::Graph(GraphError::UnknownBuffer)));
        capture.fill_into(1.0, &mut z)?;
        capture.node(&[], |other| other.fill_into(2.0, &mut x))
    })?;
    assert_eq!(graph.dependencies(last)?, [], "the fill of `z` does not read `x`");
    // Nor does the copy that was made for it.
    let host = device.pinned_zeros::<f32>(LENGTH)?;
    let (graph, ()) = stream.capture(|capture| {
        let refused = staged_saxpy(capture, 2.0, capture.keep_pinned(host)?.as_in(), &mut unknown);
        assert_eq!(refused, Err(Error::Graph(GraphError::UnknownBuffer)));
        Ok(())
    })?;
    let picture = graph.to_svg();
    assert!(graph.len() == 1 && picture.contains("0: empty"), "{picture}");
    Ok(())
}

fn arguments_of_a_kernel_can_be_changed(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let (graph, (second, key)) = two_kernels(&stream, &x, &mut y)?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.update_kernel(second, |update| {
        let mut y = update.buffer(key)?;
        saxpy(update, Grid::cover(LENGTH), 30.0, &x, &mut y)
    })?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(key)?)?, [5.0 + 32.0; LENGTH]);
    graph.set_enabled(second, false)?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(key)?)?, [5.0 + 32.0 + 2.0; LENGTH]);
    Ok(())
}

fn an_update_that_is_no_such_launch_is_refused(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let other = stream.zeros::<f32>(LENGTH)?;
    let (graph, (second, key)) = two_kernels(&stream, &x, &mut y)?;
    let mut graph = graph.instantiate()?;
    let refused = graph.update_kernel(second, |_| Ok(()));
    assert_eq!(refused, Err(Error::Graph(GraphError::NotOneLaunch { count: 0 })));
    let refused = graph.update_kernel(second, |update| update.fill_into(1.0, &mut update.buffer(key)?));
    assert_eq!(refused, Err(Error::Graph(GraphError::NotAKernel { node: 1, found: "fill" })));
    let refused = graph.update_kernel(second, |update| {
        let _first = update.buffer(key)?;
        update.buffer(key).map(drop)
    });
    assert_eq!(refused, Err(Error::Graph(GraphError::BufferTaken { buffer: 1 })));
    let refused = graph.update_kernel(second, |update| {
        let mut y = update.buffer(key)?;
        saxpy(update, Grid::cover(LENGTH), 1.0, &other, &mut y)
    });
    assert_eq!(refused, Err(Error::Graph(GraphError::UnknownBuffer)));
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(key)?)?, [5.0; LENGTH], "it is as before");
    Ok(())
}

fn an_update_that_would_race_is_refused(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let x = stream.fill(1.0_f32, LENGTH)?;
    let (mut y, mut z) = (stream.zeros::<f32>(LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let (graph, (second, key)) = stream.capture(|capture| {
        let x = capture.read(&x)?;
        let (mut y, mut z) = (capture.write(&mut y)?, capture.write(&mut z)?);
        capture.node(&[], |stream| saxpy(stream, Grid::cover(LENGTH), 1.0, x, &mut y))?;
        let second = capture.node(&[], |stream| saxpy(stream, Grid::cover(LENGTH), 1.0, x, &mut z))?;
        Ok((second, y.key()))
    })?;
    assert_eq!(graph.dependencies(second)?, [], "they share what they read");
    let refused = graph.instantiate()?.update_kernel(second, |update| {
        let mut y = update.buffer(key)?;
        saxpy(update, Grid::cover(LENGTH), 1.0, &x, &mut y)
    });
    assert_eq!(refused, Err(Error::Graph(GraphError::Unordered { node: 1, other: 0 })));
    Ok(())
}

/// A kernel that uses memory of a node takes other arguments, but at no other time.
fn an_update_uses_what_is_allocated_then(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let (graph, (nodes, keys, y)) = stream.capture(|capture| {
        let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
        let grid = Grid::cover(LENGTH);
        let before = capture.node(&[], |line| saxpy(line, grid, 1.0, x, &mut y))?;
        let (_, mut first) = capture.zeros_node::<f32>(&[before], LENGTH)?;
        let (_, mut second) = capture.zeros_node::<f32>(&[before], LENGTH)?;
        let during = capture.node(&[], |line| saxpy(line, grid, 2.0, x, &mut first))?;
        let joined = capture.node(&[], |line| saxpy(line, grid, 1.0, &first, &mut second))?;
        let keys = [first.key(), second.key()];
        let freed = capture.free_node(&[joined], first)?;
        let after = capture.node(&[freed], |line| saxpy(line, grid, 1.0, &second, &mut y))?;
        Ok(([before, during, after], keys, y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    let [before, during, after] = nodes;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(y)?)?, [3.0; LENGTH]);
    graph.update_kernel(during, |update| {
        saxpy(update, Grid::cover(LENGTH), 5.0, &x, &mut update.allocation(keys[0])?)
    })?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(y)?)?, [3.0 + 6.0; LENGTH]);
    for (node, number) in [(before, 0), (after, 6)] {
        let refused = graph.update_kernel(node, |update| {
            saxpy(update, Grid::cover(LENGTH), 1.0, &update.allocation(keys[0])?, &mut update.buffer(y)?)
        });
        let expected = GraphError::OutsideLifetime { node: number, allocation: 1 };
        assert_eq!((node.index(), refused), (number, Err(Error::Graph(expected))));
    }
    let refused = graph.update_kernel(during, |update| {
        let _first = update.allocation(keys[0])?;
        update.allocation(keys[0]).map(drop)
    });
    assert!(matches!(refused, Err(Error::Graph(GraphError::BufferTaken { .. }))), "{refused:?}");
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(y)?)?, [9.0 + 6.0; LENGTH], "it is as before");
    Ok(())
}

const CASES: [fn(&Device) -> Result<()>; 8] = [
    kernels_are_replayed,
    a_refused_launch_leaves_no_trace,
    arguments_of_a_kernel_can_be_changed,
    an_update_that_is_no_such_launch_is_refused,
    an_update_that_would_race_is_refused,
    an_update_uses_what_is_allocated_then,
    page_locked_memory_is_copied_for_a_kernel,
    memory_of_a_launch_is_zeroed_each_time,
];

/// As launch functions do it: what is of the host is brought to the device, and back.
fn staged_saxpy<'a>(
    stream: &Stream,
    a: f32,
    x: impl LaunchInput<'a, f32>,
    y: impl LaunchOutput<'a, f32>,
) -> Result<()> {
    let (x, mut y) = (x.stage(stream)?, y.stage(stream)?);
    saxpy(stream, Grid::cover(LENGTH), a, x.input(), y.output())?;
    x.finish(stream)?;
    y.finish(stream)
}

fn page_locked_memory_is_copied_for_a_kernel(device: &Device) -> Result<()> {
    let streams = [device.new_stream()?, device.new_stream()?];
    let pinned = || device.pinned_zeros::<f32>(LENGTH);
    let (x, sum, once) = (pinned()?, pinned()?, pinned()?);
    let (graph, (x, sum, once)) = streams[0].capture(|capture| {
        let (x, mut sum, mut once) =
            (capture.keep_pinned(x)?, capture.keep_pinned(sum)?, capture.keep_pinned(once)?);
        staged_saxpy(capture, 2.0, x.as_in(), sum.as_in_out())?;
        staged_saxpy(capture, 3.0, x.as_in(), once.as_out())?;
        Ok((x.key(), sum.key(), once.key()))
    })?;
    assert_eq!(graph.len(), 8, "two copies, a kernel and a copy; a copy, zeros, a kernel and a copy");
    let mut graph = graph.instantiate()?;
    let mut expected = 0.0;
    for round in 1..=6_u16 {
        graph.pinned_mut(x)?.fill(f32::from(round));
        graph.launch(&streams[usize::from(round) % 2])?;
        expected += 2.0 * f32::from(round);
        assert_eq!(graph.pinned(sum)?, [expected; LENGTH]);
        assert_eq!(graph.pinned(once)?, [3.0 * f32::from(round); LENGTH]);
    }
    Ok(())
}

/// A fill and two launches: `bits += x`, `z += bits`. The fill zeroes a buffer of the graph, or what kernels with a `ScatterSlice`
/// or a `BlockOrder` get beside their arguments.
fn filled_at_each_launch(stream: &Stream, has_own: bool) -> Result<(Graph<'static>, GraphKey<f32>)> {
    let (x, z) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let (mut elements, kept) = (stream.zeros::<f32>(32 * LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    stream.capture(|capture| {
        let (x, mut z, mut kept) = (capture.keep(x)?, capture.keep(z)?, capture.keep(kept)?);
        // A word for 32 elements, which the kernels take for numbers.
        let bits = if has_own { Some(LaunchZeros::claim_bits(&elements.view_mut(), capture)?) } else { None };
        if bits.is_none() {
            capture.fill_into(0.0, &mut kept)?;
        }
        let (one, x, y, kept) = (1.0_f32, x.view(), z.view_mut(), kept.view_mut());
        let ([x0, x1, ..], [y0, y1, ..], [k0, ..]) = (x.params(), y.params(), kept.params());
        let (one, len) = (from_ref(&one).cast(), from_ref(&LENGTH).cast());
        let start = bits.as_ref().map_or(k0, LaunchZeros::param);
        let access = || bits.as_ref().map_or_else(|| kept.access(), LaunchZeros::access);
        let grid = Grid::cover(LENGTH);
        let (first, second) = ([one, x0, x1, start, len], [one, start, len, y0, y1]);
        // SAFETY: these are the parameters of `SAXPY`, and the accesses of the views and words among them.
        unsafe {
            launch_with(&SAXPY_KERNEL, capture, &grid, 0, false, &first, &[x.access(), access()])?;
            launch_with(&SAXPY_KERNEL, capture, &grid, 0, false, &second, &[access(), y.access()])?;
        }
        Ok(z.key())
    })
}

fn memory_of_a_launch_is_zeroed_each_time(device: &Device) -> Result<()> {
    let streams = [device.new_stream()?, device.new_stream()?];
    let (graph, z) = filled_at_each_launch(&streams[0], true)?;
    let fill = graph.nodes().next().unwrap();
    let mut graph = graph.instantiate()?;
    let refused = graph.set_enabled(fill, false);
    let expected = GraphError::CannotDisable { node: 0, found: "preparation of a launch" };
    assert_eq!(refused, Err(expected.into()), "the launches rely on it");
    for round in 1..=6_u16 {
        graph.launch(&streams[usize::from(round) % 2])?;
        assert_eq!(streams[0].download(graph.view(z)?)?, [f32::from(round); LENGTH]);
    }
    // A fill that is the user's may be left out, and would stay so.
    let (other, _) = filled_at_each_launch(&streams[0], false)?;
    let fill = other.nodes().next().unwrap();
    let mut other = other.instantiate()?;
    other.set_enabled(fill, false)?;
    let refused = other.update(filled_at_each_launch(&streams[0], true)?.0).unwrap_err();
    let reason = "node 0 prepares memory of a launch in one of them only".into();
    assert_eq!(refused, GraphError::UpdateRefused { reason }.into());
    other.update(filled_at_each_launch(&streams[0], false)?.0)
}

#[test]
fn graphs_of_kernels_work_on_the_cpu() {
    CASES.iter().try_for_each(|case| case(&Device::cpu())).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    let all = || CASES.iter().try_for_each(|case| case(&Device::cuda(0)?));
    scenario::run_requested(&[
        ("graphs", all),
        ("no_conditions", no_conditions),
        ("refused_update", refused_update),
        ("pictures", pictures),
        ("no_picture", no_picture),
        ("addresses", addresses),
        ("no_memory", no_memory),
    ]);
}

#[cfg(target_os = "linux")]
fn one_fill(stream: &Stream) -> Result<Graph<'static>> {
    let data = stream.zeros::<u32>(8)?;
    stream.capture(|capture| capture.fill_into(5, &mut capture.keep(data)?)).map(|(graph, ())| graph)
}

/// The files of pictures that this process has left.
#[cfg(target_os = "linux")]
fn pictures_left() -> usize {
    let name = format!("ferrogrid-{}-", std::process::id());
    let files = std::fs::read_dir(std::env::temp_dir()).unwrap();
    files.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with(&name)).count()
}

#[cfg(target_os = "linux")]
fn pictures() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let graph = one_fill(&stream)?;
    let flags =
        |options| graph.to_dot_with(options).map(|text| text.replace("digraph dot { nodes=1 flags=", ""));
    assert_eq!(flags(DotOptions::new())?, "0 }");
    assert_eq!(flags(DotOptions::new().verbose())?, "1 }");
    assert_eq!(flags(DotOptions::new().params())?, "32892 }");
    assert_eq!(flags(DotOptions::new().attributes().handles())?, "1536 }");
    assert!(graph.to_dot().contains("n0 [label"), "ours");
    assert_eq!(pictures_left(), 0);
    Ok(())
}

#[cfg(target_os = "linux")]
fn no_picture() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let error = one_fill(&stream)?.to_dot_with(DotOptions::new()).unwrap_err();
    assert!(matches!(error, Error::Driver { operation: "cuGraphDebugDotPrint", .. }), "{error}");
    assert_eq!(pictures_left(), 0);
    Ok(())
}

/// The driver writes it to a file, of which nothing stays.
#[test]
#[cfg(target_os = "linux")]
fn a_picture_of_a_graph_is_the_drivers() {
    let calls = scenario::run("pictures", "");
    assert_eq!(scenario::count(&calls, "cuGraphCreate"), scenario::count(&calls, "cuGraphDestroy"));
    scenario::run("no_picture", "fail=cuGraphDebugDotPrint:1");
}

#[cfg(target_os = "linux")]
fn no_conditions() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let flag = stream.zeros::<u32>(1)?;
    let (graph, ()) = stream.capture(|capture| {
        let mut flag = capture.keep(flag)?;
        capture.if_node(flag.key(), |body| body.fill_into(1, &mut flag)).map(drop)
    })?;
    let error = graph.instantiate().unwrap_err();
    let symbol = "cuGraphConditionalHandleCreate";
    assert!(
        matches!(&error, Error::MissingSymbol { symbol: s, needed: (12, 3), .. } if *s == symbol),
        "{error}"
    );
    assert!(error.to_string().contains("CUDA 12.3"), "{error}");
    Ok(())
}

/// What the driver has refused is not what later updates are judged by.
#[test]
#[cfg(target_os = "linux")]
fn an_update_that_the_driver_refuses_changes_nothing() {
    scenario::run("refused_update", "fail=cuGraphExecKernelNodeSetParams_v2:1");
}

#[cfg(target_os = "linux")]
fn refused_update() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let x = stream.fill(1.0_f32, LENGTH)?;
    let zeros = || stream.zeros::<f32>(LENGTH);
    let (y, z, w) = (zeros()?, zeros()?, zeros()?);
    let (graph, (nodes, w)) = stream.capture(|capture| {
        let x = capture.read(&x)?;
        let (mut y, mut z) = (capture.keep(y)?, capture.keep(z)?);
        let first = capture.node(&[], |line| saxpy(line, Grid::cover(LENGTH), 1.0, x, &mut y))?;
        let second = capture.node(&[], |line| saxpy(line, Grid::cover(LENGTH), 1.0, x, &mut z))?;
        Ok(([first, second], capture.keep(w)?.key()))
    })?;
    let mut graph = graph.instantiate()?;
    // Either may write `w`, which the other does not use.
    for node in nodes {
        let refused = graph.update_kernel(node, |update| {
            saxpy(update, Grid::cover(LENGTH), 1.0, &x, &mut update.buffer(w)?)
        });
        let by_driver =
            matches!(refused, Err(Error::Driver { operation: "cuGraphExecKernelNodeSetParams", .. }));
        assert!(by_driver, "{refused:?}");
    }
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn graphs_of_kernels_work_on_a_driver_and_leave_nothing_behind() {
    let calls = scenario::run("graphs", "");
    let count = |name: &str| scenario::count(&calls, name);
    assert_eq!(count("cuGraphCreate"), count("cuGraphDestroy"));
    assert_eq!(count("cuGraphInstantiateWithFlags"), count("cuGraphExecDestroy"));
    assert_eq!(count("cuGraphExecKernelNodeSetParams_v2"), 2, "what is refused never gets there");
    assert_eq!(count("cuLaunchKernel"), 0);
}

/// The fake driver is one of CUDA 12.4 by its number, but has no function for conditions, as one before 12.3.
#[test]
#[cfg(target_os = "linux")]
fn conditions_need_a_driver_that_has_them() {
    scenario::run("no_conditions", "");
}

/// Each allocation of a graph has distinct addresses, even if an earlier one is freed before.
#[cfg(target_os = "linux")]
fn addresses() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let mut y = stream.zeros::<u32>(8)?;
    let (graph, places) = stream.capture(|capture| {
        let mut y = capture.write(&mut y)?;
        let mut places = Vec::new();
        for number in 0..4 {
            let mut buffer = capture.zeros::<u32>(1000)?;
            places.push(buffer.as_device_ptr().as_raw().addr());
            capture.fill_into(number, &mut buffer)?;
            capture.copy(buffer.slice(999..)?, y.slice_mut(number as usize..)?.slice(..1)?)?;
        }
        let start = capture.frontier()?;
        let (_, one) = capture.zeros_node::<u32>(&start, 1000)?;
        let (_, other) = capture.zeros_node::<u32>(&start, 1000)?;
        places.extend([&one, &other].map(|buffer| buffer.as_device_ptr().as_raw().addr()));
        Ok(places)
    })?;
    let picture = graph.to_dot_with(DotOptions::new())?;
    assert_eq!(picture, "digraph dot { nodes=26 flags=0 }", "two of each that allocates zeros");
    assert_eq!(places.iter().collect::<std::collections::BTreeSet<_>>().len(), 6, "{places:?}");
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    drop(graph);
    assert_eq!(stream.download(&y)?[..4], [0, 1, 2, 3]);
    let figures = stream.device().graph_memory().statistics()?;
    assert_eq!((figures.used, figures.used_high, figures.reserved), (0, 6 * 4096, 6 * 4096));
    stream.device().graph_memory().trim()?;
    stream.device().graph_memory().reset_statistics()?;
    let figures = stream.device().graph_memory().statistics()?;
    assert_eq!((figures.reserved, figures.used_high, figures.reserved_high), (0, 0, 0));
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn allocations_of_a_graph_have_distinct_addresses() {
    let calls = scenario::run("addresses", "");
    let count = |name: &str| scenario::count(&calls, name);
    // Those of the graph, and of its picture.
    assert_eq!((count("cuGraphAddMemAllocNode"), count("cuGraphAddMemFreeNode")), (12, 12));
    assert_eq!((count("cuGraphCreate"), count("cuGraphDestroy")), (2, 2));
}

/// What a call of the driver refuses is an error that says so, and the next graph works.
#[cfg(target_os = "linux")]
fn no_memory() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let mut y = stream.zeros::<u32>(1000)?;
    let mut work = || {
        let (graph, ()) = stream.capture(|capture| {
            for number in 1..3 {
                let mut buffer = capture.zeros::<u32>(1000)?;
                capture.fill_into(number, &mut buffer)?;
            }
            let mut last = capture.zeros::<u32>(1000)?;
            capture.fill_into(3, &mut last)?;
            capture.copy(&last, &mut capture.write(&mut y)?)
        })?;
        let mut graph = graph.instantiate()?;
        graph.upload(&stream)?;
        graph.launch(&stream)
    };
    let error = work().unwrap_err();
    if std::env::var("FAKE_CUDA").unwrap().split(':').nth(1) == Some("2") {
        assert!(matches!(error, Error::OutOfMemory { requested: 4000 | 12_000, .. }), "{error:?}");
    } else {
        assert!(matches!(error, Error::Driver { code: 1, .. }), "{error:?}");
    }
    let pool = stream.device().memory_pool();
    pool.set_limit(Some(3 * 4000 + 4000));
    work()?;
    assert_eq!(stream.download(&y)?, [3; 1000]);
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn graphs_that_find_no_memory_leave_nothing_behind() {
    let failures = [
        ("cuGraphCreate", 1, 1),
        ("cuGraphAddMemAllocNode", 2, 1),
        ("cuGraphAddMemAllocNode", 2, 3),
        ("cuGraphAddMemAllocNode", 1, 2),
        ("cuGraphAddMemFreeNode", 1, 1),
        ("cuGraphAddMemFreeNode", 1, 3),
        ("cuGraphAddMemsetNode", 1, 2),
        ("cuGraphInstantiateWithFlags", 2, 1),
        ("cuGraphUpload", 2, 1),
        ("cuGraphLaunch", 2, 1),
    ];
    for (name, code, number) in failures {
        let calls = scenario::run("no_memory", &format!("fail={name}:{code}:{number}:{number}"));
        let count = |name: &str| scenario::count(&calls, name);
        let failed = |of: &str| usize::from(name == of);
        assert_eq!(count("cuGraphCreate") - failed("cuGraphCreate"), count("cuGraphDestroy"), "{name}");
        let instances = count("cuGraphInstantiateWithFlags") - failed("cuGraphInstantiateWithFlags");
        assert_eq!(instances, count("cuGraphExecDestroy"), "{name}");
    }
}
