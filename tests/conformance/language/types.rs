//! A program's own types in kernels: what `#[derive(DeviceCopy)]` provides; and launches whose block shape
//! and instance come from the kernel.

use std::num::NonZero;

use ferrogrid::LaunchError;
use ferrogrid::bytemuck;
use ferrogrid::prelude::*;

use crate::block::clusters;
use crate::language::type_kernels::own::{self, Complex, Found, Phase, Tagged, Tally};
use crate::language::type_kernels::shaped;
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    (
        "derived_structs_and_tuples_go_through_shared_memory",
        derived_structs_and_tuples_go_through_shared_memory,
    ),
    ("derived_structs_and_tuples_are_reduced", derived_structs_and_tuples_are_reduced),
    ("values_of_all_shapes_are_shuffled", values_of_all_shapes_are_shuffled),
    (
        "enums_are_zeroed_and_options_of_nonzero_numbers_are_elements",
        enums_are_zeroed_and_options_of_nonzero_numbers_are_elements,
    ),
    ("derived_structs_are_zeroed_and_cast", derived_structs_are_zeroed_and_cast),
    ("structs_of_atomics_are_shared", structs_of_atomics_are_shared),
    ("options_are_elements_fields_and_values", options_are_elements_fields_and_values),
    ("structs_of_atomics_are_elements", structs_of_atomics_are_elements),
    ("derived_structs_are_read_across_a_cluster", derived_structs_are_read_across_a_cluster),
    ("a_block_is_made_of_constants", a_block_is_made_of_constants),
    ("a_kernel_has_a_grid_function", a_kernel_has_a_grid_function),
    ("a_volume_is_read_by_layer_row_and_column", a_volume_is_read_by_layer_row_and_column),
    ("generic_code_of_the_host_launches_generic_kernels", generic_code_of_the_host_launches_generic_kernels),
];

fn tagged(i: usize) -> Tagged {
    Tagged { value: i as f32 * 0.5, tag: (i % 251) as u8, pair: (i as u8, 1000 + i as u16) }
}

fn derived_structs_and_tuples_go_through_shared_memory(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let pair = |i: usize| (Complex { re: i as f64, im: -(i as f64) }, i as u8);
    let mut x = stream.upload(&(0..128).map(tagged).collect::<Vec<_>>())?;
    let mut y = stream.upload(&(0..128).map(pair).collect::<Vec<_>>())?;
    own::opposite(&stream, Grid::blocks(2), &mut x, &mut y)?;
    expect("structs", stream.download(&x)?, (0..128).map(|i| tagged(i ^ 63)).collect())?;
    expect("tuples", stream.download(&y)?, (0..128).map(|i| pair(i ^ 63)).collect())
}

fn derived_structs_and_tuples_are_reduced(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    // Turns by 90 degrees, 90 of them in the first block and 96 in the second; one of them doubles.
    let mut numbers = vec![Complex { re: 0.0_f32, im: 1.0 }; 186];
    numbers[17] = Complex { re: 2.0, im: 0.0 };
    numbers[120] = Complex { re: 3.0, im: 0.0 };
    let x = stream.upload(&numbers)?;
    let mut y = stream.upload(&[(Complex { re: 0.0, im: 0.0 }, 0); 2])?;
    own::product(&stream, own::product::grid(2), &x, y.view_2d_mut(1, 2)?)?;
    let turned = |re, im| Complex { re, im };
    // 95 turns are three, 89 turns of the second block's 90 numbers are one.
    expect("products", stream.download(&y)?, vec![(turned(0.0, -2.0), 17), (turned(0.0, 3.0), 120)])
}

fn values_of_all_shapes_are_shuffled(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&(0..32).map(tagged).collect::<Vec<_>>())?;
    let mut y = stream.upload(&[tagged(99); 32])?;
    let mut z = stream.upload(&[(0_u32, [0_u8; 3]); 32])?;
    own::neighbours(&stream, Grid::blocks(1), &x, &mut y, &mut z)?;
    expect("structs", stream.download(&y)?, (0..32).map(|i| tagged(i ^ 1)).collect())?;
    let expected = |rank: u32| match rank % 4 {
        // Their neighbours hold odd numbers, and `false`.
        0 | 2 => (u32::MAX, [0; 3]),
        _ => (rank - 1, [rank as u8 - 1, 1, 2]),
    };
    expect("options", stream.download(&z)?, (0..32).map(expected).collect())
}

fn enums_are_zeroed_and_options_of_nonzero_numbers_are_elements(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let tickets = stream.upload(&[None, NonZero::new(1), NonZero::new(2), None, NonZero::new(u32::MAX)])?;
    let mut phases = stream.zeros::<Phase>(5)?;
    own::phases(&stream, own::phases::grid(5), &tickets, &mut phases)?;
    let (waiting, running) = (Phase::Waiting, Phase::Running);
    expect("phases", stream.download(&phases)?, vec![waiting, waiting, running, waiting, running])?;
    let numbers = phases.view().cast::<u16>()?;
    expect("numbers", stream.download(numbers)?, vec![0, 0, 700, 0, 700])
}

fn derived_structs_are_zeroed_and_cast(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let zero = Tagged { value: 0.0, tag: 0, pair: (0, 0) };
    expect("padded", stream.download(&stream.zeros::<Tagged>(3)?)?, vec![zero; 3])?;
    let mut numbers = stream.upload(&[1.0_f32, 2.0, 3.0, 4.0])?;
    let complex = stream.download(numbers.view().cast::<Complex<f32>>()?)?;
    expect("complex", complex, vec![Complex { re: 1.0, im: 2.0 }, Complex { re: 3.0, im: 4.0 }])?;
    stream.fill_into(Complex { re: 5.0, im: 6.0 }, numbers.view_mut().cast::<Complex<f32>>()?)?;
    let numbers = stream.download(&numbers)?;
    expect("numbers", bytemuck::cast_slice::<f32, Complex<f32>>(&numbers)[1], Complex { re: 5.0, im: 6.0 })
}

fn structs_of_atomics_are_shared(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&(0..60).collect::<Vec<u32>>())?;
    let mut y = stream.zeros::<[f32; 3]>(4)?;
    own::bins(&stream, Grid::blocks(1), &x, y.view_2d_mut(4, 1)?)?;
    let expected = |bin: u32| {
        let sum = (0..15).map(|k| 4 * k + bin).sum::<u32>() as f32;
        [15.0, sum, 2.0 * sum]
    };
    expect("bins", stream.download(&y)?, (0..4).map(expected).collect())
}

fn options_are_elements_fields_and_values(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let numbers = [None, Some(0.0), Some(2.5), None, Some(f32::NEG_INFINITY)];
    let x = stream.upload(&numbers)?;
    let before = |i: u32| Found {
        pair: Some((9, 9.0)),
        complex: i.is_multiple_of(2).then_some(Complex { re: 7.0, im: 7.0 }),
        above: Some(true),
    };
    for limit in [None, Some(-1.0)] {
        let mut y = stream.upload(&[0, 1, 2, 3, 4].map(before))?;
        own::find(&stream, Grid::cover(5), limit, &x, &mut y)?;
        let expected = |i: u32| {
            let x = numbers[i as usize];
            let found = x.filter(|&x| limit.is_none_or(|limit| x > limit));
            Found {
                pair: found.map(|x| (i as u8, x as f64)),
                complex: found.map(|im| Complex { re: 0.0, im }).or(before(i).complex),
                above: x.zip(limit).map(|(x, limit)| x > limit),
            }
        };
        expect("found", stream.download(&y)?, (0..5).map(expected).collect())?;
    }
    expect("none", stream.download(&stream.upload(&[None::<(u8, f64)>; 3])?)?, vec![None; 3])
}

fn structs_of_atomics_are_elements(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let numbers: Vec<i64> = (0..1000).map(|k| k * 7 - 3000).collect();
    let x = stream.upload(&numbers)?;
    let fresh = |weight| Tally { weight, count: 0, sums: [0.0; 2], greatest: i64::MIN };
    let (mut tallies, mut on_host) = (stream.upload(&[1, 2, 3].map(fresh))?, [1, 2, 3].map(fresh));
    own::tally(&stream, Grid::cover(1000), &x, tallies.as_atomic())?;
    own::tally(&stream, Grid::cover(1000), &x, ferrogrid::InOut(&mut on_host))?;
    let expected = |weight: u16| {
        let of_this = numbers.iter().filter(|x| x.rem_euclid(3) == weight as i64 - 1);
        let sum = of_this.clone().sum::<i64>() as f32;
        let greatest = *of_this.clone().max().unwrap();
        Tally { weight, count: of_this.count() as u32, sums: [sum, sum * weight as f32], greatest }
    };
    expect("tallies", stream.download(&tallies)?, [1, 2, 3].map(expected).to_vec())?;
    expect("on the host", on_host, [1, 2, 3].map(expected))
}

fn derived_structs_are_read_across_a_cluster(device: &Device) -> Outcome {
    clusters::ready(device, own::across::kernel())?;
    let stream = device.new_stream()?;
    let pair = |i: usize| (Complex { re: i as f32, im: 0.5 }, i as u8);
    let mut x = stream.upload(&(0..64).map(pair).collect::<Vec<_>>())?;
    own::across(&stream, Grid::blocks(2), &mut x)?;
    expect("other block's", stream.download(&x)?, (0..64).map(|i| pair(i ^ 32)).collect())
}

fn a_block_is_made_of_constants(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    expect("kernel", shaped::threads::kernel::<u32>().block(), Some([64, 1, 1]))?;
    expect("constant", (shaped::threads::BLOCK, shaped::transpose::BLOCK), ([64, 1, 1], [32, 4, 1]))?;
    let mut y = stream.zeros::<f64>(100)?;
    shaped::threads(&stream, Grid::cover(100), &mut y)?;
    expect("threads", stream.download(&y)?, vec![64.0; 100])?;
    let refused = shaped::threads(&stream, Grid::new(1, 32), &mut y);
    match refused {
        Err(Error::Launch(LaunchError::BlockMismatch {
            required: [64, 1, 1], found: [32, 1, 1], ..
        })) => Ok(()),
        other => Err(format!("another block: {other:?}").into()),
    }
}

fn a_kernel_has_a_grid_function(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    expect("threads", shaped::threads::grid(100), Grid::cover(100).with_block(64))?;
    expect("without a block", shaped::scale::grid(7), Grid::cover(7))?;
    let (width, height) = (70, 45);
    let x = stream.upload(&(0..width * height).map(|x| x as u32).collect::<Vec<_>>())?;
    let mut y = stream.zeros::<u32>(width * height)?;
    // Tiles of the transposed plane.
    expect("tiles", shaped::transpose::grid([45, 70]), Grid::new([2, 3], [32, 4]))?;
    let grid = shaped::transpose::grid([height, width]);
    shaped::transpose(&stream, grid, x.view_2d(width, height)?, y.view_2d_mut(height, width)?)?;
    let transposed = (0..width).flat_map(|row| (0..height).map(move |column| (column * width + row) as u32));
    expect("transposed", stream.download(&y)?, transposed.collect())?;
    let mut sums = stream.zeros::<u32>(height)?;
    let rows = shaped::sums::grid(height);
    shaped::sums(&stream, rows, x.view_2d(width, height)?, sums.view_2d_mut(1, height)?)?;
    let sum = |row: usize| (0..width).map(|column| (row * width + column) as u32).sum();
    expect("sums", stream.download(&sums)?, (0..height).map(sum).collect())
}

fn a_volume_is_read_by_layer_row_and_column(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for [width, height, depth] in [[9, 10, 11], [8, 8, 8], [1, 1, 5], [17, 1, 2]] {
        let numbers: Vec<u32> = (0..(width * height * depth) as u32).collect();
        let x = stream.upload(&numbers)?;
        let mut y = stream.zeros::<u32>(numbers.len())?;
        let grid = shaped::stencil::grid([width, height, depth]);
        shaped::stencil(
            &stream,
            grid,
            x.view_3d(width, height, depth)?,
            y.view_3d_mut(width, height, depth)?,
        )?;
        let expected = |i: usize| {
            let area = width * height;
            let beside = [i.checked_sub(area), Some(i), Some(i + area)];
            let column: u32 = beside.into_iter().flatten().filter_map(|i| numbers.get(i)).sum();
            let row = i / width * width;
            column + numbers[row..row + width].iter().sum::<u32>()
        };
        expect("stencil", stream.download(&y)?, (0..numbers.len()).map(expected).collect())?;
        expect("volume", x.view_3d(width, height, depth + 1).is_err(), true)?;
    }
    Ok(())
}

/// x <- factor^(N + 3) * x, for all instances of the kernel: the bound implies everything that a buffer needs.
fn scaled<T, const N: usize>(stream: &Stream, factor: T, x: &mut DeviceBuffer<T>) -> ferrogrid::Result<Vec<T>>
where
    T: shaped::scale::Instance<N> + shaped::scale::Instance<3>,
{
    shaped::scale::<T, N>(stream, shaped::scale::grid(x.len()), factor, &mut *x)?;
    shaped::scale::<T, 3>(stream, shaped::scale::grid(x.len()), factor, &mut *x)?;
    stream.download(&*x)
}

/// Adds N twice.
fn added<const N: u32>(stream: &Stream, x: &mut DeviceBuffer<u32>) -> ferrogrid::Result<()>
where
    (): shaped::add::Instance<N>,
{
    shaped::add::<N>(stream, shaped::add::grid(x.len()), &mut *x)?;
    shaped::add::<N>(stream, shaped::add::grid(x.len()), x)
}

fn generic_code_of_the_host_launches_generic_kernels(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut floats = stream.upload(&[0.5_f32, 3.0])?;
    expect("floats", scaled::<f32, 1>(&stream, 2.0, &mut floats)?, vec![8.0, 48.0])?;
    let mut numbers = stream.upload(&[1_u32, 7])?;
    expect("numbers", scaled::<u32, 3>(&stream, 2, &mut numbers)?, vec![64, 448])?;
    added::<10>(&stream, &mut numbers)?;
    expect("added", stream.download(&numbers)?, vec![84, 468])
}
