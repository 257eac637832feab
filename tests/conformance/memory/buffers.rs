//! Buffers: copies, lengths, views, and the devices they belong to.

use ferrogrid::prelude::*;

use crate::language::kernels::elementwise;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("uploaded_data_are_downloaded", uploaded_data_are_downloaded),
    ("empty_buffers_are_buffers", empty_buffers_are_buffers),
    ("zeros_are_zero", zeros_are_zero),
    ("lengths_must_agree", lengths_must_agree),
    ("impossible_lengths_are_refused", impossible_lengths_are_refused),
    ("a_view_is_the_part_it_names", a_view_is_the_part_it_names),
    ("a_2d_view_must_fit", a_2d_view_must_fit),
    ("buffers_belong_to_their_device", buffers_belong_to_their_device),
    ("trimmed_devices_go_on", trimmed_devices_go_on),
    ("more_memory_than_there_is_is_a_typed_error", more_memory_than_there_is_is_a_typed_error),
];

fn uploaded_data_are_downloaded(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::new();
    for n in [1, 2, 3, 1000, 100_003] {
        let bytes: Vec<u8> = (0..n).map(|_| random.u8(..)).collect();
        let buffer = stream.upload(&bytes)?;
        expect("length", buffer.len(), n)?;
        expect("bytes", stream.download(&buffer)?, bytes)?;
    }
    Ok(())
}

fn empty_buffers_are_buffers(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.upload::<f64>(&[])?;
    expect("emptiness", buffer.is_empty(), true)?;
    stream.upload_into(&[], &mut buffer)?;
    expect("elements", stream.download(&buffer)?, vec![])
}

fn zeros_are_zero(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let used = stream.upload(&vec![u64::MAX; 5000])?;
    drop(used);
    let zeros = stream.zeros::<u64>(5000)?;
    expect("elements", stream.download(&zeros)?, vec![0; 5000])
}

fn lengths_must_agree(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.upload(&[1_u32, 2, 3])?;
    let uploaded = stream.upload_into(&[9, 9], &mut buffer);
    let text = expect_error("upload", uploaded, |error| matches!(error, Error::LengthMismatch { .. }))?;
    names(&text, &["2", "3"])?;
    let mut target = [0_u32; 4];
    let downloaded = stream.download_into(&buffer, &mut target);
    expect_error("download", downloaded, |error| matches!(error, Error::LengthMismatch { .. }))?;
    expect("elements", stream.download(&buffer)?, vec![1, 2, 3])
}

fn impossible_lengths_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let zeros = stream.zeros::<u64>(usize::MAX / 4);
    expect_error("length", zeros.map(|_| ()), |error| matches!(error, Error::SizeOverflow { .. }))?;
    Ok(())
}

fn a_view_is_the_part_it_names(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input: Vec<u32> = (0..100).collect();
    let source = stream.upload(&input)?;
    let mut target = stream.upload(&[0_u32; 50])?;
    elementwise::copy(&stream, Grid::cover(10), source.slice(20..30)?, target.slice_mut(5..15)?)?;
    let mut expected = vec![0; 50];
    expected[5..15].copy_from_slice(&input[20..30]);
    expect("elements", stream.download(&target)?, expected)?;
    let beyond = source.slice(98..101).map(|_| ());
    let text = expect_error("range", beyond, |error| matches!(error, Error::OutOfRange { .. }))?;
    names(&text, &["101", "100"])?;
    expect("the part", stream.download(source.slice(98..)?)?, vec![98, 99])
}

fn a_2d_view_must_fit(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.upload(&[0_u32; 12])?;
    buffer.view_2d_mut(4, 3)?;
    for (width, height) in [(4, 4), (13, 1), (usize::MAX, 2)] {
        let view = buffer.view_2d_mut(width, height).map(|_| ());
        expect_error("view", view, |error| matches!(error, Error::ViewTooLarge { .. }))?;
    }
    Ok(())
}

fn buffers_belong_to_their_device(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut here = stream.upload(&[1_u32, 2, 3])?;
    for other in Device::all().iter().filter(|other| *other != device) {
        let there = other.new_stream()?.upload(&[4_u32, 5, 6])?;
        let launched = elementwise::copy(&stream, Grid::cover(3), &there, &mut here);
        let text = expect_error("launch", launched, |error| matches!(error, Error::DeviceMismatch { .. }))?;
        names(&text, &[other.name(), device.name()])?;
        let downloaded = stream.download(&there);
        expect_error("download", downloaded, |error| matches!(error, Error::DeviceMismatch { .. }))?;
    }
    expect("elements", stream.download(&here)?, vec![1, 2, 3])
}

fn trimmed_devices_go_on(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let kept = stream.upload(&[1_u32, 2, 3])?;
    drop(stream.zeros::<u64>(1 << 20)?);
    stream.synchronize()?;
    device.trim_memory(0)?;
    let next = stream.zeros::<u64>(1 << 10)?;
    expect("a buffer from before", stream.download(&kept)?, vec![1, 2, 3])?;
    expect("a buffer from after", stream.download(&next)?, vec![0; 1 << 10])
}

fn more_memory_than_there_is_is_a_typed_error(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let petabyte = stream.zeros::<u64>(1 << 47).map(|_| ());
    expect_error("a petabyte", petabyte, |error| matches!(error, Error::OutOfMemory { .. }))?;
    let small = stream.upload(&[1_u32, 2])?;
    expect("a small buffer afterwards", stream.download(&small)?, vec![1, 2])
}
