//! Mistakes in recordings and launches of graphs: refused calls, values whose drop panics, one graph launched
//! on two streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use ferrogrid::dlpack::DlpackTensor;
use ferrogrid::{Capture, Device, Error, Graph, GraphBody, GraphError, GraphKey, GraphNode, Stream};

use crate::runtime::{Case, Gate, Outcome, PATIENCE};

pub(crate) const CASES: &[Case] = &[
    ("a_recording_refuses_memory_of_other_libraries", a_recording_refuses_memory_of_other_libraries),
    ("conditional_nodes_are_nested_to_a_limit", conditional_nodes_are_nested_to_a_limit),
    (
        "what_comes_after_a_body_comes_after_what_it_writes",
        what_comes_after_a_body_comes_after_what_it_writes,
    ),
    ("a_refused_call_announces_nothing", a_refused_call_announces_nothing),
    ("a_refused_join_waits_for_nothing", a_refused_join_waits_for_nothing),
    ("a_refused_node_runs_nothing", a_refused_node_runs_nothing),
];

/// Cases that need a device whose streams run on their own.
pub(crate) const LIVE_CASES: &[Case] = &[
    (
        "graphs_and_waits_of_several_handles_keep_their_order",
        graphs_and_waits_of_several_handles_keep_their_order,
    ),
    ("launches_of_one_graph_run_one_after_the_other", launches_of_one_graph_run_one_after_the_other),
    (
        "a_value_that_panics_when_it_is_dropped_ends_nothing",
        a_value_that_panics_when_it_is_dropped_ends_nothing,
    ),
];

fn is_not_recordable<T>(result: &ferrogrid::Result<T>) -> bool {
    matches!(result, Err(Error::Graph(GraphError::NotRecordable { .. })))
}

/// They would be allocated during the recording, useless to the graph, and never freed.
fn a_recording_refuses_memory_of_other_libraries(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let tensor = DlpackTensor::from_buffer(&stream, stream.fill(5_u32, 1000)?)?;
    let refused = stream.capture(|capture| tensor.into_buffer::<u32>(capture).map(drop));
    assert!(is_not_recordable(&refused), "{refused:?}");
    let refused = stream.capture(|capture| capture.ipc_zeros::<u32>(1000).map(drop));
    assert!(is_not_recordable(&refused), "{refused:?}");
    // A GPU may have no memory for several processes.
    let Ok(shared) = stream.ipc_zeros::<u32>(1000) else { return Ok(()) };
    // SAFETY: any bytes are a `u32`, and the other handle is unused.
    let refused = stream.capture(|capture| unsafe { capture.ipc_open::<u32>(shared.ipc_handle()) }.map(drop));
    assert!(is_not_recordable(&refused), "{refused:?}");
    Ok(())
}

fn nest(body: &GraphBody, key: GraphKey<u32>, levels: usize) -> ferrogrid::Result<()> {
    if levels == 0 { Ok(()) } else { body.if_node(key, |inner| nest(inner, key, levels - 1)) }
}

fn conditional_nodes_are_nested_to_a_limit(device: &Device) -> Outcome {
    const LIMIT: usize = 32;
    let stream = device.new_stream()?;
    let record = |levels: usize| {
        stream.capture(|capture| {
            let key = capture.keep(stream.fill(1_u32, 1)?)?.key();
            capture.if_node(key, |body| nest(body, key, levels - 1))
        })
    };
    let (graph, _) = record(LIMIT)?;
    assert_eq!(graph.len(), 1);
    for levels in [LIMIT + 1, 1000] {
        let refused = record(levels).map(drop);
        assert_eq!(refused, Err(GraphError::TooDeep { limit: LIMIT }.into()));
    }
    Ok(())
}

/// The body reads `x` before and after it writes it.
fn what_comes_after_a_body_comes_after_what_it_writes(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (graph, (body, last)) = stream.capture(|capture| {
        let flag = capture.keep(stream.fill(1_u32, 1)?)?.key();
        let (mut x, mut y) = (capture.keep(stream.zeros::<u8>(9)?)?, capture.keep(stream.zeros::<u8>(9)?)?);
        let mut z = capture.keep(stream.zeros::<u8>(9)?)?;
        let body = capture.if_node(flag, |body| {
            body.copy(&x, &mut y)?;
            body.fill_into(1, &mut x)?;
            body.copy(&x, &mut y)
        })?;
        Ok((body, capture.node(&[], |line| line.copy(&x, &mut z))?))
    })?;
    assert_eq!(graph.dependencies(last)?, [body]);
    Ok(())
}

/// Records a fill of its own buffer, then, on another stream, one of `x`. The second depends on nothing,
/// unless a refused call left a use of `x` on the first stream.
fn dependencies_of_a_later_use(
    stream: &Stream,
    call: impl FnOnce(&Capture<'_, '_>, &mut ferrogrid::GraphBuffer<'_, u32>),
) -> ferrogrid::Result<Vec<GraphNode>> {
    let (graph, last): (Graph<'_>, GraphNode) = stream.capture(|capture| {
        let mut x = capture.keep(stream.zeros::<u32>(100)?)?;
        let mut own = capture.keep(stream.zeros::<u32>(100)?)?;
        call(capture, &mut x);
        capture.fill_into(1, &mut own)?;
        capture.node(&[], |other| other.fill_into(2, &mut x))
    })?;
    graph.dependencies(last)
}

fn a_refused_call_announces_nothing(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut unknown = stream.zeros::<u32>(100)?;
    let mut words = stream.zeros::<[u32; 32]>(1)?;
    let pinned = device.pinned_zeros::<u32>(100)?;
    let unused = dependencies_of_a_later_use(&stream, |_, _| {})?;
    let copy = dependencies_of_a_later_use(&stream, |capture, x| {
        assert!(capture.copy(&*x, &mut unknown).is_err());
    })?;
    let rows = dependencies_of_a_later_use(&stream, |capture, x| {
        let target = unknown.view_mut().pitched(10, 10, 10).unwrap();
        assert!(capture.copy_2d(x.view().pitched(10, 10, 10).unwrap(), target).is_err());
    })?;
    let upload = dependencies_of_a_later_use(&stream, |capture, x| {
        assert!(capture.upload_into(&[1; 100], &mut *x).is_err());
    })?;
    let download = dependencies_of_a_later_use(&stream, |capture, x| {
        assert!(capture.download(&*x).is_err());
    })?;
    let transfer = dependencies_of_a_later_use(&stream, |capture, x| {
        assert!(capture.upload_async(pinned, &mut *x).is_err());
    })?;
    let nothing = dependencies_of_a_later_use(&stream, |capture, x| {
        capture.fill_into(1, x.view_mut().slice(..0).unwrap()).unwrap();
    })?;
    for (what, found) in [
        ("nothing refused", unused),
        ("a copy to a buffer that the graph does not hold", copy),
        ("a copy of rows to such a buffer", rows),
        ("an upload", upload),
        ("a download", download),
        ("an upload in the background", transfer),
        ("a fill of nothing", nothing),
    ] {
        assert!(found.is_empty(), "{what}: {found:?}");
    }
    // The same where the call is refused for its value.
    let (graph, last) = stream.capture(|capture| {
        let mut words = capture.write(&mut words)?;
        let mut own = capture.keep(stream.zeros::<u32>(1)?)?;
        let value: [u32; 32] = std::array::from_fn(|index| index as u32);
        assert!(capture.fill_into(value, &mut words).is_err());
        capture.fill_into(1, &mut own)?;
        capture.node(&[], |other| other.fill_into([0; 32], &mut words))
    })?;
    assert_eq!(graph.dependencies(last)?, []);
    Ok(())
}

fn a_refused_join_waits_for_nothing(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (graph, last) = stream.capture(|capture| {
        let (mut x, mut y) = (capture.keep(stream.zeros::<u32>(1)?)?, capture.keep(stream.zeros::<u32>(1)?)?);
        let fork = capture.fork()?;
        fork.fill_into(1, &mut x)?;
        assert!(capture.join([&fork, &stream]).is_err());
        capture.fill_into(2, &mut y)?;
        capture.frontier().map(|nodes| nodes[0])
    })?;
    assert_eq!(graph.dependencies(last)?, []);
    Ok(())
}

/// Of `Capture::node`, whose work fails half way.
fn a_refused_node_runs_nothing(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (graph, (last, key)) = stream.capture(|capture| {
        let mut x = capture.keep(stream.fill(7_u32, 10)?)?;
        let refused = capture.node(&[], |line| {
            line.fill_into(1, &mut x)?;
            line.fill_into(2, &mut x)?;
            line.synchronize()
        });
        assert!(is_not_recordable(&refused), "{refused:?}");
        let last = capture.node(&[], |line| line.fill_into(3, x.view_mut().slice(5..)?))?;
        Ok((last, x.key()))
    })?;
    assert_eq!(graph.dependencies(last)?, [], "the fills before it were removed");
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(key)?)?, [7, 7, 7, 7, 7, 3, 3, 3, 3, 3]);
    Ok(())
}

fn launches_of_one_graph_run_one_after_the_other(device: &Device) -> Outcome {
    let (a, b) = (device.new_stream()?, device.new_stream()?);
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (running, highest) = (now.clone(), most.clone());
    // No buffer orders them.
    let (graph, _) = a.capture(|capture| {
        capture.launch_host_func(move || {
            highest.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(10));
            running.fetch_sub(1, Ordering::SeqCst);
        })
    })?;
    let mut graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(&a)?;
        graph.launch(&b)?;
    }
    a.synchronize()?;
    b.synchronize()?;
    assert_eq!(most.load(Ordering::SeqCst), 1, "launches at the same time");
    Ok(())
}

/// CUDA's driver loses a wait that one thread enqueues while another launches a graph on the same stream.
/// Handles of one stream (the legacy one, or one of another library) share a lock that prevents it.
fn graphs_and_waits_of_several_handles_keep_their_order(device: &Device) -> Outcome {
    const TURNS: u32 = 50;
    let (owner, elsewhere) = (device.new_stream()?, device.new_stream()?);
    let mut handles = vec![[device.legacy_stream()?, device.legacy_stream()?]];
    if let Some(raw) = owner.as_raw() {
        // SAFETY: the owner is dropped after them.
        let foreign = || unsafe { Stream::from_raw(device, raw) };
        handles.push([foreign()?, foreign()?]);
    }
    for [launching, waiting] in &handles {
        let (graph, ()) = elsewhere.capture(|capture| {
            let mut own = capture.keep(elsewhere.zeros::<u32>(8)?)?;
            (0..8).try_for_each(|value| capture.fill_into(value, &mut own))
        })?;
        let (mut graph, ended) = (graph.instantiate()?, AtomicBool::new(false));
        let mut filled = elsewhere.zeros::<u32>(1 << 16)?;
        let late = thread::scope(|scope| {
            let launches = scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    (0..8)
                        .try_for_each(|_| graph.launch(launching).and_then(|()| graph.upload(launching)))?;
                    // A wait would include all work that is enqueued here meanwhile.
                    launching.synchronize()?;
                }
                Ok(())
            });
            let late = (1..=TURNS).map(|turn| {
                elsewhere.fill_into(turn, &mut filled)?;
                Ok(waiting.download(&filled)?.into_iter().filter(|value| *value != turn).count())
            });
            let late: ferrogrid::Result<Vec<usize>> = late.collect();
            ended.store(true, Ordering::Relaxed);
            launches.join().expect("no panic").and(late)
        })?;
        assert!(late.iter().all(|late| *late == 0), "waits were lost: {late:?}");
    }
    Ok(())
}

/// Panics when it is dropped, unless that would end the process.
struct Bad;

impl Drop for Bad {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("a value that panics when it is dropped");
        }
    }
}

fn a_value_that_panics_when_it_is_dropped_ends_nothing(device: &Device) -> Outcome {
    Gate::close(&device.new_stream()?)?.open();
    let (done, end) = channel();
    let device = device.clone();
    let work = move || {
        let (a, b) = (device.new_stream().unwrap(), device.new_stream().unwrap());
        for launched_on_both in [false, true] {
            let bad = Bad;
            let (graph, _) = a.capture(|capture| capture.launch_host_func(move || _ = &bad)).unwrap();
            let mut graph = graph.instantiate().unwrap();
            let gate = Gate::close(&a).unwrap();
            graph.launch(&a).unwrap();
            if launched_on_both {
                graph.launch(&b).unwrap();
                thread::sleep(Duration::from_millis(20));
            }
            drop(graph);
            gate.open();
            let results = [a.synchronize(), b.synchronize(), a.synchronize()];
            let is_known = |result| matches!(result, Ok(()) | Err(Error::HostFnPanic { .. }));
            assert!(results.into_iter().all(is_known));
            let ones = a.fill(1_u32, 10).unwrap();
            assert_eq!(b.download(&ones).unwrap(), [1; 10]);
        }
        done.send(()).unwrap();
    };
    let worker = thread::spawn(work);
    match end.recv_timeout(PATIENCE) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => Err("a stream waits forever".into()),
        _ => worker.join().map_err(|_| "a panic came through".into()),
    }
}
