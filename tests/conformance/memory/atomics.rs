//! Atomics: every operation, ordering and scope, and that no update is lost.

use ferrogrid::prelude::*;

use crate::memory::atomic_kernels::{contended, operations};
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("every_integer_operation_is_correct", every_integer_operation_is_correct),
    ("every_float_operation_is_correct", every_float_operation_is_correct),
    ("small_integers_are_loaded_and_stored", small_integers_are_loaded_and_stored),
    ("float_exchanges_compare_bits", float_exchanges_compare_bits),
    ("no_ticket_is_taken_twice", no_ticket_is_taken_twice),
    ("a_histogram_agrees_with_the_host", a_histogram_agrees_with_the_host),
    ("float_summaries_agree_within_rounding", float_summaries_agree_within_rounding),
    ("compare_exchange_loops_lose_nothing", compare_exchange_loops_lose_nothing),
    ("bits_of_one_word_are_changed_independently", bits_of_one_word_are_changed_independently),
    ("released_writes_are_seen_after_an_acquire", released_writes_are_seen_after_an_acquire),
    ("blocks_count_in_their_own_scope", blocks_count_in_their_own_scope),
    ("a_slice_of_a_view_leaves_the_rest", a_slice_of_a_view_leaves_the_rest),
    ("launches_on_different_streams_add_up", launches_on_different_streams_add_up),
    ("launches_from_different_threads_add_up", launches_from_different_threads_add_up),
    ("parts_of_a_buffer_may_be_atomic", parts_of_a_buffer_may_be_atomic),
];

/// Runs all operations of one integer type with every ordering, and compares with a model.
macro_rules! integers {
    ($stream:ident, $kernel:path, $ty:ident, $cases:expr) => {
        for (start, operand) in $cases {
            let (start, operand): ($ty, $ty) = (start, operand);
            let numeric: [($ty, $ty); operations::NUMERIC] = [
                (start, start),
                (operand, operand),
                (start, operand),
                (start, start.wrapping_add(operand)),
                (start, start.wrapping_sub(operand)),
                (start, start.min(operand)),
                (start, start.max(operand)),
                (start, operand),
                (start, start),
            ];
            let bitwise: [($ty, $ty); operations::BITWISE] =
                [(start, start & operand), (start, start | operand), (start, start ^ operand)];
            let (returned, left): (Vec<$ty>, Vec<$ty>) = numeric.into_iter().chain(bitwise).unzip();
            for order in 0..5 {
                let mut cells = $stream.upload(&vec![start; left.len()])?;
                let mut found = $stream.upload(&vec![0 as $ty; left.len()])?;
                let grid = Grid::cover(left.len());
                $kernel(&$stream, grid, order, operand, start, cells.as_atomic(), &mut found)?;
                let what = format!("{} {start} {operand}, ordering {order}", stringify!($kernel));
                expect(&format!("{what}: returned"), $stream.download(&found)?, returned.clone())?;
                expect(&format!("{what}: left"), $stream.download(&cells)?, left.clone())?;
            }
        }
    };
}

fn every_integer_operation_is_correct(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let words = [(5, 9), (9, 5), (u32::MAX, 1), (0, u32::MAX), (0xf0f0_1234, 0x0ff0_4321)];
    integers!(stream, operations::on_u32, u32, words);
    integers!(stream, operations::on_u32_in_block, u32, words);
    let long = [(5, 9), (u64::MAX, 1), (0, u64::MAX), (1 << 40, (1 << 32) - 1)];
    integers!(stream, operations::on_u64, u64, long);
    integers!(stream, operations::on_u64_in_system, u64, long);
    integers!(stream, operations::on_i32, i32, [(-5, 9), (9, -5), (i32::MAX, 1), (i32::MIN, i32::MAX)]);
    integers!(stream, operations::on_i64, i64, [(-5, 9), (9, -5), (i64::MAX, 1), (i64::MIN, 1 << 40)]);
    Ok(())
}

/// Runs all operations of one float type with every ordering, and compares with a model.
macro_rules! floats {
    ($stream:ident, $kernel:path, $ty:ident, $cases:expr) => {
        for (start, operand) in $cases {
            let (start, operand): ($ty, $ty) = (start, operand);
            let expected = [
                (start, start),
                (operand, operand),
                (start, operand),
                (start, start + operand),
                (start, start - operand),
                (start, start.min(operand)),
                (start, start.max(operand)),
                (start, operand),
                (start, start),
            ];
            let (returned, left): (Vec<$ty>, Vec<$ty>) = expected.into_iter().unzip();
            for order in 0..5 {
                let mut cells = $stream.upload(&[start; operations::NUMERIC])?;
                let mut found = $stream.upload(&[0.0 as $ty; operations::NUMERIC])?;
                let grid = Grid::cover(operations::NUMERIC);
                $kernel(&$stream, grid, order, operand, start, cells.as_atomic(), &mut found)?;
                let what = format!("{} {start} {operand}, ordering {order}", stringify!($kernel));
                expect(&format!("{what}: returned"), $stream.download(&found)?, returned.clone())?;
                expect(&format!("{what}: left"), $stream.download(&cells)?, left.clone())?;
            }
        }
    };
}

fn every_float_operation_is_correct(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let cases = [(1.5, 2.25), (2.25, 1.5), (-1.0, 0.5), (0.1, -0.3), (3.0e30, -1.0e-3)];
    floats!(stream, operations::on_f32, f32, cases);
    let cases = [(1.5, 2.25), (2.25, 1.5), (-1.0, 0.5), (0.1, -0.3), (3.0e300, -1.0e-300)];
    floats!(stream, operations::on_f64, f64, cases);
    Ok(())
}

fn small_integers_are_loaded_and_stored(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    macro_rules! small {
        ($($t:ident),*) => {
            $(for order in 0..5 {
                let x: Vec<$t> = (0..1000).map(|i| i as $t).collect();
                let (mut from, mut to) = (stream.upload(&x)?, stream.fill(<$t>::MAX, 2000)?);
                operations::reverse::<$t>(&stream, Grid::cover(1000), order, from.as_atomic(), to.as_atomic())?;
                // The neighbours in the same word are unchanged.
                let expected: Vec<$t> = x.iter().rev().flat_map(|x| [*x, <$t>::MAX]).collect();
                expect(&format!("{}, ordering {order}", stringify!($t)), stream.download(&to)?, expected)?;
            })*
        };
    }
    small!(u8, i8, u16, i16);
    Ok(())
}

fn float_exchanges_compare_bits(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let exchange = operations::NUMERIC - 2;
    let minimum = 5;
    // (start, expected, operand) and the value after the exchange, and after the minimum.
    let nan = f32::from_bits(0x7fc0_1234);
    for (start, expected, operand, exchanged, least) in
        [(nan, nan, 1.0, 1.0, 1.0), (0.0, -0.0, 2.0, 0.0, 0.0), (-0.0, -0.0, 2.0, 2.0, -0.0)]
    {
        let mut cells = stream.upload(&[start; operations::NUMERIC])?;
        let mut found = stream.upload(&[0.0_f32; operations::NUMERIC])?;
        let grid = Grid::cover(operations::NUMERIC);
        operations::on_f32(&stream, grid, 0, operand, expected, cells.as_atomic(), &mut found)?;
        let (left, found) = (stream.download(&cells)?, stream.download(&found)?);
        let bits = |values: [f32; 3]| values.map(f32::to_bits);
        let what = format!("{start:?} exchanged for {operand} if {expected:?}");
        expect(
            &what,
            bits([found[exchange], left[exchange], left[minimum]]),
            bits([start, exchanged, least]),
        )?;
    }
    Ok(())
}

fn no_ticket_is_taken_twice(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [1_u32, 33, 10_007, 100_000] {
        let mut counter = stream.upload(&[0_u32])?;
        let mut taken = stream.upload(&vec![u32::MAX; n as usize])?;
        contended::tickets(&stream, Grid::cover(n as usize), counter.as_atomic(), &mut taken)?;
        let mut taken = stream.download(&taken)?;
        taken.sort_unstable();
        expect("tickets", taken, (0..n).collect())?;
        expect("counter", stream.download(&counter)?, vec![n])?;

        let mut counter = stream.upload(&[u64::from(n) << 32])?;
        let mut taken = stream.upload(&vec![0_u64; n as usize])?;
        contended::tickets_down(&stream, Grid::cover(n as usize), counter.as_atomic(), &mut taken)?;
        let mut taken = stream.download(&taken)?;
        taken.sort_unstable_by(|a, b| b.cmp(a));
        expect("tickets", taken, (0..n).map(|i| (u64::from(n) << 32) - u64::from(i)).collect())?;
    }
    Ok(())
}

fn a_histogram_agrees_with_the_host(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [0_usize, 1, 997, 300_000] {
        let mut random = fastrand::Rng::with_seed(n as u64);
        let data: Vec<u8> = (0..n).map(|_| random.u8(..) & random.u8(..)).collect();
        let mut expected = vec![0_u32; 256];
        data.iter().for_each(|&byte| expected[usize::from(byte)] += 1);
        let device_data = stream.upload(&data)?;
        let mut counts = stream.zeros::<u32>(256)?;
        contended::histogram(&stream, Grid::new(16, 128), &device_data, counts.as_atomic())?;
        expect("counts", stream.download(&counts)?, expected)?;
    }
    Ok(())
}

fn float_summaries_agree_within_rounding(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(7);
    let values: Vec<f32> = (0..20_000).map(|_| random.f32() * 2.0 - 1.0).collect();
    let doubles: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
    let (sum, size) = (doubles.iter().sum::<f64>(), doubles.iter().map(|value| value.abs()).sum::<f64>());
    let least = values.iter().copied().fold(f32::INFINITY, f32::min);
    let greatest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);

    let input = stream.upload(&values)?;
    let mut result = stream.upload(&[0.0, 0.0, f32::INFINITY, f32::NEG_INFINITY])?;
    contended::summary_f32(&stream, Grid::new(16, 128), &input, result.as_atomic())?;
    let found = stream.download(&result)?;
    // Each addition rounds by half a unit in the last place of a sum that is at most `size`.
    let bound = values.len() as f64 * f64::from(f32::EPSILON) / 2.0 * size;
    expect("sum", (f64::from(found[0]) - sum).abs() <= bound, true)?;
    expect("negative sum", (f64::from(found[1]) + sum).abs() <= bound, true)?;
    expect("least and greatest", found[2..].to_vec(), vec![least, greatest])?;

    let input = stream.upload(&doubles)?;
    let mut result = stream.upload(&[0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY])?;
    contended::summary_f64(&stream, Grid::new(16, 128), &input, result.as_atomic())?;
    let found = stream.download(&result)?;
    let bound = values.len() as f64 * f64::EPSILON * size;
    expect("sum", (found[0] - sum).abs() <= bound && (found[1] + sum).abs() <= bound, true)?;
    expect("least and greatest", found[2..].to_vec(), vec![f64::from(least), f64::from(greatest)])
}

fn compare_exchange_loops_lose_nothing(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let count = 5_000;
    let mut product = stream.upload(&[1_u64])?;
    contended::product_of_odds(&stream, Grid::new(8, 128), count, product.as_atomic())?;
    let expected = (0..u64::from(count)).fold(1_u64, |product, i| product.wrapping_mul(2 * i + 1));
    expect("product", stream.download(&product)?, vec![expected])
}

fn bits_of_one_word_are_changed_independently(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.upload(&[[0_u32; 32], [u32::MAX; 32], [0xaaaa_5555; 32]].concat())?;
    let all = buffer.as_atomic();
    let (set, cleared, toggled) = (all.slice(..32)?, all.slice(32..64)?, all.slice(64..)?);
    contended::bits(&stream, Grid::new(3, 96), 1000, set, cleared, toggled)?;
    let mask = |word: usize| match word {
        31 => (1_u32 << 8) - 1,
        _ => u32::MAX,
    };
    let expected = (0..32)
        .map(mask)
        .chain((0..32).map(|word| !mask(word)))
        .chain((0..32).map(|word| 0xaaaa_5555 ^ mask(word)))
        .collect();
    expect("words", stream.download(&buffer)?, expected)
}

fn released_writes_are_seen_after_an_acquire(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [1_u32, 1000, 50_000] {
        let mut slots = stream.zeros::<u32>(n as usize)?;
        let mut arrived = stream.zeros::<u32>(1)?;
        let mut sum = stream.zeros::<u64>(1)?;
        let grid = Grid::cover(n as usize).with_block(64);
        let (slots, arrived) = (slots.as_atomic(), arrived.as_atomic());
        contended::last_one_sums(&stream, grid, n, slots, arrived, sum.as_atomic())?;
        expect("sum", stream.download(&sum)?, vec![u64::from(n) * (u64::from(n) + 1) / 2])?;
    }
    Ok(())
}

fn blocks_count_in_their_own_scope(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut counts = stream.zeros::<u32>(40)?;
    contended::threads_of_each_block(&stream, Grid::new(40, 192), counts.as_atomic())?;
    expect("counts", stream.download(&counts)?, vec![192; 40])
}

fn a_slice_of_a_view_leaves_the_rest(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let data = stream.upload(&[0_u8, 1, 2, 2])?;
    let mut counts = stream.upload(&[7_u32; 300])?;
    let middle = counts.as_atomic().slice(10..266)?;
    contended::histogram(&stream, Grid::cover(4), &data, middle)?;
    let mut expected = vec![7; 300];
    (expected[10], expected[11], expected[12]) = (8, 8, 9);
    expect("counts", stream.download(&counts)?, expected)?;
    expect("a range outside", counts.as_atomic().slice(..301).is_err(), true)
}

fn launches_on_different_streams_add_up(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?, device.new_stream()?];
    let data = streams[0].upload(&vec![3_u8; 50_000])?;
    let mut counts = streams[1].zeros::<u32>(256)?;
    let view = counts.as_atomic();
    for stream in streams.iter().cycle().take(30) {
        contended::histogram(stream, Grid::new(8, 128), &data, view)?;
    }
    expect("count", device.new_stream()?.download(counts.slice(2..5)?)?, vec![0, 30 * 50_000, 0])
}

fn launches_from_different_threads_add_up(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let data = stream.upload(&vec![3_u8; 10_000])?;
    let mut counts = stream.zeros::<u32>(256)?;
    let view = counts.as_atomic();
    std::thread::scope(|scope| {
        let launch = || -> ferrogrid::Result<()> {
            let stream = device.new_stream()?;
            (0..10).try_for_each(|_| contended::histogram(&stream, Grid::new(8, 128), &data, view))
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(launch)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    expect("count", stream.download(counts.slice(2..5)?)?, vec![0, 4 * 10 * 10_000, 0])
}

fn parts_of_a_buffer_may_be_atomic(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut buffer = stream.upload(&[u32::MAX; 101])?;
    let (taken, mut counter) = buffer.split_at_mut(100)?;
    stream.fill_into(0, counter.reborrow())?;
    contended::tickets(&stream, Grid::cover(100), counter.into_atomic(), taken)?;
    let mut found = stream.download(&buffer)?;
    found.sort_unstable();
    expect("tickets and their number", found, (0..=100).collect())
}
