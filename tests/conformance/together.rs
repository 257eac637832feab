//! Kernels call functions that contain barriers, and all threads of a block meet in them.

use ferrogrid::prelude::*;

use super::together_kernels::together;
use super::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("functions_wait_for_the_block_and_share_its_memory", functions_wait_for_the_block_and_share_its_memory),
    ("functions_with_barriers_call_each_other_and_themselves", functions_with_barriers_call_each_other),
    ("functions_wait_for_the_grid", functions_wait_for_the_grid),
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
