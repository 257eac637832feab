//! Event nodes of graphs: recording, waits, and refused calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use ferrogrid::{Device, Error, Event, EventOptions, GraphError};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("each_launch_records_its_events", each_launch_records_its_events),
    ("an_event_node_happens_in_the_middle_of_a_launch", an_event_node_happens_in_the_middle_of_a_launch),
    ("a_launch_waits_for_the_events_of_other_streams", a_launch_waits_for_the_events_of_other_streams),
    ("event_nodes_of_a_child_count_as_well", event_nodes_of_a_child_count_as_well),
    ("event_nodes_have_dependencies", event_nodes_have_dependencies),
    ("a_graph_takes_over_one_with_other_events", a_graph_takes_over_one_with_other_events),
    ("events_of_a_graph_outlive_it", events_of_a_graph_outlive_it),
    ("events_that_a_graph_cannot_use_are_refused", events_that_a_graph_cannot_use_are_refused),
];

fn event(device: &Device) -> ferrogrid::Result<Arc<Event>> {
    device.new_event(EventOptions::new()).map(Arc::new)
}

fn each_launch_records_its_events(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let (start, end) = (event(device)?, event(device)?);
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let (graph, ()) = stream.capture(|capture| {
        capture.record_event(&start)?;
        capture.launch_host_func(move || _ = counted.fetch_add(1, Ordering::SeqCst))?;
        capture.record_event(&end).map(drop)
    })?;
    let mut graph = graph.instantiate()?;
    assert!(end.is_complete()?, "it has never been recorded");
    assert!(matches!(end.elapsed_since(&start), Err(Error::EventTime { .. })));
    for round in 1..4 {
        let gate = Gate::close(&stream)?;
        graph.launch(&stream)?;
        assert!(!end.is_complete()?, "round {round}");
        other.wait(&end)?;
        let seen = Arc::new(AtomicU32::new(0));
        let (count, see) = (count.clone(), seen.clone());
        other.launch_host_func(move || see.store(count.load(Ordering::SeqCst), Ordering::SeqCst))?;
        gate.open();
        end.synchronize()?;
        end.elapsed_since(&start)?;
        other.synchronize()?;
        assert_eq!(seen.load(Ordering::SeqCst), round);
    }
    Ok(())
}

fn an_event_node_happens_in_the_middle_of_a_launch(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let middle = event(device)?;
    let (sender, receiver) = channel::<()>();
    let receiver = std::sync::Mutex::new(receiver);
    let (graph, ()) = stream.capture(|capture| {
        capture.record_event(&middle)?;
        capture.launch_host_func(move || _ = receiver.lock().unwrap().recv())?;
        Ok(())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    middle.synchronize()?;
    assert!(!stream.is_complete()?);
    drop(sender);
    Ok(stream.synchronize()?)
}

fn a_launch_waits_for_the_events_of_other_streams(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let ready = event(device)?;
    let order = Arc::new(AtomicU32::new(0));
    let digit = |digit: u32| {
        let order = order.clone();
        move || _ = order.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |all| Some(all * 10 + digit))
    };
    let (graph, ()) = stream.capture(|capture| {
        capture.wait_event(&ready)?;
        capture.launch_host_func(digit(2)).map(drop)
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?; // it was never recorded, so there is nothing to wait for
    stream.synchronize()?;
    assert_eq!(order.swap(0, Ordering::SeqCst), 2);
    let gate = Gate::close(&other)?;
    other.launch_host_func(digit(1))?;
    other.record_into(&ready)?;
    graph.launch(&stream)?;
    other.record_into(&ready)?;
    std::thread::sleep(Duration::from_millis(20));
    assert!(!stream.is_complete()?);
    gate.open();
    stream.synchronize()?;
    assert_eq!(order.load(Ordering::SeqCst), 12);
    Ok(())
}

fn event_nodes_of_a_child_count_as_well(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let (ready, done) = (event(device)?, event(device)?);
    let (child, ()) = stream.capture(|capture| {
        capture.wait_event(&ready)?;
        capture.record_event(&done).map(drop)
    })?;
    let (graph, ()) = stream.capture(|capture| capture.child_graph(child).map(drop))?;
    let mut graph = graph.instantiate()?;
    let gate = Gate::close(&other)?;
    other.record_into(&ready)?;
    graph.launch(&stream)?;
    assert!(!done.is_complete()?);
    gate.open();
    done.synchronize()?;
    assert!(ready.is_complete()?);
    assert!(done.elapsed_since(&ready).is_ok());
    Ok(())
}

fn event_nodes_have_dependencies(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (ready, done) = (event(device)?, event(device)?);
    let (graph, [wait, call, record]) = stream.capture(|capture| {
        let wait = capture.event_wait_node(&[], &ready)?;
        let call = capture.host_node(&[], || ())?;
        Ok([wait, call, capture.event_record_node(&[wait, call], &done)?])
    })?;
    assert_eq!((graph.dependencies(call)?, graph.dependencies(record)?), (vec![], vec![wait, call]));
    let svg = graph.to_svg();
    assert!(svg.contains("0: event wait") && svg.contains("2: event record"), "{svg}");
    let mut graph = graph.instantiate()?;
    let refused = graph.set_enabled(record, false);
    assert_eq!(refused, Err(Error::Graph(GraphError::CannotDisable { node: 2, found: "event record" })));
    Ok(())
}

fn a_graph_takes_over_one_with_other_events(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (first, second) = (event(device)?, event(device)?);
    let record = |event: &Arc<Event>| stream.capture(|capture| capture.record_event(event).map(drop));
    let mut graph = record(&first)?.0.instantiate()?;
    graph.update(record(&second)?.0)?;
    let gate = Gate::close(&stream)?;
    graph.launch(&stream)?;
    assert_eq!((first.is_complete()?, second.is_complete()?), (true, false));
    gate.open();
    Ok(second.synchronize()?)
}

fn events_of_a_graph_outlive_it(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let done = event(device)?;
    let (graph, ()) = stream.capture(|capture| capture.record_event(&done).map(drop))?;
    let mut graph = graph.instantiate()?;
    let gate = Gate::close(&stream)?;
    graph.launch(&stream)?;
    drop(graph);
    assert_eq!(Arc::strong_count(&done), 2, "the launch has not run");
    gate.open();
    Ok(done.synchronize()?)
}

fn events_that_a_graph_cannot_use_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let elsewhere = event(&Device::cpu_with(ferrogrid::CpuOptions::new())?)?;
    let (graph, ()) = stream.capture(|capture| {
        let point = Arc::new(capture.record()?);
        for refused in [capture.record_event(&point), capture.wait_event(&point)] {
            assert!(matches!(refused, Err(Error::Graph(GraphError::NotRecordable { .. }))), "{refused:?}");
        }
        for refused in [capture.record_event(&elsewhere), capture.wait_event(&elsewhere)] {
            assert!(matches!(refused, Err(Error::EventDevice { .. })), "{refused:?}");
        }
        Ok(())
    })?;
    assert!(graph.is_empty());
    Ok(())
}
