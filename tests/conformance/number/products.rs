//! Products of matrices by fragments, compared with sums of the host.

use std::fmt::Debug;

use ferrogrid::KernelError;
use ferrogrid::device::half::{HalfFloat, bf16, f16};
use ferrogrid::device::narrow::{f8e4m3, f8e5m2, tf32};
use ferrogrid::prelude::*;

use super::product_kernels::multiplying;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("products_of_integers_are_exact", products_of_integers_are_exact),
    ("products_of_whole_halves_are_exact", products_of_whole_halves_are_exact),
    ("products_of_halves_are_close_to_exact", products_of_halves_are_close_to_exact),
    ("products_of_whole_narrow_floats_are_exact", products_of_whole_narrow_floats_are_exact),
    ("products_of_narrow_floats_are_close_to_exact", products_of_narrow_floats_are_close_to_exact),
    ("products_of_doubles_are_rounded_in_order", products_of_doubles_are_rounded_in_order),
    ("fragments_are_loaded_from_any_part", fragments_are_loaded_from_any_part),
    ("fragments_side_by_side_are_one_matrix", fragments_side_by_side_are_one_matrix),
    ("fragments_lie_within_a_matrix", fragments_lie_within_a_matrix),
    ("a_product_takes_a_whole_warp", a_product_takes_a_whole_warp),
    ("a_product_takes_all_lanes", a_product_takes_all_lanes),
    ("a_panic_of_one_lane_before_products_is_the_error", a_panic_of_one_lane_before_products_is_the_error),
];

/// a b, of `rows` rows and `columns` columns.
fn product<T: Copy, S: Copy>(
    (a, b): (&[T], &[T]),
    [rows, columns]: [usize; 2],
    zero: S,
    add: impl Fn(S, T, T) -> S,
) -> Vec<S> {
    let depth = a.len() / rows;
    let element = |row: usize, column: usize| {
        (0..depth).fold(zero, |sum, k| add(sum, a[row * depth + k], b[k * columns + column]))
    };
    (0..rows * columns).map(|place| element(place / columns, place % columns)).collect()
}

/// Adds products of all shapes to ones.
macro_rules! check_products {
    ($device:ident, $t:ident as $sum:ident, $element:expr, $add:expr, $is_near:expr) => {{
        let (stream, mut random) = ($device.new_stream()?, fastrand::Rng::with_seed(401));
        for [rows, columns, depth] in [[16, 8, 32], [32, 8, 64], [16, 40, 96], [64, 24, 160]] {
            let mut matrix = |len: usize| -> Vec<$t> { (0..len).map(|_| $element(&mut random)).collect() };
            let (a, b) = (matrix(rows * depth), matrix(depth * columns));
            let expected = product((&a, &b), [rows, columns], 1 as $sum, $add);
            let (a, b) = (stream.upload(&a)?, stream.upload(&b)?);
            let mut c = stream.fill(1 as _, rows * columns)?;
            let blocks = Grid::blocks((rows / 16 * (columns / 8)).div_ceil(2));
            let (a, b) = (a.view_2d(depth, rows)?, b.view_2d(columns, depth)?);
            multiplying::multiply::<$t>(&stream, blocks, a, b, c.as_atomic())?;
            for (place, (found, expected)) in stream.download(&c)?.into_iter().zip(expected).enumerate() {
                let what = format!("{rows} x {depth} by {columns}, {place}: {found} for {expected}");
                expect(&what, $is_near(found, expected, depth), true)?;
            }
        }
    }};
}

fn products_of_integers_are_exact(device: &Device) -> Outcome {
    let add = |sum: i32, a: i8, b: i8| sum + i32::from(a) * i32::from(b);
    check_products!(device, i8 as i32, |random: &mut fastrand::Rng| random.i8(..), add, |a, b, _| a == b);
    let add = |sum: i32, a: u8, b: u8| sum + i32::from(a) * i32::from(b);
    check_products!(device, u8 as i32, |random: &mut fastrand::Rng| random.u8(..), add, |a, b, _| a == b);
    Ok(())
}

fn products_of_whole_halves_are_exact(device: &Device) -> Outcome {
    let whole = |random: &mut fastrand::Rng| f32::from(random.i8(-64..=64));
    let of_f16 = |random: &mut fastrand::Rng| f16::from_f32(whole(random));
    let add = |sum: f32, a: f16, b: f16| sum + a.to_f32() * b.to_f32();
    check_products!(device, f16 as f32, of_f16, add, |a, b, _| a == b);
    let of_bf16 = |random: &mut fastrand::Rng| bf16::from_f32(whole(random));
    let add = |sum: f32, a: bf16, b: bf16| sum + a.to_f32() * b.to_f32();
    check_products!(device, bf16 as f32, of_bf16, add, |a, b, _| a == b);
    Ok(())
}

/// Sums of numbers between -1 and 1: each step may lose what is below 2^-21 of the largest sum so far.
fn products_of_halves_are_close_to_exact(device: &Device) -> Outcome {
    let is_near = |found: f32, expected: f64, depth: usize| {
        (f64::from(found) - expected).abs() <= depth as f64 * depth as f64 / f64::from(1 << 22)
    };
    let of_f16 = |random: &mut fastrand::Rng| f16::from_f32(random.f32() * 2.0 - 1.0);
    let add = |sum: f64, a: f16, b: f16| sum + f64::from(a.to_f32()) * f64::from(b.to_f32());
    check_products!(device, f16 as f64, of_f16, add, is_near);
    let of_bf16 = |random: &mut fastrand::Rng| bf16::from_f32(random.f32() * 2.0 - 1.0);
    let add = |sum: f64, a: bf16, b: bf16| sum + f64::from(a.to_f32()) * f64::from(b.to_f32());
    check_products!(device, bf16 as f64, of_bf16, add, is_near);
    Ok(())
}

fn products_of_whole_narrow_floats_are_exact(device: &Device) -> Outcome {
    macro_rules! check {
        ($t:ident, $most:literal) => {
            let of = |random: &mut fastrand::Rng| $t::from_f32(f32::from(random.i8(-$most..=$most)));
            check_products!(
                device,
                $t as f32,
                of,
                |sum, a: $t, b: $t| sum + a.to_f32() * b.to_f32(),
                |a, b, _| a == b
            );
        };
    }
    check!(tf32, 64);
    check!(f8e4m3, 4);
    check!(f8e5m2, 4);
    Ok(())
}

/// Sums of numbers between -1 and 1, as those of halves. Those of 8-bit floats may lose what is below 2^-13.
fn products_of_narrow_floats_are_close_to_exact(device: &Device) -> Outcome {
    macro_rules! check {
        ($t:ident, $bits:literal) => {
            let is_near = |found: f32, expected: f64, depth: usize| {
                (f64::from(found) - expected).abs() <= depth as f64 * depth as f64 / f64::from(1 << $bits)
            };
            let of = |random: &mut fastrand::Rng| $t::from_f32(random.f32() * 2.0 - 1.0);
            let add = |sum: f64, a: $t, b: $t| sum + f64::from(a.to_f32()) * f64::from(b.to_f32());
            check_products!(device, $t as f64, of, add, is_near);
        };
    }
    check!(tf32, 22);
    check!(f8e4m3, 14);
    check!(f8e5m2, 14);
    Ok(())
}

/// Each product is rounded once, with its sum, in the order of the depth.
fn products_of_doubles_are_rounded_in_order(device: &Device) -> Outcome {
    let random = |random: &mut fastrand::Rng| random.f64() * 2.0 - 1.0;
    check_products!(device, f64 as f64, random, |sum, a: f64, b| a.mul_add(b, sum), |a, b, _| a == b);
    Ok(())
}

/// The product of the parts that begin at these places, of `a` with rows of 80 elements and `b` with columns of 80.
fn of_parts<T: Copy>(
    (a, b): (&[T], &[T]),
    [row, column, k]: [usize; 3],
    depth: usize,
    number: impl Fn(T) -> f64,
) -> Vec<f64> {
    let element = |r: usize, c: usize| {
        let terms = (k..k + depth).map(|k| number(a[(row + r) * 80 + k]) * number(b[(column + c) * 80 + k]));
        terms.sum()
    };
    (0..16 * 8).map(|place| element(place / 8, place % 8)).collect()
}

fn fragments_are_loaded_from_any_part(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(402);
    macro_rules! check {
        ($t:ident, $depth:literal, $of:expr, $number:expr, $places:expr) => {
            let [a, b]: [Vec<$t>; 2] =
                [40, 20].map(|rows| (0..rows * 80).map(|_| $of(random.i8(-9..=9))).collect());
            for place in $places {
                let expected = of_parts((&a, &b), place, $depth, $number);
                let (a, b) = (stream.upload(&a)?, stream.upload(&b)?);
                let mut c = stream.zeros(16 * 8)?;
                let (a, b) = (a.view_2d(80, 40)?, b.view_2d(80, 20)?);
                let place = place.map(|it| it as u32);
                multiplying::multiply_loaded::<$t>(&stream, Grid::blocks(1), place, a, b, c.as_atomic())?;
                let found: Vec<f64> = stream.download(&c)?.into_iter().map(f64::from).collect();
                expect(&format!("{} from {place:?}", stringify!($t)), found, expected)?;
            }
        };
    }
    // The last ones do not begin at multiples of 16 bytes.
    let parts = [[0, 0, 0], [24, 12, 64], [3, 5, 8], [17, 1, 40], [2, 3, 11]];
    check!(f16, 16, |it| f16::from_f32(f32::from(it)), |it: f16| f64::from(it.to_f32()), parts);
    check!(bf16, 16, |it| bf16::from_f32(f32::from(it)), |it: bf16| f64::from(it.to_f32()), parts);
    check!(f64, 8, f64::from, |it| it, parts);
    check!(tf32, 8, |it| tf32::from_f32(f32::from(it)), |it: tf32| f64::from(it.to_f32()), parts);
    let parts = [[0, 0, 0], [24, 12, 48], [3, 5, 16], [2, 3, 11]];
    check!(i8, 32, |it| it, f64::from, parts);
    check!(u8, 32, |it: i8| it.unsigned_abs(), f64::from, parts);
    check!(f8e4m3, 32, |it| f8e4m3::from_f32(f32::from(it)), |it: f8e4m3| f64::from(it.to_f32()), parts);
    untransposed::<f16>(&stream)?;
    untransposed::<bf16>(&stream)
}

fn untransposed<T>(stream: &Stream) -> Outcome
where
    T: HalfFloat + multiplying::multiply_untransposed::Instance + Debug,
{
    let mut random = fastrand::Rng::with_seed(403);
    let [a, b]: [Vec<T>; 2] =
        [40, 24].map(|rows| (0..rows * 80).map(|_| T::from_f32(f32::from(random.i8(-9..=9)))).collect());
    for place @ [_, column, _] in [[0, 0, 0], [24, 16, 64], [3, 8, 24], [7, 5, 33]] {
        let expected = of_parts((&a, &b), place, 16, |it| f64::from(it.to_f32()));
        // Columns become rows.
        let turned: Vec<T> = (0..80 * 24).map(|place| b[place % 24 * 80 + place / 24]).collect();
        let (a, b) = (stream.upload(&a)?, stream.upload(&turned)?);
        let mut c = stream.zeros(16 * 8)?;
        let (a, b) = (a.view_2d(80, 40)?, b.view_2d(24, 80)?);
        let place = place.map(|it| it as u32);
        multiplying::multiply_untransposed::<T>(stream, Grid::blocks(1), place, a, b, c.as_atomic())?;
        let found: Vec<f64> = stream.download(&c)?.into_iter().map(f64::from).collect();
        expect(&format!("column {column}"), found, expected)?;
    }
    Ok(())
}

fn fragments_side_by_side_are_one_matrix(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(404);
    macro_rules! check {
        ($t:ident as $sum:ident, $n:literal, $of:expr, $number:expr) => {
            let [a, b]: [Vec<$t>; 2] = [0; 2].map(|_| (0..64 * 64).map(|_| $of(random.i8(-9..=9))).collect());
            for are_turned in [[false, false], [false, true], [true, false], [true, true]] {
                // Row `line` and column `along`, or the other way round.
                let place = |is_turned: bool, line: usize, along: usize| {
                    if is_turned { along * 64 + line } else { line * 64 + along }
                };
                let element = |row: usize, column: usize| -> $sum {
                    let of_a = |k: usize| $number(a[place(are_turned[0], 16 + row, k)]);
                    let of_b = |k: usize| $number(b[place(are_turned[1], k, 16 + column)]);
                    (0..64).map(|k| of_a(k) * of_b(k)).sum::<$sum>() + row as $sum
                };
                let columns = 8 * $n;
                let mut c =
                    stream.upload(&(0..48 * columns).map(|i| (i / columns) as $sum).collect::<Vec<_>>())?;
                let (device_a, device_b) = (stream.upload(&a)?, stream.upload(&b)?);
                let (device_a, device_b) = (device_a.view_2d(64, 64)?, device_b.view_2d(64, 64)?);
                let (grid, c_view) = (Grid::blocks(1), c.as_atomic());
                multiplying::multiply_many::<$t, 3, $n>(
                    &stream, grid, are_turned, device_a, device_b, c_view,
                )?;
                let expected = (0..48 * columns).map(|i| element(i / columns, i % columns)).collect();
                let what = format!("{} fragments of {}, turned {are_turned:?}", $n, stringify!($t));
                expect(&what, stream.download(&c)?, expected)?;
            }
        };
    }
    check!(i8 as i32, 4, |it| it, i32::from);
    check!(i8 as i32, 5, |it| it, i32::from);
    if device.properties()?.shared_memory_per_block_optin >= 2 * 64 * 80 * 8 {
        check!(f64 as f64, 4, f64::from, |it| it);
        check!(f64 as f64, 5, f64::from, |it| it);
    }
    check!(tf32 as f32, 4, |it| tf32::from_f32(f32::from(it)), |it: tf32| it.to_f32());
    check!(tf32 as f32, 5, |it| tf32::from_f32(f32::from(it)), |it: tf32| it.to_f32());
    check!(f16 as f32, 4, |it| f16::from_f32(f32::from(it)), |it: f16| it.to_f32());
    check!(f16 as f32, 5, |it| f16::from_f32(f32::from(it)), |it: f16| it.to_f32());
    check!(bf16 as f32, 4, |it| bf16::from_f32(f32::from(it)), |it: bf16| it.to_f32());
    check!(bf16 as f32, 5, |it| bf16::from_f32(f32::from(it)), |it: bf16| it.to_f32());
    Ok(())
}

fn fragments_lie_within_a_matrix(device: &Device) -> Outcome {
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    for place in [[25, 0, 0], [0, 13, 0], [0, 0, 72], [0, 0, 80], [u32::MAX, 0, 0]] {
        let stream = device.new_stream()?;
        let (a, b) = (stream.zeros::<f16>(40 * 80)?, stream.zeros::<f16>(20 * 80)?);
        let mut c = stream.zeros(16 * 8)?;
        let (a, b) = (a.view_2d(80, 40)?, b.view_2d(80, 20)?);
        multiplying::multiply_loaded::<f16>(&stream, Grid::blocks(1), place, a, b, c.as_atomic())?;
        names(&expect_error(&format!("{place:?}"), stream.synchronize(), is_panic)?, &["within the matrix"])?;
    }
    Ok(())
}

fn a_product_takes_a_whole_warp(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut c = stream.zeros(16 * 8)?;
    multiplying::multiply_ones(&stream, Grid::new(2, 64), c.as_atomic())?;
    expect("ones", stream.download(&c)?, vec![32; 16 * 8])?;
    multiplying::multiply_ones(&stream, Grid::new(1, 48), c.as_atomic())?;
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    names(&expect_error("half a warp", stream.synchronize(), is_panic)?, &["warps of 32 threads"])
}

fn a_product_takes_all_lanes(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut c = stream.zeros(16 * 8)?;
    multiplying::multiply_in_a_branch(&stream, Grid::blocks(1), c.as_atomic())?;
    let is_expected = |error: &Error| match error {
        Error::Kernel(KernelError::WarpDivergence { .. }) => !device.is_cuda(),
        Error::KernelPanic { .. } => device.is_cuda(),
        _ => false,
    };
    expect_error("half of the lanes", stream.synchronize(), is_expected)?;
    Ok(())
}

fn a_panic_of_one_lane_before_products_is_the_error(device: &Device) -> Outcome {
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    for rank in [0, 17, 63] {
        let stream = device.new_stream()?;
        let mut c = stream.zeros(16 * 8)?;
        multiplying::panic_before_products(&stream, Grid::blocks(100), rank, c.as_atomic())?;
        let error = expect_error("a panic of one lane", stream.synchronize(), is_panic)?;
        names(&error, &["one lane before a product"])?;
    }
    Ok(())
}
