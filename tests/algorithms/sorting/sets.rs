//! Sets of sorted numbers.

use std::cmp::Ordering;
use std::fmt::Debug;

use ferrogrid::algorithms::{self, Number};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect, expect_error};

pub(crate) const CASES: &[Case] = &[
    ("sets_of_all_types_have_equal_elements_as_often_as_std", sets_of_all_types),
    ("sets_of_floats_have_their_order", sets_of_floats_have_their_order),
    ("sets_of_numbers_are_recorded_in_graphs", sets_of_numbers_are_recorded_in_graphs),
];

/// How many elements of a merge a block has.
const TILE: usize = 2048;

/// What a set has: elements of both, of `a` alone, of `b` alone.
type Kept = [bool; 3];

/// A sequential model.
fn set<T: Copy>(
    a: &[T],
    b: &[T],
    compare: impl Fn(&T, &T) -> Ordering,
    [common, of_a, of_b]: Kept,
) -> Vec<T> {
    let (mut i, mut j, mut set) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        let order = match (a.get(i), b.get(j)) {
            (Some(a), Some(b)) => compare(a, b),
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

fn check<T: Number + Debug, B: PartialEq + Debug>(
    what: &str,
    stream: &Stream,
    (a, b): (&[T], &[T]),
    compare: impl Fn(&T, &T) -> Ordering + Copy,
    bits: impl Fn(&T) -> B,
) -> Outcome {
    let (of_a, of_b) = (stream.upload(a)?, stream.upload(b)?);
    let mut y = stream.zeros::<T>(a.len() + b.len())?;
    let of = |x: &[T]| x.iter().map(&bits).collect::<Vec<_>>();
    let results = [
        ("union", algorithms::set_union(stream, &of_a, &of_b, &mut y)?, stream.download(&y)?, [true; 3]),
        (
            "intersection",
            algorithms::set_intersection(stream, &of_a, &of_b, &mut y)?,
            stream.download(&y)?,
            [true, false, false],
        ),
        (
            "difference",
            algorithms::set_difference(stream, &of_a, &of_b, &mut y)?,
            stream.download(&y)?,
            [false, true, false],
        ),
        (
            "symmetric difference",
            algorithms::set_symmetric_difference(stream, &of_a, &of_b, &mut y)?,
            stream.download(&y)?,
            [false, true, true],
        ),
    ];
    for (name, count, found, kept) in results {
        expect(&format!("{name}, {what}"), of(&found[..count]), of(&set(a, b, compare, kept)))?;
    }
    Ok(())
}

fn sets_of_all_types(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(231);
    macro_rules! check_all {
        ($($t:ident),*) => {
            $(for (n, m) in [(0, 0), (0, 5), (40, 0), (TILE / 2, TILE / 2), (TILE, 1), (900, 3300)] {
                // Few different ones, and the extremes.
                let mut of = |n| -> Vec<$t> {
                    let mut x: Vec<$t> = (0..n).map(|_| $t::MAX / 50 * random.$t(0..50)).collect();
                    x.extend([$t::MIN, $t::MAX].iter().take(n));
                    x.sort_unstable();
                    x
                };
                let (a, b) = (of(n), of(m));
                check(&format!("{n} and {m} {}", stringify!($t)), &stream, (&a, &b), $t::cmp, |x| *x)?;
            })*
        };
    }
    check_all!(i8, i16, i32, i64, u8, u16, u32, u64);
    let (a, mut y) = (stream.upload(&[1, 2, 3])?, stream.zeros(2)?);
    expect_error("room", algorithms::set_union(&stream, &a, &a, &mut y), |error| {
        matches!(error, Error::OutOfRange { start: 0, end: 3, length: 2 })
    })?;
    expect("what fits", stream.download(&y)?, vec![1, 2])
}

fn sets_of_floats_have_their_order(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let a = [-f32::NAN, f32::NEG_INFINITY, -1.5, -0.0, -0.0, 0.0, 1e-45, f32::INFINITY, f32::NAN, f32::NAN];
    let b = [f32::NEG_INFINITY, -1.5, -1.5, -0.0, 0.0, 0.0, 2.0, f32::NAN];
    check("f32", &stream, (&a, &b), f32::total_cmp, |x| x.to_bits())?;
    let (a, b) = (a.map(f64::from), b.map(f64::from));
    check("f64", &stream, (&a, &b), f64::total_cmp, |x| x.to_bits())
}

fn sets_of_numbers_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (a, b) = (stream.upload(&[1_u32, 2, 2, 9])?, stream.upload(&[2_u32, 3])?);
    let (y, count) = (stream.zeros::<u32>(6)?, stream.zeros::<u64>(1)?);
    let (graph, (y, count)) = stream.capture(|capture| {
        let (a, b) = (capture.keep(a)?, capture.keep(b)?);
        let (mut y, mut count) = (capture.keep(y)?, capture.keep(count)?);
        algorithms::set_union_into(capture, &a, &b, &mut y, &mut count)?;
        Ok((y.key(), count.key()))
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    expect("count", stream.download(graph.view(count)?)?, vec![5])?;
    expect("union", stream.download(graph.view(y)?)?, vec![1, 2, 2, 3, 9, 0])
}
