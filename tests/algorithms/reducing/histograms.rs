//! Histograms: even bins and bounds, all types, alignments and numbers of bins, channels, refusals.

use std::fmt::Debug;
use std::ops::RangeBounds;

use ferrogrid::algorithms::{self, Number};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect, expect_error, names};
use crate::{FEW_LENGTHS, LENGTHS};

pub(crate) const CASES: &[Case] = &[
    ("bytes_of_any_length_and_alignment_are_counted", bytes_of_any_length_and_alignment_are_counted),
    ("integers_fall_exactly_into_even_bins", integers_fall_exactly_into_even_bins),
    ("floats_fall_into_even_bins", floats_fall_into_even_bins),
    ("samples_of_all_types_fall_between_bounds", samples_of_all_types_fall_between_bounds),
    ("any_number_of_bins_is_counted", any_number_of_bins_is_counted),
    ("channels_have_histograms_of_their_own", channels_have_histograms_of_their_own),
    ("counts_may_have_64_bits", counts_may_have_64_bits),
    ("impossible_bins_are_refused", impossible_bins_are_refused),
    ("bounds_that_do_not_ascend_are_a_panic", bounds_that_do_not_ascend_are_a_panic),
    ("a_histogram_is_part_of_a_graph", a_histogram_is_part_of_a_graph),
    ("long_inputs_are_counted", long_inputs_are_counted),
];

/// What a histogram of `bins` has, by a function that finds the bin of a sample.
fn counts_of<T: Copy>(x: &[T], bins: usize, bin: impl Fn(T) -> Option<usize>) -> Vec<u32> {
    let mut counts = vec![0; bins];
    for bin in x.iter().filter_map(|x| bin(*x)) {
        counts[bin] += 1;
    }
    counts
}

/// The bin of an integer in `lower..=last`.
fn even_bin(x: i128, (lower, last): (i128, i128), bins: usize) -> Option<usize> {
    (lower..=last).contains(&x).then(|| ((x - lower) * bins as i128 / (last - lower + 1)) as usize)
}

/// The bin of a sample between bounds.
fn bin_between<T: PartialOrd>(x: T, bounds: &[T]) -> Option<usize> {
    (1..bounds.len()).find(|&i| bounds[i - 1] <= x && x < bounds[i]).map(|i| i - 1)
}

fn bytes_of_any_length_and_alignment_are_counted(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(300);
    let mut counts = stream.fill(7_u32, 256)?;
    for &n in LENGTHS.iter().chain(&[15, 16, 17, 8191, 8193, 16_385]) {
        for (shape, x) in [
            ("random", (0..n + 16).map(|_| random.u8(..)).collect::<Vec<_>>()),
            ("equal", vec![255; n + 16]),
            ("few", (0..n + 16).map(|_| random.u8(7..9)).collect()),
        ] {
            let device_x = stream.upload(&x)?;
            for start in [0, 1, 8, 15] {
                let (what, part) = (format!("{n} from {start}, {shape}"), start..start + n);
                algorithms::histogram_even(&stream, device_x.slice(part.clone())?, .., &mut counts)?;
                let expected = counts_of(&x[part], 256, |x| Some(x.into()));
                expect(&what, stream.download(&counts)?, expected)?;
            }
        }
    }
    Ok(())
}

fn integers_fall_exactly_into_even_bins(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(301);
    macro_rules! even {
        ($($t:ident),*) => {
            $(for bins in [1, 2, 3, 7, 100, 255, 256, 1000] {
                let (a, b) = (random.$t(..), random.$t(..));
                for (lower, last) in [($t::MIN, $t::MAX), (a.min(b), a.max(b)), (a, a), ($t::MIN + 3, $t::MAX - 1), (5, 19)] {
                    let ends = [lower, last, $t::MIN, $t::MAX, lower.wrapping_sub(1), last.wrapping_add(1), 0];
                    let x: Vec<$t> = (0..5000)
                        .map(|i| ends.get(i).copied().unwrap_or_else(|| if i % 2 == 0 { random.$t(..) } else { random.$t(lower..=last) }))
                        .collect();
                    // Where bins meet, too.
                    let width = i128::from(last) - i128::from(lower) + 1;
                    let edges = (0..bins as i128).map(|bin| i128::from(lower) + bin * width / bins as i128);
                    let edges = edges.flat_map(|edge| [edge, edge + 1]).filter_map(|edge| $t::try_from(edge).ok());
                    let x: Vec<$t> = x.into_iter().chain(edges).collect();
                    let mut counts = stream.zeros::<u32>(bins)?;
                    algorithms::histogram_even(&stream, &stream.upload(&x)?, lower..=last, &mut counts)?;
                    let expected = counts_of(&x, bins, |x| even_bin(x.into(), (lower.into(), last.into()), bins));
                    expect(&format!("{lower}..={last} {} in {bins}", stringify!($t)), stream.download(&counts)?, expected.clone())?;
                    if let Some(end) = last.checked_add(1) {
                        algorithms::histogram_even(&stream, &stream.upload(&x)?, lower..end, &mut counts)?;
                        expect("exclusive", stream.download(&counts)?, expected)?;
                    }
                }
            })*
        };
    }
    even!(i8, i16, i32, i64, u8, u16, u32, u64);
    Ok(())
}

/// Checks floats against the documented formula, and that what is outside is not counted.
fn floats_fall_into_even_bins(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(302);
    macro_rules! even {
        ($($t:ident),*) => {
            $(for bins in [1, 3, 10, 256] {
                for (lower, upper) in [(0.0, 1.0), (-2.5, 2.5), (-0.0, 1e-30), (1.0, 1.0 + $t::EPSILON)] {
                    let special = [lower, upper, -0.0, 0.0, $t::NAN, -$t::NAN, $t::INFINITY, $t::NEG_INFINITY, $t::MAX, $t::MIN];
                    let within = (0..5000).map(|_| lower + (random.$t() * 1.2 - 0.1) * (upper - lower));
                    let x: Vec<$t> = special.into_iter().chain([lower.next_down(), upper.next_down(), upper.next_up()]).chain(within).collect();
                    let device_x = stream.upload(&x)?;
                    let bin = |x: $t| (((x - lower) * (bins as $t / (upper - lower))) as usize).min(bins - 1);
                    let mut counts = stream.zeros::<u32>(bins)?;
                    let what = format!("{lower} to {upper}, {} in {bins}", stringify!($t));
                    algorithms::histogram_even(&stream, &device_x, lower..upper, &mut counts)?;
                    let expected = counts_of(&x, bins, |x| (lower <= x && x < upper).then(|| bin(x)));
                    expect(&what, stream.download(&counts)?, expected)?;
                    algorithms::histogram_even(&stream, &device_x, lower..=upper, &mut counts)?;
                    let expected = counts_of(&x, bins, |x| (lower <= x && x <= upper).then(|| bin(x)));
                    expect(&format!("{what}, inclusive"), stream.download(&counts)?, expected)?;
                }
            })*
        };
    }
    even!(f32, f64);
    Ok(())
}

fn between<T: Number + PartialOrd + Debug>(what: &str, stream: &Stream, x: &[T], bounds: &[T]) -> Outcome {
    let mut counts = stream.zeros::<u32>(bounds.len() - 1)?;
    algorithms::histogram_range(stream, &stream.upload(x)?, &stream.upload(bounds)?, &mut counts)?;
    let expected = counts_of(x, bounds.len() - 1, |x| bin_between(x, bounds));
    expect(what, stream.download(&counts)?, expected)
}

fn samples_of_all_types_fall_between_bounds(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(303);
    macro_rules! integers {
        ($($t:ident),*) => {
            $(for &n in FEW_LENGTHS {
                let x: Vec<$t> = (0..n).map(|_| random.$t(..)).chain([$t::MIN, $t::MAX, 0, 1]).collect();
                let mut many: Vec<$t> = (0..100).map(|_| random.$t(..)).collect();
                many.sort_unstable();
                for bounds in [vec![0, 1], vec![$t::MIN, 0, 0, 1, 1, 1, 100, $t::MAX], many] {
                    between(&format!("{n} {}", stringify!($t)), &stream, &x, &bounds)?;
                }
            })*
        };
    }
    integers!(i8, i16, i32, i64, u8, u16, u32, u64);
    macro_rules! floats {
        ($($t:ident),*) => {
            $(for bounds in [vec![0.0, 0.5], vec![-0.0, 0.5], vec![-1.0, 0.0, -0.0, 0.25], vec![$t::NEG_INFINITY, -0.25, 0.25, $t::INFINITY]] {
                let special = [-0.0, 0.0, $t::NAN, -$t::NAN, $t::INFINITY, $t::NEG_INFINITY, $t::MAX, $t::MIN, 0.5, -0.25, 0.25];
                let x: Vec<$t> = special.into_iter().chain((0..5000).map(|_| random.$t() * 2.0 - 1.0)).collect();
                between(&format!("{bounds:?} {}", stringify!($t)), &stream, &x, &bounds)?;
            })*
        };
    }
    floats!(f32, f64);
    Ok(())
}

/// The counters of few bins have many copies; those of more than 8192 are in global memory.
fn any_number_of_bins_is_counted(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(304);
    for bins in [1, 2, 255, 256, 257, 4096, 4097, 8191, 8192, 8193, 65_536, 100_000] {
        for (shape, x) in [
            ("random", (0..20_001).map(|_| random.u32(..)).collect::<Vec<_>>()),
            ("equal", vec![u32::MAX / 3; 20_001]),
            ("runs", (0..20_001).map(|i| u32::MAX / 7 * (i / 100 % 7)).collect()),
        ] {
            let mut counts = stream.fill(1_u32, bins)?;
            algorithms::histogram_even(&stream, &stream.upload(&x)?, .., &mut counts)?;
            let expected = counts_of(&x, bins, |x| even_bin(x.into(), (0, u32::MAX.into()), bins));
            expect(&format!("{bins}, {shape}"), stream.download(&counts)? == expected, true)?;
            let x: Vec<u8> = x.into_iter().map(|x| (x >> 24) as u8).collect();
            let mut counts = stream.fill(1_u32, bins)?;
            algorithms::histogram_even(&stream, &stream.upload(&x)?, .., &mut counts)?;
            let expected = counts_of(&x, bins, |x| even_bin(x.into(), (0, 255), bins));
            expect(&format!("{bins}, {shape}, bytes"), stream.download(&counts)? == expected, true)?;
        }
    }
    Ok(())
}

fn channels<T: Number + PartialOrd + Debug, const C: usize, const A: usize>(
    stream: &Stream,
    x: &[[T; C]],
    ranges: [impl RangeBounds<T> + Debug + Clone; A],
    bounds: &[[T; A]],
) -> Outcome {
    let (device_x, what) = (stream.upload(x)?, format!("{} of {C}: {A}", x.len()));
    let channel = |k: usize| x.iter().map(|x| x[k]).collect::<Vec<T>>();
    let bins = 9;
    let (mut counts, mut one) = (stream.zeros::<[u32; A]>(bins)?, stream.zeros::<u32>(bins)?);
    algorithms::multi_histogram_even(stream, &device_x, ranges.clone(), &mut counts)?;
    let found = stream.download(&counts)?;
    for (k, range) in ranges.into_iter().enumerate() {
        algorithms::histogram_even(stream, &stream.upload(&channel(k))?, range, &mut one)?;
        let of_channel: Vec<u32> = found.iter().map(|counts| counts[k]).collect();
        expect(&format!("{what}, even, {k}"), of_channel, stream.download(&one)?)?;
    }
    let bins = bounds.len() - 1;
    let mut counts = stream.zeros::<[u64; A]>(bins)?;
    algorithms::multi_histogram_range(stream, &device_x, &stream.upload(bounds)?, &mut counts)?;
    let found = stream.download(&counts)?;
    for k in 0..A {
        let bounds: Vec<T> = bounds.iter().map(|bounds| bounds[k]).collect();
        let of_channel: Vec<u32> = found.iter().map(|counts| counts[k] as u32).collect();
        let expected = counts_of(&channel(k), bins, |x| bin_between(x, &bounds));
        expect(&format!("{what}, between bounds, {k}"), of_channel, expected)?;
    }
    Ok(())
}

fn channels_have_histograms_of_their_own(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(305);
    for n in [0, 1, 5, 33, 5461, 20_000] {
        macro_rules! pixels {
            ($($t:ident, $c:literal, $ranges:expr, $bounds:expr, $of:expr;)*) => {
                $(channels(
                    &stream,
                    &(0..n).map(|_| std::array::from_fn(|_| $of)).collect::<Vec<[$t; $c]>>(),
                    $ranges,
                    &$bounds,
                )?;)*
            };
        }
        pixels! {
            u8, 4, [0..=255, 0..=127, 9..=20], [[0, 10, 20], [100, 110, 20], [200, 110, 120], [255, 240, 121]], random.u8(..);
            u8, 3, [.., .., ..], [[0; 3], [128; 3]], random.u8(..);
            i8, 2, [.., ..], [[-128, 1], [127, 2]], random.i8(..);
            u8, 5, [..], [[0], [9], [200]], random.u8(..);
            u16, 3, [.., .., ..], [[0, 1000, 5000], [1000, 2000, 65_535]], random.u16(..);
            i32, 4, [-9..9, 0..9, -4..4, 0..10], [[-5, 0, 0, 0], [5, 9, 9, 1]], random.i32(-10..10);
            f32, 7, [0.0..1.0, 0.5..1.0], [[0.0, 0.25], [0.5, 0.75]], random.f32();
            f64, 4, [0.0..1.0, 0.5..1.0, 0.1..0.2], [[0.0, 0.25, 0.0], [0.5, 0.75, 1.0]], random.f64();
        }
    }
    Ok(())
}

/// In shared memory, and directly in global memory.
fn counts_may_have_64_bits(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for n in [9000, 100_000] {
        let x: Vec<u16> = (0..n).map(|i| (i % 3) as u16).collect();
        let x = stream.upload(&x)?;
        for bins in [2, 10_000] {
            let mut counts = stream.fill(u64::MAX, bins)?;
            algorithms::histogram_even(&stream, &x, 0..bins as u16, &mut counts)?;
            let mut expected = vec![0; bins];
            (expected[0], expected[1]) = ((n as u64).div_ceil(3), (n as u64 - 1).div_ceil(3));
            if bins > 2 {
                expected[2] = (n as u64 - 2).div_ceil(3);
            }
            expect(&format!("{n} in {bins}"), stream.download(&counts)? == expected, true)?;
        }
    }
    Ok(())
}

fn impossible_bins_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let is_expected = |error: &Error| matches!(error, Error::Argument { .. });
    let (x, floats) = (stream.upload(&[1_i32, 2])?, stream.upload(&[1.0_f32])?);
    let (mut none, mut two) = (stream.zeros::<u32>(0)?, stream.zeros::<u32>(2)?);
    let text =
        expect_error("no bins", algorithms::histogram_even(&stream, &x, 0..9, &mut none), is_expected)?;
    names(&text, &["histogram_even", "bins is 0"])?;
    for (start, end) in [(3, 3), (3, 2), (i32::MIN, i32::MIN)] {
        let result = algorithms::histogram_even(&stream, &x, start..end, &mut two);
        names(&expect_error("no range", result, is_expected)?, &[&format!("{start}..{end}")])?;
    }
    let infinite = f32::INFINITY;
    for (start, end) in [
        (1.0, 1.0),
        (2.0, 1.0),
        (f32::NAN, 1.0),
        (0.0, f32::NAN),
        (0.0, infinite),
        (-infinite, 0.0),
        (f32::MIN, f32::MAX),
    ] {
        let result = algorithms::histogram_even(&stream, &floats, start..end, &mut two);
        expect_error(&format!("{start}..{end}"), result, is_expected)?;
    }
    expect_error("..", algorithms::histogram_even(&stream, &floats, .., &mut two), is_expected)?;
    for bounds in [0, 1, 2, 4] {
        let bounds = stream.zeros::<i32>(bounds)?;
        let result = algorithms::histogram_range(&stream, &x, &bounds, &mut two);
        names(&expect_error("bounds", result, is_expected)?, &["histogram_range", "for 2 bins"])?;
    }
    let bound = stream.zeros::<i32>(1)?;
    expect_error("no bins", algorithms::histogram_range(&stream, &x, &bound, &mut none), is_expected)?;
    Ok(())
}

fn bounds_that_do_not_ascend_are_a_panic(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let is_expected = |error: &Error| matches!(error, Error::KernelPanic { .. });
    let (x, floats) = (stream.upload(&[3_u8])?, stream.upload(&[3.0_f64])?);
    let mut counts = stream.zeros::<u32>(3)?;
    for bounds in [[1_u8, 2, 1, 5], [9, 2, 3, 4], [1, 2, 3, 2]] {
        let bounds = stream.upload(&bounds)?;
        algorithms::histogram_range(&stream, &x, &bounds, &mut counts)?;
        names(&expect_error("bytes", stream.download(&counts), is_expected)?, &["bounds must ascend"])?;
    }
    for bounds in [
        [0.0, f64::NAN, 1.0, 2.0],
        [f64::NAN, 0.0, 1.0, 2.0],
        [0.0, 1.0, 2.0, f64::NAN],
        [0.0, -1.0, 2.0, 3.0],
    ] {
        let bounds = stream.upload(&bounds)?;
        algorithms::histogram_range(&stream, &floats, &bounds, &mut counts)?;
        names(&expect_error("floats", stream.download(&counts), is_expected)?, &["bounds must ascend"])?;
    }
    Ok(())
}

fn a_histogram_is_part_of_a_graph(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, counts) = (stream.zeros::<u8>(10_000)?, stream.zeros::<u32>(256)?);
    let (graph, (x, counts)) = stream.capture(|capture| {
        let (x, mut counts) = (capture.keep(x)?, capture.keep(counts)?);
        algorithms::histogram_even(capture, x.slice(1..)?, .., &mut counts)?;
        Ok((x.key(), counts.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for factor in [1, 3] {
        let host: Vec<u8> = (0..10_000).map(|i| (i * factor) as u8).collect();
        stream.upload_into(&host, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        let expected = counts_of(&host[1..], 256, |x| Some(x.into()));
        expect("counts", stream.download(graph.view(counts)?)?, expected)?;
    }
    Ok(())
}

/// Blocks with several tiles: there are at most 264. Fewer on the CPU device, where it is slow without optimisation.
fn long_inputs_are_counted(device: &Device) -> Outcome {
    let n: usize = if device.is_cuda() { 50_000_001 } else { 4_500_003 };
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(306);
    let x: Vec<u8> = (0..n).map(|_| random.u8(..)).collect();
    let mut counts = stream.zeros::<u64>(100)?;
    algorithms::histogram_even(&stream, &stream.upload(&x)?, 10..=200, &mut counts)?;
    let expected = counts_of(&x, 100, |x| even_bin(x.into(), (10, 200), 100));
    expect("bytes", stream.download(&counts)?, expected.into_iter().map(u64::from).collect())?;
    let x: Vec<f32> = x.into_iter().map(f32::from).collect();
    algorithms::histogram_even(&stream, &stream.upload(&x)?, 0.0..256.0, &mut counts)?;
    let expected = counts_of(&x, 100, |x| Some((x * (100.0 / 256.0)) as usize));
    expect("floats", stream.download(&counts)?, expected.into_iter().map(u64::from).collect())
}
