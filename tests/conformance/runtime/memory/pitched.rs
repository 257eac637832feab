//! Pitched rows, compared with the same on the host.

use ferrogrid::__private::device::DeviceCopy;
use ferrogrid::{Device, Error};

use crate::runtime::{Case, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("rectangles_are_copied_within_the_device", rectangles_are_copied_within_the_device),
    ("rectangles_are_copied_to_and_from_the_host", rectangles_are_copied_to_and_from_the_host),
    ("strides_are_copied", strides_are_copied),
    ("a_single_row_may_have_any_pitch", a_single_row_may_have_any_pitch),
    ("rows_of_a_pitched_buffer_are_aligned", rows_of_a_pitched_buffer_are_aligned),
    ("rows_must_be_contiguous", rows_must_be_contiguous),
    ("shapes_of_copies_must_agree", shapes_of_copies_must_agree),
];

fn image(width: usize, height: usize) -> Vec<u16> {
    (0..width * height).map(|index| index as u16).collect()
}

/// Copies a rectangle between two images with pitches.
fn copy_on_host(source: (&[u16], usize), target: (&mut [u16], usize), width: usize, height: usize) {
    for row in 0..height {
        let (from, to) = (row * source.1, row * target.1);
        target.0[to..to + width].copy_from_slice(&source.0[from..from + width]);
    }
}

fn rectangles_are_copied_within_the_device(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (source, mut expected) = (image(37, 20), vec![9_u16; 23 * 30]);
    let from = stream.upload(&source)?;
    let mut to = stream.upload(&expected)?;
    for (width, height, left, top) in [(5, 4, 3, 2), (1, 20, 36, 0), (23, 1, 0, 19), (13, 7, 24, 13)] {
        let part = from.view().pitched(37, 20, 37)?.slice(left..left + width, top..top + height)?;
        assert_eq!((part.width(), part.height(), part.pitch()), (width, height, 37));
        let there = to.slice_mut(40..)?.pitched(23, 20, 23)?.slice(..width, ..height)?;
        stream.copy_2d(part, there)?;
        copy_on_host((&source[top * 37 + left..], 37), (&mut expected[40..], 23), width, height);
        assert_eq!(stream.download(&to)?, expected, "{width} x {height}");
    }
    Ok(())
}

fn rectangles_are_copied_to_and_from_the_host(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let source = image(19, 11);
    let mut buffer = stream.zeros_pitched::<u16>(13, 9)?;
    stream.upload_2d(&source[20..], 19, buffer.view_mut())?;
    let (mut found, mut expected) = (vec![1_u16; 15 * 9], vec![1_u16; 15 * 9]);
    stream.download_2d(buffer.view(), &mut found, 15)?;
    copy_on_host((&source[20..], 19), (&mut expected, 15), 13, 9);
    assert_eq!(found, expected, "what lies between the rows stays");
    Ok(())
}

fn strides_are_copied(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let source = stream.upload(&(0_u32..100).collect::<Vec<_>>())?;
    let mut target = stream.zeros::<u32>(34)?;
    stream.copy_2d(source.view().step_by(3)?, target.view_mut().step_by(1)?)?;
    assert_eq!(stream.download(&target)?, (0..100).step_by(3).collect::<Vec<_>>());
    let mut spread = stream.zeros::<u32>(67)?;
    stream.copy_2d(target.view().step_by(1)?, spread.view_mut().step_by(2)?)?;
    let spread = stream.download(&spread)?;
    assert!(spread.iter().step_by(2).eq((0..100).step_by(3).collect::<Vec<_>>().iter()));
    assert!(spread.iter().skip(1).step_by(2).all(|value| *value == 0));
    Ok(())
}

fn a_single_row_may_have_any_pitch(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let source = stream.upload(&[1_u64, 2, 3])?;
    let mut target = stream.zeros::<u64>(2)?;
    let row = source.slice(1..)?.pitched(2, 1, usize::MAX)?;
    stream.copy_2d(row, target.view_mut().pitched(2, 1, usize::MAX)?)?;
    assert_eq!(stream.download(&target)?, [2, 3]);
    let mut host = [0; 2];
    stream.download_2d(row, &mut host, usize::MAX)?;
    assert_eq!(host, [2, 3]);
    Ok(())
}

fn rows_of_a_pitched_buffer_are_aligned(device: &Device) -> Outcome {
    fn check<T: DeviceCopy + bytemuck::Zeroable>(device: &Device, width: usize) -> ferrogrid::Result<usize> {
        let buffer = device.new_stream()?.zeros_pitched::<T>(width, 3)?;
        let (view, rows) = (buffer.view(), buffer.as_buffer());
        assert!(view.pitch() >= width && (view.pitch() * size_of::<T>()).is_multiple_of(256));
        assert_eq!((view.width(), view.height(), rows.len()), (width, 3, 3 * view.pitch()));
        assert!(rows.is_empty() || rows.as_device_ptr().as_raw().addr().is_multiple_of(256));
        Ok(view.pitch())
    }
    assert_eq!(check::<u8>(device, 1)?, 256);
    assert_eq!(check::<f32>(device, 65)?, 128);
    assert_eq!(check::<[u8; 3]>(device, 256)?, 256);
    assert_eq!(check::<[u8; 3]>(device, 257)?, 512);
    assert_eq!(check::<u128>(device, 0)?, 0);
    let error = device.new_stream()?.zeros_pitched::<u8>(usize::MAX - 1, 2).unwrap_err();
    assert!(matches!(error, Error::SizeOverflow { .. }), "{error}");
    Ok(())
}

fn rows_must_be_contiguous(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.zeros::<u8>(100)?;
    for (width, height, pitch) in
        [(10, 11, 10), (11, 2, 10), (10, 2, 91), (2, usize::MAX, usize::MAX), (1, 3, 50)]
    {
        let expected = Error::PitchedView { width, height, pitch, length: 100 };
        assert_eq!(buffer.view().pitched(width, height, pitch).unwrap_err(), expected);
        assert_eq!(buffer.view_mut().pitched(width, height, pitch).unwrap_err(), expected);
    }
    for (width, height, pitch) in [(10, 10, 10), (10, 2, 90), (100, 1, usize::MAX), (0, 1000, 0), (5, 0, 5)] {
        buffer.view().pitched(width, height, pitch)?;
    }
    assert!(buffer.view().step_by(0).is_err());
    assert_eq!(buffer.view().step_by(usize::MAX)?.height(), 1);
    let rows = buffer.view().pitched(10, 10, 10)?;
    assert_eq!(rows.slice(5..11, ..).unwrap_err(), Error::OutOfRange { start: 5, end: 11, length: 10 });
    assert_eq!(rows.slice(.., 9..12).unwrap_err(), Error::OutOfRange { start: 9, end: 12, length: 10 });
    Ok(())
}

fn shapes_of_copies_must_agree(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.zeros::<u8>(100)?;
    let other = stream.zeros::<u8>(100)?;
    let (source, target) = (other.view().pitched(5, 4, 10)?, buffer.view_mut().pitched(4, 5, 10)?);
    let expected = Error::ShapeMismatch { operation: "copy_2d", from: [5, 4], to: [4, 5] };
    assert_eq!(stream.copy_2d(source, target).unwrap_err(), expected);
    let target = buffer.view_mut().pitched(4, 5, 10)?;
    let error = stream.upload_2d(&[0; 43], 10, target).unwrap_err();
    assert_eq!(error, Error::PitchedView { width: 4, height: 5, pitch: 10, length: 43 });
    let error = stream.download_2d(other.view().pitched(4, 5, 10)?, &mut [0; 50], 3).unwrap_err();
    assert_eq!(error, Error::PitchedView { width: 4, height: 5, pitch: 3, length: 50 });
    Ok(())
}
