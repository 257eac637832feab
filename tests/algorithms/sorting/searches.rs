//! Sorted numbers: binary search, merging, the greatest ones.

use ferrogrid::LaunchError;
use ferrogrid::algorithms::{self, Number};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect, expect_error, names};
use crate::{FEW_LENGTHS, LENGTHS};

pub(crate) const CASES: &[Case] = &[
    ("numbers_of_all_types_are_searched_and_merged", numbers_of_all_types_are_searched_and_merged),
    ("floats_are_searched_by_total_cmp", floats_are_searched_by_total_cmp),
    ("the_greatest_elements_are_found", the_greatest_elements_are_found),
    ("the_greatest_floats_are_found", the_greatest_floats_are_found),
    ("searches_take_fitting_lengths", searches_take_fitting_lengths),
    ("searches_are_recorded_in_graphs", searches_are_recorded_in_graphs),
];

/// Both bounds of `values`, and both slices as one, against the same on the host. The slices are sorted.
fn check<T: Number + std::fmt::Debug, B: PartialEq + std::fmt::Debug>(
    what: &str,
    stream: &Stream,
    (sorted, values): (&[T], &[T]),
    compare: impl Fn(&T, &T) -> std::cmp::Ordering,
    bits: impl Fn(&T) -> B,
) -> Outcome {
    let (a, b) = (stream.upload(sorted)?, stream.upload(values)?);
    let mut found = stream.fill(u64::MAX, values.len())?;
    algorithms::lower_bound(stream, &a, &b, &mut found)?;
    let bound = |value: &T, upper: bool| {
        let is_before = |x: &T| compare(x, value).is_lt() || upper && compare(x, value).is_eq();
        sorted.partition_point(is_before) as u64
    };
    let lower: Vec<u64> = values.iter().map(|value| bound(value, false)).collect();
    expect(&format!("lower, {what}"), stream.download(&found)?, lower)?;
    algorithms::upper_bound(stream, &a, &b, &mut found)?;
    let upper: Vec<u64> = values.iter().map(|value| bound(value, true)).collect();
    expect(&format!("upper, {what}"), stream.download(&found)?, upper)?;
    let mut expected = [sorted, values].concat();
    let mut y = stream.upload(&expected)?;
    expected.sort_by(&compare);
    algorithms::merge(stream, &a, &b, &mut y)?;
    let of = |x: &[T]| x.iter().map(&bits).collect::<Vec<_>>();
    expect(&format!("merged, {what}"), of(&stream.download(&y)?), of(&expected))
}

fn numbers_of_all_types_are_searched_and_merged(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(221);
    macro_rules! check_all {
        ($($t:ident: $of:expr),*) => {
            $(for &n in FEW_LENGTHS {
                for m in [0, 1, 257, 3000] {
                    let mut x: Vec<$t> = (0..n).map(|_| $of).collect();
                    // Half of them are there, and the extremes.
                    let mut y: Vec<$t> = (0..m).map(|i| if i % 2 < n { x[i % n] } else { $of }).collect();
                    y.extend([<$t>::MIN, <$t>::MAX]);
                    x.sort_unstable();
                    y.sort_unstable();
                    let what = format!("{n} and {m} {}", stringify!($t));
                    check(&what, &stream, (&x, &y), |a, b| a.cmp(b), |x| *x)?;
                }
            })*
        };
    }
    check_all! {
        i8: random.i8(..), i16: random.i16(..), i32: random.i32(-50..50), i64: random.i64(..),
        u8: random.u8(..), u16: random.u16(..), u32: random.u32(..), u64: random.u64(..)
    }
    Ok(())
}

fn floats_are_searched_by_total_cmp(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    macro_rules! check_all {
        ($($t:ident),*) => {
            $({
                let special = [-$t::NAN, $t::NEG_INFINITY, $t::MIN, -1.5, -0.0, 0.0, 1e-30, 1.5, $t::INFINITY, $t::NAN];
                for n in [1, 10, 500] {
                    let mut x: Vec<$t> = special.iter().copied().cycle().take(n).collect();
                    x.sort_unstable_by($t::total_cmp);
                    let what = format!("{n} {}", stringify!($t));
                    check(&what, &stream, (&x, &special), $t::total_cmp, |x| x.to_bits())?;
                }
            })*
        };
    }
    check_all!(f32, f64);
    // Values need no order.
    let (sorted, values) = (stream.upload(&[1, 3, 5])?, stream.upload(&[9, 0, 3])?);
    let mut found = stream.zeros(3)?;
    algorithms::lower_bound(&stream, &sorted, &values, &mut found)?;
    expect("any order", stream.download(&found)?, vec![3, 0, 1])
}

fn the_greatest_elements_are_found(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(222);
    for &n in LENGTHS {
        let x: Vec<i32> = (0..n).map(|_| random.i32(-100..100)).collect();
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(x[i as usize]));
        let device_x = stream.upload(&x)?;
        for k in [0, 1, n / 2, n] {
            let k = k.min(n);
            let (mut values, mut indices) = (stream.zeros::<i32>(k)?, stream.zeros::<u32>(k)?);
            algorithms::top_k(&stream, &device_x, &mut values, &mut indices)?;
            let expected: Vec<i32> = order[..k].iter().map(|&i| x[i as usize]).collect();
            expect(&format!("{k} of {n}"), stream.download(&values)?, expected)?;
            expect(&format!("{k} of {n}"), stream.download(&indices)?, order[..k].to_vec())?;
        }
    }
    Ok(())
}

/// Keys of each size, with many equal ones at the limit.
fn the_greatest_floats_are_found(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let special = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1.5, 1.5, 1e-300];
    let x: Vec<f64> = special.iter().copied().cycle().take(9000).collect();
    let mut order: Vec<u32> = (0..9000).collect();
    order.sort_by(|&i, &j| x[j as usize].total_cmp(&x[i as usize]));
    let device_x = stream.upload(&x)?;
    for k in [1, 999, 1000, 1001, 2500, 8999] {
        let (mut values, mut indices) = (stream.zeros::<f64>(k)?, stream.zeros::<u32>(k)?);
        algorithms::top_k(&stream, &device_x, &mut values, &mut indices)?;
        expect(&format!("{k} f64"), stream.download(&indices)?, order[..k].to_vec())?;
        let expected: Vec<u64> = order[..k].iter().map(|&i| x[i as usize].to_bits()).collect();
        let found: Vec<u64> = stream.download(&values)?.into_iter().map(f64::to_bits).collect();
        expect(&format!("{k} f64"), found, expected)?;
    }
    let x = stream.upload(&[-3_i8, 5, -128, 127, 5])?;
    let (mut values, mut indices) = (stream.zeros::<i8>(3)?, stream.zeros(3)?);
    algorithms::top_k(&stream, &x, &mut values, &mut indices)?;
    expect("i8", (stream.download(&values)?, stream.download(&indices)?), (vec![127, 5, 5], vec![3, 1, 4]))
}

fn searches_take_fitting_lengths(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut found, mut y) = (stream.zeros::<f32>(5)?, stream.zeros(4)?, stream.zeros::<f32>(9)?);
    let differ = |error: &Error| matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }));
    expect_error("found", algorithms::lower_bound(&stream, &x, &x, &mut found), differ)?;
    let mismatch = |error: &Error| matches!(error, Error::LengthMismatch { .. });
    let text = expect_error("merge", algorithms::merge(&stream, &x, &x, &mut y), mismatch)?;
    names(&text, &["merge", "10", "9"])?;
    let mut indices = stream.zeros::<u32>(9)?;
    let short = |error: &Error| matches!(error, Error::OutOfRange { .. });
    let text = expect_error("k", algorithms::top_k(&stream, &x, &mut y, &mut indices), short)?;
    names(&text, &["9", "5"])?;
    let found = algorithms::top_k(&stream, &x, y.slice_mut(..2)?, indices.slice_mut(..3)?);
    expect_error("indices", found, mismatch)?;
    Ok(())
}

fn searches_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, values) = (stream.upload(&[4_u32, 8, 1, 9, 2])?, stream.zeros::<u32>(2)?);
    let indices = stream.zeros::<u32>(2)?;
    let (graph, (values, indices)) = stream.capture(|capture| {
        let (x, mut values, mut indices) = (capture.keep(x)?, capture.keep(values)?, capture.keep(indices)?);
        algorithms::top_k(capture, &x, &mut values, &mut indices)?;
        Ok((values.key(), indices.key()))
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    expect("values", stream.download(graph.view(values)?)?, vec![9, 8])?;
    expect("indices", stream.download(graph.view(indices)?)?, vec![3, 1])
}
