//! Selections and runs: flagged elements, partitions, first elements of runs, run-length codes.

use std::fmt::Debug;

use ferrogrid::LaunchError;
use ferrogrid::algorithms::{self, Number};
use ferrogrid::prelude::*;

use super::{FEW_LENGTHS, LENGTHS};
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("flagged_elements_are_selected_in_order", flagged_elements_are_selected_in_order),
    ("selections_take_all_types", selections_take_all_types),
    ("partitions_keep_the_order_of_both_parts", partitions_keep_the_order_of_both_parts),
    ("the_first_of_each_run_is_kept", the_first_of_each_run_is_kept),
    ("runs_of_all_types_are_encoded_and_decoded", runs_of_all_types_are_encoded_and_decoded),
    ("runs_longer_than_a_tile_have_their_length", runs_longer_than_a_tile_have_their_length),
    ("nan_is_one_run_and_zeros_are_another", nan_is_one_run_and_zeros_are_another),
    ("runs_of_no_elements_are_skipped", runs_of_no_elements_are_skipped),
    (
        "an_output_that_is_too_short_is_filled_and_reported",
        an_output_that_is_too_short_is_filled_and_reported,
    ),
    ("selections_take_equal_lengths", selections_take_equal_lengths),
    ("a_count_on_the_device_feeds_a_graph", a_count_on_the_device_feeds_a_graph),
    ("long_inputs_are_selected", long_inputs_are_selected),
    ("selections_go_beyond_2_to_the_32", selections_go_beyond_2_to_the_32),
];

/// The elements and the rest of `y`, which the function has left as it was.
const UNTOUCHED: u32 = 0xDEAD_BEEF;

/// Flags of several shapes for `n` elements.
fn flags_of(n: usize, random: &mut fastrand::Rng) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("random", (0..n).map(|_| if random.bool() { random.u8(1..) } else { 0 }).collect()),
        ("few", (0..n).map(|_| u8::from(random.u32(..100) == 0)).collect()),
        ("all", vec![1; n]),
        ("none", vec![0; n]),
        ("alternating", (0..n).map(|i| (i % 2) as u8).collect()),
        ("first half", (0..n).map(|i| u8::from(i < n / 2)).collect()),
        ("last", (0..n).map(|i| u8::from(i + 1 == n)).collect()),
    ]
}

fn flagged_elements_are_selected_in_order(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(190);
    for &n in LENGTHS {
        let x: Vec<u32> = (0..n).map(|_| random.u32(..)).collect();
        for (shape, flags) in flags_of(n, &mut random) {
            let mut expected: Vec<u32> =
                x.iter().zip(&flags).filter(|(_, flag)| **flag != 0).map(|(x, _)| *x).collect();
            let count = expected.len();
            expected.resize(n, UNTOUCHED);
            let mut y = stream.fill(UNTOUCHED, n)?;
            let found = algorithms::select(&stream, &stream.upload(&x)?, &stream.upload(&flags)?, &mut y)?;
            expect(&format!("{n}, {shape}: count"), found, count)?;
            expect(&format!("{n}, {shape}"), stream.download(&y)?, expected)?;
        }
    }
    Ok(())
}

fn selections_take_all_types(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(191);
    macro_rules! selections {
        ($($t:ident: $of:expr),*) => {
            $(for &n in FEW_LENGTHS {
                let x: Vec<$t> = (0..n).map(|_| $of).collect();
                let flags: Vec<bool> = (0..n).map(|_| random.bool()).collect();
                let flagged = |flag| x.iter().zip(&flags).filter(move |(_, it)| **it == flag).map(|(x, _)| *x);
                let (kept, parts): (Vec<$t>, Vec<$t>) = (flagged(true).collect(), flagged(true).chain(flagged(false)).collect());
                let (x, flags, mut y) = (stream.upload(&x)?, stream.upload(&flags)?, stream.zeros(n)?);
                let what = format!("{n} {}", stringify!($t));
                expect(&what, algorithms::select(&stream, &x, &flags, &mut y)?, kept.len())?;
                expect(&what, stream.download(y.slice(..kept.len())?)?, kept.clone())?;
                expect(&what, algorithms::partition(&stream, &x, &flags, &mut y)?, kept.len())?;
                expect(&what, stream.download(&y)?, parts)?;
            })*
        };
    }
    selections! {
        i8: random.i8(..), i16: random.i16(..), i32: random.i32(..), i64: random.i64(..),
        u8: random.u8(..), u16: random.u16(..), u32: random.u32(..), u64: random.u64(..),
        f32: random.f32() - 0.5, f64: random.f64() - 0.5
    }
    Ok(())
}

fn partitions_keep_the_order_of_both_parts(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(192);
    for &n in LENGTHS {
        let x: Vec<u64> = (0..n as u64).collect();
        for (shape, flags) in flags_of(n, &mut random) {
            let (kept, others): (Vec<u64>, Vec<u64>) = x.iter().partition(|x| flags[**x as usize] != 0);
            let mut y = stream.zeros(n)?;
            let found = algorithms::partition(&stream, &stream.upload(&x)?, &stream.upload(&flags)?, &mut y)?;
            expect(&format!("{n}, {shape}: count"), found, kept.len())?;
            expect(&format!("{n}, {shape}"), stream.download(&y)?, [kept, others].concat())?;
        }
    }
    Ok(())
}

/// The runs of `x`, by a comparison.
fn runs_of<T: Copy>(x: &[T], is_same: impl Fn(&T, &T) -> bool) -> (Vec<T>, Vec<u32>) {
    x.chunk_by(is_same).map(|run| (run[0], run.len() as u32)).unzip()
}

/// Elements in runs of several shapes.
fn in_runs(n: usize, random: &mut fastrand::Rng) -> Vec<(&'static str, Vec<u32>)> {
    let lengths = |random: &mut fastrand::Rng, longest: usize| {
        let mut x = Vec::new();
        while x.len() < n {
            let (value, len) = (random.u32(..3), random.usize(1..=longest));
            x.extend(std::iter::repeat_n(value, len.min(n - x.len())));
        }
        x
    };
    vec![
        ("random bits", (0..n).map(|_| random.u32(..2)).collect()),
        ("all different", (0..n as u32).collect()),
        ("one run", vec![7; n]),
        ("pairs", (0..n as u32).map(|i| i / 2).collect()),
        ("rows", (0..n as u32).map(|i| i / 32).collect()),
        ("short runs", lengths(random, 9)),
        ("long runs", lengths(random, 3000)),
    ]
}

/// `unique` and both directions of the code, against the same on the host.
fn check_runs<T: Number + Debug + PartialEq>(what: &str, stream: &Stream, x: &[T]) -> Outcome {
    let (values, lengths) = runs_of(x, |a, b| a == b);
    let (device_x, n, count) = (stream.upload(x)?, x.len(), values.len());
    let (mut y, mut found_values) = (stream.zeros(n)?, stream.zeros(n)?);
    let mut found_lengths = stream.fill(UNTOUCHED, n)?;
    expect(what, algorithms::unique(stream, &device_x, &mut y)?, count)?;
    expect(what, stream.download(y.slice(..count)?)?, values.clone())?;
    let runs = algorithms::run_length_encode(stream, &device_x, &mut found_values, &mut found_lengths)?;
    expect(what, runs, count)?;
    expect(what, stream.download(found_values.slice(..count)?)?, values)?;
    let rest = vec![UNTOUCHED; n - count];
    expect(what, stream.download(&found_lengths)?, [lengths, rest].concat())?;
    let (of_values, of_lengths) = (found_values.slice(..count)?, found_lengths.slice(..count)?);
    expect(what, algorithms::run_length_decode(stream, of_values, of_lengths, &mut y)?, n)?;
    expect(what, stream.download(&y)?, x.to_vec())
}

fn the_first_of_each_run_is_kept(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(193);
    for &n in LENGTHS {
        for (shape, x) in in_runs(n, &mut random) {
            check_runs(&format!("{n}, {shape}"), &stream, &x)?;
        }
    }
    Ok(())
}

fn runs_of_all_types_are_encoded_and_decoded(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(194);
    macro_rules! runs {
        ($($t:ident),*) => {
            // All lengths are tried with one type, by `the_first_of_each_run_is_kept`.
            $(for n in [33, 4097] {
                for (shape, x) in in_runs(n, &mut random) {
                    let x: Vec<$t> = x.into_iter().map(|x| (i64::from(x) - 1) as $t).collect();
                    check_runs(&format!("{n} {}, {shape}", stringify!($t)), &stream, &x)?;
                }
            })*
        };
    }
    runs!(i8, i16, i32, i64, f32, f64);
    for &n in FEW_LENGTHS {
        check_runs("u8", &stream, &(0..n).map(|_| random.u8(..2)).collect::<Vec<_>>())?;
        check_runs("u16", &stream, &(0..n).map(|_| random.u16(..2)).collect::<Vec<_>>())?;
        check_runs("u64", &stream, &(0..n).map(|_| random.u64(..2) << 40).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn runs_longer_than_a_tile_have_their_length(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for lengths in
        [vec![20_000], vec![1, 9000, 1], vec![4096, 4096], vec![4095, 12_289, 3], vec![512, 513, 8000]]
    {
        let x: Vec<u16> = lengths.iter().enumerate().flat_map(|(i, len)| vec![i as u16; *len]).collect();
        check_runs(&format!("{lengths:?}"), &stream, &x)?;
    }
    Ok(())
}

fn nan_is_one_run_and_zeros_are_another(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let other_nan = f32::from_bits(0xFFC1_2345);
    let x = [0.0, -0.0, f32::NAN, other_nan, f32::NAN, f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, -0.0];
    let (mut values, mut lengths) = (stream.zeros(9)?, stream.zeros(9)?);
    let runs = algorithms::run_length_encode(&stream, &stream.upload(&x)?, &mut values, &mut lengths)?;
    expect("runs", runs, 5)?;
    let bits: Vec<u32> = stream.download(values.slice(..5)?)?.into_iter().map(f32::to_bits).collect();
    let first = [0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0].map(f32::to_bits);
    expect("the first of each", bits, first.to_vec())?;
    expect("lengths", stream.download(lengths.slice(..5)?)?, vec![2, 3, 2, 1, 1])?;
    let wide = x.map(f64::from);
    let mut y = stream.zeros(9)?;
    expect("f64", algorithms::unique(&stream, &stream.upload(&wide)?, &mut y)?, 5)
}

fn runs_of_no_elements_are_skipped(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(195);
    for &n in LENGTHS {
        let lengths: Vec<u32> = (0..n).map(|_| random.u32(..4).saturating_sub(1)).collect();
        let values: Vec<i32> = (0..n).map(|_| random.i32(..)).collect();
        let mut expected: Vec<i32> =
            values.iter().zip(&lengths).flat_map(|(value, len)| vec![*value; *len as usize]).collect();
        let count = expected.len();
        expected.extend([77; 50]);
        let mut y = stream.fill(77, expected.len())?;
        let (values, lengths) = (stream.upload(&values)?, stream.upload(&lengths)?);
        expect(&format!("{n}"), algorithms::run_length_decode(&stream, &values, &lengths, &mut y)?, count)?;
        expect(&format!("{n}"), stream.download(&y)?, expected)?;
    }
    Ok(())
}

fn an_output_that_is_too_short_is_filled_and_reported(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u8> = (0..9000).map(|i| (i % 251) as u8).collect();
    let (x, flags) = (stream.upload(&x)?, stream.fill(true, 9000)?);
    let is_expected = |error: &Error| matches!(error, Error::OutOfRange { end: 9000, length: 5000, .. });
    for run in 0..3 {
        let (mut y, mut lengths) = (stream.fill(0xFF_u8, 5010)?, stream.zeros(9000)?);
        let short = y.slice_mut(..5000)?;
        let result = match run {
            0 => algorithms::select(&stream, &x, &flags, short),
            1 => algorithms::unique(&stream, &x, short),
            _ => algorithms::run_length_encode(&stream, &x, short, &mut lengths),
        };
        names(&expect_error("too short", result, is_expected)?, &["9000", "5000"])?;
        let expected: Vec<u8> = (0..5010).map(|i| if i < 5000 { (i % 251) as u8 } else { 0xFF }).collect();
        expect("what fits", stream.download(&y)?, expected)?;
    }
    // More elements than a `u32` counts.
    let (values, lengths) = (stream.upload(&[1_u8, 2])?, stream.upload(&[3, u32::MAX])?);
    let (mut y, mut count) = (stream.zeros(5)?, stream.zeros(1)?);
    algorithms::run_length_decode_into(&stream, &values, &lengths, &mut y, &mut count)?;
    expect("what fits", stream.download(&y)?, vec![1, 1, 1, 2, 2])?;
    expect("elements", stream.download(&count)?, vec![u64::from(u32::MAX) + 3])
}

fn selections_take_equal_lengths(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let is_expected = |error: &Error| matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }));
    for (n, m) in [(0, 1), (1, 0), (5000, 4999)] {
        let (x, flags, lengths) = (stream.zeros::<u32>(n)?, stream.zeros::<u8>(m)?, stream.zeros::<u32>(m)?);
        let (mut y, mut same, flags_of_y) = (stream.zeros(m)?, stream.zeros(n)?, stream.zeros::<u8>(n)?);
        let what = format!("{n} and {m}");
        expect_error(&what, algorithms::select(&stream, &x, &flags, &mut same), is_expected)?;
        expect_error(&what, algorithms::partition(&stream, &x, &flags, &mut same), is_expected)?;
        expect_error(&what, algorithms::partition(&stream, &x, &flags_of_y, &mut y), is_expected)?;
        expect_error(&what, algorithms::run_length_decode(&stream, &x, &lengths, &mut y), is_expected)?;
    }
    let (x, mut y, mut none) = (stream.zeros::<u32>(5)?, stream.zeros(5)?, stream.zeros::<u64>(0)?);
    let is_expected = |error: &Error| matches!(error, Error::OutOfRange { end: 1, length: 0, .. });
    expect_error(
        "no place for the count",
        algorithms::unique_into(&stream, &x, &mut y, &mut none),
        is_expected,
    )?;
    Ok(())
}

/// The result of a selection is the input of the next one, in one graph.
fn a_count_on_the_device_feeds_a_graph(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let n = 10_000;
    let (x, flags) = (stream.zeros::<u32>(n)?, stream.zeros::<u8>(n)?);
    let (kept, values, lengths) = (stream.zeros::<u32>(n)?, stream.zeros::<u32>(n)?, stream.zeros::<u32>(n)?);
    let (back, counts) = (stream.zeros::<u32>(n)?, stream.zeros::<u64>(4)?);
    let (graph, (x, flags, back, counts)) = stream.capture(|capture| {
        let (x, flags) = (capture.keep(x)?, capture.keep(flags)?);
        let (mut kept, mut values, mut lengths) =
            (capture.keep(kept)?, capture.keep(values)?, capture.keep(lengths)?);
        let (mut back, mut counts) = (capture.keep(back)?, capture.keep(counts)?);
        algorithms::select_into(capture, &x, &flags, &mut kept, counts.slice_mut(..1)?)?;
        algorithms::run_length_encode_into(
            capture,
            &kept,
            &mut values,
            &mut lengths,
            counts.slice_mut(1..2)?,
        )?;
        algorithms::run_length_decode_into(capture, &values, &lengths, &mut back, counts.slice_mut(2..3)?)?;
        algorithms::partition_into(capture, &x, &flags, &mut kept, counts.slice_mut(3..)?)?;
        Ok((x.key(), flags.key(), back.key(), counts.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for round in 1..4 {
        let host: Vec<u32> = (0..n as u32).map(|i| 1 + i / 100).collect();
        let marks: Vec<u8> = (0..n).map(|i| u8::from(i % round == 0)).collect();
        stream.upload_into(&host, graph.view_mut(x)?)?;
        stream.upload_into(&marks, graph.view_mut(flags)?)?;
        graph.launch(&stream)?;
        let counts = stream.download(graph.view(counts)?)?;
        let kept: Vec<u32> = host.iter().copied().step_by(round).collect();
        expect("kept", (counts[0], counts[3]), (kept.len() as u64, kept.len() as u64))?;
        expect("decoded", stream.download(graph.view(back)?)?[..kept.len()].to_vec(), kept)?;
    }
    Ok(())
}

/// Many blocks that look back. Fewer on the CPU device, where it is slow without optimisation.
fn long_inputs_are_selected(device: &Device) -> Outcome {
    let n: u32 = if device.is_cuda() { 30_000_001 } else { 200_003 };
    let stream = device.new_stream()?;
    let x: Vec<u32> = (0..n).collect();
    let flags: Vec<u8> = x.iter().map(|i| u8::from(i % 3 == 1)).collect();
    let (device_x, flags) = (stream.upload(&x)?, stream.upload(&flags)?);
    let mut y = stream.zeros(n as usize)?;
    let count = algorithms::select(&stream, &device_x, &flags, &mut y)?;
    let kept: Vec<u32> = (1..n).step_by(3).collect();
    expect("all kept", stream.download(y.slice(..count)?)? == kept, true)?;
    algorithms::partition(&stream, &device_x, &flags, &mut y)?;
    let others: Vec<u32> = (0..n).filter(|i| i % 3 != 1).collect();
    expect("all others", stream.download(y.slice(count..)?)? == others, true)?;
    let runs: Vec<u32> = (0..n).map(|i| i / 7).collect();
    check_runs("sevens", &stream, &runs)
}

/// 2^32 and a few elements, of which some around each boundary of 32 bits are flagged.
fn selections_go_beyond_2_to_the_32(device: &Device) -> Outcome {
    if !device.is_cuda() {
        return not_for_this_device("it would take minutes");
    }
    let stream = device.new_stream()?;
    let (whole, n) = (1_usize << 32, (1_usize << 32) + 5000);
    let (mut x, mut flags) = (stream.zeros::<u8>(n)?, stream.zeros::<u8>(n)?);
    algorithms::sequence(&stream, 0, 1, &mut x)?;
    let marked: Vec<usize> = (0..3).chain(whole - 4..whole + 4).chain(n - 3..n).collect();
    for &place in &marked {
        stream.fill_into(1, flags.slice_mut(place..place + 1)?)?;
    }
    let (flagged, k) = (marked.iter().map(|place| *place as u8).collect::<Vec<_>>(), marked.len());
    let mut selected = stream.zeros::<u8>(k)?;
    expect("selected", algorithms::select(&stream, &x, &flags, &mut selected)?, k)?;
    expect("flagged elements", stream.download(&selected)?, flagged.clone())?;

    let mut y = stream.zeros::<u8>(n)?;
    expect("parted", algorithms::partition(&stream, &x, &flags, &mut y)?, k)?;
    expect("the first part", stream.download(y.slice(..k)?)?, flagged)?;
    // Of the others, all before the marked ones at the end are `k - 3` places further, less the marked ones before them.
    let last: Vec<u8> = (n - 10..n - 3).map(|place| place as u8).collect();
    expect("the end", stream.download(y.slice(n - 7..)?)?, last)?;
    let around: Vec<u8> = (whole + 100..whole + 110).map(|place| place as u8).collect();
    expect("around 2^32", stream.download(y.slice(whole + 103..whole + 113)?)?, around)?;

    expect("runs", algorithms::unique(&stream, &x, &mut y)?, n)?;
    let end: Vec<u8> = (whole - 5..n).map(|place| place as u8).collect();
    expect("the first of each", stream.download(y.slice(whole - 5..)?)?, end)?;

    let (mut values, mut lengths) = (stream.zeros::<u8>(7)?, stream.zeros::<u32>(7)?);
    let mut runs = stream.zeros(1)?;
    algorithms::run_length_encode_into(&stream, &x, &mut values, &mut lengths, &mut runs)?;
    expect("runs of one element", stream.download(&runs)?, vec![n as u64])?;
    let (runs, between) =
        ([0, 9, 0, 9, 0, 9, 0], [5, 1, (1 << 31) - 6, 1, whole + 6 - (1 << 31), 1, n - whole - 8]);
    let between = between.map(|length| length as u32);
    stream.upload_into(&runs, &mut values)?;
    stream.upload_into(&between, &mut lengths)?;
    expect("decoded", algorithms::run_length_decode(&stream, &values, &lengths, &mut y)?, n)?;
    expect(
        "the end",
        stream.download(y.slice(whole..whole + 12)?)?,
        vec![0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0],
    )?;
    let (mut values, mut lengths) = (stream.zeros::<u8>(7)?, stream.zeros::<u32>(7)?);
    expect("encoded", algorithms::run_length_encode(&stream, &y, &mut values, &mut lengths)?, 7)?;
    expect("values", stream.download(&values)?, runs.to_vec())?;
    expect("lengths", stream.download(&lengths)?, between.to_vec())?;
    let one_run = algorithms::run_length_encode(&stream, &stream.zeros::<u8>(n)?, &mut values, &mut lengths);
    expect_error("too long a run", one_run, |error| matches!(error, Error::KernelPanic { .. }))?;
    Ok(())
}
