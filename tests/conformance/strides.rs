//! Threads that reach more than one element each: by grid-stride loops, and 16 bytes at a time.

use ferrogrid::prelude::*;

use super::stride_kernels::{grouped, strided};
use super::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("a_grid_of_any_size_strides_over_all_elements", a_grid_of_any_size_strides_over_all_elements),
    ("an_end_beyond_all_addresses_is_not_wrapped", an_end_beyond_all_addresses_is_not_wrapped),
    ("a_plane_is_strided_over_in_both_axes", a_plane_is_strided_over_in_both_axes),
    ("groups_of_four_give_the_same_saxpy", groups_of_four_give_the_same_saxpy),
    ("groups_are_copied_whole", groups_are_copied_whole),
    ("groups_travel_by_value", groups_travel_by_value),
    ("uneven_groups_are_refused", uneven_groups_are_refused),
    ("unaligned_groups_are_refused", unaligned_groups_are_refused),
    ("no_elements_are_no_groups", no_elements_are_no_groups),
];

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

fn groups_travel_by_value(device: &Device) -> Outcome {
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

fn no_elements_are_no_groups(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let empty = stream.upload::<f32>(&[])?;
    let mut buffer = stream.upload(&[1.0_f32; 8])?;
    let nothing = buffer.slice_mut(3..3)?.as_aligned16::<4>()?;
    grouped::saxpy(&stream, Grid::new(1, 32), 2.0, empty.view().as_aligned16()?, nothing)?;
    expect("elements", stream.download(&buffer)?, vec![1.0; 8])
}
