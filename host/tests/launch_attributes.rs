//! Launches with attributes, and launches of foreign kernels, as nodes of graphs, with a fake driver
//! (`fake_driver/libcuda.rs`); and the same on the CPU device where it has a meaning there.
#![cfg(target_os = "linux")]

mod kernels;
mod scenario;

use std::ptr::from_ref;

use ferrogrid_host::__private::{Resources, launch_with};
use ferrogrid_host::{
    Device, DeviceBuffer, Error, ForeignKernel, Graph, GraphError, GraphKey, GraphNode, Grid, Result, Slice,
    SliceMut, Stream,
};
use kernels::{SAXPY_KERNEL, saxpy};
use scenario::{Scenario, count, run, run_requested};

const SCENARIOS: &[Scenario] = &[
    ("priorities", priorities),
    ("recorded_priority", recorded_priority),
    ("foreign_nodes", foreign_nodes),
    ("foreign_update", foreign_update),
    ("foreign_refusals", foreign_refusals),
    ("foreign_attributes", foreign_attributes),
    ("cooperative", cooperative),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

const PTX: &str = include_str!("kernels/saxpy_cu.ptx");

type Saxpy = ForeignKernel<1, (f32, Slice<f32>, SliceMut<f32>)>;

const LENGTH: usize = 8;

fn foreign(device: &Device) -> Result<Saxpy> {
    // SAFETY: the types of the fake driver's kernel, which keeps to the lengths.
    unsafe { device.load_ptx(PTX)?.function("saxpy_cu")?.typed() }
}

/// The lines that name attributes.
fn attributes(calls: &[String]) -> Vec<&str> {
    calls
        .iter()
        .map(String::as_str)
        .filter(|line| line.contains(" attribute ") && !line.starts_with("pool"))
        .collect()
}

#[test]
fn a_launch_has_the_priority_asked_for() {
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
    assert_eq!(&*reason, "node 0 is launched with other attributes (cooperative, clusters, priority)");
    graph.update_kernel(node, |update| {
        saxpy(update, Grid::cover(LENGTH).with_priority(-3), 5.0, &x, &mut update.buffer(key)?)
    })?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(key)?)?, [5.0; LENGTH]);
    Ok(())
}

#[test]
fn a_cooperative_launch_says_so_and_one_that_is_too_large_says_how_many_blocks_there_can_be() {
    let calls = run("cooperative", "");
    assert_eq!(attributes(&calls), ["launch attribute 2 = [1, 0, 0]", "launch attribute 8 = [-1, 0, 0]"]);
    assert_eq!((count(&calls, "cuLaunchCooperativeKernel"), count(&calls, "cuLaunchKernelEx")), (1, 1));
}

/// The fake driver refuses every `cuLaunchCooperativeKernel`.
fn cooperative() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let mut launch = |grid: Grid<1>| {
        let (a, x, y) = (1.0_f32, x.view(), y.view_mut());
        let ([x0, x1], [y0, y1]) = (x.params(), y.params());
        let params = [from_ref(&a).cast(), x0, x1, y0, y1];
        let resources = Resources { shared_bytes: 0, cooperative: true };
        // SAFETY: these are the kernel's parameters, and the accesses of the views among them.
        unsafe { launch_with(resources, &SAXPY_KERNEL, &stream, grid, &params, &[x.access(), y.access()]) }
    };
    let refused = launch(Grid::new(5000, 256)).unwrap_err();
    let expected = "kernel `saxpy`";
    assert!(
        matches!(&refused, Error::TooManyResidentBlocks { blocks: 5000, threads: 256, limit: 1056, .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains(expected), "{refused}");
    launch(Grid::new(1, 8).with_priority(-1))?;
    assert_eq!(stream.download(&y)?, [1.0; LENGTH]);
    Ok(())
}

/// The first and the last node, and the output.
type Named = ([GraphNode; 2], GraphKey<f32>);

/// `y <- 2*x + y` by a typed foreign kernel, `y <- 3*x + y` by one of this program, `y <- 4*x + y` by an untyped one.
fn three_kernels<'b>(
    stream: &Stream,
    kernel: Saxpy,
    x: &'b DeviceBuffer<f32>,
    y: &'b mut DeviceBuffer<f32>,
) -> Result<(Graph<'b>, Named)> {
    stream.capture(|capture| {
        let (x, mut y) = (capture.read(x)?, capture.write(y)?);
        kernel.launch(capture, Grid::cover(LENGTH), (2.0, x, &mut y))?;
        let first = capture.frontier()?[0];
        saxpy(capture, Grid::cover(LENGTH), 3.0, x, &mut y)?;
        let last = capture.node(&[], |stream| {
            let length = LENGTH as u64;
            // SAFETY: the kernel's types, and the lengths of both.
            unsafe {
                kernel.function().launch(stream, Grid::cover(LENGTH), (4.0_f32, x, length, &mut y, length))
            }
        })?;
        Ok(([first, last], y.key()))
    })
}

#[test]
fn foreign_kernels_are_recorded_and_replayed() {
    let calls = run("foreign_nodes", "");
    assert_eq!(count(&calls, "cuGraphAddKernelNode_v2"), 3);
    assert_eq!(count(&calls, "cuLaunchKernel"), 0);
}

fn foreign_nodes() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let kernel = foreign(stream.device())?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let (graph, ([_, last], key)) = three_kernels(&stream, kernel, &x, &mut y)?;
    assert_eq!(graph.dependencies(last)?.len(), 1, "it comes after what wrote `y` before");
    assert!(graph.to_dot().contains("0: saxpy_cu"), "{}", graph.to_dot());
    let mut graph = graph.instantiate()?;
    for round in 1..=3_u16 {
        graph.launch(&stream)?;
        assert_eq!(stream.download(graph.view(key)?)?, [f32::from(round) * 9.0; LENGTH]);
    }
    graph.set_enabled(last, false)?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(key)?)?, [27.0 + 5.0; LENGTH]);
    Ok(())
}

#[test]
fn the_parameters_of_a_foreign_node_can_be_changed() {
    let calls = run("foreign_update", "");
    assert_eq!(count(&calls, "cuGraphExecKernelNodeSetParams_v2"), 1);
}

fn foreign_update() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let kernel = foreign(stream.device())?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let (graph, ([first, _], key)) = three_kernels(&stream, kernel, &x, &mut y)?;
    let mut graph = graph.instantiate()?;
    graph.update_kernel(first, |update| {
        kernel.launch(update, Grid::cover(LENGTH), (20.0, &x, &mut update.buffer(key)?))
    })?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(key)?)?, [27.0; LENGTH]);
    let refused = graph
        .update_kernel(first, |update| saxpy(update, Grid::cover(LENGTH), 1.0, &x, &mut update.buffer(key)?));
    let expected = GraphError::OtherKernel { node: 0, kernel: "saxpy_cu", found: "saxpy" };
    assert_eq!(refused, Err(Error::Graph(expected)));
    Ok(())
}

#[test]
fn a_foreign_node_uses_what_its_graph_holds_and_nothing_else() {
    run("foreign_refusals", "devices=2");
}

fn foreign_refusals() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (kernel, elsewhere) = (foreign(stream.device())?, foreign(&Device::cuda(1)?)?);
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let unknown = stream.capture(|capture| {
        let mut y = capture.write(&mut y)?;
        kernel.launch(capture, Grid::cover(LENGTH), (1.0, &x, &mut y))
    });
    assert_eq!(unknown.map(drop), Err(Error::Graph(GraphError::UnknownBuffer)));
    let other_device = stream.capture(|capture| {
        let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
        elsewhere.launch(capture, Grid::cover(LENGTH), (1.0, x, &mut y))
    });
    assert!(matches!(other_device, Err(Error::Foreign(_))), "{other_device:?}");
    let mut host = [1.0_f32; LENGTH];
    let of_the_host = stream.capture(|capture| {
        let x = capture.read(&x)?;
        kernel.launch(capture, Grid::cover(LENGTH), (1.0, x, ferrogrid_host::InOut(&mut host)))
    });
    assert!(matches!(of_the_host, Err(Error::Graph(GraphError::NotRecordable { .. }))), "{of_the_host:?}");
    let (graph, y_key) = stream.capture(|capture| {
        let mut y = capture.write(&mut y)?;
        kernel.launch(capture, Grid::cover(LENGTH), (1.0, ferrogrid_host::In(&host), &mut y))?;
        Ok(y.key())
    })?;
    host.fill(7.0);
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(y_key)?)?, [1.0; LENGTH], "the graph has a copy");
    drop(graph);
    let (empty, ()) = stream.capture(|capture| {
        let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
        kernel.launch(capture, Grid::cover(0), (1.0, x, &mut y))
    })?;
    assert!(empty.is_empty(), "covering nothing is no node");
    Ok(())
}

#[test]
fn a_foreign_node_has_the_attributes_of_its_launch() {
    let calls = run("foreign_attributes", "");
    let expected =
        ["node attribute 2 = [1, 0, 0]", "node attribute 4 = [2, 1, 1]", "node attribute 8 = [-2, 0, 0]"];
    assert_eq!(attributes(&calls), expected);
}

fn foreign_attributes() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, LENGTH)?, stream.zeros::<f32>(LENGTH)?);
    let function = stream.device().load_ptx(PTX)?.function("saxpy_cu")?;
    let function = function.with_cooperative_launch()?.with_clusters([2])?.with_priority(-2)?;
    // SAFETY: as in `foreign`.
    let kernel: Saxpy = unsafe { function.typed()? };
    let (graph, key) = stream.capture(|capture| {
        let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
        let odd = kernel.launch(capture, Grid::new(3, 4), (1.0, x, &mut y));
        assert!(matches!(odd, Err(Error::PartialCluster { blocks: 3, cluster: 2, .. })), "{odd:?}");
        kernel.launch(capture, Grid::new(2, 4), (1.0, x, &mut y))?;
        Ok(y.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(key)?)?, [1.0; LENGTH]);
    Ok(())
}
