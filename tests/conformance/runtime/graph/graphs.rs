//! Graphs of copies, fills and host functions: recording, order, launches, buffers, and refused calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ferrogrid::{Device, Error, GraphError};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("a_recording_runs_nothing", a_recording_runs_nothing),
    ("a_graph_runs_in_order_at_each_launch", a_graph_runs_in_order_at_each_launch),
    ("a_graph_fills_with_values_of_any_size", a_graph_fills_with_values_of_any_size),
    ("a_graph_owns_what_it_keeps", a_graph_owns_what_it_keeps),
    ("a_new_buffer_of_a_graph_is_zeroed_at_each_launch", a_new_buffer_of_a_graph_is_zeroed_at_each_launch),
    ("launches_are_ordered_with_other_streams", launches_are_ordered_with_other_streams),
    ("a_graph_may_be_dropped_while_it_runs", a_graph_may_be_dropped_while_it_runs),
    (
        "what_a_dropped_graph_kept_goes_when_its_device_was_waited_for",
        what_a_dropped_graph_kept_goes_when_its_device_was_waited_for,
    ),
    ("a_forgotten_graph_leaves_its_buffers_usable", a_forgotten_graph_leaves_its_buffers_usable),
    ("branches_that_share_a_buffer_are_ordered", branches_that_share_a_buffer_are_ordered),
    ("forks_joins_and_events_become_dependencies", forks_joins_and_events_become_dependencies),
    ("explicit_nodes_have_their_stated_dependencies", explicit_nodes_have_their_stated_dependencies),
    ("host_functions_are_called_at_each_launch", host_functions_are_called_at_each_launch),
    ("a_panic_of_a_host_function_is_reported", a_panic_of_a_host_function_is_reported),
    ("calls_that_cannot_be_recorded_are_refused", calls_that_cannot_be_recorded_are_refused),
    ("buffers_that_the_graph_does_not_hold_are_refused", buffers_that_the_graph_does_not_hold_are_refused),
    ("streams_of_a_recording_end_with_it", streams_of_a_recording_end_with_it),
    ("one_thread_records", one_thread_records),
    ("nodes_can_be_disabled", nodes_can_be_disabled),
    ("a_graph_takes_over_another_of_the_same_form", a_graph_takes_over_another_of_the_same_form),
    ("an_empty_graph_can_be_launched", an_empty_graph_can_be_launched),
];

fn graph_error<T>(result: ferrogrid::Result<T>) -> Result<GraphError, String> {
    match result {
        Err(Error::Graph(error)) => Ok(error),
        Err(error) => Err(format!("another error: {error}")),
        Ok(_) => Err("no error".into()),
    }
}

fn a_recording_runs_nothing(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[1_u32, 2])?;
    let (graph, ()) = stream.capture(|capture| {
        let mut data = capture.write(&mut data)?;
        capture.fill_into(9, &mut data)
    })?;
    assert_eq!((graph.len(), graph.is_empty()), (1, false));
    drop(graph.instantiate()?);
    assert_eq!(stream.download(&data)?, [1, 2]);
    Ok(())
}

fn a_graph_runs_in_order_at_each_launch(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let source = stream.upload(&[1_u16, 2, 3, 4])?;
    let mut target = stream.zeros::<u16>(4)?;
    let (graph, key) = stream.capture(|capture| {
        let source = capture.read(&source)?;
        let mut target = capture.write(&mut target)?;
        capture.fill_into(7, &mut target)?;
        capture.copy(source.slice(1..3)?, target.view_mut().slice(..2)?)?;
        Ok(target.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.upload(&stream)?;
    for round in 0..5 {
        stream.fill_into(round, graph.view_mut(key)?)?;
        graph.launch(&stream)?;
        assert_eq!(stream.download(graph.view(key)?)?, [2, 3, 7, 7]);
    }
    // Nothing is borrowed after the last use.
    assert_eq!(stream.download(&target)?, [2, 3, 7, 7]);
    Ok(())
}

fn a_graph_fills_with_values_of_any_size(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let value: [u32; 3] = [1, 2, 3];
    let (mut large, mut odd) = (stream.zeros::<[u32; 3]>(50)?, stream.zeros::<[u8; 3]>(50)?);
    let (mut word, mut same) = (stream.zeros::<i16>(50)?, stream.zeros::<u64>(50)?);
    let (graph, ()) = stream.capture(|capture| {
        capture.fill_into(value, &mut capture.write(&mut large)?)?;
        capture.fill_into([4, 5, 6], &mut capture.write(&mut odd)?)?;
        capture.fill_into(-2, &mut capture.write(&mut word)?)?;
        capture.fill_into(u64::MAX, &mut capture.write(&mut same)?)
    })?;
    assert_eq!(graph.len(), 3 + 3 + 1 + 1);
    graph.instantiate()?.launch(&stream)?;
    assert_eq!(stream.download(&large)?, [value; 50]);
    assert_eq!(stream.download(&odd)?, [[4, 5, 6]; 50]);
    assert_eq!(stream.download(&word)?, [-2; 50]);
    assert_eq!(stream.download(&same)?, [u64::MAX; 50]);

    let (most, mut filled): ([u32; 16], _) = (std::array::from_fn(|index| index as u32), stream.zeros(2)?);
    let (graph, ()) = stream.capture(|capture| capture.fill_into(most, &mut capture.write(&mut filled)?))?;
    graph.instantiate()?.launch(&stream)?;
    assert_eq!(stream.download(&filled)?, [most; 2]);
    let mut huge = stream.zeros::<[u32; 17]>(2)?;
    let values: [u32; 17] = std::array::from_fn(|index| index as u32);
    let refused = stream.capture(|capture| capture.fill_into(values, &mut capture.write(&mut huge)?));
    assert_eq!(graph_error(refused)?, GraphError::LargeFill { bytes: 68, limit: 64 });
    Ok(())
}

fn a_graph_owns_what_it_keeps(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let make = || -> ferrogrid::Result<_> {
        let (scratch, result) = (stream.upload(&[3_u8; 1000])?, stream.zeros::<u8>(1000)?);
        let (graph, key) = stream.capture(|capture| {
            let (scratch, mut result) = (capture.keep(scratch)?, capture.keep(result)?);
            capture.copy(&scratch, &mut result)?;
            Ok(result.key())
        })?;
        Ok((graph.instantiate()?, key))
    };
    let (mut first, key) = make()?;
    let (second, other) = make()?;
    first.launch(&stream)?;
    assert_eq!(stream.download(first.view(key)?)?, [3; 1000]);
    assert_eq!(graph_error(second.view(key).map(drop))?, GraphError::OtherGraph { what: "buffer" });
    assert_eq!(stream.download(second.view(other)?)?, [0; 1000]);
    Ok(())
}

fn launches_are_ordered_with_other_streams(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?, device.new_stream()?];
    let mut source = streams[0].zeros::<u32>(10_000)?;
    let mut target = streams[1].zeros::<u32>(10_000)?;
    for round in 1..20_u32 {
        streams[round as usize % 3].fill_into(round, &mut source)?;
        let (graph, key) = streams[0].capture(|capture| {
            let source = capture.read(&source)?;
            let mut target = capture.write(&mut target)?;
            capture.copy(source, &mut target)?;
            Ok(target.key())
        })?;
        let mut graph = graph.instantiate()?;
        graph.launch(&streams[(round as usize + 1) % 3])?;
        let seen = streams[(round as usize + 2) % 3].download(graph.view(key)?)?;
        assert_eq!(seen, [round; 10_000]);
    }
    Ok(())
}

fn a_graph_may_be_dropped_while_it_runs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let count = Arc::new(AtomicU32::new(0));
    let mut target = stream.zeros::<u32>(1000)?;
    let gate = Gate::close(&stream)?;
    let source = stream.fill(5_u32, 1000)?;
    let (graph, ()) = stream.capture(|capture| {
        let count = count.clone();
        let (source, mut target) = (capture.keep(source)?, capture.write(&mut target)?);
        capture.copy(&source, &mut target)?;
        capture.launch_host_func(move || _ = count.fetch_add(1, Ordering::SeqCst)).map(drop)
    })?;
    let mut graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(&stream)?;
    }
    drop(graph);
    let poison = stream.fill(9_u32, 1000)?;
    gate.open();
    assert_eq!(stream.download(&target)?, [5; 1000]);
    assert_eq!(stream.download(&poison)?, [9; 1000]);
    assert_eq!(count.load(Ordering::SeqCst), 3);
    Ok(())
}

fn what_a_dropped_graph_kept_goes_when_its_device_was_waited_for(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let count = Arc::new(AtomicU32::new(0));
    let gate = Gate::close(&stream)?;
    let (graph, ()) = stream.capture(|capture| {
        let count = count.clone();
        capture.launch_host_func(move || _ = count.fetch_add(1, Ordering::SeqCst)).map(drop)
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    drop(graph);
    gate.open();
    device.synchronize()?;
    assert_eq!((count.load(Ordering::SeqCst), Arc::strong_count(&count)), (1, 1));
    Ok(())
}

fn a_forgotten_graph_leaves_its_buffers_usable(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut data = stream.zeros::<u8>(100)?;
    let (graph, ()) = stream.capture(|capture| capture.fill_into(1, &mut capture.write(&mut data)?))?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    std::mem::forget(graph);
    other.fill_into(2, data.slice_mut(50..)?)?;
    let seen = stream.download(&data)?;
    assert_eq!((seen[0], seen[99]), (1, 2));
    Ok(())
}

fn branches_that_share_a_buffer_are_ordered(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.zeros::<u32>(10)?;
    let mut copy = stream.zeros::<u32>(10)?;
    let (graph, nodes) = stream.capture(|capture| {
        let (mut data, mut copy) = (capture.write(&mut data)?, capture.write(&mut copy)?);
        // No dependency is stated explicitly.
        let fill = capture.node(&[], |stream| stream.fill_into(1, &mut data))?;
        let read = capture.node(&[], |stream| stream.copy(&data, &mut copy))?;
        let refill = capture.node(&[], |stream| stream.fill_into(2, &mut data))?;
        Ok([fill, read, refill])
    })?;
    assert_eq!(graph.dependencies(nodes[0])?, []);
    assert_eq!(graph.dependencies(nodes[1])?, [nodes[0]]);
    assert_eq!(graph.dependencies(nodes[2])?, [nodes[1]], "after the fill by way of the read");
    graph.instantiate()?.launch(&stream)?;
    assert_eq!((stream.download(&copy)?, stream.download(&data)?), (vec![1; 10], vec![2; 10]));
    Ok(())
}

fn forks_joins_and_events_become_dependencies(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut a, mut b, mut c) = (stream.zeros::<u8>(8)?, stream.zeros::<u8>(8)?, stream.zeros::<u8>(8)?);
    let (graph, ()) = stream.capture(|capture| {
        let (mut a, mut b) = (capture.write(&mut a)?, capture.write(&mut b)?);
        let mut c = capture.write(&mut c)?;
        capture.fill_into(1, &mut a)?; // 0
        let branch = capture.fork()?;
        branch.fill_into(2, &mut b)?; // 1
        let event = branch.record()?;
        capture.fill_into(3, a.view_mut().slice(4..)?)?; // 2
        capture.wait(&event)?;
        capture.fill_into(4, &mut c)?; // 3
        branch.wait_stream(capture)?;
        branch.fill_into(5, b.view_mut().slice(..1)?) // 4
    })?;
    let nodes: Vec<_> = graph.nodes().collect();
    let after = |index: usize| -> ferrogrid::Result<Vec<usize>> {
        Ok(graph.dependencies(nodes[index])?.iter().map(|node| node.index()).collect())
    };
    let found = [after(0)?, after(1)?, after(2)?, after(3)?, after(4)?];
    assert_eq!(found, [vec![], vec![0], vec![0], vec![1, 2], vec![3]]);
    let (dot, svg) = (graph.to_dot(), graph.to_svg());
    assert!(dot.contains("n1 -> n3;") && dot.contains("n2 -> n3;") && !dot.contains("n0 -> n3;"), "{dot}");
    assert_eq!((svg.matches("<rect").count(), svg.matches("marker-end").count()), (5, 5));
    graph.instantiate()?.launch(&stream)?;
    assert_eq!(stream.download(&a)?, [1, 1, 1, 1, 3, 3, 3, 3]);
    assert_eq!(stream.download(&b)?[..2], [5, 2]);
    assert_eq!(stream.download(&c)?, [4; 8]);
    Ok(())
}

fn explicit_nodes_have_their_stated_dependencies(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let order = Arc::new(AtomicU32::new(0));
    let (graph, [first, second, join, last]) = stream.capture(|capture| {
        let digit = |digit: u32| {
            let order = order.clone();
            move || _ = order.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |all| Some(all * 10 + digit))
        };
        let first = capture.host_node(&[], digit(1))?;
        let second = capture.host_node(&[first], digit(2))?;
        let join = capture.node(&[first, second], |_| Ok(()))?;
        let last = capture.host_node(&[join], digit(3))?;
        Ok([first, second, join, last])
    })?;
    assert_eq!(graph.dependencies(first)?, []);
    assert_eq!(graph.dependencies(join)?, [second], "the first is implied");
    assert_eq!(graph.dependencies(last)?, [join]);
    graph.instantiate()?.launch(&stream)?;
    stream.synchronize()?;
    assert_eq!(order.load(Ordering::SeqCst), 123);

    let foreign = stream.capture(|capture| capture.node(&[first], |_| Ok(())));
    assert_eq!(graph_error(foreign)?, GraphError::OtherGraph { what: "node" });
    Ok(())
}

fn host_functions_are_called_at_each_launch(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let count = Arc::new(AtomicU32::new(0));
    let (graph, ()) = stream.capture(|capture| {
        let count = count.clone();
        capture.launch_host_func(move || _ = count.fetch_add(1, Ordering::SeqCst)).map(drop)
    })?;
    let mut graph = graph.instantiate()?;
    for _ in 0..10 {
        graph.launch(&stream)?;
    }
    stream.synchronize()?;
    assert_eq!(count.load(Ordering::SeqCst), 10);
    Ok(())
}

fn a_panic_of_a_host_function_is_reported(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (graph, ()) =
        stream.capture(|capture| capture.launch_host_func(|| panic!("in a graph")).map(drop))?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    let error = stream.synchronize().unwrap_err();
    assert_eq!(error, Error::HostFnPanic { message: "in a graph".into() });
    stream.synchronize()?;
    Ok(())
}

fn calls_that_cannot_be_recorded_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let outside = stream.record()?;
    let mut data = stream.upload(&[1_u32, 2])?;
    let (graph, ()) = stream.capture(|capture| {
        let mut data = capture.write(&mut data)?;
        let other = device.new_stream()?;
        let event = capture.record()?;
        let refused = [
            capture.synchronize(),
            capture.is_complete().map(drop),
            capture.completed().map(drop),
            capture.fill(1_u8, 1).map(drop),
            capture.upload(&[1_u8]).map(drop),
            capture.download(&data).map(drop),
            capture.upload_into(&[1, 2], &mut data),
            capture.host_fn_once(),
            capture.wait_stream(&other),
            other.wait_stream(capture),
            capture.record_into(&outside),
            other.record_into(&event),
            event.synchronize(),
            event.is_complete().map(drop),
            capture.capture(|_| Ok(())).map(drop),
            capture.scope(|_| ()),
        ];
        for (number, result) in refused.into_iter().enumerate() {
            let is_refused = matches!(&result, Err(Error::Graph(GraphError::NotRecordable { .. })));
            assert!(is_refused, "{number}: {result:?}");
        }
        let wait = [capture.wait(&outside), other.wait(&event)];
        assert!(wait.into_iter().all(|it| it == Err(Error::Graph(GraphError::EventNotRecorded))));
        capture.fill_into(5, &mut data)
    })?;
    assert_eq!(graph.len(), 1, "what is refused leaves no node");
    graph.instantiate()?.launch(&stream)?;
    assert_eq!(stream.download(&data)?, [5, 5]);
    Ok(())
}

/// A host function that is called once, as a method, to stand in a list.
trait OnceOnStream {
    fn host_fn_once(&self) -> ferrogrid::Result<()>;
}

impl OnceOnStream for ferrogrid::Stream {
    fn host_fn_once(&self) -> ferrogrid::Result<()> {
        self.launch_host_func(|| ())
    }
}

fn buffers_that_the_graph_does_not_hold_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut known, mut unknown) = (stream.zeros::<u8>(4)?, stream.zeros::<u8>(4)?);
    let refused = stream.capture(|capture| capture.fill_into(1, &mut unknown));
    assert_eq!(graph_error(refused)?, GraphError::UnknownBuffer);
    let refused = stream.capture(|capture| {
        let mut known = capture.write(&mut known)?;
        capture.copy(&unknown, &mut known)
    });
    assert_eq!(graph_error(refused)?, GraphError::UnknownBuffer);
    if device.is_cuda() {
        return Ok(());
    }
    let elsewhere = Device::cpu_with(ferrogrid::CpuOptions::new())?.new_stream()?.zeros::<u8>(4)?;
    let refused = stream.capture(|capture| capture.read(&elsewhere).map(drop));
    assert!(matches!(refused, Err(Error::DeviceMismatch { .. })));
    Ok(())
}

fn streams_of_a_recording_end_with_it(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.zeros::<u8>(4)?;
    let (graph, branch) = stream.capture(|capture| capture.fork())?;
    assert_eq!(graph_error(branch.fill_into(1, &mut data))?, GraphError::Ended);
    let launch = graph.instantiate()?.launch(&branch);
    assert!(matches!(graph_error(launch)?, GraphError::NotRecordable { .. }));
    let failed = stream.capture(|capture| {
        capture.fork()?;
        Err::<(), _>(Error::ZeroChunk)
    });
    assert!(matches!(failed, Err(Error::ZeroChunk)));
    assert_eq!(stream.download(&data)?, [0; 4]);
    Ok(())
}

fn one_thread_records(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (graph, ()) = stream.capture(|capture| {
        let branch = capture.fork()?;
        let forked = std::thread::scope(|scope| scope.spawn(|| branch.fork().map(drop)).join().unwrap());
        assert_eq!(forked, Err(Error::Graph(GraphError::OtherThread)));
        Ok(())
    })?;
    // Any thread may launch it.
    std::thread::scope(|scope| scope.spawn(|| graph.instantiate()?.launch(&stream)).join().unwrap())?;
    Ok(())
}

fn nodes_can_be_disabled(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.zeros::<u8>(2)?;
    let (graph, (node, call, key)) = stream.capture(|capture| {
        let mut data = capture.write(&mut data)?;
        capture.fill_into(1, &mut data)?;
        let node = capture.node(&capture.frontier()?, |stream| stream.fill_into(2, &mut data))?;
        Ok((node, capture.launch_host_func(|| ())?, data.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for enabled in [true, false, true] {
        graph.set_enabled(node, enabled)?;
        assert_eq!(graph.is_enabled(node)?, enabled);
        graph.launch(&stream)?;
        assert_eq!(stream.download(graph.view(key)?)?, [1 + u8::from(enabled); 2]);
    }
    let error = GraphError::CannotDisable { node: 2, found: "host function" };
    assert_eq!(graph_error(graph.set_enabled(call, false))?, error);
    Ok(())
}

fn a_graph_takes_over_another_of_the_same_form(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let record = |value: u8, count: usize| -> ferrogrid::Result<_> {
        let data = stream.zeros::<u8>(4)?;
        stream.capture(|capture| {
            let mut data = capture.keep(data)?;
            for _ in 0..count {
                capture.fill_into(value, &mut data)?;
            }
            capture.launch_host_func(|| ())?;
            Ok(data.key())
        })
    };
    let (first, old) = record(1, 2)?;
    let mut graph = first.instantiate()?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(old)?)?, [1; 4]);
    let (second, new) = record(2, 2)?;
    graph.update(second)?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(new)?)?, [2; 4]);
    assert!(graph.view(old).is_err());
    let error = graph.update(record(3, 1)?.0).unwrap_err().to_string();
    assert!(error.contains("it has 3 nodes, the other 2"), "{error}");
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(new)?)?, [2; 4]);
    Ok(())
}

fn an_empty_graph_can_be_launched(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (graph, ()) = stream.capture(|_| Ok(()))?;
    graph.instantiate()?.launch(&stream)?;
    stream.synchronize()?;
    Ok(())
}

fn a_new_buffer_of_a_graph_is_zeroed_at_each_launch(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut input = stream.upload(&[1_u16, 2, 3, 4, 5])?;
    let mut output = stream.zeros::<u16>(5)?;
    let (graph, (scratch, empty)) = stream.capture(|capture| {
        let (input, mut output) = (capture.read(&input)?, capture.write(&mut output)?);
        let mut scratch = capture.keep_zeros::<u16>(5)?;
        let empty = capture.keep_zeros::<u64>(0)?;
        // Two branches write parts of it, and a third reads all.
        let branch = capture.fork()?;
        let (mut left, right) = scratch.view_mut().split_at(2)?;
        capture.copy(input.slice(..1)?, left.reborrow().slice(..1)?)?;
        branch.copy(input.slice(3..)?, right.slice(1..)?)?;
        capture.copy(&scratch, &mut output)?;
        capture.fill_into(9, &mut scratch)?;
        Ok((scratch.key(), empty.key()))
    })?;
    let mut graph = graph.instantiate()?;
    assert_eq!(other.download(graph.view(scratch)?)?, [0; 5], "before the first launch");
    assert!(other.download(graph.view(empty)?)?.is_empty());
    for _ in 0..3 {
        let gate = Gate::close(&stream)?;
        graph.launch(&stream)?;
        graph.launch(&other)?;
        gate.open_soon();
        assert_eq!(other.download(graph.view(scratch)?)?, [9; 5]);
    }
    drop(graph);
    assert_eq!(stream.download(&output)?, [1, 0, 0, 4, 5]);
    stream.fill_into(0, &mut input)?;
    Ok(())
}
