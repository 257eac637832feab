//! Runs of equal keys: sums and extrema of their values, scans that begin anew with each, running extrema.

use std::fmt::Debug;

use ferrogrid::LaunchError;
use ferrogrid::algorithms::{self, Number};
use ferrogrid::prelude::*;

use crate::FEW_LENGTHS;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("values_are_summed_by_key", values_are_summed_by_key),
    ("values_of_all_types_are_combined_by_key", values_of_all_types_are_combined_by_key),
    ("keys_of_all_types_have_runs", keys_of_all_types_have_runs),
    ("equal_float_keys_are_one_run", equal_float_keys_are_one_run),
    ("scans_begin_anew_with_each_key", scans_begin_anew_with_each_key),
    ("scans_by_key_take_all_types", scans_by_key_take_all_types),
    ("running_extrema_of_all_types", running_extrema_of_all_types),
    ("keys_and_values_are_as_many", keys_and_values_are_as_many),
    ("results_by_key_fill_short_outputs", results_by_key_fill_short_outputs),
    ("sums_by_key_are_part_of_a_graph", sums_by_key_are_part_of_a_graph),
    ("long_inputs_are_combined_by_key", long_inputs_are_combined_by_key),
];

/// Around the elements of a thread, a row, a warp and a block, twice where runs go on.
const LENGTHS: [usize; 15] = [0, 1, 2, 3, 63, 64, 65, 129, 511, 512, 513, 4095, 4096, 4097, 8200];

/// Keys in runs of several shapes, shorter and longer than a thread's, a warp's and a block's elements.
fn keys_of(n: usize, random: &mut fastrand::Rng) -> Vec<(&'static str, Vec<u32>)> {
    let lengths = |random: &mut fastrand::Rng, longest: usize| {
        let mut x = Vec::new();
        while x.len() < n {
            let (key, len) = (random.u32(..), random.usize(1..=longest));
            x.extend(std::iter::repeat_n(key, len.min(n - x.len())));
        }
        x
    };
    vec![
        ("all different", (0..n as u32).collect()),
        ("one run", vec![7; n]),
        ("pairs", (0..n as u32).map(|i| i / 2).collect()),
        ("eights", (0..n as u32).map(|i| (i + 3) / 8).collect()),
        ("warps", (0..n as u32).map(|i| i / 512).collect()),
        ("blocks and one", (0..n as u32).map(|i| i / 4097).collect()),
        ("random bits", (0..n).map(|_| random.u32(..2)).collect()),
        ("short runs", lengths(random, 9)),
        ("long runs", lengths(random, 5000)),
    ]
}

/// The first keys of runs, and the values of each combined.
fn by_key<K: Copy + PartialEq, V: Copy, S>(
    keys: &[K],
    values: &[V],
    of_run: impl Fn(&[V]) -> S,
) -> (Vec<K>, Vec<S>) {
    let mut start = 0;
    let runs = keys.chunk_by(|a, b| a == b).map(|run| {
        let values = &values[start..start + run.len()];
        start += run.len();
        (run[0], of_run(values))
    });
    runs.unzip()
}

fn values_are_summed_by_key(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(310);
    for n in LENGTHS {
        for (shape, keys) in keys_of(n, &mut random) {
            let values: Vec<i32> = (0..n).map(|_| random.i32(..)).collect();
            let (expected_keys, expected) =
                by_key(&keys, &values, |run| run.iter().map(|x| i64::from(*x)).sum::<i64>());
            let (runs, what) = (expected.len(), format!("{n}, {shape}"));
            let (keys, values) = (stream.upload(&keys)?, stream.upload(&values)?);
            let (mut unique, mut sums) = (stream.fill(5_u32, n)?, stream.fill(-1_i64, n)?);
            let found = algorithms::sum_by_key(&stream, &keys, &values, &mut unique, &mut sums)?;
            expect(&what, found, runs)?;
            expect(&what, stream.download(&unique)?, [expected_keys, vec![5; n - runs]].concat())?;
            expect(&what, stream.download(&sums)?, [expected, vec![-1; n - runs]].concat())?;
        }
    }
    Ok(())
}

fn values_of_all_types_are_combined_by_key(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(311);
    macro_rules! values {
        ($($t:ident as $total:ident: $of:expr, $min:expr, $max:expr;)*) => {
            $(for &n in FEW_LENGTHS {
                // Types differ in their kernels, shapes do not any more.
                for (shape, keys) in keys_of(n, &mut random).into_iter().skip(7) {
                    let values: Vec<$t> = (0..n).map(|_| $of).collect();
                    let what = format!("{n} {}, {shape}", stringify!($t));
                    let (_, sums) = by_key(&keys, &values, |run| run.iter().fold(0 as $total, |a, b| a + *b as $total));
                    let (_, least) = by_key(&keys, &values, |run| run.iter().copied().reduce($min).unwrap());
                    let (_, greatest) = by_key(&keys, &values, |run| run.iter().copied().reduce($max).unwrap());
                    let (keys, values) = (stream.upload(&keys)?, stream.upload(&values)?);
                    let mut unique = stream.zeros(n)?;
                    let (mut found, mut of_runs) = (stream.zeros::<$total>(n)?, stream.zeros::<$t>(n)?);
                    let runs = algorithms::sum_by_key(&stream, &keys, &values, &mut unique, &mut found)?;
                    expect(&what, stream.download(found.slice(..runs)?)?, sums)?;
                    algorithms::min_by_key(&stream, &keys, &values, &mut unique, &mut of_runs)?;
                    expect(&what, stream.download(of_runs.slice(..runs)?)?, least)?;
                    algorithms::max_by_key(&stream, &keys, &values, &mut unique, &mut of_runs)?;
                    expect(&what, stream.download(of_runs.slice(..runs)?)?, greatest)?;
                }
            })*
        };
    }
    // Sums of the floats are exact.
    values! {
        i8 as i64: random.i8(..), i8::min, i8::max;
        i16 as i64: random.i16(..), i16::min, i16::max;
        i32 as i64: random.i32(..), i32::min, i32::max;
        i64 as i64: random.i64(-1 << 40..1 << 40), i64::min, i64::max;
        u8 as u64: random.u8(..), u8::min, u8::max;
        u16 as u64: random.u16(..), u16::min, u16::max;
        u32 as u64: random.u32(..), u32::min, u32::max;
        u64 as u64: random.u64(..1 << 40), u64::min, u64::max;
        f32 as f32: f32::from(random.i8(..)), f32::min, f32::max;
        f64 as f64: f64::from(random.i32(..)), f64::min, f64::max;
    }
    let values = stream.upload(&[f32::NAN, 1.0, -2.0, f32::NAN, f32::INFINITY, -0.0])?;
    let keys = stream.upload(&[1_u8, 1, 1, 2, 3, 3])?;
    let (mut unique, mut found) = (stream.zeros(6)?, stream.zeros(6)?);
    algorithms::min_by_key(&stream, &keys, &values, &mut unique, &mut found)?;
    let least = stream.download(&found)?;
    expect("least", (least[0], least[1].is_nan(), least[2]), (-2.0, true, 0.0))?;
    algorithms::max_by_key(&stream, &keys, &values, &mut unique, &mut found)?;
    let greatest = stream.download(&found)?;
    expect("greatest", (greatest[0], greatest[1].is_nan(), greatest[2]), (1.0, true, f32::INFINITY))
}

fn keys_of_all_types_have_runs(device: &Device) -> Outcome {
    fn check<K: Number + Debug + PartialEq>(stream: &Stream, keys: &[K]) -> Outcome {
        let (n, what) = (keys.len(), format!("{} {}", keys.len(), std::any::type_name::<K>()));
        let (expected_keys, lengths) = by_key(keys, keys, |run| run.len() as u64);
        let (keys, ones) = (stream.upload(keys)?, stream.fill(1_u8, n)?);
        let (mut unique, mut sums) = (stream.zeros(n)?, stream.zeros(n)?);
        let runs = algorithms::sum_by_key(stream, &keys, &ones, &mut unique, &mut sums)?;
        expect(&what, runs, lengths.len())?;
        expect(&what, stream.download(unique.slice(..runs)?)?, expected_keys)?;
        expect(&what, stream.download(sums.slice(..runs)?)?, lengths)
    }
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(312);
    macro_rules! keys {
        ($($t:ident),*) => {
            $(for &n in FEW_LENGTHS {
                // Neighbours that differ in the highest bits alone, too.
                let of = |bit: bool| if bit { $t::MAX } else { $t::MIN };
                check(&stream, &(0..n).map(|_| of(random.bool())).collect::<Vec<_>>())?;
                check(&stream, &(0..n).map(|i| (i / 3 % 100) as $t).collect::<Vec<_>>())?;
            })*
        };
    }
    keys!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
    Ok(())
}

fn equal_float_keys_are_one_run(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let other_nan = f32::from_bits(0xFFC1_2345);
    let keys = [-0.0, 0.0, f32::NAN, other_nan, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0];
    let values = stream.upload(&[1_u32, 2, 3, 4, 5, 6, 7, 8, 9])?;
    let (mut unique, mut sums) = (stream.zeros(9)?, stream.zeros(9)?);
    let runs = algorithms::sum_by_key(&stream, &stream.upload(&keys)?, &values, &mut unique, &mut sums)?;
    expect("runs", runs, 6)?;
    let bits: Vec<u32> = stream.download(unique.slice(..runs)?)?.into_iter().map(f32::to_bits).collect();
    let first = [-0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0].map(f32::to_bits);
    expect("the first of each", bits, first.to_vec())?;
    expect("sums", stream.download(sums.slice(..runs)?)?, vec![3, 12, 6, 7, 8, 9])
}

/// The sums up to each element of its run, and those of `first` and what is before it.
fn running<K: PartialEq, T: Copy>(keys: &[K], x: &[T], first: T, add: impl Fn(T, T) -> T) -> [Vec<T>; 2] {
    let (mut up_to, mut before) = (Vec::<T>::new(), Vec::<T>::new());
    for i in 0..x.len() {
        let goes_on = i > 0 && keys[i] == keys[i - 1];
        up_to.push(if goes_on { add(up_to[i - 1], x[i]) } else { x[i] });
        before.push(if goes_on { add(before[i - 1], x[i - 1]) } else { first });
    }
    [up_to, before]
}

fn scans_begin_anew_with_each_key(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(313);
    for n in LENGTHS {
        for (shape, keys) in keys_of(n, &mut random) {
            let x: Vec<i32> = (0..n).map(|_| random.i32(..)).collect();
            let [up_to, before] = running(&keys, &x, 100, i32::wrapping_add);
            let (keys, x, mut y) = (stream.upload(&keys)?, stream.upload(&x)?, stream.zeros(n)?);
            algorithms::inclusive_sum_by_key(&stream, &keys, &x, &mut y)?;
            expect(&format!("{n}, {shape}, inclusive"), stream.download(&y)?, up_to)?;
            algorithms::exclusive_sum_by_key(&stream, &keys, &x, 100, &mut y)?;
            expect(&format!("{n}, {shape}, exclusive"), stream.download(&y)?, before)?;
        }
    }
    Ok(())
}

fn scans_by_key_take_all_types(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(314);
    macro_rules! scans {
        ($($t:ident: $of:expr, $add:expr;)*) => {
            $(for &n in FEW_LENGTHS {
                let keys: Vec<u16> = (0..n).map(|i| (i / 700) as u16).collect();
                let (x, first): (Vec<$t>, $t) = ((0..n).map(|_| $of).collect(), $of);
                let [up_to, before] = running(&keys, &x, first, $add);
                let (keys, x, mut y) = (stream.upload(&keys)?, stream.upload(&x)?, stream.zeros(n)?);
                algorithms::inclusive_sum_by_key(&stream, &keys, &x, &mut y)?;
                expect(stringify!($t), stream.download(&y)?, up_to)?;
                algorithms::exclusive_sum_by_key(&stream, &keys, &x, first, &mut y)?;
                expect(stringify!($t), stream.download(&y)?, before)?;
            })*
        };
    }
    scans! {
        i8: random.i8(..), i8::wrapping_add;
        i16: random.i16(..), i16::wrapping_add;
        i64: random.i64(..), i64::wrapping_add;
        u8: random.u8(..), u8::wrapping_add;
        u16: random.u16(..), u16::wrapping_add;
        u32: random.u32(..), u32::wrapping_add;
        u64: random.u64(..), u64::wrapping_add;
        f32: f32::from(random.i8(..)), |a, b| a + b;
        f64: f64::from(random.i16(..)), |a, b| a + b;
    }
    Ok(())
}

fn running_extrema_of_all_types(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(315);
    macro_rules! extrema {
        ($($t:ident: $of:expr;)*) => {
            $(for n in LENGTHS {
                let x: Vec<$t> = (0..n).map(|i| if i == 0 { $of / (1 as $t + 1 as $t) } else { $of }).collect();
                let run = |of: fn($t, $t) -> $t| -> Vec<$t> {
                    x.iter().scan(None, |found: &mut Option<$t>, x| {
                        *found = Some(found.map_or(*x, |found| of(found, *x)));
                        *found
                    }).collect()
                };
                let (least, greatest) = (run($t::min), run($t::max));
                let (x, mut y) = (stream.upload(&x)?, stream.zeros(n)?);
                algorithms::inclusive_min(&stream, &x, &mut y)?;
                expect(&format!("{n} {}, min", stringify!($t)), stream.download(&y)?, least)?;
                algorithms::inclusive_max(&stream, &x, &mut y)?;
                expect(&format!("{n} {}, max", stringify!($t)), stream.download(&y)?, greatest)?;
            })*
        };
    }
    extrema! {
        i8: random.i8(..); i16: random.i16(..); i32: random.i32(..); i64: random.i64(..);
        u8: random.u8(..); u16: random.u16(..); u32: random.u32(..); u64: random.u64(..);
        f32: random.f32() - 0.5; f64: random.f64() - 0.5;
    }
    let x = stream.upload(&[f64::NAN, 2.0, f64::NAN, -0.0, f64::NEG_INFINITY])?;
    let mut y = stream.zeros(5)?;
    algorithms::inclusive_min(&stream, &x, &mut y)?;
    let found = stream.download(&y)?;
    expect("NaN alone", found[0].is_nan(), true)?;
    expect("NaN is skipped", found[1..].to_vec(), vec![2.0, 2.0, 0.0, f64::NEG_INFINITY])
}

fn keys_and_values_are_as_many(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let is_expected = |error: &Error| matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }));
    for (n, m) in [(0, 1), (1, 0), (5000, 4999)] {
        let (keys, x) = (stream.zeros::<u32>(n)?, stream.zeros::<u32>(m)?);
        let (mut unique, mut sums) = (stream.zeros(n)?, stream.zeros::<u64>(n)?);
        let (mut y, mut other) = (stream.zeros::<u32>(m)?, stream.zeros::<u32>(n)?);
        let result = algorithms::sum_by_key(&stream, &keys, &x, &mut unique, &mut sums);
        let text = expect_error("sum_by_key", result, is_expected)?;
        names(&text, &["`sum_by_key`", "`keys`", "`values`", &n.to_string(), &m.to_string()])?;
        let result = algorithms::inclusive_sum_by_key(&stream, &keys, &x, &mut y);
        names(&expect_error("keys", result, is_expected)?, &["`inclusive_sum_by_key`", "`keys`", "`x`"])?;
        let result = algorithms::exclusive_sum_by_key(&stream, &x, &x, 0, &mut other);
        names(&expect_error("y", result, is_expected)?, &["`exclusive_sum_by_key`", "`x`", "`y`"])?;
        let result = algorithms::inclusive_max(&stream, &x, &mut other);
        names(&expect_error("y", result, is_expected)?, &["`inclusive_max`"])?;
    }
    Ok(())
}

fn results_by_key_fill_short_outputs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (keys, values) = (stream.upload(&(0..9000_u32).collect::<Vec<_>>())?, stream.fill(2_u32, 9000)?);
    let is_expected = |error: &Error| matches!(error, Error::OutOfRange { end: 9000, length: 5000, .. });
    for (of_keys, of_sums) in [(5000, 9000), (9000, 5000)] {
        let (mut unique, mut sums) = (stream.fill(1_u32, 9000)?, stream.fill(1_u64, 9000)?);
        let (some_keys, some_sums) = (unique.slice_mut(..of_keys)?, sums.slice_mut(..of_sums)?);
        let result = algorithms::sum_by_key(&stream, &keys, &values, some_keys, some_sums);
        names(&expect_error("too short", result, is_expected)?, &["9000", "5000"])?;
        let expected = (0..9000).map(|i| if i < of_keys { i as u32 } else { 1 }).collect();
        expect("keys", stream.download(&unique)?, expected)?;
        let expected = (0..9000).map(|i| if i < of_sums { 2 } else { 1 }).collect();
        expect("sums", stream.download(&sums)?, expected)?;
    }
    Ok(())
}

fn sums_by_key_are_part_of_a_graph(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let n = 10_000;
    let (keys, values, unique) = (stream.zeros::<u32>(n)?, stream.fill(3_i8, n)?, stream.zeros::<u32>(n)?);
    let (sums, ranks, count) = (stream.zeros::<i64>(n)?, stream.zeros::<i8>(n)?, stream.zeros::<u64>(1)?);
    let (graph, (keys, sums, ranks, count)) = stream.capture(|capture| {
        let (keys, values) = (capture.keep(keys)?, capture.keep(values)?);
        let (mut unique, mut sums) = (capture.keep(unique)?, capture.keep(sums)?);
        let (mut ranks, mut count) = (capture.keep(ranks)?, capture.keep(count)?);
        algorithms::sum_by_key_into(capture, &keys, &values, &mut unique, &mut sums, &mut count)?;
        algorithms::inclusive_sum_by_key(capture, &keys, &values, &mut ranks)?;
        Ok((keys.key(), sums.key(), ranks.key(), count.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for length in [3, 25] {
        let host: Vec<u32> = (0..n).map(|i| (i / length) as u32).collect();
        stream.upload_into(&host, graph.view_mut(keys)?)?;
        graph.launch(&stream)?;
        let runs = n.div_ceil(length);
        expect("runs", stream.download(graph.view(count)?)?, vec![runs as u64])?;
        expect(
            "sums",
            stream.download(graph.view(sums)?)?[..runs - 1].to_vec(),
            vec![3 * length as i64; runs - 1],
        )?;
        let expected: Vec<i8> = (0..n).map(|i| 3 * (i % length + 1) as i8).collect();
        expect("ranks", stream.download(graph.view(ranks)?)?, expected)?;
    }
    Ok(())
}

/// Many blocks that look back. Fewer on the CPU device, where it is slow without optimisation.
fn long_inputs_are_combined_by_key(device: &Device) -> Outcome {
    let n: u32 = if device.is_cuda() { 30_000_001 } else { 200_003 };
    let stream = device.new_stream()?;
    for length in [7, 50_000] {
        let (keys, x): (Vec<u32>, Vec<u32>) = (0..n).map(|i| (i / length, i % 1000)).unzip();
        let (_, expected) = by_key(&keys, &x, |run| run.iter().map(|x| u64::from(*x)).sum::<u64>());
        let [up_to, _] = running(&keys, &x, 0, u32::wrapping_add);
        let (keys, x) = (stream.upload(&keys)?, stream.upload(&x)?);
        let mut unique = stream.zeros(n as usize)?;
        let (mut sums, mut y) = (stream.zeros(n as usize)?, stream.zeros(n as usize)?);
        let runs = algorithms::sum_by_key(&stream, &keys, &x, &mut unique, &mut sums)?;
        expect("all sums", stream.download(sums.slice(..runs)?)? == expected, true)?;
        algorithms::inclusive_sum_by_key(&stream, &keys, &x, &mut y)?;
        expect("all running sums", stream.download(&y)? == up_to, true)?;
    }
    Ok(())
}
