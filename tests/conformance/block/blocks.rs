//! Shared memory in phases, barriers, warps and tiles.

use ferrogrid::LaunchError;
use ferrogrid::prelude::*;

use crate::block::block_kernels::{barriers, grids, raw, shared, warps};
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    (
        "tiles_in_shared_memory_multiply_matrices_of_any_size",
        tiles_in_shared_memory_multiply_matrices_of_any_size,
    ),
    ("a_padded_tile_transposes_planes_of_any_size", a_padded_tile_transposes_planes_of_any_size),
    ("a_stencil_reads_its_halo_from_shared_memory", a_stencil_reads_its_halo_from_shared_memory),
    ("a_tree_of_barriers_sums_a_block", a_tree_of_barriers_sums_a_block),
    ("shared_atomics_count_for_each_block", shared_atomics_count_for_each_block),
    ("the_launch_gives_the_length_of_shared_slices", the_launch_gives_the_length_of_shared_slices),
    ("shared_slices_may_exceed_48_kib", shared_slices_may_exceed_48_kib),
    (
        "too_much_shared_memory_is_refused_with_need_and_limit",
        too_much_shared_memory_is_refused_with_need_and_limit,
    ),
    ("one_region_holds_numbers_of_two_types_in_turn", one_region_holds_numbers_of_two_types_in_turn),
    ("two_buffers_take_turns_with_one_barrier_each", two_buffers_take_turns_with_one_barrier_each),
    ("a_block_owns_a_row", a_block_owns_a_row),
    (
        "blocks_without_a_row_or_tile_of_their_own_are_refused",
        blocks_without_a_row_or_tile_of_their_own_are_refused,
    ),
    ("a_thread_owns_an_element_of_a_volume", a_thread_owns_an_element_of_a_volume),
    ("barriers_count_and_decide", barriers_count_and_decide),
    ("all_threads_agree_on_the_end_of_a_loop", all_threads_agree_on_the_end_of_a_loop),
    ("shuffles_stay_in_their_tile", shuffles_stay_in_their_tile),
    ("shuffles_carry_values_of_any_width", shuffles_carry_values_of_any_width),
    ("warps_vote_and_match", warps_vote_and_match),
    ("reductions_and_scans_keep_the_order_of_threads", reductions_and_scans_keep_the_order_of_threads),
    ("warps_reduce_integers", warps_reduce_integers),
    ("blocks_of_any_size_reduce_and_scan", blocks_of_any_size_reduce_and_scan),
    ("blocks_wait_for_each_other", blocks_wait_for_each_other),
    (
        "more_blocks_than_can_wait_are_refused_with_the_limit",
        more_blocks_than_can_wait_are_refused_with_the_limit,
    ),
    ("unsafe_code_can_use_raw_shared_memory", unsafe_code_can_use_raw_shared_memory),
];

fn tiles_in_shared_memory_multiply_matrices_of_any_size(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for [m, n, p] in
        [[1, 1, 1], [16; 3], [17; 3], [64; 3], [1, 50, 1], [50, 1, 50], [15, 33, 70], [70, 16, 2]]
    {
        let mut random = fastrand::Rng::with_seed((m * n * p) as u64);
        let mut matrix = |count| (0..count).map(|_| random.f32() - 0.5).collect::<Vec<f32>>();
        let (a, b) = (matrix(m * n), matrix(n * p));
        let (device_a, device_b) = (stream.upload(&a)?, stream.upload(&b)?);
        let mut c = stream.upload(&vec![f32::NAN; m * p])?;
        shared::matmul(&stream, Grid::cover([p, m]), n, &device_a, &device_b, c.view_2d_mut(p, m)?)?;
        let found = stream.download(&c)?;
        for (place, found) in found.iter().enumerate() {
            let (row, column) = (place / p, place % p);
            let exact: f64 = (0..n).map(|k| f64::from(a[row * n + k]) * f64::from(b[k * p + column])).sum();
            let error = (f64::from(*found) - exact).abs();
            if error.is_nan() || error > 1e-6 * n as f64 {
                return Err(format!("{m} x {n} x {p}, ({row}, {column}): {found}, not {exact}").into());
            }
        }
    }
    Ok(())
}

fn a_padded_tile_transposes_planes_of_any_size(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (width, height) in [(1, 1), (32, 32), (33, 65), (100, 7), (7, 100), (64, 96)] {
        let input: Vec<u32> = (0..width * height).map(|i| i as u32 * 3).collect();
        let device_input = stream.upload(&input)?;
        let mut output = stream.upload(&vec![u32::MAX; width * height])?;
        let grid = Grid::new([height.div_ceil(32), width.div_ceil(32)], [32, 8]);
        shared::transpose(&stream, grid, &device_input, output.view_2d_mut(height, width)?)?;
        let expected = (0..width * height).map(|i| input[i % height * width + i / height]).collect();
        expect(&format!("{width} x {height}"), stream.download(&output)?, expected)?;
    }
    Ok(())
}

fn a_stencil_reads_its_halo_from_shared_memory(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [1_usize, 2, 127, 128, 129, 1000] {
        let x: Vec<f32> = (0..n).map(|i| (i * i % 97) as f32).collect();
        let device_x = stream.upload(&x)?;
        let mut y = stream.upload(&vec![f32::NAN; n])?;
        shared::stencil(&stream, Grid::cover(n), &device_x, &mut y)?;
        let at = |i: usize| x.get(i).copied().unwrap_or(0.0);
        let expected =
            (0..n).map(|i| if i == 0 { 0.0 } else { at(i - 1) } + 2.0 * at(i) + at(i + 1)).collect();
        expect("points", stream.download(&y)?, expected)?;
    }
    Ok(())
}

fn a_tree_of_barriers_sums_a_block(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u32> = (0..1000).map(|i| i * 7 % 1001).collect();
    let device_x = stream.upload(&x)?;
    let mut sums = stream.upload(&[u32::MAX; 4])?;
    shared::tree_sum(&stream, Grid::cover(1000), &device_x, sums.as_atomic())?;
    expect("sums", stream.download(&sums)?, x.chunks(256).map(|part| part.iter().sum()).collect())
}

fn shared_atomics_count_for_each_block(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(5);
    let data: Vec<u8> = (0..50_000).map(|_| random.u8(..) & random.u8(..)).collect();
    let mut expected = vec![0_u32; 256];
    data.iter().for_each(|&byte| expected[usize::from(byte)] += 1);
    let data = stream.upload(&data)?;
    for threads in [32, 100, 512] {
        let mut counts = stream.zeros::<u32>(256)?;
        shared::histogram(&stream, Grid::new(7, threads), &data, counts.as_atomic())?;
        expect("counts", stream.download(&counts)?, expected.clone())?;
    }
    Ok(())
}

fn the_launch_gives_the_length_of_shared_slices(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (threads, bytes) in [(1_usize, 1_usize), (33, 7), (256, 100)] {
        let data: Vec<u64> = (0..3 * threads as u64).map(|i| i << 32).collect();
        let mut buffer = stream.upload(&data)?;
        shared::reverse(&stream, Grid::new(3, threads as u32), &mut buffer, bytes, threads)?;
        let part = |block: usize| {
            let data = &data[block * threads..][..threads];
            (0..threads).map(move |rank| data[threads - 1 - rank] + (rank % bytes) as u64)
        };
        expect("parts", stream.download(&buffer)?, (0..3).flat_map(part).collect())?;
    }
    Ok(())
}

fn shared_slices_may_exceed_48_kib(device: &Device) -> Outcome {
    let bytes = device.shared_memory_per_block();
    if bytes <= 48 * 1024 {
        return not_for_this_device("its blocks have no more");
    }
    // 32 bytes more for the other slice: as many as need no opt-in, the first that do, and the maximum.
    for length in [48 * 1024 - 32, 48 * 1024 - 31, bytes - 32] {
        let stream = device.new_stream()?;
        let mut buffer = stream.upload(&[1_u64, 2, 3])?;
        shared::reverse(&stream, Grid::new(1, 3), &mut buffer, length, 3)?;
        expect("elements", stream.download(&buffer)?, vec![3, 3, 3])?;
    }
    Ok(())
}

fn too_much_shared_memory_is_refused_with_need_and_limit(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.upload(&[1_u64, 2, 3])?;
    let limit = device.shared_memory_per_block();
    let with_other_slice = |length: usize| (length, length.next_multiple_of(16) + 32);
    for (length, needed) in
        [with_other_slice(limit - 31), with_other_slice(limit + 1), (usize::MAX, usize::MAX)]
    {
        let found = shared::reverse(&stream, Grid::new(1, 3), &mut buffer, length, 3);
        let is_expected = |error: &Error| matches!(error, Error::Launch(LaunchError::SharedMemoryTooLarge { bytes, limit: found, .. }) if (*bytes, *found) == (needed, limit));
        let text = expect_error("shared memory", found, is_expected)?;
        names(&text, &["reverse", &limit.to_string(), &needed.to_string()])?;
    }
    expect("elements", stream.download(&buffer)?, vec![1, 2, 3])?;
    shared::reverse(&stream, Grid::new(1, 3), &mut buffer, limit - 32, 3)?;
    expect("with all that there is", stream.download(&buffer)?, vec![3, 3, 3])
}

fn one_region_holds_numbers_of_two_types_in_turn(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut output = stream.zeros::<u64>(64)?;
    shared::twice_used(&stream, Grid::new(1, 64), &mut output)?;
    expect("elements", stream.download(&output)?, (0..64).map(|rank| 127 + 63 - rank).collect())
}

fn two_buffers_take_turns_with_one_barrier_each(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut data: Vec<u32> = (0..64).map(|i| i * 37 % 64).collect();
    let mut buffer = stream.upload(&data)?;
    shared::turns(&stream, Grid::new(1, 64), 10, &mut buffer)?;
    for _ in 0..20 {
        data = (0..64).map(|i| data[i].max(data[(i + 1) % 64])).collect();
    }
    expect("elements", stream.download(&buffer)?, data)
}

fn a_block_owns_a_row(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (width, height, blocks) in [(1, 1, 1), (1000, 5, 5), (33, 7, 7), (300, 4, 3)] {
        let data: Vec<u32> = (0..width * height).map(|i| (i * 7919 % 1009) as u32).collect();
        let mut rows = stream.upload(&data)?;
        shared::below_greatest(&stream, Grid::new(blocks, 96), rows.view_2d_mut(width, height)?)?;
        let below = |(row, part): (usize, &[u32])| {
            let greatest = if row < blocks as usize { part.iter().max().copied() } else { None };
            part.iter().map(|&value| greatest.map_or(value, |greatest| greatest - value)).collect::<Vec<_>>()
        };
        expect("rows", stream.download(&rows)?, data.chunks(width).enumerate().flat_map(below).collect())?;
    }
    Ok(())
}

fn blocks_without_a_row_or_tile_of_their_own_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut results = stream.upload(&[3_u32; 9])?;
    // Width and height in the wrong order: one row of 9 elements.
    let launched = shared::below_greatest(&stream, Grid::new(9, 32), results.view_2d_mut(9, 1)?);
    let is_refused = |error: &Error| {
        matches!(error, Error::Launch(LaunchError::MoreBlocksThanRows { blocks: 9, rows: 1, .. }))
    };
    let text = expect_error("one row", launched, is_refused)?;
    names(&text, &["below_greatest", "`rows`", "9 blocks", "a row for 1", "`view_2d_mut(width, height)`"])?;
    // Blocks for a plane of threads, where a tile has more elements than a block has threads.
    let data = vec![3_u32; 33 * 65];
    let (input, grid) = (stream.upload(&data)?, Grid::cover([33, 65]));
    let mut buffer = stream.upload(&data)?;
    let launched = shared::transpose(&stream, grid, &input, buffer.view_2d_mut(33, 65)?);
    let is_refused = |error: &Error| {
        matches!(error, Error::Launch(LaunchError::MoreBlocksThanTiles { blocks: 9, tiles: 3, .. }))
    };
    let text = expect_error("tiles", launched, is_refused)?;
    names(&text, &["transpose", "`output`", "9 blocks along y", "tiles for 3"])?;
    expect("rows", stream.download(&results)?, vec![3; 9])?;
    expect("tiles", stream.download(&buffer)?, data)
}

fn a_thread_owns_an_element_of_a_volume(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for [width, height, depth] in [[1, 1, 1], [9, 8, 17], [33, 2, 5]] {
        let mut volume = stream.upload(&vec![7_u32; width * height * depth])?;
        let view = volume.view_3d_mut(width, height, depth)?;
        shared::number_volume(&stream, Grid::cover([width, height, depth]), view)?;
        let expected = (0..width * height * depth).map(|i| 7 + i as u32).collect();
        expect("elements", stream.download(&volume)?, expected)?;
    }
    let mut volume = stream.zeros::<u32>(10)?;
    let text = expect_error("a volume", volume.view_3d_mut(2, 3, 2), |error| {
        matches!(error, Error::VolumeTooLarge { .. })
    })?;
    names(&text, &["2 x 3 x 2", "10"])
}

fn barriers_count_and_decide(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for threads in [1_u32, 31, 64, 200] {
        for odd_from in [0, threads / 2, threads] {
            let x: Vec<u32> = (0..threads).map(|i| u32::from(i >= odd_from) + 2 * i).collect();
            let x = stream.upload(&x)?;
            let mut output = stream.upload(&vec![[9; 3]; threads as usize])?;
            barriers::votes(&stream, Grid::new(1, threads), &x, &mut output)?;
            let odd = threads - odd_from;
            let expected = [odd, u32::from(odd == threads), u32::from(odd > 0)];
            expect("votes", stream.download(&output)?, vec![expected; threads as usize])?;
        }
    }
    Ok(())
}

fn all_threads_agree_on_the_end_of_a_loop(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let data: Vec<u32> = (0..256).map(|i| if i == 77 { 1 << 20 } else { i % 5 }).collect();
    let (mut data, mut rounds) = (stream.upload(&data)?, stream.zeros::<u32>(256)?);
    barriers::until_all_are_done(&stream, Grid::new(2, 128), &mut data, &mut rounds)?;
    let expected = (0..256).map(|i| if i < 128 { 21 } else { 3 }).collect();
    expect("rounds", stream.download(&rounds)?, expected)
}

fn shuffles_stay_in_their_tile(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (threads, by) = (96_u32, 3);
    for size in [2_u32, 8, 32] {
        let mut output = stream.zeros::<[[u32; 4]; 4]>(threads as usize)?;
        let grid = Grid::new(1, threads);
        match size {
            2 => warps::shuffles::<2>(&stream, grid, by, &mut output)?,
            8 => warps::shuffles::<8>(&stream, grid, by, &mut output)?,
            _ => warps::shuffles::<32>(&stream, grid, by, &mut output)?,
        }
        let held = |thread: u32| [thread, thread % 32, thread % size, 7];
        let expected = |thread: u32| {
            let (first, rank) = (thread - thread % size, thread % size);
            let own_unless =
                |there: Option<u32>| held(there.filter(|&it| it < size).map_or(thread, |it| first + it));
            [
                held(first + by % size),
                own_unless(rank.checked_sub(by)),
                own_unless(Some(rank + by)),
                own_unless(Some(rank ^ by)),
            ]
        };
        expect(&format!("tiles of {size}"), stream.download(&output)?, (0..threads).map(expected).collect())?;
    }
    Ok(())
}

fn shuffles_carry_values_of_any_width(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut output = stream.zeros::<[f64; 4]>(64)?;
    warps::widths(&stream, Grid::new(1, 64), &mut output)?;
    let expected = |thread: u32| {
        let other = f64::from(thread ^ 1);
        [other, other - 100.0, other + 0.5, other * 1e-9]
    };
    expect("values", stream.download(&output)?, (0..64).map(expected).collect())
}

fn warps_vote_and_match(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u32> = (0..128)
        .map(|i| {
            if i < 32 {
                7
            } else if i < 64 {
                i % 3
            } else {
                (i * i) % 11
            }
        })
        .collect();
    let device_x = stream.upload(&x)?;
    let mut output = stream.zeros::<[u32; 9]>(128)?;
    warps::votes(&stream, Grid::new(2, 64), &device_x, &mut output)?;
    let expected = |thread: usize| {
        let warp = &x[thread / 32 * 32..][..32];
        let mask = |of: &dyn Fn(u32) -> bool| {
            warp.iter().enumerate().map(|(lane, &value)| u32::from(of(value)) << lane).sum::<u32>()
        };
        let odd = mask(&|value| value % 2 == 1);
        let same = mask(&|value| value == x[thread]);
        let alike = mask(&|value| value % 2 == x[thread] % 2);
        let of_tile = mask(&|value| value % 4 == x[thread] % 4) >> (thread % 32 / 8 * 8) & 0xFF;
        let (all, any) = (odd == u32::MAX, odd != 0);
        let equal = [same, same, (same == u32::MAX).into(), alike, same, of_tile];
        [[odd, all.into(), any.into()].as_slice(), &equal].concat().try_into().expect("nine values")
    };
    expect("votes", stream.download(&output)?, (0..128).map(expected).collect())
}

fn reductions_and_scans_keep_the_order_of_threads(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let join = |a: [u64; 2], b: [u64; 2]| {
        [a[0].wrapping_mul(31_u64.wrapping_pow(b[1] as u32)).wrapping_add(b[0]), a[1] + b[1]]
    };
    for threads in [32_u64, 64, 20, 77, 1] {
        for size in [4, 32] {
            let mut output = stream.zeros::<[[u64; 2]; 3]>(threads as usize)?;
            let grid = Grid::new(1, threads as u32);
            match size {
                4 => warps::joined::<4>(&stream, grid, &mut output)?,
                _ => warps::joined::<32>(&stream, grid, &mut output)?,
            }
            let all = |from: u64, to: u64| (from..to).map(|thread| [thread + 1, 1]).fold([0, 0], join);
            let expected = |thread: u64| {
                let first = thread - thread % size;
                [all(first, (first + size).min(threads)), all(first, thread + 1), all(first, thread)]
            };
            let found = stream.download(&output)?;
            expect(
                &format!("{threads} threads, tiles of {size}"),
                found,
                (0..threads).map(expected).collect(),
            )?;
        }
    }
    Ok(())
}

fn warps_reduce_integers(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(9);
    let x: Vec<i32> = (0..96).map(|_| random.i32(..)).collect();
    let device_x = stream.upload(&x)?;
    let mut output = stream.zeros::<[i32; 8]>(96)?;
    warps::redux(&stream, Grid::new(1, 96), &device_x, &mut output)?;
    let expected = |thread: usize| {
        let warp = || x[thread / 32 * 32..][..32].iter().copied();
        let bits = || warp().map(|value| value as u32);
        [
            warp().fold(0, i32::wrapping_add),
            warp().fold(i32::MAX, i32::min),
            warp().fold(i32::MIN, i32::max),
            warp().fold(-1, |a, b| a & b),
            warp().fold(0, |a, b| a | b),
            warp().fold(0, |a, b| a ^ b),
            bits().fold(u32::MAX, u32::min) as i32,
            bits().fold(0, u32::max) as i32,
        ]
    };
    expect("reductions", stream.download(&output)?, (0..96).map(expected).collect())
}

fn blocks_of_any_size_reduce_and_scan(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for threads in [1_u32, 20, 32, 33, 256, 993, 1024] {
        let x: Vec<u32> = (0..2 * threads).map(|i| i * 13 % 101).collect();
        let device_x = stream.upload(&x)?;
        let mut output = stream.zeros::<[u32; 3]>(x.len())?;
        warps::block_sums(&stream, Grid::new(2, threads), &device_x, &mut output)?;
        let mut expected = Vec::new();
        for part in x.chunks(threads as usize) {
            let mut before = 0;
            for value in part {
                let first = expected.len() % threads as usize == 0;
                let exclusive = if first { 1000 } else { before };
                before += value;
                expected.push([part.iter().sum(), before, exclusive]);
            }
        }
        expect(&format!("{threads} threads"), stream.download(&output)?, expected)?;
    }
    Ok(())
}

fn unsafe_code_can_use_raw_shared_memory(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut output = stream.zeros::<u32>(128)?;
    raw::rotate(&stream, Grid::new(2, 64), 5, &mut output)?;
    expect("elements", stream.download(&output)?, (0..128).map(|i| (i + 59) % 64).collect())
}

fn blocks_wait_for_each_other(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (blocks, threads) in [(1_usize, 1), (2, 64), (33, 96), (100, 32)] {
        let mut expected: Vec<u32> = (0..blocks as u32).map(|i| i * i + 1).collect();
        let mut values = stream.upload(&expected)?;
        grids::neighbours(&stream, Grid::new(blocks as u32, threads), 5, values.as_atomic())?;
        for _ in 0..5 {
            let before = expected.clone();
            (0..blocks).for_each(|i| expected[i] = before[i].wrapping_add(before[(i + 1) % blocks]));
        }
        expect(&format!("{blocks} blocks"), stream.download(&values)?, expected)?;
    }
    Ok(())
}

fn more_blocks_than_can_wait_are_refused_with_the_limit(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let blocks = 1_000_000;
    let mut values = stream.zeros::<u32>(blocks)?;
    let found = grids::neighbours(&stream, Grid::new(blocks as u32, 256), 1, values.as_atomic());
    let text = expect_error(
        "a cooperative launch",
        found,
        |error| matches!(error, Error::Launch(LaunchError::TooManyResidentBlocks { limit, threads: 256, .. }) if (1..1_000_000).contains(limit)),
    )?;
    names(&text, &["neighbours", "1000000 blocks of 256 threads"])?;
    grids::neighbours(&stream, Grid::new(2, 256), 0, values.as_atomic())?;
    stream.synchronize()?;
    Ok(())
}
