//! Launches of foreign kernels as nodes of graphs, with a fake driver.

use super::PTX;
use crate::attributes::{LENGTH, Saxpy, attributes, foreign};
use crate::kernels::saxpy;
use crate::scenario::{Scenario, count, run, run_requested};
use ferrogrid_host::{
    Device, DeviceBuffer, Error, Graph, GraphError, GraphKey, GraphNode, Grid, LaunchError, Result, Stream,
};

const SCENARIOS: &[Scenario] = &[
    ("foreign_nodes", foreign_nodes),
    ("foreign_update", foreign_update),
    ("foreign_refusals", foreign_refusals),
    ("foreign_attributes", foreign_attributes),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
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
fn a_foreign_node_uses_only_buffers_of_its_graph() {
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
        assert!(
            matches!(odd, Err(Error::Launch(LaunchError::PartialCluster { blocks: 3, cluster: 2, .. }))),
            "{odd:?}"
        );
        kernel.launch(capture, Grid::new(2, 4), (1.0, x, &mut y))?;
        Ok(y.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(key)?)?, [1.0; LENGTH]);
    Ok(())
}
