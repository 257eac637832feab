//! Sorts of segments.

use ferrogrid::algorithms::{self, RadixSort};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("segments_of_any_length_are_sorted", segments_of_any_length_are_sorted),
    ("pairs_of_segments_stay_in_order", pairs_of_segments_stay_in_order),
    ("elements_outside_of_segments_are_not_written", elements_outside_of_segments_are_not_written),
    ("offsets_of_sorted_segments_are_checked", offsets_of_sorted_segments_are_checked),
    ("segmented_sorts_are_recorded_in_graphs", segmented_sorts_are_recorded_in_graphs),
];

/// Offsets of segments of these lengths.
fn offsets(lengths: &[usize]) -> Vec<u64> {
    let ends = lengths.iter().scan(0, |end, length| {
        *end += *length as u64;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// Empty ones, single elements, many short ones, and one of more than a tile (4096 elements).
fn all_lengths() -> Vec<Vec<usize>> {
    vec![vec![], vec![0], vec![1], vec![0, 3, 0, 0, 5000, 1, 0], vec![2; 300], vec![4096], (0..100).collect()]
}

fn segments_of_any_length_are_sorted(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(241);
    let special = [f32::NAN, -f32::NAN, -0.0, 0.0, f32::INFINITY, f32::NEG_INFINITY];
    for lengths in all_lengths() {
        let offsets = offsets(&lengths);
        let n = lengths.iter().sum();
        let x: Vec<f32> =
            (0..n).map(|i| if i % 3 == 0 { special[i % 6] } else { random.f32() - 0.5 }).collect();
        let short: Vec<u32> = offsets.iter().map(|&offset| offset as u32).collect();
        let (on_device, mut y) = (stream.upload(&x)?, stream.zeros(n)?);
        for is_descending in [false, true] {
            if is_descending {
                let short = stream.upload(&short)?;
                RadixSort::descending().segmented_keys(&stream, &on_device, &short, &mut y)?;
            } else {
                algorithms::segmented_sort(&stream, &on_device, &stream.upload(&offsets)?, &mut y)?;
            }
            let mut expected = x.clone();
            for ends in offsets.windows(2) {
                let segment = &mut expected[ends[0] as usize..ends[1] as usize];
                segment.sort_by(|a, b| if is_descending { b.total_cmp(a) } else { a.total_cmp(b) });
            }
            let bits = |x: Vec<f32>| -> Vec<u32> { x.into_iter().map(f32::to_bits).collect() };
            expect(
                &format!("{}, {is_descending}", lengths.len()),
                bits(stream.download(&y)?),
                bits(expected),
            )?;
        }
    }
    Ok(())
}

fn pairs_of_segments_stay_in_order(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(242);
    macro_rules! pairs {
        ($($t:ident, $value:ident;)*) => {
            $(for lengths in all_lengths() {
                let offsets = offsets(&lengths);
                let n: usize = lengths.iter().sum();
                let x: Vec<$t> = (0..n).map(|_| random.$t(0..5)).collect();
                let values: Vec<$value> = (0..n).map(|i| i as $value).collect();
                let (mut y, mut moved) = (stream.zeros(n)?, stream.zeros(n)?);
                let on_device = (stream.upload(&x)?, stream.upload(&values)?, stream.upload(&offsets)?);
                algorithms::segmented_sort_pairs(
                    &stream, &on_device.0, &on_device.1, &on_device.2, &mut y, &mut moved,
                )?;
                let mut expected: Vec<_> = x.into_iter().zip(values).collect();
                for ends in offsets.windows(2) {
                    expected[ends[0] as usize..ends[1] as usize].sort_by_key(|it| it.0);
                }
                let found: Vec<_> = stream.download(&y)?.into_iter().zip(stream.download(&moved)?).collect();
                expect(&format!("{} {}", lengths.len(), stringify!($t)), found, expected)?;
            })*
        };
    }
    pairs! { u8, u32; i64, u64; }
    Ok(())
}

fn elements_outside_of_segments_are_not_written(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&[9_u16, 8, 7, 6, 5, 4, 3])?;
    let (offsets, mut y) = (stream.upload(&[2_u32, 4, 6])?, stream.fill(1_u16, 7)?);
    algorithms::segmented_sort(&stream, &x, &offsets, &mut y)?;
    expect("y", stream.download(&y)?, vec![1, 1, 6, 7, 4, 5, 1])
}

fn offsets_of_sorted_segments_are_checked(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.zeros::<u32>(5)?, stream.zeros::<u32>(5)?);
    let none = stream.zeros::<u32>(0)?;
    let text = expect_error("none", algorithms::segmented_sort(&stream, &x, &none, &mut y), |error| {
        matches!(error, Error::Argument { .. })
    })?;
    names(&text, &["segmented_sort", "the number of offsets", "0"])?;
    for (offsets, part) in [([0_u64, 3, 2, 5], "ascend"), ([0, 1, 2, 6], "beyond")] {
        let stream = device.new_stream()?;
        let (x, mut y) = (stream.zeros::<u32>(5)?, stream.zeros::<u32>(5)?);
        algorithms::segmented_sort(&stream, &x, &stream.upload(&offsets)?, &mut y)?;
        let text =
            expect_error(part, stream.synchronize(), |error| matches!(error, Error::KernelPanic { .. }))?;
        names(&text, &[part])?;
    }
    Ok(())
}

fn segmented_sorts_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, offsets) = (stream.upload(&[4_u32, 8, 1, 9, 2])?, stream.upload(&[0_u32, 2, 5])?);
    let y = stream.zeros::<u32>(5)?;
    let (graph, y) = stream.capture(|capture| {
        let (x, offsets, mut y) = (capture.keep(x)?, capture.keep(offsets)?, capture.keep(y)?);
        RadixSort::descending().segmented_keys(capture, &x, &offsets, &mut y)?;
        Ok(y.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    expect("sorted", stream.download(graph.view(y)?)?, vec![8, 4, 9, 2, 1])
}
