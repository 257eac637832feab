//! Reductions of segments: lengths around all that kernels distinguish, all types, empty segments, offsets that are wrong.

use ferrogrid::algorithms;
use ferrogrid::prelude::*;

use crate::FEW_LENGTHS;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("segments_of_any_length_are_summed", segments_of_any_length_are_summed),
    ("segments_of_all_types_are_combined", segments_of_all_types_are_combined),
    ("empty_segments_have_the_result_of_nothing", empty_segments_have_the_result_of_nothing),
    ("segments_of_floats_have_the_same_bits_everywhere", segments_of_floats_have_the_same_bits_everywhere),
    ("offsets_that_are_no_segments_are_a_panic", offsets_that_are_no_segments_are_a_panic),
    ("segments_have_a_result_each", segments_have_a_result_each),
    ("segments_are_reduced_in_graphs", segments_are_reduced_in_graphs),
];

/// Where segments of these lengths begin and end.
fn offsets_of(lengths: &[usize]) -> Vec<usize> {
    let mut offsets = vec![0];
    for len in lengths {
        offsets.push(offsets.last().unwrap() + len);
    }
    offsets
}

/// Lengths whose mean is short or long, in numbers that leave warps and blocks with some of their segments.
fn lengths_of(random: &mut fastrand::Rng) -> Vec<Vec<usize>> {
    let around =
        |lengths: &[usize]| lengths.iter().flat_map(|len| [len - 1, *len, len + 1]).collect::<Vec<_>>();
    vec![
        vec![0],
        vec![1],
        vec![0, 0, 0, 5],
        vec![3; 33],
        around(&[1, 2, 16, 32, 64, 96, 128, 129, 256, 300]),
        around(&[256, 512, 1024, 4096, 5000, 8192]),
        vec![600],
        vec![511, 0, 511, 9000],
        (0..1000).map(|_| random.usize(..200)).collect(),
        (0..50).map(|_| random.usize(..9000)).collect(),
        [vec![10_000], vec![1; 100]].concat(),
    ]
}

fn segments_of_any_length_are_summed(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(320);
    for lengths in lengths_of(&mut random) {
        let offsets = offsets_of(&lengths);
        // Elements before the first segment and after the last one.
        for (before, after) in [(0, 0), (3, 10)] {
            let x: Vec<i32> = (0..before + offsets.last().unwrap() + after).map(|_| random.i32(..)).collect();
            let sum = |bounds: &[usize]| {
                x[before + bounds[0]..before + bounds[1]].iter().map(|x| i64::from(*x)).sum::<i64>()
            };
            let expected: Vec<i64> = offsets.windows(2).map(sum).collect();
            let short: Vec<u32> = offsets.iter().map(|offset| (before + offset) as u32).collect();
            let long: Vec<u64> = short.iter().map(|offset| (*offset).into()).collect();
            let (x, mut sums) = (stream.upload(&x)?, stream.fill(-1_i64, lengths.len())?);
            let what = format!("{} segments", lengths.len());
            algorithms::segmented_sum(&stream, &x, &stream.upload(&short)?, &mut sums)?;
            expect(&what, stream.download(&sums)?, expected.clone())?;
            let mut sums = stream.fill(-1_i64, lengths.len())?;
            algorithms::segmented_sum(&stream, &x, &stream.upload(&long)?, &mut sums)?;
            expect(&format!("{what}, 64 bits"), stream.download(&sums)?, expected)?;
        }
    }
    Ok(())
}

fn segments_of_all_types_are_combined(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(321);
    macro_rules! segments {
        ($($t:ident as $total:ident: $of:expr, $min:expr, $max:expr;)*) => {
            $(for &len in &FEW_LENGTHS[1..] {
                let offsets = [0, 1, len / 2, len - 1, len].map(|offset| offset as u32);
                let x: Vec<$t> = (0..len).map(|_| $of).collect();
                let segments = || offsets.windows(2).map(|bounds| &x[bounds[0] as usize..bounds[1] as usize]);
                let sums = segments().map(|x| x.iter().fold(0 as $total, |a, b| a + *b as $total)).collect();
                let least = segments().map(|x| x.iter().copied().reduce($min).unwrap()).collect();
                let greatest = segments().map(|x| x.iter().copied().reduce($max).unwrap()).collect();
                let (x, offsets) = (stream.upload(&x)?, stream.upload(&offsets)?);
                let (mut of_sums, mut y) = (stream.zeros::<$total>(4)?, stream.zeros::<$t>(4)?);
                let what = format!("{len} {}", stringify!($t));
                algorithms::segmented_sum(&stream, &x, &offsets, &mut of_sums)?;
                expect(&what, stream.download(&of_sums)?, sums)?;
                algorithms::segmented_min(&stream, &x, &offsets, &mut y)?;
                expect(&what, stream.download(&y)?, least)?;
                algorithms::segmented_max(&stream, &x, &offsets, &mut y)?;
                expect(&what, stream.download(&y)?, greatest)?;
            })*
        };
    }
    // Sums of the floats are exact.
    segments! {
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
    Ok(())
}

fn empty_segments_have_the_result_of_nothing(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for x in [vec![], vec![f32::NAN; 3], vec![f32::NAN; 3000]] {
        let end = x.len() as u32;
        let (x, offsets) = (stream.upload(&x)?, stream.upload(&[0, 0, end, end])?);
        let mut y = stream.zeros(3)?;
        algorithms::segmented_min(&stream, &x, &offsets, &mut y)?;
        expect("NaN", stream.download(&y)?.iter().all(|y| y.is_nan()), true)?;
        algorithms::segmented_max(&stream, &x, &offsets, &mut y)?;
        expect("NaN", stream.download(&y)?.iter().all(|y| y.is_nan()), true)?;
        let integers = stream.upload(&vec![5_i16; end as usize])?;
        let (mut sums, mut y) = (stream.fill(1_i64, 3)?, stream.zeros(3)?);
        algorithms::segmented_sum(&stream, &integers, &offsets, &mut sums)?;
        expect("sums", stream.download(&sums)?, vec![0, 5 * i64::from(end), 0])?;
        algorithms::segmented_min(&stream, &integers, &offsets, &mut y)?;
        let of_second = |none: i16| if end == 0 { none } else { 5 };
        expect("least", stream.download(&y)?, vec![i16::MAX, of_second(i16::MAX), i16::MAX])?;
        algorithms::segmented_max(&stream, &integers, &offsets, &mut y)?;
        expect("greatest", stream.download(&y)?, vec![i16::MIN, of_second(i16::MIN), i16::MIN])?;
    }
    Ok(())
}

/// The bits of sums that were computed once on the CPU device, and those of a second run.
fn segments_of_floats_have_the_same_bits_everywhere(device: &Device) -> Outcome {
    let mut bits = Vec::new();
    for device in [device, &Device::cpu(), device] {
        let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(322));
        let mut of_device = Vec::new();
        for lengths in lengths_of(&mut random) {
            let offsets = offsets_of(&lengths);
            let x: Vec<f32> = (0..*offsets.last().unwrap()).map(|_| random.f32() - 0.5).collect();
            let offsets: Vec<u32> = offsets.into_iter().map(|offset| offset as u32).collect();
            let mut sums = stream.zeros::<f32>(lengths.len())?;
            algorithms::segmented_sum(&stream, &stream.upload(&x)?, &stream.upload(&offsets)?, &mut sums)?;
            let sums = stream.download(&sums)?;
            for (sum, bounds) in sums.iter().zip(offsets.windows(2)) {
                let x = &x[bounds[0] as usize..bounds[1] as usize];
                let exact: f64 = x.iter().map(|x| f64::from(*x)).sum();
                expect("close to exact", (f64::from(*sum) - exact).abs() <= 1e-6 * x.len() as f64, true)?;
            }
            of_device.extend(sums.into_iter().map(f32::to_bits));
        }
        bits.push(of_device);
    }
    expect("bits of two devices", &bits[0], &bits[1])?;
    expect("bits of two runs", &bits[0], &bits[2])
}

fn offsets_that_are_no_segments_are_a_panic(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let is_expected = |error: &Error| matches!(error, Error::KernelPanic { .. });
    for len in [10_u32, 5000] {
        let (x, mut sums) = (stream.fill(1_u8, len as usize)?, stream.zeros::<u64>(3)?);
        for (offsets, text) in [
            ([0, 5, 4, len], "offsets must ascend"),
            ([0, len, len, len + 1], "ends beyond"),
            ([0, 1, u32::MAX, u32::MAX], "ends beyond"),
        ] {
            algorithms::segmented_sum(&stream, &x, &stream.upload(&offsets)?, &mut sums)?;
            names(&expect_error("offsets", stream.download(&sums), is_expected)?, &[text])?;
        }
        let offsets = stream.upload(&[0, 1, 2, u64::MAX])?;
        algorithms::segmented_sum(&stream, &x, &offsets, &mut sums)?;
        names(&expect_error("64 bits", stream.download(&sums), is_expected)?, &["ends beyond"])?;
    }
    Ok(())
}

fn segments_have_a_result_each(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let is_expected = |error: &Error| matches!(error, Error::Argument { .. });
    let x = stream.zeros::<i32>(9)?;
    for (offsets, results) in [(0, 0), (3, 1), (3, 3), (0, 1)] {
        let (offsets_of, mut y) = (stream.zeros::<u32>(offsets)?, stream.zeros(results)?);
        let text = expect_error(
            "results",
            algorithms::segmented_min(&stream, &x, &offsets_of, &mut y),
            is_expected,
        )?;
        names(&text, &["`segmented_min`", &format!("{offsets} for {results} results")])?;
    }
    let (none, mut sums) = (stream.zeros::<u32>(1)?, stream.zeros(0)?);
    algorithms::segmented_sum(&stream, &x, &none, &mut sums)?;
    Ok(())
}

fn segments_are_reduced_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, offsets, sums) = (stream.fill(2_u16, 5000)?, stream.zeros::<u32>(4)?, stream.zeros::<u64>(3)?);
    let (graph, (offsets, sums)) = stream.capture(|capture| {
        let (x, offsets, mut sums) = (capture.keep(x)?, capture.keep(offsets)?, capture.keep(sums)?);
        algorithms::segmented_sum(capture, &x, &offsets, &mut sums)?;
        Ok((offsets.key(), sums.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for host in [[0, 10, 4000, 5000], [7, 7, 8, 3000]] {
        stream.upload_into(&host, graph.view_mut(offsets)?)?;
        graph.launch(&stream)?;
        let expected = host.windows(2).map(|bounds| u64::from(2 * (bounds[1] - bounds[0]))).collect();
        expect("sums", stream.download(graph.view(sums)?)?, expected)?;
    }
    Ok(())
}
