//! Memory that graph nodes allocate and free: its lifetime, its contents, and its permitted uses.

use std::mem::MaybeUninit;

use ferrogrid::{CpuOptions, Device, Error, Graph, GraphError};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("each_launch_allocates_its_memory", each_launch_allocates_its_memory),
    ("memory_that_a_launch_allocates_is_zeroed", memory_that_a_launch_allocates_is_zeroed),
    ("nodes_are_between_those_that_allocate_and_free", nodes_are_between_those_that_allocate_and_free),
    ("each_allocation_is_freed_once", each_allocation_is_freed_once),
    ("memory_is_allocated_again_after_it_was_freed", memory_is_allocated_again_after_it_was_freed),
    ("branches_allocate_for_themselves", branches_allocate_for_themselves),
    ("a_node_that_failed_frees_what_it_allocated", a_node_that_failed_frees_what_it_allocated),
    ("memory_of_a_graph_is_not_used_outside", memory_of_a_graph_is_not_used_outside),
    ("unwritten_memory_is_written_first", unwritten_memory_is_written_first),
    ("no_bytes_are_allocated_by_no_node", no_bytes_are_allocated_by_no_node),
    (
        "a_graph_that_allocates_may_be_dropped_while_it_runs",
        a_graph_that_allocates_may_be_dropped_while_it_runs,
    ),
    ("graphs_that_allocate_run_at_the_same_time", graphs_that_allocate_run_at_the_same_time),
    (
        "unsupported_uses_of_graphs_with_allocations_are_refused",
        unsupported_uses_of_graphs_with_allocations_are_refused,
    ),
    ("bodies_use_and_do_not_allocate", bodies_use_and_do_not_allocate),
    ("more_memory_than_there_is_cannot_be_allocated", more_memory_than_there_is_cannot_be_allocated),
    ("figures_tell_of_memory_of_graphs", figures_tell_of_memory_of_graphs),
];

/// The number of nodes that allocate, and of those that free.
fn allocations(graph: &Graph<'_>) -> (usize, usize) {
    let text = graph.to_dot();
    let count = |word: &str| text.lines().filter(|line| line.contains(&format!(": {word}\\n"))).count();
    (count("allocation"), count("free"))
}

fn is_not_recordable<T>(result: ferrogrid::Result<T>) -> bool {
    matches!(result, Err(Error::Graph(GraphError::NotRecordable { .. })))
}

fn each_launch_allocates_its_memory(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?];
    let (mut x, mut y) = (streams[0].zeros::<u32>(100_000)?, streams[0].zeros::<u32>(100_000)?);
    let (graph, (x, y)) = streams[0].capture(|capture| {
        let (x, mut y) = (capture.write(&mut x)?, capture.write(&mut y)?);
        let mut first = capture.zeros::<u32>(100_000)?;
        capture.copy(&x, &mut first)?;
        capture.fill_into(7, first.slice_mut(99_999..)?)?;
        let mut second = capture.zeros::<u32>(100_000)?;
        capture.copy(&first, &mut second)?;
        drop(first);
        capture.copy(&second, &mut y)?;
        Ok((x.key(), y.key()))
    })?;
    assert_eq!((graph.len(), allocations(&graph)), (8, (2, 2)));
    let mut graph = graph.instantiate()?;
    graph.upload(&streams[1])?;
    for round in 0..20_u32 {
        streams[1].fill_into(round, graph.view_mut(x)?)?;
        graph.launch(&streams[round as usize % 2])?;
        let seen = streams[0].download(graph.view(y)?)?;
        assert!(seen[..99_999].iter().all(|&value| value == round) && seen[99_999] == 7, "round {round}");
    }
    Ok(())
}

fn memory_that_a_launch_allocates_is_zeroed(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut y = stream.fill(1_u64, 1000)?;
    let (graph, y) = stream.capture(|capture| {
        let mut y = capture.write(&mut y)?;
        let mut zeros = capture.zeros::<u64>(1000)?;
        capture.copy(&zeros, &mut y)?;
        capture.fill_into(u64::MAX, &mut zeros)?;
        Ok(y.key())
    })?;
    let mut graph = graph.instantiate()?;
    for _ in 0..5 {
        graph.launch(&stream)?;
        assert_eq!(stream.download(graph.view(y)?)?, [0; 1000]);
        stream.fill_into(1, graph.view_mut(y)?)?;
    }
    Ok(())
}

fn nodes_are_between_those_that_allocate_and_free(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut y = stream.zeros::<u32>(4)?;
    let (graph, [before, allocate, first, second, free, after]) = stream.capture(|capture| {
        let mut y = capture.write(&mut y)?;
        let before = capture.node(&[], |line| line.fill_into(1, &mut y))?;
        let (allocate, mut buffer) = capture.zeros_node::<u32>(&[before], 4)?;
        let (left, right) = buffer.split_at_mut(2)?;
        let first = capture.node(&[], |line| line.fill_into(2, left))?;
        let second = capture.node(&[], |line| line.fill_into(3, right))?;
        let free = capture.free_node(&[], buffer)?;
        let after = capture.node(&[free], |_| Ok(()))?;
        Ok([before, allocate, first, second, free, after])
    })?;
    assert_eq!(graph.dependencies(allocate)?, [before]);
    assert_eq!(graph.dependencies(first)?, [allocate]);
    assert!(graph.dependencies(second)?.contains(&first) || graph.dependencies(second)? == [allocate]);
    assert!(graph.dependencies(free)?.contains(&second));
    assert_eq!(graph.dependencies(after)?, [free]);
    let mut graph = graph.instantiate()?;
    for node in [allocate, free] {
        let refused = graph.set_enabled(node, false);
        assert!(matches!(refused, Err(Error::Graph(GraphError::CannotDisable { .. }))), "{refused:?}");
    }
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    Ok(stream.synchronize()?)
}

fn each_allocation_is_freed_once(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (graph, ()) = stream.capture(|capture| {
        drop(capture.zeros::<u8>(10)?);
        std::mem::forget(capture.zeros::<u8>(20)?);
        let _to_the_end = capture.zeros::<u8>(30)?;
        let named = capture.zeros::<u8>(40)?;
        capture.free_node(&[], named)?;
        let moved = capture.zeros::<u8>(50)?;
        // Another thread cannot record, so this is freed at the end.
        std::thread::scope(|scope| scope.spawn(move || drop(moved)).join()).unwrap();
        Ok(())
    })?;
    assert_eq!((graph.len(), allocations(&graph)), (10, (5, 5)));
    let mut graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(&stream)?;
    }
    stream.synchronize()?;
    // A failed recording frees its allocations.
    let failed = stream.capture(|capture| {
        let _buffer = capture.zeros::<u8>(10)?;
        capture.synchronize()
    });
    assert!(is_not_recordable(failed));
    Ok(())
}

fn memory_is_allocated_again_after_it_was_freed(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut sums = stream.zeros::<u32>(50)?;
    let (graph, ()) = stream.capture(|capture| {
        let mut sums = capture.write(&mut sums)?;
        for round in 0..50 {
            let mut buffer = capture.zeros::<u32>(1000)?;
            capture.fill_into(round, buffer.slice_mut(500..)?)?;
            capture.copy(
                buffer.slice(round as usize + 450..)?.slice(..1)?,
                sums.slice_mut(round as usize..)?.slice(..1)?,
            )?;
            drop(buffer);
        }
        Ok(())
    })?;
    assert_eq!(allocations(&graph), (50, 50));
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    drop(graph);
    assert_eq!(stream.download(&sums)?, [0; 50], "the first 500 are zeros");
    Ok(())
}

fn branches_allocate_for_themselves(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut results = stream.zeros::<u32>(8)?;
    let (graph, ()) = stream.capture(|capture| {
        let mut results = capture.write(&mut results)?;
        let start = capture.node(&[], |line| line.fill_into(0, &mut results))?;
        for (number, result) in (1..).zip(results.chunks_mut(1)?) {
            let (allocate, mut buffer) = capture.zeros_node::<u32>(&[start], 5000)?;
            let fill = capture.node(&[allocate], |line| line.fill_into(number, &mut buffer))?;
            let copy = capture.node(&[fill], |line| line.copy(buffer.slice(4999..)?, result))?;
            capture.free_node(&[copy], buffer)?;
        }
        Ok(())
    })?;
    let mut graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(&stream)?;
    }
    drop(graph);
    assert_eq!(stream.download(&results)?, [1, 2, 3, 4, 5, 6, 7, 8]);
    Ok(())
}

fn a_node_that_failed_frees_what_it_allocated(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut y = stream.fill(1_u32, 4)?;
    let (graph, ()) = stream.capture(|capture| {
        let mut kept = None;
        let dropped = capture.zeros::<u32>(4)?;
        let failed = capture.node(&[], |line| {
            kept = Some(capture.zeros::<u32>(4)?);
            line.fill_into(3, kept.as_mut().unwrap())?;
            drop(dropped);
            line.synchronize()
        });
        assert!(is_not_recordable(failed));
        // The fill does nothing; the zeros are still there.
        capture.copy(kept.as_ref().unwrap(), &mut capture.write(&mut y)?)
    })?;
    assert_eq!(allocations(&graph), (2, 2));
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    drop(graph);
    assert_eq!(stream.download(&y)?, [0; 4]);
    Ok(())
}

fn memory_of_a_graph_is_not_used_outside(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, Device::cpu_with(CpuOptions::new())?.new_stream()?);
    let (mut ours, mut theirs) = (stream.zeros::<u32>(4)?, other.zeros::<u32>(4)?);
    let is_outside =
        |result: ferrogrid::Result<()>| assert_eq!(result, Err(Error::Graph(GraphError::OutsideGraph)));
    let (graph, ()) = stream.capture(|capture| {
        let mut buffer = capture.zeros::<u32>(4)?;
        is_outside(stream.download(&buffer).map(drop));
        is_outside(stream.fill_into(1, &mut buffer));
        is_outside(stream.copy(&buffer, &mut ours));
        is_outside(stream.copy(&ours, &mut buffer));
        is_outside(other.copy_peer(&buffer, &mut theirs));
        is_outside(other.copy_peer(&theirs, &mut buffer));
        is_outside(stream.copy_peer(&buffer, &mut theirs));
        // Nor in another graph.
        let (_, nested) = device.new_stream()?.capture(|nested| Ok(nested.fill_into(1, &mut buffer)))?;
        assert_eq!(nested, Err(Error::Graph(GraphError::UnknownBuffer)));
        Ok(())
    })?;
    graph.instantiate()?.launch(&stream)?;
    stream.fill_into(2, &mut ours)?;
    assert_eq!(stream.download(&ours)?, [2; 4]);
    Ok(())
}

fn unwritten_memory_is_written_first(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.upload(&[MaybeUninit::new(5_u16); 300])?, stream.zeros::<u16>(300)?);
    let (graph, ()) = stream.capture(|capture| {
        let (x, mut y) = (capture.read(&x)?, capture.write(&mut y)?);
        let mut first = capture.uninit::<u16>(300)?;
        assert_eq!((first.len(), first.key().len(), first.byte_len()), (300, 300, 600));
        capture.copy(x, &mut first)?;
        let (node, mut second) = capture.uninit_node::<u16>(&[], 300)?;
        capture.node(&[node], |line| line.copy(&first, &mut second))?;
        // SAFETY: the copies before have written all of it.
        let second = unsafe { second.assume_init() };
        capture.copy(&second, &mut y)?;
        capture.free_node(&[], second).map(drop)
    })?;
    assert_eq!((graph.len(), allocations(&graph)), (7, (2, 2)));
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    drop(graph);
    assert_eq!(stream.download(&y)?, [5; 300]);
    Ok(())
}

fn no_bytes_are_allocated_by_no_node(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (graph, (first, last)) = stream.capture(|capture| {
        let (first, mut buffer) = capture.zeros_node::<u32>(&[], 0)?;
        assert!(buffer.is_empty() && buffer.key().is_empty());
        capture.fill_into(1, &mut buffer)?;
        let last = capture.free_node(&[first], buffer)?;
        Ok((first, last))
    })?;
    assert_eq!((allocations(&graph), graph.dependencies(last)?), ((0, 0), vec![first]));
    graph.instantiate()?.launch(&stream)?;
    let too_many = stream.capture(|capture| capture.zeros::<u64>(usize::MAX).map(drop));
    assert!(matches!(too_many, Err(Error::SizeOverflow { .. })));
    Ok(stream.synchronize()?)
}

/// Fills `y` through its own memory.
fn through_memory<'b>(
    stream: &ferrogrid::Stream,
    value: u32,
    y: &'b mut ferrogrid::DeviceBuffer<u32>,
) -> ferrogrid::Result<Graph<'b>> {
    let len = y.len();
    let (graph, ()) = stream.capture(|capture| {
        let mut buffer = capture.zeros::<u32>(len)?;
        capture.fill_into(value, &mut buffer)?;
        capture.copy(&buffer, &mut capture.write(y)?)
    })?;
    Ok(graph)
}

fn a_graph_that_allocates_may_be_dropped_while_it_runs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut y = stream.zeros::<u32>(100_000)?;
    // Also without an instance.
    drop(through_memory(&stream, 1, &mut y)?);
    for round in 1..5 {
        let mut graph = through_memory(&stream, round, &mut y)?.instantiate()?;
        let gate = Gate::close(&stream)?;
        graph.launch(&stream)?;
        graph.launch(&stream)?;
        drop(graph);
        gate.open();
        assert!(stream.download(&y)?.iter().all(|&value| value == round));
    }
    Ok(())
}

fn graphs_that_allocate_run_at_the_same_time(device: &Device) -> Outcome {
    let streams = (0..4).map(|_| device.new_stream()).collect::<ferrogrid::Result<Vec<_>>>()?;
    let mut results = Vec::new();
    for stream in &streams {
        results.push(stream.zeros::<u32>(50_000)?);
    }
    let mut graphs = Vec::new();
    for (number, (stream, result)) in (1..).zip(streams.iter().zip(&mut results)) {
        graphs.push(through_memory(stream, number, result)?.instantiate()?);
    }
    for _ in 0..10 {
        for (stream, graph) in streams.iter().zip(&mut graphs) {
            graph.launch(stream)?;
        }
    }
    drop(graphs);
    for (number, (stream, result)) in (1..).zip(streams.iter().zip(&results)) {
        assert!(stream.download(result)?.iter().all(|&value| value == number));
    }
    Ok(())
}

fn unsupported_uses_of_graphs_with_allocations_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut results = [stream.zeros::<u32>(10)?, stream.zeros::<u32>(10)?, stream.zeros::<u32>(10)?];
    let [first, second, third] = &mut results;
    let child = through_memory(&stream, 1, first)?;
    let refused = stream.capture(|capture| capture.child_graph(child).map(drop));
    assert!(is_not_recordable(refused), "a child");
    let mut graph = through_memory(&stream, 2, second)?.instantiate()?;
    let error = graph.update(through_memory(&stream, 3, third)?).unwrap_err();
    assert!(matches!(error, Error::Graph(GraphError::UpdateRefused { .. })), "{error}");
    assert!(error.to_string().contains("node 0 allocates memory"), "{error}");
    let refused = stream.capture(|capture| capture.node(&[], |line| line.zeros::<u32>(10).map(drop)));
    assert!(is_not_recordable(refused), "on the stream of a node");
    // The graph is unchanged.
    graph.launch(&stream)?;
    drop(graph);
    let values =
        results.iter().map(|result| stream.download(result)).collect::<ferrogrid::Result<Vec<_>>>()?;
    assert_eq!(values, [[0; 10], [2; 10], [0; 10]]);
    Ok(())
}

/// Not instantiated: that needs a driver of CUDA 12.3.
fn bodies_use_and_do_not_allocate(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let flag = stream.zeros::<u32>(1)?;
    let (graph, (allocate, conditional)) = stream.capture(|capture| {
        let flag = capture.keep(flag)?;
        let (allocate, mut buffer) = capture.zeros_node::<u32>(&[], 4)?;
        let conditional = capture.if_node(flag.key(), |body| {
            assert!(is_not_recordable(capture.zeros::<u32>(4)), "in a body");
            assert!(is_not_recordable(body.zeros::<u32>(4)), "on the stream of a body");
            body.fill_into(1, &mut buffer)?;
            drop(buffer); // Later: a body frees nothing.
            Ok(())
        })?;
        Ok((allocate, conditional))
    })?;
    assert_eq!((graph.len(), allocations(&graph)), (3, (1, 1)));
    assert_eq!(graph.dependencies(conditional)?, [allocate]);
    let free = graph.nodes().last().unwrap();
    assert_eq!(graph.dependencies(free)?, [conditional]);
    Ok(())
}

fn more_memory_than_there_is_cannot_be_allocated(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    const BYTES: usize = 1 << 50;
    let record = || stream.capture(|capture| capture.zeros::<u8>(BYTES).map(drop));
    let launch = || record()?.0.instantiate()?.launch(&stream);
    match launch() {
        Err(Error::OutOfMemory { requested, .. }) => assert_eq!(requested, BYTES as u64),
        other => panic!("{other:?}"),
    }
    let mut y = stream.zeros::<u32>(10)?;
    through_memory(&stream, 4, &mut y)?.instantiate()?.launch(&stream)?;
    assert_eq!(stream.download(&y)?, [4; 10]);
    Ok(())
}

fn figures_tell_of_memory_of_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let memory = device.graph_memory();
    let mut y = stream.zeros::<u32>(1 << 20)?;
    let mut graph = through_memory(&stream, 1, &mut y)?.instantiate()?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    let figures = memory.statistics()?;
    assert!(figures.reserved_high >= 4 << 20 && figures.reserved_high >= figures.reserved, "{figures:?}");
    assert!(figures.used_high >= figures.used && figures.reserved >= figures.used, "{figures:?}");
    memory.trim()?;
    graph.launch(&stream)?;
    drop(graph);
    assert_eq!(stream.download(&y)?[0], 1);
    Ok(())
}
