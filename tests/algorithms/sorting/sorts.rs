//! Radix sorts: of keys, of pairs, by some bits, and the order of indices.

use std::fmt::Debug;

use ferrogrid::LaunchError;
use ferrogrid::algorithms::{self, Number, RadixSort};
use ferrogrid::prelude::*;

use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error, names};
use crate::{FEW_LENGTHS, LENGTHS};

pub(crate) const CASES: &[Case] = &[
    ("keys_of_all_types_are_sorted", keys_of_all_types_are_sorted),
    ("floats_are_sorted_by_total_cmp", floats_are_sorted_by_total_cmp),
    ("keys_in_any_arrangement_are_sorted", keys_in_any_arrangement_are_sorted),
    ("pairs_with_equal_keys_stay_in_order", pairs_with_equal_keys_stay_in_order),
    ("some_bits_are_sorted", some_bits_are_sorted),
    ("argsort_finds_the_elements", argsort_finds_the_elements),
    ("sorts_take_equal_lengths", sorts_take_equal_lengths),
    ("sorts_write_nothing_else", sorts_write_nothing_else),
    ("long_inputs_are_sorted", long_inputs_are_sorted),
    ("blocks_take_more_of_many_elements", blocks_take_more_of_many_elements),
    ("sorts_are_recorded_in_graphs", sorts_are_recorded_in_graphs),
    ("portions_are_sorted_as_one", portions_are_sorted_as_one),
    ("portions_have_many_blocks", portions_have_many_blocks),
    ("sorts_go_beyond_2_to_the_32", sorts_go_beyond_2_to_the_32),
];

/// Both directions, against the order of `compare`. `bits` makes equal what has equal bits.
fn check<T: Number + Debug, B: PartialEq + Debug>(
    what: &str,
    stream: &Stream,
    x: &[T],
    compare: impl Fn(&T, &T) -> std::cmp::Ordering,
    bits: impl Fn(&T) -> B,
) -> Outcome {
    let bits_of = |x: &[T]| x.iter().map(&bits).collect::<Vec<_>>();
    let (device_x, mut y) = (stream.upload(x)?, stream.upload(x)?);
    let mut sorted = x.to_vec();
    sorted.sort_by(&compare);
    algorithms::sort(stream, &device_x, &mut y)?;
    expect(what, bits_of(&stream.download(&y)?) == bits_of(&sorted), true)?;
    sorted.reverse();
    algorithms::sort_descending(stream, &device_x, &mut y)?;
    expect(what, bits_of(&stream.download(&y)?) == bits_of(&sorted), true)?;
    expect("the input is as before", bits_of(&stream.download(&device_x)?) == bits_of(x), true)
}

fn keys_of_all_types_are_sorted(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(191);
    macro_rules! sorts {
        ($($t:ident),*) => {
            $(for &n in FEW_LENGTHS {
                let x: Vec<$t> = (0..n).map(|_| random.$t(..)).collect();
                check(&format!("{n} {}", stringify!($t)), &stream, &x, $t::cmp, |x| *x)?;
            })*
        };
    }
    sorts!(i8, i16, i32, i64, u8, u16, u32, u64);
    Ok(())
}

fn floats_are_sorted_by_total_cmp(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(192);
    let special =
        [0.0, -0.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, 1e-45];
    for &n in FEW_LENGTHS {
        let x: Vec<f32> =
            (0..n).map(|i| if i % 5 == 0 { special[i / 5 % 8] } else { random.f32() - 0.5 }).collect();
        check(&format!("{n} f32"), &stream, &x, f32::total_cmp, |x| x.to_bits())?;
        let wide: Vec<f64> = x.iter().map(|&x| f64::from(x) * 1e100).collect();
        check(&format!("{n} f64"), &stream, &wide, f64::total_cmp, |x| x.to_bits())?;
    }
    Ok(())
}

fn keys_in_any_arrangement_are_sorted(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(193);
    for &n in LENGTHS {
        let random: Vec<u16> = (0..n).map(|_| random.u16(..)).collect();
        check(&format!("{n} at random"), &stream, &random, u16::cmp, |x| *x)?;
    }
    let n = 5000;
    type Arrangement = (&'static str, fn(u32) -> u32);
    let arrangements: [Arrangement; 5] = [
        ("equal", |_| 7),
        ("all bits", |_| u32::MAX),
        ("ascending", |i| i * 3),
        ("descending", |i| u32::MAX - i),
        ("two values", |i| if i % 3 == 0 { 1 << 31 } else { 5 }),
    ];
    for (name, of) in arrangements {
        check(name, &stream, &(0..n).map(of).collect::<Vec<u32>>(), u32::cmp, |x| *x)?;
    }
    Ok(())
}

fn pairs_with_equal_keys_stay_in_order(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(194);
    macro_rules! pairs {
        ($($t:ident, $value:ident;)*) => {
            $(for &n in FEW_LENGTHS {
                for descending in [false, true] {
                    // Few different keys, and values that name the place.
                    let x: Vec<$t> = (0..n).map(|_| $t::MAX / 3 * random.$t(0..4)).collect();
                    let values: Vec<$value> = (0..n).map(|i| i as $value).collect();
                    let mut sorted: Vec<_> = x.iter().copied().zip(values.iter().copied()).collect();
                    sorted.sort_by(|(a, _), (b, _)| if descending { b.cmp(a) } else { a.cmp(b) });
                    let (mut y, mut moved) = (stream.zeros::<$t>(n)?, stream.zeros::<$value>(n)?);
                    let (x, values) = (stream.upload(&x)?, stream.upload(&values)?);
                    let sort = if descending { RadixSort::descending() } else { RadixSort::ascending() };
                    sort.pairs(&stream, &x, &values, &mut y, &mut moved)?;
                    let found: Vec<_> = stream.download(&y)?.into_iter().zip(stream.download(&moved)?).collect();
                    expect(concat!(stringify!($t), " ", stringify!($value)), found == sorted, true)?;
                }
            })*
        };
    }
    pairs! { u8, u32; i16, f64; u32, u32; i32, u64; u64, f32; i64, i64; }
    Ok(())
}

fn some_bits_are_sorted(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(195);
    for (n, bits) in [4500, 700]
        .into_iter()
        .flat_map(|n| [0..0, 0..1, 3..12, 8..24, 31..32, 20..64, 40..50].map(|bits| (n, bits)))
    {
        let x: Vec<u32> = (0..n).map(|_| random.u32(..)).collect();
        let (device_x, mut y) = (stream.upload(&x)?, stream.zeros(x.len())?);
        let key = |x: &u32| {
            let above = u64::from(*x) >> bits.start.min(32);
            above & ((1 << (bits.end.min(32) - bits.start.min(32))) - 1)
        };
        let mut sorted = x.clone();
        sorted.sort_by_key(key);
        RadixSort::ascending().of_bits(bits.clone()).keys(&stream, &device_x, &mut y)?;
        expect(&format!("{bits:?} of {n}"), stream.download(&y)? == sorted, true)?;
    }
    Ok(())
}

fn argsort_finds_the_elements(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(196);
    for &n in FEW_LENGTHS {
        let x: Vec<i16> = (0..n).map(|_| random.i16(-20..20)).collect();
        let mut expected: Vec<u32> = (0..n as u32).collect();
        expected.sort_by_key(|&i| x[i as usize]);
        let mut indices = stream.zeros(n)?;
        algorithms::argsort(&stream, &stream.upload(&x)?, &mut indices)?;
        expect(&format!("{n}"), stream.download(&indices)? == expected, true)?;
    }
    Ok(())
}

fn sorts_take_equal_lengths(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let is_expected = |error: &Error| matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }));
    for (n, m) in [(0, 1), (1, 0), (5000, 4999)] {
        let (x, mut y) = (stream.zeros::<u32>(n)?, stream.zeros::<u32>(m)?);
        let text = expect_error("keys", algorithms::sort(&stream, &x, &mut y), is_expected)?;
        names(&text, &[&n.to_string(), &m.to_string()])?;
        let (values, mut moved) = (stream.zeros::<u32>(m)?, stream.zeros::<u32>(n)?);
        let mut y = stream.zeros::<u32>(n)?;
        let pairs = algorithms::sort_pairs(&stream, &x, &values, &mut y, &mut moved);
        expect_error("pairs", pairs, is_expected)?;
    }
    Ok(())
}

fn sorts_write_nothing_else(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u8> = (0..9000).map(|i| (i % 251) as u8).collect();
    let device_x = stream.upload(&x)?;
    for n in [1, 33, 4097] {
        let mut y = stream.fill(7_u8, 9000)?;
        algorithms::sort(&stream, device_x.slice(3..3 + n)?, y.slice_mut(5..5 + n)?)?;
        let mut expected = vec![7; 9000];
        expected[5..5 + n].copy_from_slice(&x[3..3 + n]);
        expected[5..5 + n].sort_unstable();
        expect(&format!("{n}"), stream.download(&y)? == expected, true)?;
    }
    Ok(())
}

/// Many blocks that look back. Fewer on the CPU device, where it is slow without optimisation.
/// Up to 2^18 elements have small tiles.
fn blocks_take_more_of_many_elements(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(198);
    for n in [1 << 18, (1 << 18) + 1] {
        let bytes: Vec<u8> = (0..n).map(|_| random.u8(..)).collect();
        check(&format!("{n} u8"), &stream, &bytes, u8::cmp, |x| *x)?;
        if device.is_cuda() {
            let words: Vec<u32> = (0..n).map(|_| random.u32(..)).collect();
            check(&format!("{n} u32"), &stream, &words, u32::cmp, |x| *x)?;
            let long: Vec<u64> = (0..n).map(|_| random.u64(..)).collect();
            check(&format!("{n} u64"), &stream, &long, u64::cmp, |x| *x)?;
        }
    }
    Ok(())
}

fn long_inputs_are_sorted(device: &Device) -> Outcome {
    let n: usize = if device.is_cuda() { 30_000_001 } else { 100_003 };
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(197);
    let x: Vec<u16> = (0..n).map(|_| random.u16(..)).collect();
    let values: Vec<u32> = (0..n as u32).collect();
    let (keys, places, mut y, mut moved) =
        (stream.upload(&x)?, stream.upload(&values)?, stream.zeros(n)?, stream.zeros(n)?);
    algorithms::sort_pairs(&stream, &keys, &places, &mut y, &mut moved)?;
    let mut sorted: Vec<(u16, u32)> = x.into_iter().zip(values).collect();
    sorted.sort_unstable();
    let found: Vec<_> = stream.download(&y)?.into_iter().zip(stream.download(&moved)?).collect();
    expect("all pairs", found == sorted, true)
}

fn sorts_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y) = (stream.zeros::<i32>(5000)?, stream.zeros::<i32>(5000)?);
    let (graph, (x, y)) = stream.capture(|capture| {
        let (x, mut y) = (capture.keep(x)?, capture.keep(y)?);
        algorithms::sort(capture, &x, &mut y)?;
        Ok((x.key(), y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for seed in 0..3 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut values: Vec<i32> = (0..5000).map(|_| random.i32(..)).collect();
        stream.upload_into(&values, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        values.sort_unstable();
        expect("sorted", stream.download(graph.view(y)?)? == values, true)?;
    }
    Ok(())
}

/// Sorts pairs in such portions, by the bits of each range and both ways, against a stable sort.
fn check_portions<T: Number + Into<u64>, V: Number + PartialEq>(
    stream: &Stream,
    (portion, ranges): (usize, &[[u32; 2]]),
    x: &[T],
    value: fn(usize) -> V,
) -> Outcome {
    let values: Vec<V> = (0..x.len()).map(value).collect();
    let (keys, places) = (stream.upload(x)?, stream.upload(&values)?);
    let (mut y, mut moved) = (stream.zeros::<T>(x.len())?, stream.zeros::<V>(x.len())?);
    for (&[first, end], is_descending) in ranges.iter().flat_map(|bits| [(bits, false), (bits, true)]) {
        let sort = if is_descending { RadixSort::descending() } else { RadixSort::ascending() };
        let sort = sort.of_bits(first..end).in_portions_of(portion);
        let key = |x: T| (x.into() >> first) & (u64::MAX >> (64 - (end - first)));
        let mut sorted: Vec<(T, V)> = x.iter().copied().zip(values.iter().copied()).collect();
        sorted.sort_by(
            |&(a, _), &(b, _)| if is_descending { key(b).cmp(&key(a)) } else { key(a).cmp(&key(b)) },
        );
        let (expected, expected_values): (Vec<T>, Vec<V>) = sorted.into_iter().unzip();
        let what = format!("{} in portions of {portion}: {sort:?}", x.len());
        sort.pairs(stream, &keys, &places, &mut y, &mut moved)?;
        expect(&what, stream.download(&y)? == expected, true)?;
        expect(&what, stream.download(&moved)? == expected_values, true)?;
        stream.fill_into(T::ZERO, &mut y)?;
        sort.keys(stream, &keys, &mut y)?;
        expect(&what, stream.download(&y)? == expected, true)?;
    }
    Ok(())
}

/// From two portions to several, which end at a tile of 2048 or 5120 elements, or one element after it.
fn portions_are_sorted_as_one(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(199);
    for n in [4096, 6145] {
        let x: Vec<u8> = (0..n).map(|_| random.u8(..)).collect();
        check_portions(&stream, (1, &[[0, 8]]), &x, |i| i as u32)?;
    }
    let x: Vec<u32> = (0..10_241).map(|_| random.u32(..)).collect();
    check_portions(&stream, (2048, &[[0, 32], [3, 12]]), &x, |i| i as u32)?;
    check_portions(&stream, (2049, &[[4, 28]]), &x, |i| i as u64)?;
    // All elements of a portion have one digit, in each but the first pass.
    let x: Vec<u64> = (0..10_241).map(|i| ((i % 7) << 8) | (u64::MAX << 11)).collect();
    check_portions(&stream, (1, &[[0, 64], [8, 16]]), &x, |i| i as u64)
}

/// Portions of large tiles, of which the last one has small ones.
fn portions_have_many_blocks(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (portion, mut random) = ((1 << 18) + 1, fastrand::Rng::with_seed(200));
    let bytes: Vec<u8> = (0..600_000).map(|_| random.u8(..)).collect();
    check_portions(&stream, (portion, &[[0, 8]]), &bytes, |i| i as u32)?;
    if device.is_cuda() {
        let words: Vec<u32> = (0..600_000).map(|_| random.u32(..)).collect();
        check_portions(&stream, (portion, &[[0, 32]]), &words, |i| i as u32)?;
        let long: Vec<u64> = (0..600_000).map(|_| random.u64(..)).collect();
        check_portions(&stream, (portion, &[[0, 64]]), &long, |i| i as u64)?;
    }
    Ok(())
}

/// More than 2^32 keys, most of which are equal: where each digit begins needs 64 bits.
fn sorts_go_beyond_2_to_the_32(device: &Device) -> Outcome {
    if !device.is_cuda() {
        return not_for_this_device("it would take minutes");
    }
    let stream = device.new_stream()?;
    let (whole, n) = (1_usize << 32, (1_usize << 32) + 5000);
    let (mut x, mut y) = (stream.fill::<u8>(7, n)?, stream.zeros::<u8>(n)?);
    let others = [(0, 9), (1, 3), (whole - 1, 200), (whole, 4), (whole + 1, 201), (n - 1, 1)];
    for (place, key) in others {
        stream.fill_into(key, x.slice_mut(place..place + 1)?)?;
    }
    algorithms::sort(&stream, &x, &mut y)?;
    expect("the least", stream.download(y.slice(..5)?)?, vec![1, 3, 4, 7, 7])?;
    expect("the greatest", stream.download(y.slice(n - 5..)?)?, vec![7, 7, 9, 200, 201])?;
    expect("the others", algorithms::count(&stream, &y, 7)?, n - 6)?;
    algorithms::sort_descending(&stream, &x, &mut y)?;
    expect("the greatest", stream.download(y.slice(..5)?)?, vec![201, 200, 9, 7, 7])?;
    expect("the least", stream.download(y.slice(n - 5..)?)?, vec![7, 7, 4, 3, 1])?;
    let x = stream.zeros::<u8>(n)?;
    let places = algorithms::argsort(&stream, &x, &mut stream.zeros(1)?);
    expect_error("places of so many", places, |error| matches!(error, Error::Launch(_)))?;
    Ok(())
}
