//! Blocks numbered in start order: single-pass scans, chains, and waits that could never end.

use ferrogrid::CpuOptions;
use ferrogrid::prelude::*;
use ferrogrid::{KernelError, LaunchError};

use crate::block::order_kernels::in_order::{self, Affine, Combine};
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("a_scan_in_one_pass_combines_in_order", a_scan_in_one_pass_combines_in_order),
    ("warps_continue_what_all_warps_before_them_made", warps_continue_what_all_warps_before_them_made),
    ("one_thread_looks_back", one_thread_looks_back),
    ("a_value_is_passed_from_block_to_block", a_value_is_passed_from_block_to_block),
    ("numbers_in_order_are_each_block_s_own", numbers_in_order_are_each_block_s_own),
    ("launches_at_once_have_orders_of_their_own", launches_at_once_have_orders_of_their_own),
    ("launches_in_a_row_leave_no_values_behind", launches_in_a_row_leave_no_values_behind),
    ("no_wait_for_a_block_deadlocks", no_wait_for_a_block_deadlocks),
    (
        "a_stack_that_is_used_up_ends_the_waits_for_its_block",
        a_stack_that_is_used_up_ends_the_waits_for_its_block,
    ),
    ("a_block_may_end_without_a_value", a_block_may_end_without_a_value),
    ("each_thread_looks_back_in_its_column", each_thread_looks_back_in_its_column),
    ("no_wait_of_a_column_deadlocks", no_wait_of_a_column_deadlocks),
    ("each_launch_of_a_graph_has_an_order_of_its_own", each_launch_of_a_graph_has_an_order_of_its_own),
    ("blocks_in_order_leave_the_rest_of_shared_memory", blocks_in_order_leave_the_rest_of_shared_memory),
];

fn scanned<T: Combine>(x: &[T]) -> Vec<T> {
    let mut sum: Option<T> = None;
    x.iter()
        .map(|&x| {
            let next = sum.map_or(x, |sum| sum.then(x));
            *sum.insert(next)
        })
        .collect()
}

fn a_scan_in_one_pass_combines_in_order(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(161);
    for (n, threads) in [(0, 32), (1, 32), (1000, 32), (1000, 256), (1000, 33), (40, 8), (20_000, 64)] {
        let grid = Grid::cover(n).with_block(threads);
        let what = format!("{n} by blocks of {threads}");
        macro_rules! scan {
            ($ty:ty, $none:expr, $of:expr) => {{
                let x: Vec<$ty> = (0..n).map(|_| $of).collect();
                let (device_x, mut y) = (stream.upload(&x)?, stream.upload(&vec![$none; n])?);
                in_order::scan::<$ty>(&stream, grid, $none, &device_x, &mut y)?;
                expect(&format!("{}: {what}", stringify!($ty)), stream.download(&y)?, scanned(&x))?;
            }};
        }
        scan!(u32, 0, random.u32(..));
        scan!(
            Affine<u32>,
            Affine { scale: 1, offset: 0 },
            Affine { scale: random.u32(..) | 1, offset: random.u32(..) }
        );
        scan!(
            Affine<u64>,
            Affine { scale: 1, offset: 0 },
            Affine { scale: random.u64(..) | 1, offset: random.u64(..) }
        );
    }
    Ok(())
}

fn warps_continue_what_all_warps_before_them_made(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(162);
    for (blocks, threads) in [(1_usize, 32_usize), (1, 1024), (3, 20), (70, 96), (100, 33), (7, 1000)] {
        let n = blocks * threads.div_ceil(32);
        let what = format!("{blocks} blocks of {threads}");
        macro_rules! check {
            ($ty:ty, $none:expr, $of:expr) => {{
                let x: Vec<$ty> = (0..n).map(|_| $of).collect();
                let mut expected = vec![$none];
                expected.extend(scanned(&x));
                expected.pop();
                let (device_x, mut y) = (stream.upload(&x)?, stream.upload(&vec![$none; n])?);
                let grid = Grid::new(blocks as u32, threads as u32);
                in_order::before_warps::<$ty>(&stream, grid, $none, &device_x, &mut y)?;
                expect(&format!("{}: {what}", stringify!($ty)), stream.download(&y)?, expected)?;
            }};
        }
        check!(u32, 0, random.u32(..));
        check!(
            Affine<u32>,
            Affine { scale: 1, offset: 0 },
            Affine { scale: random.u32(..) | 1, offset: random.u32(..) }
        );
        check!(
            Affine<u64>,
            Affine { scale: 1, offset: 0 },
            Affine { scale: random.u64(..) | 1, offset: random.u64(..) }
        );
    }
    Ok(())
}

fn one_thread_looks_back(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (blocks, threads) in [(1, 1), (2, 32), (700, 64)] {
        let lengths: Vec<u64> = (0..blocks).map(|i| (i * i % 17) << 30).collect();
        let (device_lengths, mut starts) = (stream.upload(&lengths)?, stream.zeros(lengths.len())?);
        in_order::starts(&stream, Grid::new(blocks as u32, threads), &device_lengths, &mut starts)?;
        let mut sum = 0;
        let expected = lengths.iter().map(|length| (sum, sum += length).0).collect();
        expect(&format!("{blocks} blocks"), stream.download(&starts)?, expected)?;
    }
    Ok(())
}

fn a_value_is_passed_from_block_to_block(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (blocks, threads) in [(1_u32, 1_u32), (300, 40), (50, 128)] {
        let n = (blocks * threads) as usize;
        let (mut notes, mut y) = (stream.zeros::<u32>(n)?, stream.zeros::<u32>(n)?);
        in_order::chain(&stream, Grid::new(blocks, threads), notes.as_atomic(), &mut y)?;
        let expected = (0..blocks * threads).map(|i| 1 + i / threads).collect();
        expect(&format!("{blocks} blocks of {threads}"), stream.download(&y)?, expected)?;
    }
    Ok(())
}

fn numbers_in_order_are_each_block_s_own(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for blocks in [1_u32, 7, 1000] {
        let n = blocks as usize * 48;
        let (mut seen, mut y) = (stream.zeros::<u32>(blocks as usize)?, stream.zeros::<u32>(n)?);
        let mut of_grid = stream.zeros::<u32>(n)?;
        in_order::places(&stream, Grid::new(blocks, 48), 5, seen.as_atomic(), &mut y)?;
        in_order::places_of_grid(&stream, Grid::new(blocks, 48), 5, &mut of_grid)?;
        expect("each number once", stream.download(&seen)?, vec![1; blocks as usize])?;
        let rounds = |x: u32| (0..5).fold(x, |x, round| x.rotate_left(1) ^ round);
        let expected: Vec<u32> = (0..n as u32).map(rounds).collect();
        expect("places by number", stream.download(&y)?, expected.clone())?;
        expect("places in the grid", stream.download(&of_grid)?, expected)?;
    }
    Ok(())
}

fn launches_at_once_have_orders_of_their_own(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?, device.new_stream()?];
    let x: Vec<u32> = (0..10_000).map(|i| i * 7 % 1000).collect();
    let mut results = Vec::new();
    for stream in streams.iter().cycle().take(6) {
        let (device_x, mut y) = (stream.upload(&x)?, stream.zeros::<u32>(x.len())?);
        in_order::scan::<u32>(stream, Grid::cover(x.len()).with_block(1024), 0, &device_x, &mut y)?;
        results.push((stream, y));
    }
    for (stream, y) in results {
        expect("sums", stream.download(&y)?, scanned(&x))?;
    }
    Ok(())
}

/// They use the same memory, where the values of kernels have different places and lengths.
fn launches_in_a_row_leave_no_values_behind(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(163);
    let (mut sums, mut maps, mut columns) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..if device.is_cuda() { 40 } else { 10 } {
        let n = random.usize(1..10_000);
        let grid = Grid::cover(n).with_block(64);
        let x: Vec<u32> = (0..n).map(|_| random.u32(..)).collect();
        let mut y = stream.zeros(n)?;
        in_order::scan::<u32>(&stream, grid, 0, &stream.upload(&x)?, &mut y)?;
        sums.push((x, y));
        let none = Affine { scale: 1, offset: 0 };
        let x: Vec<_> =
            (0..n).map(|_| Affine { scale: random.u64(..) | 1, offset: random.u64(..) }).collect();
        let mut y = stream.upload(&vec![none; n])?;
        in_order::scan::<Affine<u64>>(&stream, grid, none, &stream.upload(&x)?, &mut y)?;
        maps.push((x, y));
        let blocks = random.usize(1..50);
        let mut y = stream.zeros::<u32>(64 * blocks)?;
        in_order::columns_failing(&stream, Grid::new(blocks as u32, 64), u32::MAX, 0, &mut y)?;
        columns.push(y);
    }
    for (launch, (x, y)) in sums.iter().enumerate() {
        expect(&format!("sums of launch {launch}"), stream.download(y)?, scanned(x))?;
    }
    for (launch, (x, y)) in maps.iter().enumerate() {
        expect(&format!("maps of launch {launch}"), stream.download(y)?, scanned(x))?;
    }
    for (launch, y) in columns.iter().enumerate() {
        let expected = (0..y.len() as u32).map(|i| i / 64).collect();
        expect(&format!("columns of launch {launch}"), stream.download(y)?, expected)?;
    }
    Ok(())
}

fn no_wait_for_a_block_deadlocks(device: &Device) -> Outcome {
    for (how, what) in [
        (0, "waits for the value of a block that ended without publishing one"),
        (1, "waits for the value of a block that ended without publishing one"),
        (2, "a thread of every rank"),
        (3, "the first thread"),
        (4, "the second thread"),
        (5, "can wait only for those that have started before it"),
        (6, "can wait only for those that have started before it"),
    ] {
        for (bad, blocks) in [(0, 40), (13, 200)] {
            let stream = device.new_stream()?;
            let mut reached = stream.zeros::<u32>(1)?;
            let launched = in_order::failing(&stream, Grid::new(blocks, 64), bad, how, reached.as_atomic());
            let launched = launched.and_then(|()| stream.synchronize());
            let text = expect_error(what, launched, |error| matches!(error, Error::KernelPanic { .. }))?;
            names(&text, &[what])?;
            // The device remains usable, and the next launch has a new order.
            let mut all = stream.zeros::<u32>(1)?;
            in_order::failing(&stream, Grid::new(blocks, 64), u32::MAX, how, all.as_atomic())?;
            expect("threads that came to the end", stream.download(&all)?, vec![blocks * 64])?;
        }
    }
    Ok(())
}

fn a_stack_that_is_used_up_ends_the_waits_for_its_block(device: &Device) -> Outcome {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return not_for_this_device("the process ends, with a message, on other systems than x86-64 Linux");
    }
    if device.is_cuda() {
        return not_for_this_device("a GPU is lost when a stack is used up");
    }
    let device = Device::cpu_with(CpuOptions::new().workers(4))?;
    for bad in [0, 9] {
        let stream = device.new_stream()?;
        let x = stream.zeros::<u32>(1)?;
        in_order::too_deep(&stream, Grid::new(40, 32), bad, &x)?;
        let is_expected = |error: &Error| matches!(error, Error::Kernel(KernelError::KernelStackOverflow { block, .. }) if *block == [bad, 0, 0]);
        expect_error("a deep call", stream.synchronize(), is_expected)?;
    }
    Ok(())
}

fn a_block_may_end_without_a_value(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut y = stream.zeros::<u32>(101 * 32)?;
    in_order::every_other(&stream, Grid::new(101, 32), &mut y)?;
    let expected = (0..101 * 32).map(|i| if i / 32 % 2 == 0 { 5 + i / 64 } else { 0 }).collect();
    expect("values", stream.download(&y)?, expected)
}

fn each_thread_looks_back_in_its_column(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(162);
    for blocks in [1, 2, 40, 300] {
        let x: Vec<u32> = (0..64 * blocks).map(|_| random.u32(..100)).collect();
        let mut y = stream.zeros(x.len())?;
        in_order::down_columns(&stream, Grid::blocks(blocks), &stream.upload(&x)?, &mut y)?;
        let mut expected = vec![1000; 64];
        for i in 64..x.len() {
            let (earlier, last) = (expected[i - 64], x[i - 64]);
            expected.push(if i >= 128 && earlier % 2 == 1 { earlier } else { last });
        }
        expect(&format!("{blocks} blocks"), stream.download(&y)? == expected, true)?;
    }
    Ok(())
}

fn no_wait_of_a_column_deadlocks(device: &Device) -> Outcome {
    for (how, what) in [
        (0, "waits for the value of a block that ended without publishing one"),
        (1, "one thread of block"),
        (2, "one thread of block"),
    ] {
        for (bad, blocks) in [(0, 40), (13, 200)] {
            let stream = device.new_stream()?;
            let mut y = stream.zeros::<u32>(64 * blocks as usize)?;
            let launched = in_order::columns_failing(&stream, Grid::new(blocks, 64), bad, how, &mut y);
            let launched = launched.and_then(|()| stream.synchronize());
            let text = expect_error(what, launched, |error| matches!(error, Error::KernelPanic { .. }))?;
            names(&text, &[what])?;
            // The device remains usable, and the next launch has a new order.
            in_order::columns_failing(&stream, Grid::new(blocks, 64), u32::MAX, how, &mut y)?;
            let expected = (0..64 * blocks).map(|i| i / 64).collect::<Vec<_>>();
            expect(what, stream.download(&y)? == expected, true)?;
        }
    }
    let stream = device.new_stream()?;
    let mut y = stream.zeros::<u32>(320)?;
    let launched = in_order::columns_failing(&stream, Grid::new(10, 32), u32::MAX, 0, &mut y);
    let launched = launched.and_then(|()| stream.synchronize());
    let text = expect_error("threads", launched, |error| matches!(error, Error::KernelPanic { .. }))?;
    names(&text, &["64", "32"])
}

fn each_launch_of_a_graph_has_an_order_of_its_own(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?];
    let stream = &streams[0];
    let (x, y, twice) = (stream.zeros::<u32>(5000)?, stream.zeros::<u32>(5000)?, stream.zeros::<u32>(5000)?);
    let grid = Grid::cover(5000).with_block(1024);
    let (graph, (x, twice)) = stream.capture(|capture| {
        let (x, mut y, mut twice) = (capture.keep(x)?, capture.keep(y)?, capture.keep(twice)?);
        in_order::scan::<u32>(capture, grid, 0, &x, &mut y)?;
        in_order::scan::<u32>(capture, grid, 0, &y, &mut twice)?;
        Ok((x.key(), twice.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for (round, stream) in (1..).zip(streams.iter().cycle().take(6)) {
        let input: Vec<u32> = (0..5000).map(|i| i * round % 7).collect();
        stream.upload_into(&input, graph.view_mut(x)?)?;
        graph.launch(stream)?;
        let found = stream.download(graph.view(twice)?)?;
        expect(&format!("launch {round}"), found, scanned(&scanned(&input)))?;
    }
    Ok(())
}

fn blocks_in_order_leave_the_rest_of_shared_memory(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut y, limit) = (stream.zeros(4)?, device.shared_memory_per_block() - 16);
    in_order::roomy(&stream, Grid::blocks(4), &mut y, limit)?;
    expect("numbers", stream.download(&y)?, vec![0, 1, 2, 3])?;
    let refused = in_order::roomy(&stream, Grid::blocks(4), &mut y, limit + 1);
    let is_expected = |error: &Error| matches!(error, Error::Launch(LaunchError::SharedMemoryTooLarge { limit: found, .. }) if *found == limit);
    expect_error("one byte more", refused, is_expected).map(drop)
}
