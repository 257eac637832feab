//! Graphs that copy from and to page-locked memory: the values copied at each launch, and the host's view of
//! them.

use std::thread;
use std::time::Duration;

use ferrogrid::{Device, Error};

use crate::runtime::{Case, Gate, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("each_launch_uploads_and_downloads", each_launch_uploads_and_downloads),
    ("parts_and_rows_of_page_locked_memory_are_copied", parts_and_rows_of_page_locked_memory_are_copied),
    ("copies_with_the_host_are_explicit_nodes", copies_with_the_host_are_explicit_nodes),
    ("the_host_reads_the_output_of_the_last_launch", the_host_reads_the_output_of_the_last_launch),
    ("the_host_writes_when_no_launch_reads", the_host_writes_when_no_launch_reads),
    ("page_locked_memory_outlives_its_graph", page_locked_memory_outlives_its_graph),
    ("a_registered_vec_is_memory_of_a_graph", a_registered_vec_is_memory_of_a_graph),
    ("empty_page_locked_memory_is_allowed", empty_page_locked_memory_is_allowed),
    ("a_key_of_another_graph_reads_nothing", a_key_of_another_graph_reads_nothing),
    ("memory_that_no_gpu_can_use_is_refused", memory_that_no_gpu_can_use_is_refused),
];

fn each_launch_uploads_and_downloads(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?];
    let (input, output) = (device.pinned_zeros::<u32>(1000)?, device.pinned_zeros::<u32>(1000)?);
    let (graph, (input, output)) = streams[0].capture(|capture| {
        let (input, mut output) = (capture.keep_pinned(input)?, capture.keep_pinned(output)?);
        let mut data = capture.keep(streams[0].zeros::<u32>(1000)?)?;
        capture.copy(&input, &mut data)?;
        capture.fill_into(9, data.view_mut().slice(999..)?)?;
        capture.copy(&data, &mut output)?;
        Ok((input.key(), output.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for round in 0..20 {
        graph.pinned_mut(input)?.fill(round);
        graph.launch(&streams[round as usize % 2])?;
        let seen = graph.pinned(output)?;
        assert_eq!((seen[0], seen[998], seen[999]), (round, round, 9));
    }
    Ok(())
}

fn parts_and_rows_of_page_locked_memory_are_copied(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let host = device.pinned_copy(&[1_u16, 2, 3, 4, 5, 6])?;
    let (graph, host) = stream.capture(|capture| {
        let mut host = capture.keep_pinned(host)?;
        let mut data = capture.keep(stream.zeros::<u16>(4)?)?;
        let columns = host.view().pitched(2, 2, 3)?; // 1 2, 4 5
        capture.copy_2d(columns, data.view_mut().pitched(2, 2, 2)?)?;
        capture.copy(data.view().slice(..3)?, host.view_mut().slice(3..)?)?;
        Ok(host.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    assert_eq!(graph.pinned(host)?, [1, 2, 3, 1, 2, 4]);
    Ok(())
}

fn copies_with_the_host_are_explicit_nodes(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let host = device.pinned_copy(&[1_u8, 2])?;
    let (graph, (up, down, host)) = stream.capture(|capture| {
        let mut host = capture.keep_pinned(host)?;
        let mut data = capture.keep(stream.zeros::<u8>(2)?)?;
        let up = capture.node(&[], |line| line.copy(&host, &mut data))?;
        let down = capture.node(&[], |line| line.copy(&data, &mut host))?;
        Ok((up, down, host.key()))
    })?;
    assert_eq!(graph.dependencies(down)?, [up], "they use the same memory");
    let dot = graph.to_svg();
    assert!(dot.contains("0: upload") && dot.contains("1: download"), "{dot}");
    let mut graph = graph.instantiate()?;
    graph.set_enabled(up, false)?;
    graph.launch(&stream)?;
    assert_eq!(graph.pinned(host)?, [0, 0], "only the download ran");
    Ok(())
}

fn the_host_reads_the_output_of_the_last_launch(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (data, host) = (stream.fill(7_u32, 1000)?, device.pinned_zeros::<u32>(1000)?);
    let (graph, host) = stream.capture(|capture| {
        let mut host = capture.keep_pinned(host)?;
        capture.copy(capture.read(&data)?, &mut host)?;
        Ok(host.key())
    })?;
    let mut graph = graph.instantiate()?;
    assert_eq!(graph.pinned(host)?, [0; 1000], "before any launch");
    let gate = Gate::close(&stream)?;
    graph.launch(&stream)?;
    let opener = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        gate.open();
    });
    assert_eq!(graph.pinned(host)?, [7; 1000]);
    opener.join().unwrap();
    Ok(())
}

fn the_host_writes_when_no_launch_reads(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut data, host) = (stream.zeros::<u32>(1000)?, device.pinned_copy(&[1_u32; 1000])?);
    let (graph, host) = stream.capture(|capture| {
        let host = capture.keep_pinned(host)?;
        capture.copy(&host, &mut capture.write(&mut data)?)?;
        Ok(host.key())
    })?;
    let mut graph = graph.instantiate()?;
    let gate = Gate::close(&stream)?;
    graph.launch(&stream)?;
    let opener = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        gate.open();
    });
    graph.pinned_mut(host)?.fill(2);
    opener.join().unwrap();
    drop(graph);
    assert_eq!(stream.download(&data)?, [1; 1000], "the launch came first");
    Ok(())
}

fn page_locked_memory_outlives_its_graph(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut data, host) = (stream.zeros::<u32>(1000)?, device.pinned_copy(&[5_u32; 1000])?);
    let (graph, ()) = stream.capture(|capture| {
        let host = capture.keep_pinned(host)?;
        capture.copy(&host, &mut capture.write(&mut data)?)
    })?;
    let mut graph = graph.instantiate()?;
    let gate = Gate::close(&stream)?;
    graph.launch(&stream)?;
    drop(graph);
    // It would be given the memory, had that been freed.
    let poison = device.pinned_copy(&[9_u32; 1000])?;
    gate.open();
    assert_eq!(stream.download(&data)?, [5; 1000]);
    assert_eq!(*poison, [9; 1000]);
    Ok(())
}

fn a_registered_vec_is_memory_of_a_graph(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let host = device.pin(vec![3_u64; 100])?;
    let (graph, host) = stream.capture(|capture| {
        let mut host = capture.keep_pinned(host)?;
        let mut data = capture.keep(stream.fill(4_u64, 50)?)?;
        capture.copy(&data, host.view_mut().slice(50..)?)?;
        capture.copy(host.view().slice(..50)?, &mut data)?;
        capture.copy(&data, host.view_mut().slice(25..75)?)?;
        Ok(host.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    let seen = graph.pinned(host)?;
    assert_eq!((&seen[..75], &seen[75..]), (&[3; 75][..], &[4; 25][..]));
    Ok(())
}

fn empty_page_locked_memory_is_allowed(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let host = device.pinned_zeros::<f32>(0)?;
    let (graph, host) = stream.capture(|capture| {
        let mut host = capture.keep_pinned(host)?;
        assert!(host.is_empty());
        let data = capture.keep(stream.zeros(0)?)?;
        capture.copy(&data, &mut host)?;
        Ok(host.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    assert!(graph.pinned(host)?.is_empty());
    assert!(graph.pinned_mut(host)?.is_empty());
    Ok(())
}

fn a_key_of_another_graph_reads_nothing(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let host = device.pinned_zeros::<u8>(4)?;
    let (_graph, key) = stream.capture(|capture| Ok(capture.keep_pinned(host)?.key()))?;
    let (other, ()) = stream.capture(|_| Ok(()))?;
    let error = other.instantiate()?.pinned(key).unwrap_err().to_string();
    assert!(error.contains("this buffer is of another graph"), "{error}");
    Ok(())
}

fn memory_that_no_gpu_can_use_is_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let kept = stream.capture(|capture| {
        let host = Device::cpu().pinned_zeros::<u8>(4)?;
        capture.keep_pinned(host).map(drop)
    });
    let refused = matches!(kept, Err(Error::DeviceMismatch { .. }));
    assert_eq!(refused, device.is_cuda(), "{kept:?}");
    Ok(())
}
