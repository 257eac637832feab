//! The algorithms on `f16` and `bf16`: orders and moves beside models of the bits, and arithmetic beside `f32` and `f64`.

use std::fmt::Debug;
use std::ops::Bound;

use ferrogrid::LaunchError;
use ferrogrid::algorithms::{self, Drawn, Philox, RadixSort, Real};
use ferrogrid::device::half::{HalfFloat, bf16, f16};
use ferrogrid::prelude::*;

use super::FEW_LENGTHS;
use crate::{Case, Outcome, expect, expect_error, names};

macro_rules! of_both_types {
    ($($name:literal, $case:ident;)*) => {
        pub(crate) const CASES: &[Case] = &[$(($name, |device: &Device| {
            let stream = device.new_stream()?;
            $case::<f16>(&stream).map_err(|error| format!("f16: {error}"))?;
            $case::<bf16>(&stream).map_err(|error| format!("bf16: {error}"))?;
            Ok(())
        })),*];
    };
}
of_both_types! {
    "halves_are_sorted_and_searched_by_their_bits", ordered;
    "halves_are_moved_bit_by_bit", moved;
    "halves_are_reduced_as_singles", reduced;
    "extrema_of_halves_skip_nan", extreme;
    "runs_of_halves_have_equal_numbers", runs;
    "parts_of_halves_are_reduced_as_singles", parts;
    "running_sums_of_halves_are_rounded_once", scanned;
    "halves_fall_into_the_bins_of_singles", binned;
    "differences_of_halves_are_rounded_once", stepped;
    "drawn_halves_are_rounded_singles", drawn;
}

trait Half: Real<Total = f32> + Drawn + HalfFloat + Debug {}

impl<T: Real<Total = f32> + Drawn + HalfFloat + Debug> Half for T {}

/// Zeros, the least subnormals, infinities and NaN of both signs, and 1. `f16` has 5 bits of exponent, `bf16` 8.
fn special<T: Half>() -> Vec<T> {
    let infinity = T::from_f32(f32::INFINITY).to_bits();
    let positive = [0, 1, infinity, infinity | 1, T::from_f32(1.0).to_bits()];
    positive.iter().flat_map(|bits| [*bits, bits | 0x8000]).map(T::from_bits).collect()
}

/// Any bits, and many special ones.
fn any<T: Half>(n: usize, seed: u64) -> Vec<T> {
    let (special, mut random) = (special::<T>(), fastrand::Rng::with_seed(seed));
    let mut of = || if random.bool() { T::from_bits(random.u16(..)) } else { special[random.usize(..10)] };
    (0..n).map(|_| of()).collect()
}

/// Numbers from -0.25 to 0.75.
fn moderate<T: Half>(n: usize, seed: u64) -> Vec<T> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..n).map(|_| T::from_f32(random.f32() - 0.25)).collect()
}

fn bits<T: Half>(x: &[T]) -> Vec<u16> {
    x.iter().map(|x| x.to_bits()).collect()
}

fn singles<T: Half>(x: &[T]) -> Vec<f32> {
    x.iter().map(|x| x.to_f32()).collect()
}

/// The place in the order of `total_cmp`.
fn place<T: Half>(x: &T) -> i16 {
    let bits = x.to_bits().cast_signed();
    bits ^ i16::MAX & (bits >> 15)
}

fn ordered<T: Half>(stream: &Stream) -> Outcome {
    // The sort of few elements ends at 3072, and a tile has 8192.
    for n in [0, 1, 33, 3072, 3073, 8191, 8193] {
        let host = any::<T>(n, 231);
        let (x, mut y) = (stream.upload(&host)?, stream.zeros(n)?);
        let mut sorted = host.clone();
        sorted.sort_by_key(place);
        algorithms::sort(stream, &x, &mut y)?;
        expect(&format!("{n} sorted"), bits(&stream.download(&y)?), bits(&sorted))?;

        let mut indices = stream.zeros(n)?;
        algorithms::argsort(stream, &x, &mut indices)?;
        let mut expected: Vec<u32> = (0..n as u32).collect();
        expected.sort_by_key(|i| place(&host[*i as usize]));
        expect(&format!("argsort of {n}"), stream.download(&indices)?, expected.clone())?;

        let (values, mut moved) = (stream.upload(&(0..n as u64).collect::<Vec<_>>())?, stream.zeros(n)?);
        algorithms::sort_pairs(stream, &x, &values, &mut y, &mut moved)?;
        let moved: Vec<u32> = stream.download(&moved)?.into_iter().map(|it| it as u32).collect();
        expect(&format!("pairs of {n}"), (bits(&stream.download(&y)?), moved), (bits(&sorted), expected))?;

        let values = any::<T>(70, 232);
        let (upload, mut found) = (stream.upload(&values)?, stream.zeros(70)?);
        let sorted_x = stream.upload(&sorted)?;
        algorithms::lower_bound(stream, &sorted_x, &upload, &mut found)?;
        let bound = |value: &T| sorted.partition_point(|x| place(x) < place(value)) as u64;
        expect("lower bounds", stream.download(&found)?, values.iter().map(bound).collect::<Vec<_>>())?;

        let mut twice = stream.zeros(2 * n)?;
        algorithms::merge(stream, &sorted_x, &sorted_x, &mut twice)?;
        let expected = sorted.iter().flat_map(|x| [*x; 2]).collect::<Vec<_>>();
        expect(&format!("merged {n}"), bits(&stream.download(&twice)?), bits(&expected))?;
        let both = algorithms::set_intersection(stream, &sorted_x, &sorted_x, &mut y)?;
        expect(&format!("sets of {n}"), (both, bits(&stream.download(&y)?)), (n, bits(&sorted)))?;

        sorted.reverse();
        algorithms::sort_descending(stream, &x, &mut y)?;
        expect(&format!("{n} descending"), bits(&stream.download(&y)?), bits(&sorted))?;
        let k = n.min(100);
        let (mut greatest, mut at) = (stream.zeros(k)?, stream.zeros::<u32>(k)?);
        algorithms::top_k(stream, &x, &mut greatest, &mut at)?;
        let found: Vec<T> = stream.download(&at)?.into_iter().map(|i| host[i as usize]).collect();
        let greatest = bits(&stream.download(&greatest)?);
        expect(&format!("top of {n}"), (greatest, bits(&found)), (bits(&sorted[..k]), bits(&sorted[..k])))?;
    }
    let host = any::<T>(5000, 233);
    let (x, mut y) = (stream.upload(&host)?, stream.zeros(5000)?);
    let mut by_low_bits = host.clone();
    by_low_bits.sort_by_key(|x| place(x) & 0xFF);
    RadixSort::ascending().of_bits(0..8).keys(stream, &x, &mut y)?;
    expect("by 8 bits", bits(&stream.download(&y)?), bits(&by_low_bits))?;
    let mut segments = host;
    segments[..33].sort_by_key(place);
    segments[33..].sort_by_key(place);
    algorithms::segmented_sort(stream, &x, &stream.upload(&[0_u32, 0, 33, 5000])?, &mut y)?;
    expect("segments", bits(&stream.download(&y)?), bits(&segments))
}

fn moved<T: Half>(stream: &Stream) -> Outcome {
    for n in [0, 1, 2049, 8191, 8193] {
        let host = any::<T>(n, 234);
        let flags: Vec<bool> = (0..n).map(|i| i % 3 == 1).collect();
        let flagged = |flag: bool| (0..n).filter(move |i| (i % 3 == 1) == flag).map(|i| host[i]);
        let (x, flags, mut y) = (stream.upload(&host)?, stream.upload(&flags)?, stream.zeros(n)?);
        let count = algorithms::select(stream, &x, &flags, &mut y)?;
        let selected: Vec<T> = flagged(true).collect();
        expect(&format!("selected of {n}"), bits(&stream.download(&y)?[..count]), bits(&selected))?;
        algorithms::partition(stream, &x, &flags, &mut y)?;
        let parted: Vec<T> = flagged(true).chain(flagged(false)).collect();
        expect(&format!("{n} parted"), bits(&stream.download(&y)?), bits(&parted))?;

        let reversed: Vec<T> = host.iter().rev().copied().collect();
        algorithms::reverse(stream, &x, &mut y)?;
        expect(&format!("{n} reversed"), bits(&stream.download(&y)?), bits(&reversed))?;
        let indices = stream.upload(&(0..n as u32).rev().collect::<Vec<_>>())?;
        stream.fill_into(T::from_f32(7.0), y.view_mut())?;
        algorithms::gather(stream, &x, &indices, &mut y)?;
        expect(&format!("{n} gathered"), bits(&stream.download(&y)?), bits(&reversed))?;
        stream.fill_into(T::from_f32(7.0), y.view_mut())?;
        algorithms::scatter(stream, &x, &indices, &mut y)?;
        expect(&format!("{n} scattered"), bits(&stream.download(&y)?), bits(&reversed))?;

        let (lengths, mut twice) = (stream.fill(2_u32, n)?, stream.zeros(2 * n)?);
        algorithms::run_length_decode(stream, &x, &lengths, &mut twice)?;
        let expected: Vec<T> = host.iter().flat_map(|x| [*x; 2]).collect();
        expect(&format!("{n} decoded"), bits(&stream.download(&twice)?), bits(&expected))?;
    }
    let (rows, columns) = (65, 67);
    let host = any::<T>(rows * columns, 235);
    let (x, mut y) = (stream.upload(&host)?, stream.zeros(host.len())?);
    algorithms::transpose(stream, &x, rows, columns, &mut y)?;
    let expected: Vec<T> = (0..host.len()).map(|i| host[i % rows * columns + i / rows]).collect();
    expect("transposed", bits(&stream.download(&y)?), bits(&expected))?;
    algorithms::roll(stream, &x, -3, &mut y)?;
    let rolled = [&host[3..], &host[..3]].concat();
    expect("rolled", bits(&stream.download(&y)?), bits(&rolled))
}

fn reduced<T: Half>(stream: &Stream) -> Outcome {
    for &n in FEW_LENGTHS {
        let [host, other] = [236, 237].map(|seed| moderate::<T>(n, seed));
        let [single, single_other] = [&host, &other].map(|it| singles(it));
        let [x, y] = [stream.upload(&host)?, stream.upload(&other)?];
        let [wide_x, wide_y] = [stream.upload(&single)?, stream.upload(&single_other)?];
        let (sum, dot) = (algorithms::sum(stream, &x)?, algorithms::dot(stream, &x, &y)?);
        // Their bits have a test for all devices.
        let expected = [algorithms::sum(stream, &wide_x)?, algorithms::dot(stream, &wide_x, &wide_y)?];
        expect(&format!("bits of {n}"), [sum, dot].map(f32::to_bits), expected.map(f32::to_bits))?;
        let exact_sum: f64 = single.iter().map(|x| f64::from(*x)).sum();
        let exact_dot: f64 =
            single.iter().zip(&single_other).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
        let is_near = |found: f32, exact: f64| (f64::from(found) - exact).abs() <= 1e-6 * n as f64;
        expect(&format!("{n}: {sum}, {dot}"), is_near(sum, exact_sum) && is_near(dot, exact_dot), true)?;

        expect(
            &format!("moments of {n}"),
            algorithms::moments(stream, &x)?,
            algorithms::moments(stream, &wide_x)?,
        )?;
        let norms = |x: [ferrogrid::Result<f64>; 3]| x.into_iter().collect::<ferrogrid::Result<Vec<f64>>>();
        let of_halves =
            [algorithms::asum(stream, &x), algorithms::nrm2(stream, &x), algorithms::amax(stream, &x)];
        let of_singles = [
            algorithms::asum(stream, &wide_x),
            algorithms::nrm2(stream, &wide_x),
            algorithms::amax(stream, &wide_x),
        ];
        expect(&format!("norms of {n}"), norms(of_halves)?, norms(of_singles)?)?;
    }
    // Sums that neither type could hold, and products of powers of two.
    let many = stream.fill(T::from_f32(256.0), 70_000)?;
    expect("a large sum", algorithms::sum(stream, &many)?, 17_920_000.0)?;
    let factors: Vec<T> = (0..10_000).map(|i| T::from_f32(if i % 2 == 0 { 2.0 } else { 0.5 })).collect();
    expect("a product", algorithms::product(stream, &stream.upload(&factors)?)?, 1.0)?;
    let least = stream.fill(T::from_bits(1), 5000)?;
    let exact = T::from_bits(1).to_f32() * 5000.0;
    expect("subnormal numbers are kept", algorithms::sum(stream, &least)?, exact)?;
    let opposed = stream.upload(&[f32::INFINITY, f32::NEG_INFINITY].map(T::from_f32))?;
    expect("the sum is NaN", algorithms::sum(stream, &opposed)?.is_nan(), true)
}

fn extreme<T: Half>(stream: &Stream) -> Outcome {
    for (n, seed) in [(1, 238), (33, 239), (4095, 240), (8197, 241)] {
        let host = any::<T>(n, seed);
        let single = singles(&host);
        let (x, wide) = (stream.upload(&host)?, stream.upload(&single)?);
        for (found, expected) in [
            (algorithms::argmin(stream, &x)?, algorithms::argmin(stream, &wide)?),
            (algorithms::argmax(stream, &x)?, algorithms::argmax(stream, &wide)?),
        ] {
            let [found, expected] = [
                found.map(|it| (it.index, it.value.to_f32().to_bits())),
                expected.map(|it| (it.index, it.value.to_bits())),
            ];
            expect(&format!("places of {n}"), found, expected)?;
        }
        let number = |x: Option<T>| x.map(|x| x.to_f32().to_bits());
        let least = single.iter().copied().reduce(f32::min).map(|x| (x + 0.0).to_bits());
        let greatest = single.iter().copied().reduce(f32::max).map(|x| (x + 0.0).to_bits());
        if !single.iter().all(|x| x.is_nan()) {
            expect(&format!("least of {n}"), number(algorithms::min(stream, &x)?), least)?;
            expect(&format!("greatest of {n}"), number(algorithms::max(stream, &x)?), greatest)?;
        }
        for value in special::<T>() {
            let same = |x: &&f32| **x == value.to_f32() || x.is_nan() && value.is_nan();
            let (count, expected) =
                (algorithms::count(stream, &x, value)?, single.iter().filter(same).count());
            expect(&format!("{value:?} in {n}"), count, expected)?;
        }
        let nonzero = single.iter().filter(|x| **x != 0.0).count();
        expect(&format!("not 0 of {n}"), algorithms::count_nonzero(stream, &x)?, nonzero)?;
        expect(&format!("all of {n}"), algorithms::all(stream, &x)?, nonzero == n)?;

        let mut least = stream.zeros(n)?;
        algorithms::inclusive_min(stream, &x, &mut least)?;
        let mut so_far = f32::NAN;
        for (i, (found, x)) in stream.download(&least)?.into_iter().zip(&single).enumerate() {
            so_far = so_far.min(*x);
            let is_same = found.to_f32() == so_far || found.is_nan() && so_far.is_nan();
            expect(&format!("{found:?} and {so_far} at {i} of {n}"), is_same, true)?;
        }
    }
    let empty = stream.zeros::<T>(0)?;
    expect("of nothing", algorithms::min(stream, &empty)?.is_none(), true)?;
    let mut least = stream.zeros(1)?;
    algorithms::min_into(stream, &empty, &mut least)?;
    expect("the least of nothing", stream.download(&least)?[0].is_nan(), true)
}

fn runs<T: Half>(stream: &Stream) -> Outcome {
    for n in [0, 1, 8191, 8193] {
        let (special, mut random) = (special::<T>(), fastrand::Rng::with_seed(242));
        let host: Vec<T> = (0..n).map(|_| special[random.usize(..10)]).collect();
        let same = |a: &T, b: &T| a.to_f32() == b.to_f32() || a.is_nan() && b.is_nan();
        let runs: Vec<&[T]> = host.chunk_by(same).collect();
        let expected: Vec<T> = runs.iter().map(|run| run[0]).collect();
        let (x, mut values, mut lengths) = (stream.upload(&host)?, stream.zeros(n)?, stream.zeros::<u32>(n)?);
        let count = algorithms::unique(stream, &x, &mut values)?;
        expect(&format!("unique of {n}"), bits(&stream.download(&values)?[..count]), bits(&expected))?;
        let count = algorithms::run_length_encode(stream, &x, &mut values, &mut lengths)?;
        expect(&format!("values of {n}"), bits(&stream.download(&values)?[..count]), bits(&expected))?;
        let expected_lengths: Vec<u32> = runs.iter().map(|run| run.len() as u32).collect();
        expect(&format!("lengths of {n}"), &stream.download(&lengths)?[..count], &expected_lengths[..])?;

        // Sums of whole numbers are exact in any order; `bf16` itself counts to 256.
        let (ones, mut sums) = (stream.fill(T::from_f32(1.0), n)?, stream.zeros::<f32>(n)?);
        let count = algorithms::sum_by_key(stream, &x, &ones, &mut values, &mut sums)?;
        let expected_sums: Vec<f32> = runs.iter().map(|run| run.len() as f32).collect();
        expect(&format!("keys of {n}"), bits(&stream.download(&values)?[..count]), bits(&expected))?;
        expect(&format!("sums of {n}"), &stream.download(&sums)?[..count], &expected_sums[..])?;
    }
    let (keys, ones) = (stream.zeros::<u8>(5000)?, stream.fill(T::from_f32(1.0), 5000)?);
    let (mut key, mut sum) = (stream.zeros(1)?, stream.zeros::<f32>(1)?);
    algorithms::sum_by_key(stream, &keys, &ones, &mut key, &mut sum)?;
    expect("a long run", stream.download(&sum)?, vec![5000.0])
}

fn parts<T: Half>(stream: &Stream) -> Outcome {
    // Segments of warps, and of blocks.
    for (n, offsets) in [(4097, vec![0_u32, 0, 1, 33, 700, 702, 1500, 2222, 4097]), (9001, vec![0, 0, 9001])]
    {
        let host = moderate::<T>(n, 243);
        let (x, wide, segments) = (stream.upload(&host)?, stream.upload(&singles(&host))?, offsets.len() - 1);
        let offsets = stream.upload(&offsets)?;
        let (mut sums, mut expected) = (stream.zeros::<f32>(segments)?, stream.zeros::<f32>(segments)?);
        algorithms::segmented_sum(stream, &x, &offsets, &mut sums)?;
        algorithms::segmented_sum(stream, &wide, &offsets, &mut expected)?;
        expect(&format!("sums of {segments}"), stream.download(&sums)?, stream.download(&expected)?)?;
        let mut least = stream.zeros(segments)?;
        algorithms::segmented_min(stream, &x, &offsets, &mut least)?;
        algorithms::segmented_min(stream, &wide, &offsets, &mut expected)?;
        let least = singles(&stream.download(&least)?).into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let expected: Vec<u32> = stream.download(&expected)?.into_iter().map(f32::to_bits).collect();
        // That of no elements is any NaN.
        expect(&format!("least of {segments}"), &least[1..], &expected[1..])?;
    }
    // A row in one step and in two.
    for (width, height) in [(33, 5), (9000, 2)] {
        let host = moderate::<T>(width * height, 244);
        let (x, wide) = (stream.upload(&host)?, stream.upload(&singles(&host))?);
        let (x, wide) = (x.view_2d(width, height)?, wide.view_2d(width, height)?);
        let (mut sums, mut expected) = (stream.zeros::<f32>(height)?, stream.zeros::<f32>(height)?);
        algorithms::row_sums(stream, x, &mut sums)?;
        algorithms::row_sums(stream, wide, &mut expected)?;
        expect(&format!("rows of {width}"), stream.download(&sums)?, stream.download(&expected)?)?;
        let (mut means, mut expected) = (stream.zeros::<f64>(width)?, stream.zeros::<f64>(width)?);
        algorithms::column_means(stream, x, &mut means)?;
        algorithms::column_means(stream, wide, &mut expected)?;
        expect(&format!("columns of {height}"), stream.download(&means)?, stream.download(&expected)?)?;
    }
    Ok(())
}

fn scanned<T: Half>(stream: &Stream) -> Outcome {
    // A block has 2048 elements. Whole numbers are exact in `f32`.
    for n in [0, 1, 2047, 2049, 8197] {
        let (x, mut y) = (stream.fill(T::from_f32(3.0), n)?, stream.zeros(n)?);
        let rounded =
            |first: usize| (0..n).map(|i| T::from_f32(3.0 * (first + i) as f32)).collect::<Vec<T>>();
        algorithms::inclusive_sum(stream, &x, &mut y)?;
        expect(&format!("{n}, inclusive"), bits(&stream.download(&y)?), bits(&rounded(1)))?;
        algorithms::exclusive_sum(stream, &x, T::from_f32(6.0), &mut y)?;
        expect(&format!("{n}, exclusive"), bits(&stream.download(&y)?), bits(&rounded(2)))?;
    }
    let host = moderate::<T>(5000, 245);
    let (x, mut y) = (stream.upload(&host)?, stream.zeros(5000)?);
    algorithms::inclusive_sum(stream, &x, &mut y)?;
    let mut sum = 0.0;
    for (i, (found, x)) in stream.download(&y)?.into_iter().zip(&host).enumerate() {
        sum += f64::from(x.to_f32());
        // What `f32` lost may take the sum to the other side of a tie.
        let [least, greatest] = [-1e-6, 1e-6].map(|lost| T::from_f32((sum + lost * (i + 1) as f64) as f32));
        let is_near = least <= found && found <= greatest;
        expect(&format!("{found:?} for {sum} at {i}"), is_near, true)?;
    }
    let mut short = stream.zeros(4999)?;
    let is_expected = |error: &Error| matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }));
    let text = expect_error("lengths", algorithms::inclusive_sum(stream, &x, &mut short), is_expected)?;
    names(&text, &["inclusive_sum", "5000", "4999"])
}

fn binned<T: Half>(stream: &Stream) -> Outcome {
    let host = any::<T>(10_001, 246);
    let single = singles(&host);
    let (x, wide) = (stream.upload(&host)?, stream.upload(&single)?);
    let (mut counts, mut expected) = (stream.zeros::<u32>(10)?, stream.zeros::<u32>(10)?);
    let number = |x: f32| T::from_f32(x);
    algorithms::histogram_even(stream, &x, number(-1.0)..=number(1.0), &mut counts)?;
    algorithms::histogram_even(stream, &wide, -1.0..=1.0, &mut expected)?;
    expect("even", stream.download(&counts)?, stream.download(&expected)?)?;
    let inside = single.iter().filter(|x| (-1.0..=1.0).contains(*x)).count() as u32;
    expect("all of them", stream.download(&counts)?.iter().sum::<u32>(), inside)?;
    // Without the bounds themselves, of which there are many.
    let open = (Bound::Excluded(number(-1.0)), Bound::Excluded(number(1.0)));
    algorithms::histogram_even(stream, &x, open, &mut counts)?;
    let inside = single.iter().filter(|x| -1.0 < **x && **x < 1.0).count() as u32;
    expect("between the bounds", stream.download(&counts)?.iter().sum::<u32>(), inside)?;

    let bounds = [f32::NEG_INFINITY, -2.0, -0.0, 0.5, 1.0, f32::INFINITY];
    let mut counts = stream.zeros::<u64>(5)?;
    algorithms::histogram_range(stream, &x, &stream.upload(&bounds.map(number))?, &mut counts)?;
    let inside =
        |bin: usize| single.iter().filter(|x| bounds[bin] <= **x && **x < bounds[bin + 1]).count() as u64;
    expect("ranges", stream.download(&counts)?, (0..5).map(inside).collect::<Vec<_>>())
}

fn stepped<T: Half>(stream: &Stream) -> Outcome {
    for n in [0, 1, 2047, 2049] {
        let host = any::<T>(n, 247);
        let (x, mut y) = (stream.upload(&host)?, stream.zeros(n)?);
        algorithms::adjacent_difference(stream, &x, &mut y)?;
        for (i, found) in stream.download(&y)?.into_iter().enumerate() {
            let before = if i == 0 { 0.0 } else { host[i - 1].to_f32() };
            let nearest = T::from_f32(host[i].to_f32() - before);
            let is_same = found.to_bits() == nearest.to_bits() || found.is_nan() && nearest.is_nan();
            expect(&format!("{found:?} for {nearest:?} at {i}"), is_same, true)?;
        }
    }
    // Indices that `f16` has no numbers for, and sums that are whole in `f32`.
    let mut y = stream.zeros(70_000)?;
    algorithms::sequence(stream, T::from_f32(-16.0), T::from_f32(0.0009765625), &mut y)?;
    let expected: Vec<T> = (0..70_000).map(|i| T::from_f32(i as f32 / 1024.0 - 16.0)).collect();
    expect("a sequence", bits(&stream.download(&y)?), bits(&expected))
}

fn drawn<T: Half>(stream: &Stream) -> Outcome {
    // A group is of four, and a block has 256.
    for n in [0, 3, 1023, 1025] {
        let [mut of_halves, mut of_singles] = [0; 2].map(|_| Philox::new(248));
        let (mut y, mut wide) = (stream.zeros::<T>(n)?, stream.zeros::<f32>(n)?);
        for distribution in ["uniform", "normal", "exponential"] {
            match distribution {
                "uniform" => (of_halves.uniform(stream, &mut y)?, of_singles.uniform(stream, &mut wide)?),
                "normal" => (of_halves.normal(stream, &mut y)?, of_singles.normal(stream, &mut wide)?),
                _ => (of_halves.exponential(stream, &mut y)?, of_singles.exponential(stream, &mut wide)?),
            };
            let rounded: Vec<T> = stream.download(&wide)?.into_iter().map(T::from_f32).collect();
            expect(&format!("{n}, {distribution}"), bits(&stream.download(&y)?), bits(&rounded))?;
        }
        expect("the state", of_halves, of_singles)?;
    }
    Ok(())
}
