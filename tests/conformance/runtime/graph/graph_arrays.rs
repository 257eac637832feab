//! Graphs that copy texture arrays: from and to buffers and page-locked memory, at each launch.

use ferrogrid::{Device, Error, GraphError};

use crate::runtime::{Case, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("each_launch_copies_texture_arrays", each_launch_copies_texture_arrays),
    ("copies_of_texture_arrays_are_explicit_nodes", copies_of_texture_arrays_are_explicit_nodes),
    ("copies_of_texture_arrays_are_ordered_with_streams", copies_of_texture_arrays_are_ordered_with_streams),
    ("copies_of_texture_arrays_are_refused_whole", copies_of_texture_arrays_are_refused_whole),
];

fn each_launch_copies_texture_arrays(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?];
    let (input, output) = (device.pinned_zeros::<u16>(30)?, device.pinned_zeros::<u16>(30)?);
    let mut volume = streams[0].zeros_array::<u16, 3>([5, 3, 2])?;
    let (graph, (input, part, output)) = streams[0].capture(|capture| {
        let (input, mut output) = (capture.keep_pinned(input)?, capture.keep_pinned(output)?);
        let mut volume = capture.write_array(&mut volume)?;
        let mut part = capture.keep(streams[0].zeros::<u16>(40)?)?;
        capture.copy_to_array(&input, &mut volume)?; // an upload
        capture.copy_from_array(&volume, part.slice_mut(10..)?)?;
        capture.copy_to_array(part.slice(9..39)?, &mut volume)?; // by an element to the right
        capture.copy_from_array(&volume, &mut output)?; // a download
        Ok((input.key(), part.key(), output.key()))
    })?;
    assert_eq!(graph.len(), 4);
    let mut graph = graph.instantiate()?;
    for round in 1..5 {
        let numbers: Vec<u16> = (0..30).map(|i| i * round).collect();
        graph.pinned_mut(input)?.copy_from_slice(&numbers);
        graph.launch(&streams[usize::from(round) % 2])?;
        assert_eq!(graph.pinned(output)?, [&[0], &numbers[..29]].concat());
        assert_eq!(streams[0].download(graph.view(part)?.slice(10..)?)?, numbers);
    }
    drop(graph);
    assert_eq!(streams[1].download_array(&volume)?[1..5], [0, 4, 8, 12]);
    Ok(())
}

fn copies_of_texture_arrays_are_explicit_nodes(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (from, mut to) = (stream.upload_array(&[[1.0_f32, 2.0]; 6], [3, 2])?, stream.zeros_array([3, 2])?);
    let (graph, (out, into)) = stream.capture(|capture| {
        let (from, mut to) = (capture.read_array(&from)?, capture.write_array(&mut to)?);
        let mut buffer = capture.keep(stream.zeros::<[f32; 2]>(6)?)?;
        let out = capture.node(&[], |line| line.copy_from_array(from, &mut buffer))?;
        let into = capture.node(&[], |line| line.copy_to_array(&buffer, &mut to))?;
        Ok((out, into))
    })?;
    assert_eq!(graph.dependencies(into)?, [out], "they use the same buffer");
    let picture = graph.to_svg();
    assert!(picture.contains("0: copy of array") && picture.contains("48 bytes"), "{picture}");
    let mut graph = graph.instantiate()?;
    graph.set_enabled(out, false)?;
    graph.launch(&stream)?;
    graph.set_enabled(out, true)?;
    assert!(graph.is_enabled(into)?);
    drop(graph);
    assert_eq!(stream.download_array(&to)?, [[0.0; 2]; 6], "only the second ran");
    Ok(())
}

fn copies_of_texture_arrays_are_ordered_with_streams(device: &Device) -> Outcome {
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let mut array = stream.zeros_array::<u32, 1>([1000])?;
    let source = stream.zeros::<u32>(1000)?;
    let (graph, source) = stream.capture(|capture| {
        let (source, mut array) = (capture.keep(source)?, capture.write_array(&mut array)?);
        capture.copy_to_array(&source, &mut array)?;
        Ok(source.key())
    })?;
    let mut graph = graph.instantiate()?;
    for round in 0..20_u32 {
        other.fill_into(round, graph.view_mut(source)?)?;
        graph.launch(&stream)?;
    }
    drop(graph);
    assert_eq!(other.download_array(&array)?, [19; 1000]);
    Ok(())
}

/// The array was announced before the buffer was refused.
fn copies_of_texture_arrays_are_refused_whole(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut array, unknown) = (stream.zeros_array::<u32, 1>([4])?, stream.zeros::<u32>(4)?);
    let mut other = stream.zeros::<u32>(4)?;
    let (graph, (first, last)) = stream.capture(|capture| {
        let (mut array, mut other) = (capture.write_array(&mut array)?, capture.write(&mut other)?);
        let first = capture.node(&[], |line| line.copy_from_array(&array, &mut other))?;
        let refused = capture.copy_to_array(&unknown, &mut array);
        assert_eq!(refused, Err(Error::Graph(GraphError::UnknownBuffer)));
        let short = capture.copy_from_array(&array, other.slice_mut(1..)?);
        assert!(matches!(short, Err(Error::LengthMismatch { .. })), "{short:?}");
        let mut scratch = capture.keep(stream.zeros::<u8>(4)?)?;
        capture.fill_into(1, &mut scratch)?;
        Ok((first, capture.frontier()?))
    })?;
    assert_eq!((graph.len(), graph.dependencies(last[0])?.contains(&first)), (2, false));
    Ok(())
}
