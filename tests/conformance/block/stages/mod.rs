//! Shared memory in stages that take turns, filled by threads or by asynchronous copies.
//!
//! `kernels` has the kernels; `tiles` are stages that hold tiles of planes, `outputs` tiles that are stored, and `boxes` both in other ranks.

pub(crate) mod box_kernels;
pub(crate) mod boxes;
pub(crate) mod kernels;
pub(crate) mod output_kernels;
pub(crate) mod outputs;
pub(crate) mod tile_kernels;
pub(crate) mod tiles;

use std::fmt::Debug;

use ferrogrid::device::Aligned16;
use ferrogrid::device::half::f16;
use ferrogrid::prelude::*;

use crate::memory::access::write_kernels::writing;
use crate::{Case, Outcome, expect};
use kernels::staging::{self, Copied};

pub(crate) const CASES: &[Case] = &[
    ("stages_take_turns_for_any_number_of_rounds", stages_take_turns_for_any_number_of_rounds),
    ("copies_of_any_element_arrive_in_their_turn", copies_of_any_element_arrive_in_their_turn),
    ("a_stage_is_written_in_any_way", a_stage_is_written_in_any_way),
    ("several_stages_take_turns_together", several_stages_take_turns_together),
];

fn stages_take_turns_for_any_number_of_rounds(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u32> = (0..128).map(|i| i * i % 31).collect();
    for rounds in [0, 1, 2, 3, 10, 101] {
        let mut found = stream.upload(&x)?;
        writing::rounds(&stream, Grid::new(2, 64), rounds, &mut found)?;
        let mut expected = x.clone();
        for _ in 0..rounds {
            let beside = |i: usize, by: usize| expected[i / 64 * 64 + (i + by) % 64];
            expected = (0..128).map(|i| beside(i, 63).wrapping_add(beside(i, 1))).collect();
        }
        expect(&format!("{rounds} rounds"), stream.download(&found)?, expected)?;
    }
    Ok(())
}

fn copies_of_any_element_arrive_in_their_turn(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    check_rows(&stream, |i| i as u8)?;
    check_rows(&stream, |i| f16::from_f32((i % 1009) as f32))?;
    check_rows(&stream, |i| i as u32 + 5)?;
    check_rows(&stream, |i| (i as u64) << 32 | 3)?;
    check_rows(&stream, |i| (i as u32, 7, i as u32 + 2))?;
    check_rows(&stream, |i| Aligned16::new([i as u16; 8]))
}

fn check_rows<T>(stream: &Stream, element: impl Fn(usize) -> T) -> Outcome
where
    T: Copied
        + Debug
        + staging::sum_rows::Instance<2>
        + staging::sum_rows::Instance<3>
        + staging::sum_rows::Instance<5>,
{
    for (steps, missing) in [(0, 0), (1, 0), (2, 47), (3, 1), (40, 20)] {
        let x: Vec<T> = (0..(steps * 48_usize).saturating_sub(missing)).map(&element).collect();
        let number = |place: usize| x.get(place).map_or(0, |x| x.number());
        let sum =
            |rank: usize| (0..steps).map(|step| number(step * 48 + (rank + step + 1) % 48)).sum::<u32>();
        let expected: Vec<u32> = (0..32).map(sum).collect();
        let device_x = stream.upload(&x)?;
        for stages in [2, 3, 5] {
            let mut y = stream.fill(u32::MAX, 32)?;
            match stages {
                2 => staging::sum_rows::<T, 2>(stream, Grid::cover(32), steps, &device_x, &mut y)?,
                3 => staging::sum_rows::<T, 3>(stream, Grid::cover(32), steps, &device_x, &mut y)?,
                _ => staging::sum_rows::<T, 5>(stream, Grid::cover(32), steps, &device_x, &mut y)?,
            }
            let what = format!("{steps} steps of {}, {stages} stages", std::any::type_name::<T>());
            expect(&what, stream.download(&y)?, expected.clone())?;
        }
    }
    Ok(())
}

fn a_stage_is_written_in_any_way(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u32> = (0..64).map(|i| i * 3).collect();
    let mut y = stream.zeros::<[u32; 4]>(64)?;
    staging::write_in_turn(&stream, Grid::cover(64), &stream.upload(&x)?, &mut y)?;
    let expected = (0..64_u32).map(|rank| {
        let neighbour = rank ^ 1;
        let third = if neighbour % 4 == 0 { 0 } else { 1000 + neighbour };
        let fourth = x.get(neighbour as usize + 1).copied().unwrap_or(0);
        [neighbour * 3 + 10, 500 + (neighbour ^ 2), third, fourth]
    });
    expect("turns", stream.download(&y)?, expected.collect())
}

fn several_stages_take_turns_together(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for steps in [0, 1, 4, 9] {
        let a: Vec<u32> = (0..steps as u32 * 32).map(|i| i % 37).collect();
        let b: Vec<u64> = (0..steps as u64 * 64).map(|i| (i * i % 91) << 20).collect();
        let mut y = stream.fill(u64::MAX, 32)?;
        let (device_a, device_b) = (stream.upload(&a)?, stream.upload(&b)?);
        staging::multiply_together(&stream, Grid::cover(32), steps, &device_a, &device_b, &mut y)?;
        let product =
            |step: usize, rank: usize| u64::from(a[step * 32 + 31 - rank]) * b[step * 64 + 63 - rank];
        let expected = (0..32).map(|rank| (0..steps).map(|step| product(step, rank)).sum::<u64>());
        expect(&format!("{steps} steps"), stream.download(&y)?, expected.collect())?;
    }
    Ok(())
}
