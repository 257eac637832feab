//! Groups of lanes that are formed at run time, compared with the host's results.

use ferrogrid::prelude::*;

use crate::block::group_kernels::grouping;
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("groups_by_label_exchange_in_the_order_of_ranks", groups_by_label_exchange_in_the_order_of_ranks),
    ("groups_by_mask_exchange_among_their_lanes", groups_by_mask_exchange_among_their_lanes),
    ("groups_reduce_integers", groups_reduce_integers),
    ("threads_of_a_branch_append_together", threads_of_a_branch_append_together),
];

/// The expected results of `grouping::figures` in the thread of `lane`, where `warp` has the values of all
/// lanes and `group` the lanes of its group.
fn figures(warp: &[u32], lane: usize, group: &dyn Fn(usize) -> bool) -> [u32; 16] {
    let lanes: Vec<usize> = (0..warp.len()).filter(|&other| group(other)).collect();
    let values: Vec<u32> = lanes.iter().map(|&lane| warp[lane]).collect();
    let (rank, value) =
        (lanes.iter().position(|&other| other == lane).expect("a group contains its thread"), warp[lane]);
    let mask = |is_in: &dyn Fn(usize) -> bool| {
        lanes.iter().filter(|&&lane| is_in(lane)).map(|lane| 1_u32 << lane).sum::<u32>()
    };
    let by_rank = |is_in: &dyn Fn(u32) -> bool| {
        values.iter().enumerate().map(|(rank, &value)| u32::from(is_in(value)) << rank).sum()
    };
    let joined =
        |values: &[u32]| values.iter().fold(0_u32, |sum, value| sum.wrapping_mul(31).wrapping_add(*value));
    let is_odd = |value: u32| value % 2 == 1;
    let all_odd = values.iter().all(|&value| is_odd(value));
    let any_odd = values.iter().any(|&value| is_odd(value));
    let before: Vec<u32> = if rank == 0 { vec![5] } else { values[..rank].to_vec() };
    [
        mask(&|_| true),
        lanes.len() as u32,
        rank as u32,
        by_rank(&is_odd),
        mask(&|lane| is_odd(warp[lane])),
        u32::from(all_odd) + 2 * u32::from(any_odd) + 4 * u32::from(rank == 0) + 8 * lane as u32,
        by_rank(&|other| other == value),
        values.iter().all(|other| other % 4 == value % 4).into(),
        *values.get(1).unwrap_or(&value),
        *values.get(rank + 3).unwrap_or(&value),
        rank.checked_sub(2).map_or(value, |rank| values[rank]),
        *values.get(rank + 1).unwrap_or(&value),
        joined(&values),
        joined(&values[..=rank]),
        joined(&before),
        mask(&|lane| warp[lane] % 2 == value % 2 && warp[lane] % 3 == value % 3),
    ]
}

fn groups_by_label_exchange_in_the_order_of_ranks(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(41);
    for (threads, kinds) in [(64_usize, 1_u64), (64, 2), (96, 5), (64, 1000), (77, 3), (1, 1)] {
        let labels: Vec<u64> = (0..threads).map(|_| random.u64(..kinds) << 30).collect();
        let x: Vec<u32> = (0..threads).map(|_| random.u32(..20)).collect();
        let (device_labels, device_x) = (stream.upload(&labels)?, stream.upload(&x)?);
        for size in [8, 32] {
            let mut y = stream.upload(&vec![[9; 16]; threads])?;
            let grid = Grid::new(1, threads as u32);
            match size {
                8 => grouping::labeled::<8>(&stream, grid, &device_labels, &device_x, &mut y)?,
                _ => grouping::labeled::<32>(&stream, grid, &device_labels, &device_x, &mut y)?,
            }
            let expected = |thread: usize| {
                let (first, lane) = (thread / 32 * 32, thread % 32);
                let warp = &x[first..(first + 32).min(threads)];
                figures(warp, lane, &|other| {
                    other / size == lane / size && labels[first + other] == labels[thread]
                })
            };
            expect(
                &format!("{threads} threads, tiles of {size}"),
                stream.download(&y)?,
                (0..threads).map(expected).collect(),
            )?;
        }
    }
    Ok(())
}

fn groups_by_mask_exchange_among_their_lanes(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(42);
    for threads in [64_usize, 77, 1] {
        for mask in [u32::MAX, 0, 1, 0x8000_0000, 0x1234_5678, 0xffff_0000] {
            let x: Vec<u32> = (0..threads).map(|_| random.u32(..20)).collect();
            let device_x = stream.upload(&x)?;
            let mut y = stream.upload(&vec![[9; 16]; threads])?;
            grouping::masked(&stream, Grid::new(1, threads as u32), mask, &device_x, &mut y)?;
            let expected = |thread: usize| {
                let (first, lane) = (thread / 32 * 32, thread % 32);
                let warp = &x[first..(first + 32).min(threads)];
                figures(warp, lane, &|other| (mask >> other ^ mask >> lane) & 1 == 0)
            };
            expect(
                &format!("{threads} threads, mask {mask:#x}"),
                stream.download(&y)?,
                (0..threads).map(expected).collect(),
            )?;
        }
    }
    Ok(())
}

fn groups_reduce_integers(device: &Device) -> Outcome {
    macro_rules! reduced {
        ($ty:ty) => {{
            let stream = device.new_stream()?;
            let mut random = fastrand::Rng::with_seed(43);
            for threads in [64_usize, 50] {
                let x: Vec<$ty> = (0..threads).map(|_| random.u32(..) as $ty).collect();
                let device_x = stream.upload(&x)?;
                let mut y = stream.upload(&vec![[0; 6]; threads])?;
                grouping::reduced::<$ty>(&stream, Grid::new(1, threads as u32), &device_x, &mut y)?;
                let expected = |thread: usize| {
                    let first = thread / 32 * 32;
                    let is_in = |other: &usize| ((other - first) % 3 == 0) == ((thread - first) % 3 == 0);
                    let values = (first..(first + 32).min(threads)).filter(is_in).map(|other| x[other]);
                    let reduced =
                        |operation: fn($ty, $ty) -> $ty| values.clone().reduce(operation).expect("has one");
                    [
                        reduced(<$ty>::wrapping_add),
                        reduced(<$ty>::min),
                        reduced(<$ty>::max),
                        reduced(|a, b| a & b),
                        reduced(|a, b| a | b),
                        reduced(|a, b| a ^ b),
                    ]
                };
                expect(stringify!($ty), stream.download(&y)?, (0..threads).map(expected).collect())?;
            }
        }};
    }
    reduced!(u32);
    reduced!(i32);
    Ok(())
}

fn threads_of_a_branch_append_together(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(44);
    for n in [1_usize, 32, 1000] {
        let x: Vec<u32> = (0..n).map(|_| random.u32(..)).collect();
        let device_x = stream.upload(&x)?;
        let (mut kept, mut count) = (stream.zeros::<u32>(n)?, stream.zeros::<u32>(1)?);
        grouping::append(&stream, Grid::cover(n), &device_x, kept.as_atomic(), count.as_atomic())?;
        let mut expected: Vec<u32> = x.into_iter().filter(|x| x % 2 == 1).collect();
        expect("count", stream.download(&count)?, vec![expected.len() as u32])?;
        let mut found = stream.download(&kept)?[..expected.len()].to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        expect("kept", found, expected)?;
    }
    Ok(())
}
