//! Texture arrays: copies, the order of their uses, extents, and refused calls.

use std::thread;

use ferrogrid::device::TextureElement;
use ferrogrid::device::half::f16;
use ferrogrid::prelude::*;
use ferrogrid::{AddressMode, Axis, CpuOptions, GraphError, Sampler, TextureArray};

use crate::table::not_for_this_device;
use crate::texture::reference::{Channels, random_elements};
use crate::texture::texture_kernels::texturing;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("texture_arrays_are_copied_as_they_are", texture_arrays_are_copied_as_they_are),
    ("uses_of_a_texture_array_are_ordered", uses_of_a_texture_array_are_ordered),
    (
        "a_dropped_texture_array_is_kept_for_its_last_kernel",
        a_dropped_texture_array_is_kept_for_its_last_kernel,
    ),
    ("texture_arrays_are_of_one_device", texture_arrays_are_of_one_device),
    ("extents_that_no_texture_has_are_named", extents_that_no_texture_has_are_named),
    ("kernels_of_a_graph_use_texture_arrays", kernels_of_a_graph_use_texture_arrays),
    ("a_graph_uses_the_arrays_that_it_was_given", a_graph_uses_the_arrays_that_it_was_given),
    ("a_graph_takes_no_slices_for_texture_arrays", a_graph_takes_no_slices_for_texture_arrays),
    ("foreign_kernels_take_textures_and_surfaces", foreign_kernels_take_textures_and_surfaces),
];

fn texture_arrays_are_copied_as_they_are(device: &Device) -> Outcome {
    fn copied<T, const R: usize>(stream: &Stream, extent: [usize; R]) -> Outcome
    where
        T: TextureElement + Channels + PartialEq + std::fmt::Debug,
    {
        let mut random = fastrand::Rng::with_seed(9);
        let count = extent.iter().product();
        let (first, second) =
            (random_elements::<T>(count, &mut random), random_elements(count + 3, &mut random));
        let mut array = stream.upload_array(&first, extent)?;
        expect("extents", (array.extent(), array.len()), (extent, count))?;
        expect("uploaded", stream.download_array(&array)?, first.clone())?;
        // To a part of a buffer that does not begin at the start of a line of cache.
        let mut buffer = stream.upload(&second)?;
        stream.copy_from_array(&array, buffer.slice_mut(2..count + 2)?)?;
        let mut expected = second.clone();
        expected[2..count + 2].clone_from_slice(&first);
        expect("to a buffer", stream.download(&buffer)?, expected.clone())?;
        stream.upload_into(&second, &mut buffer)?;
        stream.copy_to_array(buffer.slice(3..)?, &mut array)?;
        expect("from a buffer", stream.download_array(&array)?, second[3..].to_vec())?;
        stream.upload_into_array(&first, &mut array)?;
        expect("anew", stream.download_array(&array)?, first.clone())?;
        expect(
            "zeros",
            stream.download_array(&stream.zeros_array::<T, R>(extent)?)?,
            vec![T::zeroed(); count],
        )?;
        let short = stream.upload_into_array(&first[1..], &mut array);
        expect_error("too short", short, |error| matches!(error, Error::LengthMismatch { .. }))?;
        let long = stream.copy_to_array(&buffer, &mut array);
        expect_error("too long", long, |error| matches!(error, Error::LengthMismatch { .. }))?;
        let long = stream.copy_from_array(&array, &mut buffer);
        expect_error("to too many", long, |error| matches!(error, Error::LengthMismatch { .. }))?;
        expect("as before", stream.download_array(&array)?, first)
    }
    let stream = device.new_stream()?;
    copied::<u8, 1>(&stream, [1])?;
    copied::<u8, 1>(&stream, [1001])?;
    copied::<[f32; 4], 1>(&stream, [333])?;
    copied::<u8, 2>(&stream, [17, 5])?;
    copied::<[u8; 2], 2>(&stream, [1, 40])?;
    copied::<i16, 2>(&stream, [640, 3])?;
    copied::<f16, 2>(&stream, [31, 31])?;
    copied::<[u32; 2], 2>(&stream, [5, 5])?;
    copied::<f32, 3>(&stream, [7, 3, 5])?;
    copied::<i8, 3>(&stream, [1, 1, 1])?;
    copied::<[i16; 4], 3>(&stream, [33, 2, 9])
}

/// Enough elements that a kernel runs for a while.
fn rounds(device: &Device) -> u32 {
    if device.is_cuda() { 2000 } else { 3 }
}

fn uses_of_a_texture_array_are_ordered(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?, device.new_stream()?];
    let (width, height) = (64, 48);
    let mut array = streams[0].zeros_array::<u32, 2>([width, height])?;
    for round in 0..60 {
        texturing::count(&streams[round % 3], Grid::cover([width, height]), array.surface()?)?;
    }
    expect("counts", streams[1].download_array(&array)?, vec![60; width * height])?;

    // Written by copies on one stream, read by kernels on others, with many rounds so that they run for a
    // while.
    let mut image = streams[0].zeros_array::<f32, 2>([width, height])?;
    let mut sums = [streams[1].zeros(width * height)?, streams[2].zeros(width * height)?];
    let mut expected = 0.0;
    for round in 1..=20 {
        let values = streams[0].fill(round as f32, width * height)?;
        streams[0].copy_to_array(&values, &mut image)?;
        for (sum, stream) in sums.iter_mut().zip(&streams[1..]) {
            let texture = image.texture(&Sampler::new())?;
            let sum = sum.view_2d_mut(width, height)?;
            texturing::add(stream, Grid::cover([width, height]), rounds(device), texture, sum)?;
        }
        expected += round as f32;
    }
    for sum in &sums {
        expect("sums", streams[0].download(sum)?, vec![expected; width * height])?;
    }
    Ok(())
}

fn a_dropped_texture_array_is_kept_for_its_last_kernel(device: &Device) -> Outcome {
    let (width, height) = (128, 64);
    let stream = device.new_stream()?;
    let mut sum = stream.zeros(width * height)?;
    for round in 1..=12 {
        let image = stream.upload_array(&vec![round as f32; width * height], [width, height])?;
        let texture = image.texture(&Sampler::new())?;
        texturing::add(
            &stream,
            Grid::cover([width, height]),
            rounds(device),
            texture,
            sum.view_2d_mut(width, height)?,
        )?;
        // On another thread, whose next array may lie where this one was.
        let other = device.clone();
        let dropped = thread::spawn(move || -> ferrogrid::Result<()> {
            drop(image);
            let stream = other.new_stream()?;
            let next = stream.upload_array(&vec![-1000.0_f32; width * height], [width, height])?;
            stream.download_array(&next).map(drop)
        });
        dropped.join().map_err(|_| "the other thread has panicked")??;
    }
    expect("sums", stream.download(&sum)?, vec![78.0; width * height])
}

fn texture_arrays_are_of_one_device(device: &Device) -> Outcome {
    let other = Device::cpu_with(CpuOptions::new().workers(2))?;
    // A peer's buffers could be used, but not its arrays, whose objects are invalid on another device.
    if !device.is_cuda() {
        other.enable_peer_access(device)?;
    }
    let (ours, theirs) = (device.new_stream()?, other.new_stream()?);
    let mut array = ours.upload_array(&[1_u32, 2, 3, 4], [2, 2])?;
    let is_mismatch = |error: &Error| matches!(error, Error::DeviceMismatch { .. });
    let refused = texturing::count(&theirs, Grid::cover([2, 2]), array.surface()?);
    expect_error("surface", refused, is_mismatch)?;
    let pixels = ours.upload_array(&[1.0_f32; 4], [2, 2])?;
    let mut sum = theirs.zeros(4)?;
    let texture = pixels.texture(&Sampler::new())?;
    let refused = texturing::add(&theirs, Grid::cover([2, 2]), 1, texture, sum.view_2d_mut(2, 2)?);
    expect_error("texture", refused, is_mismatch)?;
    expect_error("download", theirs.download_array(&array), is_mismatch)?;
    expect_error("upload", theirs.upload_into_array(&[0; 4], &mut array), is_mismatch)?;
    expect("as before", ours.download_array(&array)?, vec![1, 2, 3, 4])
}

fn extents_that_no_texture_has_are_named(device: &Device) -> Outcome {
    fn refused<const R: usize>(stream: &Stream, extent: [usize; R], axis: Axis, attribute: &str) -> Outcome {
        let limit = stream.device().attribute(attribute.parse()?)?;
        let is_it = |error: &Error| matches!(error, Error::TextureExtent { axis: found, limit: most, .. } if *found == axis && *most == limit as u32);
        let made: ferrogrid::Result<TextureArray<u8, R>> = stream.zeros_array(extent);
        let text = expect_error(attribute, made, is_it)?;
        let value = extent[axis as usize].to_string();
        names(&text, &[attribute, &axis.to_string(), &value, &limit.to_string()])
    }
    let stream = device.new_stream()?;
    refused(&stream, [0], Axis::X, "MAXIMUM_TEXTURE1D_WIDTH")?;
    refused(&stream, [usize::MAX], Axis::X, "MAXIMUM_TEXTURE1D_WIDTH")?;
    refused(&stream, [2, 0], Axis::Y, "MAXIMUM_TEXTURE2D_HEIGHT")?;
    refused(&stream, [1 << 32, 1], Axis::X, "MAXIMUM_TEXTURE2D_WIDTH")?;
    refused(&stream, [1, 1 << 32], Axis::Y, "MAXIMUM_TEXTURE2D_HEIGHT")?;
    refused(&stream, [1, 1, 0], Axis::Z, "MAXIMUM_TEXTURE3D_DEPTH")?;
    refused(&stream, [1, 1, usize::MAX], Axis::Z, "MAXIMUM_TEXTURE3D_DEPTH")?;
    // Deeper than it may be high, which is within the other limits.
    let deep = device.attribute("MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE".parse()?)? as usize;
    if deep > device.attribute("MAXIMUM_TEXTURE3D_DEPTH".parse()?)? as usize {
        expect("deep", stream.zeros_array::<u8, 3>([1, 1, deep])?.extent(), [1, 1, deep])?;
    }
    // A texture that no surface may be.
    let (texture, surface) = (
        device.attribute("MAXIMUM_TEXTURE1D_WIDTH".parse()?)? as usize,
        device.attribute("MAXIMUM_SURFACE1D_WIDTH".parse()?)? as usize,
    );
    refused(&stream, [texture + 1], Axis::X, "MAXIMUM_TEXTURE1D_WIDTH")?;
    let mut long = stream.zeros_array::<u8, 1>([texture])?;
    if texture > surface {
        let is_it = |error: &Error| matches!(error, Error::TextureExtent { what: "surface", .. });
        let text = expect_error("surface", long.surface(), is_it)?;
        names(&text, &["MAXIMUM_SURFACE1D_WIDTH", &texture.to_string(), &surface.to_string()])?;
    }
    let mut bounded = stream.zeros_array::<u8, 1>([surface.min(texture)])?;
    expect("surface", bounded.surface()?.extent(), [surface.min(texture)])?;
    expect("texture", long.texture::<u8>(&Sampler::new())?.extent(), [texture])
}

fn kernels_of_a_graph_use_texture_arrays(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?];
    let stream = &streams[0];
    let (x, before) = (stream.zeros::<f32>(12)?, stream.zeros::<f32>(12)?);
    let (sum, seen) = (stream.zeros::<f32>(12)?, stream.upload_array(&[0.25_f32; 12], [4, 3])?);
    let mut array = stream.zeros_array::<f32, 2>([4, 3])?;
    let (graph, (x, before, sum)) = stream.capture(|capture| {
        let (x, mut before, mut sum) = (capture.keep(x)?, capture.keep(before)?, capture.keep(sum)?);
        let (seen, mut array) = (capture.read_array(&seen)?, capture.write_array(&mut array)?);
        expect("extent", array.extent(), [4, 3]).unwrap();
        let (grid, nearest) = (Grid::cover([4, 3]), Sampler::new());
        // The array holds what the launch before has written; then what this one does.
        let found = before.view_2d_mut(4, 3)?;
        texturing::exchange_2d(capture, grid, x.view_2d(4, 3)?, array.surface()?, found)?;
        texturing::add(capture, grid, 1, array.texture(&nearest)?, sum.view_2d_mut(4, 3)?)?;
        texturing::add(capture, grid, 1, seen.texture(&nearest)?, sum.view_2d_mut(4, 3)?)?;
        Ok((x.key(), before.key(), sum.key()))
    })?;
    let mut graph = graph.instantiate()?;
    let row = |round: usize| (0..12).map(|i| (i * round) as f32).collect::<Vec<f32>>();
    let mut total = vec![0.0; 12];
    for (round, stream) in (1..).zip(streams.iter().cycle().take(5)) {
        stream.upload_into(&row(round), graph.view_mut(x)?)?;
        graph.launch(stream)?;
        total.iter_mut().zip(row(round)).for_each(|(total, x)| *total += x + 0.25);
        expect("what was there", stream.download(graph.view(before)?)?, row(round - 1))?;
        expect("sums", stream.download(graph.view(sum)?)?, total.clone())?;
    }
    drop(graph);
    expect("the array", streams[1].download_array(&array)?, row(5))?;
    expect("the other, as it was", stream.download_array(&seen)?, vec![0.25; 12])
}

fn a_graph_uses_the_arrays_that_it_was_given(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut array = stream.zeros_array::<u32, 2>([4, 4])?;
    let mut given = stream.zeros_array::<u32, 2>([4, 4])?;
    let grid = Grid::cover([4, 4]);
    let (graph, unknown) = stream.capture(|capture| {
        let mut given = capture.write_array(&mut given)?;
        let unknown = texturing::count(capture, grid, array.surface()?);
        for _ in 0..2 {
            texturing::count(capture, grid, given.surface()?)?;
        }
        Ok(unknown)
    })?;
    let text = expect_error("an array that the graph does not have", unknown, |error| {
        *error == GraphError::UnknownBuffer.into()
    })?;
    names(&text, &["capture.read_array", "capture.write_array"])?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    drop(graph);
    expect("counted", stream.download_array(&given)?, vec![4; 16])?;
    expect("as before", stream.download_array(&array)?, vec![0; 16])
}

fn a_graph_takes_no_slices_for_texture_arrays(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut array, sum) = (stream.zeros_array::<u32, 2>([4, 4])?, stream.zeros::<u32>(16)?);
    let mut errors = Vec::new();
    let (graph, unknown) = stream.capture(|capture| {
        let (recorded, sum): (&Stream, _) = (capture, capture.read(&sum)?);
        let unknown = recorded.copy_to_array(sum, &mut array);
        errors.push(recorded.upload_into_array(&[0; 16], &mut array).err());
        errors.push(recorded.zeros_array::<u8, 1>([4]).err());
        errors.push(recorded.download_array(capture.read_array(&array)?).err());
        Ok(unknown)
    })?;
    expect("nodes", graph.len(), 0)?;
    expect_error("an array that the graph does not have", unknown, |error| {
        *error == GraphError::UnknownBuffer.into()
    })?;
    for error in errors {
        let error = error.ok_or("recorded")?;
        let is_refused = matches!(error, Error::Graph(GraphError::NotRecordable { .. }));
        expect(&error.to_string(), is_refused, true)?;
    }
    Ok(())
}

fn foreign_kernels_take_textures_and_surfaces(device: &Device) -> Outcome {
    if !device.is_cuda() {
        return not_for_this_device("it takes no code for GPUs");
    }
    let stream = device.new_stream()?;
    let function = device.load_ptx(include_str!("../foreign/textures.ptx"))?.function("shade")?;
    let image = stream.upload_array(&[0_u8, 255, 0, 255, 0, 255], [3, 2])?;
    let mut out = stream.zeros_array::<f32, 1>([4])?;
    let sampler = Sampler::new().linear().address_mode(AddressMode::Border);
    let texture = image.texture::<f32>(&sampler)?;
    // SAFETY: these are its types, and each thread writes its own elements.
    unsafe { function.launch(&stream, Grid::new(1, 4), (texture, out.surface()?))? };
    drop(image);
    // A quarter of the way from each element to the next, then to the border, and beyond it.
    for (found, expected) in stream.download_array(&out)?.into_iter().zip([0.5, 1.5, 0.0, 0.0]) {
        expect(&format!("{found} for {expected}"), (found - expected).abs() < 0.02, true)?;
    }
    let mut elsewhere = Device::cpu().new_stream()?.zeros_array::<f32, 1>([4])?;
    // SAFETY: as above.
    let refused = unsafe { function.launch(&stream, Grid::new(1, 4), (0_u64, elsewhere.surface()?)) };
    expect_error("another device's", refused, |error| matches!(error, Error::DeviceMismatch { .. })).map(drop)
}
