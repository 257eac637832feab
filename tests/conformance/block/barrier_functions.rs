//! Barriers in functions: all threads of a block reach them; broadcasts, and values assumed to be uniform.

use ferrogrid::KernelError;
use ferrogrid::prelude::*;

use crate::block::barrier_function_kernels::{agreed, disagreed, together};
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("functions_wait_for_the_block_and_share_its_memory", functions_wait_for_the_block_and_share_its_memory),
    ("functions_with_barriers_call_each_other_and_themselves", functions_with_barriers_call_each_other),
    ("functions_wait_for_the_grid", functions_wait_for_the_grid),
    (
        "a_broadcast_gives_all_threads_of_a_block_the_value_of_the_first",
        a_broadcast_gives_what_the_first_holds,
    ),
    ("a_broadcast_of_a_tile_gives_the_value_of_its_first_thread", a_broadcast_of_a_tile),
    ("blocks_take_work_by_a_broadcast_until_none_is_left", blocks_take_work_by_a_broadcast),
    ("barriers_may_depend_on_values_assumed_to_be_uniform", barriers_may_depend_on_what_is_assumed),
    ("threads_that_disagree_are_an_error_with_the_call", threads_that_disagree_are_an_error),
];

fn functions_wait_for_the_block_and_share_its_memory(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::new();
    for (n, block) in [(1_usize, 32_usize), (255, 64), (1000, 256), (5000, 96)] {
        let x: Vec<f32> = (0..n).map(|_| random.f32() * 2.0 - 1.0).collect();
        let device_x = stream.upload(&x)?;
        let blocks = n.div_ceil(block);
        let (mut largest, mut smallest) = (stream.zeros::<f32>(blocks)?, stream.zeros::<f32>(blocks)?);
        let grid = Grid::new(blocks as u32, block as u32);
        let (rows, other_rows) = (largest.view_2d_mut(1, blocks)?, smallest.view_2d_mut(1, blocks)?);
        together::extremes(&stream, grid, &device_x, rows, other_rows)?;
        let top = |part: &[f32]| part.iter().copied().fold(f32::MIN, f32::max);
        let range = |part: &[f32]| top(part) + part.iter().map(|x| -x).fold(f32::MIN, f32::max);
        expect("largest", stream.download(&largest)?, x.chunks(block).map(top).collect())?;
        expect("ranges", stream.download(&smallest)?, x.chunks(block).map(range).collect())?;
    }
    Ok(())
}

fn functions_with_barriers_call_each_other(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u32> = (0..512).map(|i| i * 37 % 101).collect();
    let device_x = stream.upload(&x)?;
    for rounds in [0, 1, 5] {
        let mut out = stream.zeros::<[u32; 3]>(4)?;
        together::calls(&stream, Grid::new(4, 128), rounds, &device_x, out.view_2d_mut(1, 4)?)?;
        let expected = x.chunks(128).map(|part| {
            let below: u32 = (0..=rounds).map(|n| part.iter().filter(|x| **x < n).count() as u32).sum();
            [part.iter().sum::<u32>() * rounds, below * 10, part.iter().copied().max().unwrap_or(0)]
        });
        expect("calls", stream.download(&out)?, expected.collect())?;
    }
    Ok(())
}

fn functions_wait_for_the_grid(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut values = stream.upload(&[3_u32, 1, 4, 1, 5])?;
    together::around(&stream, Grid::new(5, 64), 7, values.as_atomic())?;
    expect("values", stream.download(&values)?, vec![1, 5, 3, 1, 4])
}

fn a_broadcast_gives_what_the_first_holds(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    macro_rules! of {
        ($ty:ty, $value:expr) => {{
            let x: Vec<$ty> = (0..37_u32).map($value).collect();
            let (device_x, mut y) = (stream.upload(&x)?, stream.zeros::<[$ty; 3]>(7 * 40 * 5)?);
            let grid = Grid::new([7, 1], [40, 5]);
            agreed::first::<$ty>(&stream, grid, &device_x, y.view_2d_mut(280, 5)?)?;
            let of_block = |block: usize| core::array::from_fn(|k| x[(block + k) % 37]);
            let expected: Vec<[$ty; 3]> = (0..1400).map(|i| of_block(i % 280 / 40)).collect();
            expect(stringify!($ty), stream.download(&y)?, expected)?;
        }};
    }
    of!(u8, |i| i as u8 * 3);
    of!(f32, |i| i as f32 / 7.0);
    of!(u64, |i| u64::from(i) << 33 | 5);
    of!([u16; 3], |i| [i as u16, 1000 + i as u16, !(i as u16)]);
    of!([u32; 4], |i| [i, !i, i * i, 7]);
    Ok(())
}

fn a_broadcast_of_a_tile(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<[u64; 2]> = (0..150).map(|i| [i << 40 | 3, !i]).collect();
    let (device_x, mut y) = (stream.upload(&x)?, stream.zeros::<[[u64; 2]; 2]>(150)?);
    // The last warp of each block has 11 threads.
    agreed::first_of_tiles(&stream, Grid::new(2, 75), &device_x, &mut y)?;
    let first = |i: usize, size: usize| x[i / 75 * 75 + i % 75 / size * size];
    expect("firsts", stream.download(&y)?, (0..150).map(|i| [first(i, 32), first(i, 8)]).collect())
}

fn blocks_take_work_by_a_broadcast(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut next, mut worked) = (stream.zeros::<u32>(1)?, stream.zeros::<u32>(100)?);
    agreed::pieces(&stream, Grid::new(6, 96), next.as_atomic(), worked.as_atomic())?;
    // Each thread adds the number of threads of the block.
    expect("threads", stream.download(&worked)?, vec![96 * 96; 100])
}

fn barriers_may_depend_on_what_is_assumed(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut rounds, mut y) = (stream.upload(&[5_u64])?, stream.zeros::<u32>(90)?);
    agreed::rounds(&stream, Grid::new(2, 45), rounds.as_atomic(), &mut y)?;
    expect("rounds", stream.download(&y)?, vec![5 * 23; 90])
}

fn threads_that_disagree_are_an_error(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device("a GPU does not notice");
    }
    let stream = device.new_stream()?;
    type Launch = fn(&Stream) -> ferrogrid::Result<()>;
    let launches: [(&str, Launch); 3] = [
        ("value", |stream| disagreed::value(stream, Grid::new(3, 64))),
        ("silent", |stream| disagreed::silent(stream, Grid::new(3, 64))),
        ("regions", |stream| disagreed::regions(stream, Grid::new(3, 64))),
    ];
    for (name, launch) in launches {
        let Err(Error::Kernel(KernelError::Disagreement { block, thread, place, .. })) =
            launch(&stream).and_then(|()| stream.synchronize())
        else {
            return Err(format!("{name} is no disagreement").into());
        };
        expect(name, (block, thread), ([1, 0, 0], [40, 0, 0]))?;
        let source = include_str!("barrier_function_kernels.rs");
        let line = source.lines().position(|line| line.ends_with(&format!("; // {name}"))).unwrap_or(0) + 1;
        expect(name, place.line as usize, line)?;
    }
    let (mut rounds, mut y) = (stream.upload(&[1_u64])?, stream.zeros::<u32>(2)?);
    agreed::rounds(&stream, Grid::new(1, 2), rounds.as_atomic(), &mut y)?;
    expect("afterwards", stream.download(&y)?, vec![1; 2])
}
