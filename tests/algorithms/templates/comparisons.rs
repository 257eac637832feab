//! `#[comparison]` functions, beside std's sort and sets of a sequential model.

use std::cmp::Ordering;

use ferrogrid::prelude::*;

use super::kernels::templates::{Record, by_key, descending};
use crate::{Case, Outcome, expect, expect_error};

pub(crate) const CASES: &[Case] = &[
    ("merge_sorts_keep_the_order_of_equals", merge_sorts_keep_the_order_of_equals),
    ("merge_sorts_have_any_order", merge_sorts_have_any_order),
    ("sorted_slices_are_merged_by_comparison", sorted_slices_are_merged_by_comparison),
    ("elements_are_found_by_comparison", elements_are_found_by_comparison),
    ("sets_keep_equal_elements_as_std_does", sets_keep_equal_elements_as_std_does),
    ("sets_have_errors_for_too_little_room", sets_have_errors_for_too_little_room),
    ("comparisons_are_recorded_in_graphs", comparisons_are_recorded_in_graphs),
];

/// The elements of a block's tile: 5 of 12 bytes for each of 256 threads.
const TILE: usize = 1280;

/// `n` records with one of so many keys, each with a name of its own.
fn records(n: usize, keys: i16, seed: u64) -> Vec<Record> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..n).map(|i| Record { key: random.i16(..) % keys, name: [i as u16, seed as u16, 0, 0, 7] }).collect()
}

fn sorted(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_key(|it| it.key);
    records
}

fn merge_sorts_keep_the_order_of_equals(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    // Tiles, and runs of one, two, four and eight of them.
    for n in [0, 1, 2, 5, 161, TILE - 1, TILE, TILE + 1, 2 * TILE, 3 * TILE - 1, 5 * TILE + 1, 8 * TILE + 3] {
        for keys in [1, 7, i16::MAX] {
            let x = records(n, keys, 3);
            let mut y = stream.zeros(n)?;
            by_key::merge_sort(&stream, &stream.upload(&x)?, &mut y)?;
            expect(&format!("{n}, {keys}"), stream.download(&y)?, sorted(x))?;
        }
    }
    Ok(())
}

fn merge_sorts_have_any_order(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(12);
    let special = [f32::NAN, -f32::NAN, -0.0, 0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-45];
    for n in [4095, 4096, 4097, 20_000] {
        let ascending: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let random = (0..n)
            .map(|_| if random.bool() { *random.choice(&special).unwrap_or(&0.0) } else { random.f32() });
        for (what, x) in [
            ("random", random.collect()),
            ("reversed", ascending.iter().rev().copied().collect()),
            ("sorted", ascending),
        ] {
            let x: Vec<f32> = x;
            // Neither begins at a multiple of 16 bytes.
            let mut y = stream.fill(7.0, n + 2)?;
            descending::merge_sort(&stream, stream.upload(&x)?.slice(1..)?, y.slice_mut(1..n)?)?;
            let mut expected = x[1..].to_vec();
            expected.sort_by(|a, b| b.total_cmp(a));
            expected = [vec![7.0], expected, vec![7.0; 2]].concat();
            let bits = |x: Vec<f32>| -> Vec<u32> { x.into_iter().map(f32::to_bits).collect() };
            expect(&format!("{what}, {n}"), bits(stream.download(&y)?), bits(expected))?;
        }
    }
    let (x, mut y) = (stream.zeros(5)?, stream.zeros(4)?);
    let text = expect_error("lengths", descending::merge_sort(&stream, &x, &mut y), |error| {
        matches!(error, Error::LengthMismatch { operation: "merge_sort", source_length: 5, target_length: 4 })
    })?;
    expect(&text, text.contains("merge_sort"), true)
}

/// Lengths of both slices: around a tile together, with one of them empty or much longer.
const LENGTHS: &[(usize, usize)] =
    &[(0, 0), (0, 1), (1, 0), (3, 2), (700, 579), (640, 640), (1, TILE), (0, 3000), (5000, 3), (2047, 2050)];

fn sorted_slices_are_merged_by_comparison(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for &(n, m) in LENGTHS {
        for keys in [3, 2000] {
            let (a, b) = (sorted(records(n, keys, 1)), sorted(records(m, keys, 2)));
            let mut y = stream.zeros(n + m)?;
            by_key::merge(&stream, &stream.upload(&a)?, &stream.upload(&b)?, &mut y)?;
            expect(&format!("{n}, {m}, {keys}"), stream.download(&y)?, sorted([a, b].concat()))?;
        }
    }
    let (a, mut y) = (stream.zeros(5)?, stream.zeros(9)?);
    expect_error("lengths", by_key::merge(&stream, &a, &a, &mut y), |error| {
        matches!(error, Error::LengthMismatch { operation: "merge", source_length: 10, target_length: 9 })
    })?;
    Ok(())
}

fn elements_are_found_by_comparison(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for &(n, m) in LENGTHS {
        let (x, values) = (sorted(records(n, 50, 1)), records(m, 60, 2));
        let (on_device, of) = (stream.upload(&x)?, stream.upload(&values)?);
        let (mut lower, mut upper) = (stream.zeros(m)?, stream.zeros(m)?);
        by_key::lower_bound(&stream, &on_device, &of, &mut lower)?;
        by_key::upper_bound(&stream, &on_device, &of, &mut upper)?;
        let expected = |is_before: fn(i16, i16) -> bool| -> Vec<u64> {
            values.iter().map(|value| x.partition_point(|it| is_before(it.key, value.key)) as u64).collect()
        };
        expect(&format!("lower, {n}, {m}"), stream.download(&lower)?, expected(|x, value| x < value))?;
        expect(&format!("upper, {n}, {m}"), stream.download(&upper)?, expected(|x, value| x <= value))?;
    }
    Ok(())
}

/// Which elements of both slices, of `a` alone and of `b` alone a set has, one step after the other.
fn set(a: &[Record], b: &[Record], [common, of_a, of_b]: [bool; 3]) -> Vec<Record> {
    let (mut i, mut j, mut set) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        let order = match (a.get(i), b.get(j)) {
            (Some(a), Some(b)) => a.key.cmp(&b.key),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let (kept, item) = match order {
            Ordering::Less => (of_a, a[i]),
            Ordering::Equal => (common, a[i]),
            Ordering::Greater => (of_b, b[j]),
        };
        set.extend(kept.then_some(item));
        i += usize::from(order.is_le());
        j += usize::from(order.is_ge());
    }
    set
}

fn sets_keep_equal_elements_as_std_does(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for &(n, m) in LENGTHS {
        for keys in [1, 40, i16::MAX] {
            let (a, b) = (sorted(records(n, keys, 1)), sorted(records(m, keys, 2)));
            let (of_a, of_b) = (stream.upload(&a)?, stream.upload(&b)?);
            let what = format!("{n}, {m}, {keys}");
            let mut y = stream.zeros(n + m)?;
            let check = |set_name: &str, count: ferrogrid::Result<usize>, y: Vec<Record>, kept| -> Outcome {
                let mut expected = set(&a, &b, kept);
                expect(&format!("{set_name}, {what}"), count?, expected.len())?;
                // The rest is unchanged.
                expected.resize(n + m, Record::default());
                expect(&format!("{set_name}, {what}"), y, expected)
            };
            let count = by_key::set_union(&stream, &of_a, &of_b, &mut y);
            check("union", count, stream.download(&y)?, [true; 3])?;
            let mut y = stream.zeros(n + m)?;
            let count = by_key::set_intersection(&stream, &of_a, &of_b, &mut y);
            check("intersection", count, stream.download(&y)?, [true, false, false])?;
            let mut y = stream.zeros(n + m)?;
            let count = by_key::set_difference(&stream, &of_a, &of_b, &mut y);
            check("difference", count, stream.download(&y)?, [false, true, false])?;
            let mut y = stream.zeros(n + m)?;
            let count = by_key::set_symmetric_difference(&stream, &of_a, &of_b, &mut y);
            check("symmetric difference", count, stream.download(&y)?, [false, true, true])?;
        }
    }
    Ok(())
}

fn sets_have_errors_for_too_little_room(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let a = sorted(records(100, i16::MAX, 1));
    let (of_a, mut y) = (stream.upload(&a)?, stream.zeros(60)?);
    expect_error("room", by_key::set_union(&stream, &of_a, &of_a, &mut y), |error| {
        matches!(error, Error::OutOfRange { start: 0, end: 100, length: 60 })
    })?;
    expect("what fits", stream.download(&y)?, a[..60].to_vec())?;
    let mut count = stream.fill(9_u64, 1)?;
    by_key::set_difference_into(&stream, &of_a, &of_a, y.slice_mut(..0)?, &mut count)?;
    expect("count", stream.download(&count)?, vec![0])
}

fn comparisons_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let n = 3 * TILE;
    let (x, y) = (stream.zeros::<Record>(n)?, stream.zeros::<Record>(n)?);
    let (set, count) = (stream.zeros::<Record>(n)?, stream.zeros::<u64>(1)?);
    let (graph, (x, y, count)) = stream.capture(|capture| {
        let (x, mut y) = (capture.keep(x)?, capture.keep(y)?);
        let (mut set, mut count) = (capture.keep(set)?, capture.keep(count)?);
        by_key::merge_sort(capture, &x, &mut y)?;
        by_key::set_intersection_into(capture, &y, &y, &mut set, &mut count)?;
        Ok((x.key(), y.key(), count.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for seed in [1, 2] {
        let records = records(n, 100, seed);
        stream.copy(&stream.upload(&records)?, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        expect("sorted", stream.download(graph.view(y)?)?, sorted(records))?;
        expect("count", stream.download(graph.view(count)?)?, vec![n as u64])?;
    }
    Ok(())
}
