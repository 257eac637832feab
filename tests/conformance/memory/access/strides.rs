//! Grid-stride loops, and elements of 16 bytes.

use ferrogrid::prelude::*;
use ferrogrid::{In, InOut, LaunchError, Out};

use crate::memory::access::stride_kernels::{grouped, planes, strided};
use crate::own_process::in_its_own_process;
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("a_grid_of_any_size_strides_over_all_elements", a_grid_of_any_size_strides_over_all_elements),
    ("an_end_beyond_all_addresses_is_not_wrapped", an_end_beyond_all_addresses_is_not_wrapped),
    ("a_plane_is_strided_over_in_both_axes", a_plane_is_strided_over_in_both_axes),
    ("a_block_strides_over_the_rows_of_a_plane", a_block_strides_over_the_rows_of_a_plane),
    ("a_plane_is_read_by_row_and_column", a_plane_is_read_by_row_and_column),
    ("a_plane_has_the_shape_of_its_view", a_plane_has_the_shape_of_its_view),
    // In a process of its own, as memcheck refuses the operation by which a panicking thread claims the record.
    ("a_missing_row_is_a_panic", |device| in_its_own_process(device, "a_missing_row_is_a_panic")),
    ("a_slice_for_more_than_32_bits_needs_a_wide_kernel", a_slice_for_more_than_32_bits_needs_a_wide_kernel),
    ("a_wide_kernel_takes_short_slices", a_wide_kernel_takes_short_slices),
    ("slices_of_the_same_length_are_added", slices_of_the_same_length_are_added),
    ("slices_of_another_length_are_refused", slices_of_another_length_are_refused),
    ("planes_of_another_shape_are_refused", planes_of_another_shape_are_refused),
    ("groups_of_four_give_the_same_saxpy", groups_of_four_give_the_same_saxpy),
    ("groups_are_copied_whole", groups_are_copied_whole),
    ("groups_are_passed_by_value", groups_are_passed_by_value),
    ("uneven_groups_are_refused", uneven_groups_are_refused),
    ("unaligned_groups_are_refused", unaligned_groups_are_refused),
    ("an_empty_buffer_has_no_groups", an_empty_buffer_has_no_groups),
];

/// Cases that run in a separate process.
pub(crate) const APART: &[Case] = &[("a_missing_row_is_a_panic", a_missing_row_is_a_panic)];

fn a_grid_of_any_size_strides_over_all_elements(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (blocks, threads) in [(1, 1), (1, 32), (3, 100), (8, 256)] {
        for n in [0_usize, 1, 31, 299, 300, 301, 997, 2048, 10_007] {
            let input: Vec<u32> = (0..n as u32).collect();
            let mut data = stream.upload(&input)?;
            strided::increment(&stream, Grid::new(blocks, threads), &mut data)?;
            expect("elements", stream.download(&data)?, (1..=n as u32).collect())?;
        }
    }
    Ok(())
}

fn an_end_beyond_all_addresses_is_not_wrapped(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for end in [usize::MAX, usize::MAX - 1, 1 << 63] {
        let mut data = stream.upload(&[0_u32; 100])?;
        strided::first_of_many(&stream, Grid::new(2, 64), end, &mut data)?;
        expect("elements", stream.download(&data)?, (1..=100).collect())?;
    }
    Ok(())
}

fn a_plane_is_strided_over_in_both_axes(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (width, height) in [(1, 1), (100, 3), (3, 100), (33, 65), (8, 0)] {
        for grid in [Grid::new([1, 1], [1, 1]), Grid::new([2, 3], [16, 4]), Grid::new([1, 1], [7, 5])] {
            let mut plane = stream.upload(&vec![5_u32; width * height])?;
            strided::number_plane(&stream, grid, plane.view_2d_mut(width, height)?)?;
            let expected = (0..width * height).map(|place| 5 + place as u32).collect();
            expect("places", stream.download(&plane)?, expected)?;
        }
    }
    Ok(())
}

fn a_block_strides_over_the_rows_of_a_plane(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (width, height, threads) in [(1, 1, 1), (100, 7, 32), (1000, 3, 100), (4099, 2, 256), (0, 3, 64)] {
        let elements: Vec<u32> = (0..width * height).map(|i| (i as u32).wrapping_mul(0x9e37_79b9)).collect();
        let input = stream.upload(&elements)?;
        let mut sums = stream.upload(&vec![7_u32; height])?;
        let grid = Grid::new(height as u32, threads);
        planes::sum_rows(&stream, grid, &input, width, sums.view_2d_mut(1, height)?)?;
        let sum = |row: usize| elements[row * width..][..width].iter().fold(0_u32, |a, b| a.wrapping_add(*b));
        expect("sums", stream.download(&sums)?, (0..height).map(sum).collect())?;
    }
    Ok(())
}

fn a_plane_is_read_by_row_and_column(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (width, height) in [(1, 1), (3, 3), (64, 9), (33, 70)] {
        let elements: Vec<f32> = (0..width * height).map(|i| (i * i % 101) as f32).collect();
        let input = stream.upload(&elements)?;
        let mut output = stream.zeros::<f32>(width * height)?;
        let grid = Grid::cover([width, height]);
        planes::blur(&stream, grid, input.view_2d(width, height)?, output.view_2d_mut(width, height)?)?;
        let at = |row: usize, column: usize| elements[row * width + column];
        let expected = (0..width * height).map(|i| match [i / width, i % width] {
            [row, column] if row == 0 || column == 0 || row + 1 == height || column + 1 == width => {
                at(row, column)
            }
            [row, column] => {
                (at(row - 1, column) + at(row + 1, column) + at(row, column - 1) + at(row, column + 1)) / 4.0
            }
        });
        let expected: Vec<f32> = expected.collect();
        expect("means", stream.download(&output)?, expected.clone())?;
        let mut of_host = vec![0.0; width * height];
        let (from, to) = (In(&elements).into_2d(width, height), Out(&mut of_host).into_2d(width, height));
        planes::blur(&stream, grid, from, to)?;
        expect("means of slices of the host", of_host, expected)?;
    }
    Ok(())
}

fn a_plane_has_the_shape_of_its_view(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut input = stream.upload(&[1_u32, 9, 3, 4, 5, 2, 77, 78])?;
    let (mut shape, mut greatest) = (stream.zeros::<u64>(2)?, stream.zeros::<u32>(4)?);
    let launch = |x: DeviceView<'_, u32, 2>, shape: &mut DeviceBuffer<u64>, y: &mut DeviceBuffer<u32>| {
        planes::greatest_of_rows(&stream, Grid::new(1, 32), x, shape.as_atomic(), y.as_atomic())
    };
    launch(input.slice(..6)?.into_2d(3, 2)?, &mut shape, &mut greatest)?;
    expect("shape", stream.download(&shape)?, vec![3, 2])?;
    expect("greatest", stream.download(&greatest)?, vec![9, 5, 0, 0])?;
    launch(input.view_2d(2, 4)?, &mut shape, &mut greatest)?;
    expect("greatest", stream.download(&greatest)?, vec![9, 5, 5, 78])?;
    let mut sums = stream.zeros::<u32>(300)?;
    let ones = stream.upload(&[1_u32; 600])?;
    planes::sums_of_rows(&stream, Grid::cover(300), ones.view_2d(2, 299)?, &mut sums)?;
    let expected = (0..300).map(|row| if row < 299 { 2 } else { 0 }).collect();
    expect("sums of rows", stream.download(&sums)?, expected)?;
    launch(input.view_2d(0, 7)?, &mut shape, &mut greatest)?;
    expect("shape without columns", stream.download(&shape)?, vec![0, 7])?;
    let written = input.view_2d_mut(4, 2)?;
    planes::greatest_of_rows(&stream, Grid::new(1, 32), &written, shape.as_atomic(), greatest.as_atomic())?;
    expect("a view to write can be read", stream.download(&shape)?, vec![4, 2])?;
    let is_too_large = |error: &Error| matches!(error, Error::ViewTooLarge { .. });
    let text = expect_error("9 of 8 elements", input.view_2d(3, 3), is_too_large)?;
    names(&text, &["3", "8"])?;
    expect_error("a product that wraps", input.view_2d(usize::MAX, 2), is_too_large)?;
    let mut y = stream.zeros::<f32>(4)?;
    let short = In(&[0.0_f32; 3]).into_2d(2, 2);
    let launched = planes::blur(&stream, Grid::cover([2, 2]), short, y.view_2d_mut(2, 2)?);
    expect_error("3 of 4 elements of the host", launched, is_too_large)?;
    Ok(())
}

fn a_missing_row_is_a_panic(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input = stream.upload(&[1_u32, 2, 3, 4, 5, 6, 7, 8, 9])?;
    let mut output = stream.upload(&[0_u32])?;
    planes::first_of_row(&stream, Grid::cover(1), &input, 1, &mut output)?;
    expect("row 1", stream.download(&output)?, vec![5])?;
    planes::first_of_row(&stream, Grid::cover(1), &input, 2, &mut output)?;
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    let text = expect_error("row 2", stream.synchronize(), is_panic)?;
    names(&text, &["the len is 2 but the index is 2", "stride_kernels.rs"])
}

fn a_slice_for_more_than_32_bits_needs_a_wide_kernel(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let length = 1_usize << 32;
    let mut data = match stream.uninit::<u8>(length) {
        Err(Error::OutOfMemory { .. }) => return not_for_this_device("it has less than 4 GiB"),
        data => data?,
    };
    let mut answer = stream.upload(&[7_u32])?;
    let launched = planes::reaches(&stream, Grid::cover(1), length - 1, &mut data, &mut answer);
    let text = expect_error("too long", launched, is_too_long)?;
    names(&text, &["reaches", "`data`", "4294967296", "4294967295", "#[kernel(wide)]"])?;
    planes::reaches(&stream, Grid::cover(1), length - 2, data.slice_mut(1..)?, &mut answer)?;
    expect("the last place", stream.download(&answer)?, vec![1])?;
    planes::reaches(&stream, Grid::cover(1), length - 1, data.slice_mut(1..)?, &mut answer)?;
    expect("beyond the last place", stream.download(&answer)?, vec![0])?;
    planes::reaches_widely(&stream, Grid::cover(1), length - 1, &mut data, &mut answer)?;
    expect("the last place of all", stream.download(&answer)?, vec![1])?;
    planes::reaches_widely(&stream, Grid::cover(1), length, &mut data, &mut answer)?;
    expect("beyond all places", stream.download(&answer)?, vec![0])?;
    // 2^16 rows of 2^16 columns: the limit is the number of elements.
    let plane = data.view_2d_mut(1 << 16, 1 << 16)?;
    let text = expect_error(
        "a large plane",
        planes::rows(&stream, Grid::cover(1), plane, &mut answer),
        is_too_long,
    )?;
    names(&text, &["rows", "`data`", "4294967296", "4294967295", "#[kernel(wide)]"])?;
    planes::rows(&stream, Grid::cover(1), data.view_2d_mut(1 << 16, (1 << 16) - 1)?, &mut answer)?;
    expect("rows", stream.download(&answer)?, vec![(1 << 16) - 1])?;
    planes::rows_widely(&stream, Grid::cover(1), data.view_2d_mut(1 << 16, 1 << 16)?, &mut answer)?;
    expect("all rows", stream.download(&answer)?, vec![1 << 16])
}

fn is_too_long(error: &Error) -> bool {
    matches!(error, Error::Launch(LaunchError::SliceTooLong { .. }))
}

fn slices_of_the_same_length_are_added(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [0_usize, 1, 31, 256, 1000] {
        let data: Vec<u32> = (0..n as u32).collect();
        let x = stream.upload(&data)?;
        let mut y = stream.upload(&data)?;
        // More threads than elements.
        planes::add(&stream, Grid::new(5, 256), &x, &mut y)?;
        let doubled: Vec<u32> = data.iter().map(|value| 2 * value).collect();
        expect("sums", stream.download(&y)?, doubled.clone())?;
        let mut host = data.clone();
        planes::add(&stream, Grid::new(5, 256), In(&data), InOut(&mut host))?;
        expect("sums of the host's", host, doubled)?;
    }
    for (width, height) in [(1, 1), (33, 9), (5, 70)] {
        let data: Vec<u32> = (0..(width * height) as u32).collect();
        let x = stream.upload(&data)?;
        let mut y = stream.upload(&vec![7_u32; width * height])?;
        planes::pull_up(
            &stream,
            Grid::new([3, 9], [32, 8]),
            x.view_2d(width, height)?,
            y.view_2d_mut(width, height)?,
        )?;
        let below = |place: usize| data.get(place + width).copied().unwrap_or(data[place]);
        expect("the row below", stream.download(&y)?, (0..width * height).map(below).collect())?;
    }
    Ok(())
}

fn slices_of_another_length_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut y = stream.upload(&[7_u32; 8])?;
    for length in [0_usize, 7, 9] {
        let x = stream.upload(&vec![1_u32; length])?;
        let launched = planes::add(&stream, Grid::cover(8), &x, &mut y);
        let text = expect_error("another length", launched, is_of_another_shape)?;
        names(&text, &["planes::add", "`x`", &length.to_string(), "`y` 8", "same_shape(x, y)"])?;
    }
    let launched = planes::add(&stream, Grid::cover(8), In(&[1; 9]), &mut y);
    expect_error("another length on the host", launched, is_of_another_shape)?;
    expect("nothing has run", stream.download(&y)?, vec![7; 8])
}

fn planes_of_another_shape_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&[1_u32, 2, 3, 4, 5, 6])?;
    let mut y = stream.upload(&[10_u32; 6])?;
    let other = x.view_2d(1, 1)?;
    let launched =
        planes::add_planes(&stream, Grid::cover([3, 3]), x.view_2d(3, 2)?, other, y.view_2d_mut(2, 3)?);
    let text = expect_error("as many elements in another shape", launched, is_of_another_shape)?;
    names(&text, &["planes::add_planes", "`x` has 3 x 2 elements", "`y` 2 x 3"])?;
    planes::add_planes(&stream, Grid::cover([3, 3]), x.view_2d(3, 2)?, other, y.view_2d_mut(3, 2)?)?;
    expect("sums", stream.download(&y)?, vec![12, 13, 14, 15, 16, 17])
}

fn is_of_another_shape(error: &Error) -> bool {
    matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }))
}

fn a_wide_kernel_takes_short_slices(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data = stream.uninit::<u8>(3)?;
    let mut answer = stream.upload(&[7_u32; 2])?;
    for (at, expected) in [(2, 1), (3, 0), (usize::MAX, 0)] {
        planes::reaches_widely(&stream, Grid::cover(2), at, &mut data, &mut answer)?;
        expect("whether there is such a place", stream.download(&answer)?, vec![expected; 2])?;
    }
    Ok(())
}

fn groups_of_four_give_the_same_saxpy(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [4_usize, 64, 4 * 997, 65_536] {
        let mut random = fastrand::Rng::with_seed(n as u64);
        let x: Vec<f32> = (0..n).map(|_| random.f32() - 0.5).collect();
        let y: Vec<f32> = (0..n).map(|_| random.f32() - 0.5).collect();
        let device_x = stream.upload(&x)?;
        let mut device_y = stream.upload(&y)?;
        let (from, to) = (device_x.view().as_aligned16::<4>()?, device_y.view_mut().as_aligned16::<4>()?);
        grouped::saxpy(&stream, Grid::new(4, 128), 1.5, from, to)?;
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| y + 1.5 * x).collect();
        expect("elements", stream.download(&device_y)?, expected)?;
    }
    Ok(())
}

fn groups_are_copied_whole(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input: Vec<u16> = (0..8 * 1000).map(|i| i * 7).collect();
    let source = stream.upload(&input)?;
    let mut target = stream.upload(&vec![0_u16; input.len()])?;
    let (from, to) =
        (source.slice(8..)?.as_aligned16::<8>()?, target.slice_mut(..7992)?.as_aligned16::<8>()?);
    grouped::copy(&stream, Grid::cover(999), from, to)?;
    let expected = input[8..].iter().copied().chain([0; 8]).collect();
    expect("elements", stream.download(&target)?, expected)
}

fn groups_are_passed_by_value(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut pairs = stream.upload(&[1.0_f64, 2.0, 3.0, 4.0])?;
    grouped::swap_pairs(&stream, Grid::cover(2), [10.0, 100.0].into(), pairs.view_mut().as_aligned16()?)?;
    expect("pairs", stream.download(&pairs)?, vec![20.0, 100.0, 40.0, 300.0])
}

fn uneven_groups_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.upload(&[0_f32; 10])?;
    let uneven = |error: &Error| matches!(error, Error::UnevenGroups { length: 10, group: 4 });
    let text = expect_error("a view", buffer.view().as_aligned16::<4>(), uneven)?;
    names(&text, &["10", "2 would be left"])?;
    expect_error("a mutable view", buffer.view_mut().as_aligned16::<4>(), uneven)?;
    Ok(())
}

fn unaligned_groups_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.upload(&[0_f32; 12])?;
    let unaligned = |error: &Error| matches!(error, Error::UnalignedGroups { group: 4, excess: 8 });
    expect_error("a view", buffer.slice(2..10)?.as_aligned16::<4>(), unaligned)?;
    expect_error("a mutable view", buffer.slice_mut(6..10)?.as_aligned16::<4>(), unaligned)?;
    expect("aligned groups", buffer.slice(4..12)?.as_aligned16::<4>()?.len(), 2)
}

fn an_empty_buffer_has_no_groups(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let empty = stream.upload::<f32>(&[])?;
    let mut buffer = stream.upload(&[1.0_f32; 8])?;
    let nothing = buffer.slice_mut(3..3)?.as_aligned16::<4>()?;
    grouped::saxpy(&stream, Grid::new(1, 32), 2.0, empty.view().as_aligned16()?, nothing)?;
    expect("elements", stream.download(&buffer)?, vec![1.0; 8])
}
