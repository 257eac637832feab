//! Child graphs: order, buffers, host functions, and refused calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ferrogrid::{Device, Error, Graph, GraphError, GraphKey, Stream};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("a_child_is_one_node_in_the_order_of_its_buffers", a_child_is_one_node_in_the_order_of_its_buffers),
    ("a_child_node_follows_its_named_dependencies", a_child_node_follows_its_named_dependencies),
    ("a_child_and_its_parent_read_one_buffer", a_child_and_its_parent_read_one_buffer),
    ("keys_of_children_name_their_buffers", keys_of_children_name_their_buffers),
    ("functions_of_a_child_are_called_at_each_launch", functions_of_a_child_are_called_at_each_launch),
    ("functions_of_a_child_outlive_the_graph", functions_of_a_child_outlive_the_graph),
    (
        "a_graph_takes_over_one_whose_child_has_the_same_form",
        a_graph_takes_over_one_whose_child_has_the_same_form,
    ),
    ("graphs_that_cannot_be_children_are_refused", graphs_that_cannot_be_children_are_refused),
    ("a_buffer_of_a_child_is_handed_out_once", a_buffer_of_a_child_is_handed_out_once),
    ("children_are_nested_to_a_limit", children_are_nested_to_a_limit),
];

/// A graph that fills its own buffer.
fn filling(stream: &Stream, value: u32) -> ferrogrid::Result<(Graph<'static>, GraphKey<u32>)> {
    let data = stream.zeros::<u32>(100)?;
    stream.capture(|capture| {
        let mut data = capture.keep(data)?;
        capture.fill_into(value, &mut data)?;
        Ok(data.key())
    })
}

fn a_child_is_one_node_in_the_order_of_its_buffers(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (child, data) = filling(&stream, 1)?;
    let copy = stream.zeros::<u32>(100)?;
    let (graph, (first, child, read, copy)) = stream.capture(|capture| {
        let mut copy = capture.keep(copy)?;
        let first = capture.node(&[], |line| line.fill_into(9, &mut copy))?;
        let child = capture.child_node(&[], child)?;
        let data = capture.buffer(data)?;
        let read =
            capture.node(&[], |line| line.copy(data.view().slice(..99)?, copy.view_mut().slice(..99)?))?;
        Ok((first, child, read, copy.key()))
    })?;
    assert_eq!(graph.len(), 3);
    assert_eq!((graph.dependencies(child)?, graph.dependencies(read)?), (vec![], vec![first, child]));
    let dot = graph.to_dot();
    assert!(dot.contains("child graph\\n1 nodes") && dot.contains("n1_0 [label=\"0: fill"), "{dot}");
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    let seen = stream.download(graph.view(copy)?)?;
    assert_eq!((seen[0], seen[98], seen[99]), (1, 1, 9));
    Ok(())
}

fn a_child_node_follows_its_named_dependencies(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let order = Arc::new(AtomicU32::new(0));
    let digit = |digit: u32| {
        let order = order.clone();
        move || _ = order.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |all| Some(all * 10 + digit))
    };
    let (child, ()) = stream.capture(|capture| {
        capture.launch_host_func(digit(2))?;
        capture.launch_host_func(digit(3)).map(drop)
    })?;
    let (graph, ()) = stream.capture(|capture| {
        let first = capture.host_node(&[], digit(1))?;
        let child = capture.child_node(&[first], child)?;
        capture.host_node(&[child], digit(4)).map(drop)
    })?;
    graph.instantiate()?.launch(&stream)?;
    stream.synchronize()?;
    assert_eq!(order.load(Ordering::SeqCst), 1234);
    Ok(())
}

fn a_child_and_its_parent_read_one_buffer(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let source = stream.fill(5_u32, 100)?;
    let copying = || {
        let target = stream.zeros::<u32>(100)?;
        stream.capture(|capture| {
            let mut target = capture.keep(target)?;
            capture.copy(capture.read(&source)?, &mut target)?;
            Ok(target.key())
        })
    };
    let ((first, left), (second, right)) = (copying()?, copying()?);
    let own = stream.zeros::<u32>(100)?;
    let (graph, (nodes, own)) = stream.capture(|capture| {
        let (source, mut own) = (capture.read(&source)?, capture.keep(own)?);
        let nodes = [capture.child_node(&[], first)?, capture.child_node(&[], second)?];
        let node = capture.node(&[], |line| line.copy(source, &mut own))?;
        Ok(([nodes[0], nodes[1], node], own.key()))
    })?;
    for node in nodes {
        assert_eq!(graph.dependencies(node)?, [], "they share an input");
    }
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    for key in [left, right, own] {
        assert_eq!(stream.download(graph.view(key)?)?, [5; 100]);
    }
    Ok(())
}

fn keys_of_children_name_their_buffers(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (inner, data) = filling(&stream, 3)?;
    let host = device.pinned_zeros::<u32>(100)?;
    let (middle, host) = stream.capture(|capture| {
        let mut host = capture.keep_pinned(host)?;
        capture.child_graph(inner)?;
        capture.copy(&capture.buffer(data)?, &mut host)?;
        Ok(host.key())
    })?;
    let before = stream.zeros::<u32>(7)?;
    let (graph, ()) = stream.capture(|capture| {
        capture.keep(before)?;
        capture.child_graph(middle).map(drop)
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(data)?)?, [3; 100]);
    assert_eq!(graph.pinned(host)?, [3; 100]);
    stream.fill_into(4, graph.view_mut(data)?)?;
    graph.pinned_mut(host)?.fill(4);
    let (_, other_graphs) = filling(&stream, 1)?;
    assert!(matches!(graph.view(other_graphs), Err(Error::Graph(GraphError::OtherGraph { what: "buffer" }))));
    Ok(())
}

fn functions_of_a_child_are_called_at_each_launch(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let (child, ()) = stream.capture(|capture| {
        capture
            .launch_host_func(move || assert!(counted.fetch_add(1, Ordering::SeqCst) < 5, "the sixth call"))
            .map(drop)
    })?;
    let (graph, ()) = stream.capture(|capture| capture.child_graph(child).map(drop))?;
    let mut graph = graph.instantiate()?;
    for _ in 0..5 {
        graph.launch(&stream)?;
    }
    stream.synchronize()?;
    assert_eq!(count.load(Ordering::SeqCst), 5);
    graph.launch(&stream)?;
    let error = stream.synchronize().unwrap_err();
    assert!(
        matches!(&error, Error::HostFnPanic { message } if message.contains("the sixth call")),
        "{error}"
    );
    Ok(())
}

fn functions_of_a_child_outlive_the_graph(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let (child, ()) = stream.capture(|capture| {
        capture.launch_host_func(move || _ = counted.fetch_add(1, Ordering::SeqCst)).map(drop)
    })?;
    let (graph, ()) = stream.capture(|capture| capture.child_graph(child).map(drop))?;
    let mut graph = graph.instantiate()?;
    let gate = Gate::close(&stream)?;
    graph.launch(&stream)?;
    drop(graph);
    assert_eq!(Arc::strong_count(&count), 2, "the launch has not run");
    gate.open();
    stream.synchronize()?;
    assert_eq!(count.load(Ordering::SeqCst), 1);
    Ok(())
}

fn a_graph_takes_over_one_whose_child_has_the_same_form(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let record = |value: u32| -> ferrogrid::Result<_> {
        let (child, data) = filling(&stream, value)?;
        Ok((stream.capture(|capture| capture.child_graph(child).map(drop))?.0, data))
    };
    let (graph, _) = record(1)?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    let (other, data) = record(2)?;
    graph.update(other)?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(data)?)?, [2; 100]);
    let (different, ()) = stream.capture(|capture| {
        let (child, ()) = stream.capture(|_| Ok(()))?;
        capture.child_graph(child).map(drop)
    })?;
    let error = graph.update(different).unwrap_err().to_string();
    assert!(error.contains("node 0 is a child graph that differs: it has 1 nodes, the other 0"), "{error}");
    Ok(())
}

fn graphs_that_cannot_be_children_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let flag = stream.zeros::<u32>(1)?;
    let (conditional, ()) = stream.capture(|capture| {
        let mut flag = capture.keep(flag)?;
        capture.if_node(flag.key(), |body| body.fill_into(1, &mut flag)).map(drop)
    })?;
    let refused = stream.capture(|capture| capture.child_graph(conditional).map(drop)).unwrap_err();
    assert!(matches!(refused, Error::Graph(GraphError::NotRecordable { .. })), "{refused}");

    let elsewhere = Device::cpu_with(ferrogrid::CpuOptions::new())?.new_stream()?;
    let (other, _) = filling(&elsewhere, 1)?;
    let refused = stream.capture(|capture| capture.child_graph(other).map(drop)).unwrap_err();
    assert!(matches!(refused, Error::DeviceMismatch { .. }), "{refused}");

    let (child, flag) = (filling(&stream, 1)?.0, stream.zeros::<u32>(1)?);
    let (graph, ()) = stream.capture(|capture| {
        let flag = capture.keep(flag)?;
        let in_a_body = |_: &_| capture.child_graph(child).map(drop);
        let refused = capture.if_node(flag.key(), in_a_body).unwrap_err();
        assert!(matches!(refused, Error::Graph(GraphError::OtherBody)), "{refused}");
        Ok(())
    })?;
    assert!(graph.is_empty());
    Ok(())
}

fn a_buffer_of_a_child_is_handed_out_once(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (child, data) = filling(&stream, 1)?;
    let error = |result: ferrogrid::Result<()>| match result {
        Err(Error::Graph(error)) => error,
        other => panic!("{other:?}"),
    };
    stream.capture(|capture| {
        assert_eq!(error(capture.buffer(data).map(drop)), GraphError::OtherGraph { what: "buffer" });
        capture.child_graph(child)?;
        let first = capture.buffer(data)?;
        assert_eq!(error(capture.buffer(data).map(drop)), GraphError::BufferTaken { buffer: 0 });
        assert_eq!(error(capture.buffer(first.key()).map(drop)), GraphError::OtherGraph { what: "buffer" });
        Ok(())
    })?;
    Ok(())
}

fn children_are_nested_to_a_limit(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let nested = |levels: usize| -> ferrogrid::Result<_> {
        let (mut graph, data) = filling(&stream, 8)?;
        for _ in 0..levels {
            graph = stream.capture(|capture| capture.child_graph(graph).map(drop))?.0;
        }
        Ok((graph, data))
    };
    assert!(matches!(nested(33), Err(Error::Graph(GraphError::TooDeep { limit: 32 }))));
    let (graph, data) = nested(32)?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(data)?)?, [8; 100]);
    Ok(())
}
