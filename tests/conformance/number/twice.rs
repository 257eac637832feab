//! Two products by blocks with work between them, and two pairs, compared with those of the host.

use ferrogrid::DeviceAttribute;
use ferrogrid::device::half::{HalfFloat, bf16, f16};
use ferrogrid::prelude::*;

use super::twice_kernels::twice;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("products_of_what_comes_of_products", products_of_what_comes_of_products),
    ("a_panic_between_two_products_ends_the_launch", a_panic_between_two_products_ends_the_launch),
    ("places_are_multiplied_twice_one_after_the_other", places_are_multiplied_twice_one_after_the_other),
    ("a_panic_at_a_later_place_ends_the_launch", a_panic_at_a_later_place_ends_the_launch),
    ("pairs_of_products_have_common_factors", pairs_of_products_have_common_factors),
    ("third_products_are_added", third_products_are_added),
    ("sums_beyond_a_diagonal_are_masked", sums_beyond_a_diagonal_are_masked),
    ("a_panic_between_pairs_of_products_ends_the_launch", a_panic_between_pairs_of_products_ends_the_launch),
];

/// Rows of the left factor and of the right ones, and elements in each.
const SHAPES: [[usize; 3]; 4] = [[70, 130, 40], [200, 300, 64], [1, 1, 8], [65, 0, 16]];

/// What `twice` computes, with sums of whole numbers and their halves, which have no errors: the tiles of the right factors have `tile`
/// rows, the last ones filled up with zeros.
fn model<T: HalfFloat>([a, b, c]: [&[T]; 3], depth: usize, tile: usize) -> Vec<f32> {
    let dot = |a: &[T], b: &[T]| -> f32 { a.iter().zip(b).map(|(a, b)| a.to_f32() * b.to_f32()).sum() };
    let zeros = vec![T::ZERO; depth];
    let (b, c): (Vec<_>, Vec<_>) = (b.chunks(depth).collect(), c.chunks(depth).collect());
    let row = |a: &[T]| {
        let mut y = vec![0.0; depth];
        for first in (0..b.len()).step_by(tile) {
            y.iter_mut().for_each(|y| *y /= 2.0);
            let row = |of: &[&[T]], k: usize| of.get(k).map_or(zeros.clone(), |row| row.to_vec());
            let units: Vec<f32> = (first..first + tile).map(|k| dot(a, &row(&b, k))).collect();
            let greatest = units.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for (k, unit) in (first..).zip(units) {
                let weight = T::from_f32(unit - greatest).to_f32();
                y.iter_mut().zip(row(&c, k)).for_each(|(y, c)| *y += weight * c.to_f32());
            }
        }
        y
    };
    a.chunks(depth).flat_map(row).collect()
}

fn products_of_what_comes_of_products(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(511));
    macro_rules! check {
        ($($launch:path as $t:ident: $rows:literal by $tile:literal, $deep:literal;)*) => { $(
            for [rows, others, depth] in SHAPES.into_iter().chain([[130, 200, $deep]]) {
                let mut matrix = |len: usize| -> Vec<$t> {
                    (0..len * depth).map(|_| $t::from_f32(f32::from(random.i8(-3..=3)))).collect()
                };
                let (a, b, c) = (matrix(rows), matrix(others), matrix(others));
                let expected = model([&a, &b, &c], depth, $tile);
                let (a, b, c) = (stream.upload(&a)?, stream.upload(&b)?, stream.upload(&c)?);
                let mut y = stream.fill(f32::NAN, rows * depth)?;
                let grid = Grid::new(rows.div_ceil($rows) as u32, 128 + 2 * $rows);
                let [b, c] = [b.view_2d(depth, others)?, c.view_2d(depth, others)?];
                $launch(&stream, grid, a.view_2d(depth, rows)?, b, c, u32::MAX, y.as_atomic())?;
                let what = format!("{} of {rows} and {others} rows of {depth}", stringify!($launch));
                expect(&what, stream.download(&y)?, expected)?;
            }
        )* };
    }
    check! {
        twice::small as f16: 64 by 64, 64;
        twice::wide as bf16: 64 by 64, 128;
        twice::tall as f16: 192 by 64, 64;
        twice::long as bf16: 128 by 128, 64;
        twice::tall_and_long as f16: 192 by 128, 64;
    }
    Ok(())
}

fn a_panic_between_two_products_ends_the_launch(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let ones = stream.fill(f16::ONE, 300 * 64)?;
    let mut y = stream.zeros(300 * 64)?;
    let x = || ones.view_2d(64, 300);
    twice::tall(&stream, Grid::new(2, 512), x()?, x()?, x()?, 2, y.as_atomic())?;
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    names(&expect_error("a panic", stream.synchronize(), is_panic)?, &["the third step"])
}

/// No tile and no closure.
const NOWHERE: [u32; 2] = [u32::MAX; 2];

fn places_are_multiplied_twice_one_after_the_other(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(513));
    macro_rules! check {
        ($($launch:path as $t:ident $(until $fails:ident)?: $rows:literal by $tile:literal, $deep:literal;)*) => { $(
            // The last tile of either is not whole, and the last steps of some places are beyond the end.
            let (rows, others, width) = (10 * $rows + 5, 4 * $tile + 3, 2 * $deep);
            let mut matrix = |len: usize| -> Vec<$t> {
                (0..len * width).map(|_| $t::from_f32(f32::from(random.i8(-3..=3)))).collect()
            };
            let (a, b, c) = (matrix(rows), matrix(others), matrix(others));
            let part = |of: &[$t], first: usize, count: usize, column: usize| -> Vec<$t> {
                let rows = of.chunks(width).skip(first).take(count);
                let mut part: Vec<$t> = rows.flat_map(|row| &row[column..column + $deep]).copied().collect();
                part.resize(count * $deep, $t::ZERO);
                part
            };
            let mut expected: Vec<f32> = (0..11)
                .flat_map(|tile| {
                    let right = |of| part(of, tile % 3 * $tile, tile % 4 * $tile, tile / 2 % 2 * $deep);
                    let a = part(&a, tile * $rows, $rows, tile % 2 * $deep);
                    model([&a, &right(&b), &right(&c)], $deep, $tile)
                })
                .collect();
            expected.truncate(rows * $deep);
            let (a, b, c) = (stream.upload(&a)?, stream.upload(&b)?, stream.upload(&c)?);
            let [a, b, c] = [a.view_2d(width, rows)?, b.view_2d(width, others)?, c.view_2d(width, others)?];
            for blocks in [1, 3, 20] {
                let (mut y, mut taken) = (stream.fill(f32::NAN, rows * $deep)?, stream.zeros(1)?);
                let grid = Grid::new(blocks, 128 + 2 * $rows);
                $launch(&stream, grid, a, b, c, taken.as_atomic(), $($fails,)? y.as_atomic())?;
                let what = format!("{} by {blocks} blocks", stringify!($launch));
                expect(&what, stream.download(&y)?, expected.clone())?;
            }
        )* };
    }
    check! {
        twice::small_places as f16 until NOWHERE: 64 by 64, 64;
        twice::tall_places as f16: 192 by 64, 64;
        twice::long_places as f16 until NOWHERE: 192 by 128, 64;
    }
    if has_shared_memory(device, 66)? {
        check!(twice::wide_places as bf16: 128 by 64, 128;);
    }
    Ok(())
}

fn a_panic_at_a_later_place_ends_the_launch(device: &Device) -> Outcome {
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    for closure in 0..3 {
        let stream = device.new_stream()?;
        let (ones, mut y) = (stream.fill(f16::ONE, 1000 * 128)?, stream.zeros(1000 * 64)?);
        let x = || ones.view_2d(128, 1000);
        let mut taken = stream.zeros(1)?;
        let (grid, fails) = (Grid::new(2, 512), [3, closure]);
        twice::long_places(&stream, grid, x()?, x()?, x()?, taken.as_atomic(), fails, y.as_atomic())?;
        names(&expect_error("a panic", stream.synchronize(), is_panic)?, &["a closure of a later tile"])?;
    }
    Ok(())
}

/// What the kernels of pairs compute, with sums of whole numbers: rows of `a`, and third products, which begin four rows late, as their numbers.
fn pairs<T: HalfFloat>([a, b, c, d]: [&[T]; 4], [v, w]: [&[f32]; 2], depth: usize) -> [Vec<f32>; 3] {
    let dot = |a: &[T], b: &[T]| -> f32 { a.iter().zip(b).map(|(a, b)| a.to_f32() * b.to_f32()).sum() };
    let mut results = [vec![0.0; a.len()], vec![0.0; a.len()], vec![0.0; c.len() + 4 * depth]];
    for (row, (a, b)) in a.chunks(depth).zip(b.chunks(depth)).enumerate() {
        for (other, (c, d)) in (4..).zip(c.chunks(depth).zip(d.chunks(depth))) {
            let p = dot(a, c) * v[other];
            let [p, q] = [p, p - dot(b, d) * w[other]].map(|sum| T::from_f32(sum).to_f32());
            for (result, (row, weight, right)) in
                results.iter_mut().zip([(row, q, c), (row, p, d), (other, q, a)])
            {
                let result = &mut result[row * depth..][..depth];
                result.iter_mut().zip(right).for_each(|(y, x)| *y += weight * x.to_f32());
            }
        }
    }
    results
}

/// A step that does not come.
const NEVER: u32 = u32::MAX;

/// Calls each kernel of pairs with matrices of all shapes, and compares its results.
macro_rules! check_pairs {
    ($device:ident: $($launch:path as $t:ident $(until $last:ident)?: $rows:literal, $deep:literal, $($result:ident)* $(+ $sums:ident)?;)*) => { $(
        let (stream, mut random) = ($device.new_stream()?, fastrand::Rng::with_seed(512));
        for [rows, others, depth] in SHAPES.into_iter().chain([[130, 200, $deep]]) {
            let mut matrix = |len: usize| -> Vec<$t> {
                (0..len * depth).map(|_| $t::from_f32(f32::from(random.i8(-3..=3)))).collect()
            };
            let (a, b, c, d) = (matrix(rows), matrix(rows), matrix(others), matrix(others));
            // Rows begin at multiples of 16 bytes.
            let width = (others + 4).next_multiple_of(4);
            let values: Vec<f32> = (0..2 * width).map(|_| f32::from(random.i8(-2..=2))).collect();
            let (v, w) = values.split_at(width);
            let expected = pairs([&a, &b, &c, &d], [v, w], depth);
            let (a, b) = (stream.upload(&a)?, stream.upload(&b)?);
            let (c, d) = (stream.upload(&c)?, stream.upload(&d)?);
            let values = stream.upload(&values)?;
            let values = values.view_2d(width, 2)?;
            let [a, b] = [a.view_2d(depth, rows)?, b.view_2d(depth, rows)?];
            let [c, d] = [c.view_2d(depth, others)?, d.view_2d(depth, others)?];
            $(let mut $result = stream.fill(f32::NAN, rows * depth)?;)*
            $(let mut $sums = stream.fill(1.0_f32, (others + 4) * depth)?;)?
            let grid = Grid::new(rows.div_ceil($rows) as u32, 128 + 2 * $rows);
            $launch(
                &stream, grid, a, b, c, d, values, $($last,)? $($result.as_atomic(),)*
                $($sums.view_2d_mut(depth, others + 4)?)?
            )?;
            let what = format!("{} of {rows} and {others} rows of {depth}", stringify!($launch));
            for (found, expected) in [$(&$result),*].into_iter().zip(&expected) {
                expect(&what, &stream.download(found)?, expected)?;
            }
            $(
                let found: Vec<f32> = stream.download(&$sums)?.into_iter().map(|sum| sum - 1.0).collect();
                expect(&what, &found, &expected[2])?;
            )?
        }
    )* };
}

fn pairs_of_products_have_common_factors(device: &Device) -> Outcome {
    check_pairs!(device: twice::small_pairs as f16 until NEVER: 64, 64, y;);
    if has_shared_memory(device, 132)? {
        check_pairs!(device: twice::deep_pairs as bf16 until NEVER: 128, 128, y z;);
    }
    Ok(())
}

fn third_products_are_added(device: &Device) -> Outcome {
    if has_shared_memory(device, 82)? {
        check_pairs!(device: twice::small_added as f16 until NEVER: 64, 64, y z + sums;);
    }
    if has_shared_memory(device, 196)? {
        check_pairs!(
            device:
            twice::deep_added as bf16: 128, 128, y z + sums;
            twice::long_added as f16 until NEVER: 128, 64, y z + sums;
        );
    }
    Ok(())
}

fn sums_beyond_a_diagonal_are_masked(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let zeros = stream.zeros::<f16>(128 * 64)?;
    let identity: Vec<f16> = (0..64 * 64).map(|i| if i % 65 == 0 { f16::ONE } else { f16::ZERO }).collect();
    let (identity, mut y) = (stream.upload(&identity)?, stream.zeros(128 * 64)?);
    for most in [i32::MIN, -70, -1, 0, 1, 17, 63, 127, i32::MAX] {
        for is_above in [false, true] {
            let (zeros, identity) = (zeros.view_2d(64, 128)?, identity.view_2d(64, 64)?);
            twice::masked(&stream, Grid::new(1, 384), zeros, identity, most, is_above, y.as_atomic())?;
            let expected: Vec<f32> = (0..128 * 64)
                .map(|i| {
                    let (row, column) = (i64::from(i / 64), i64::from(i % 64));
                    let beyond = if is_above { column - row } else { row - column };
                    row as f32 + if beyond > i64::from(most) { 500.0 } else { 0.0 }
                })
                .collect();
            expect(&format!("beyond {most}, above {is_above}"), stream.download(&y)?, expected)?;
        }
    }
    Ok(())
}

/// Whether a block may have so many KiB of shared memory.
fn has_shared_memory(device: &Device, kib: i32) -> Result<bool, Error> {
    Ok(device.attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? >= kib << 10)
}

fn a_panic_between_pairs_of_products_ends_the_launch(device: &Device) -> Outcome {
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    let check = |stream: Stream, words: &str| {
        names(&expect_error("a panic", stream.synchronize(), is_panic)?, &[words])
    };
    let stream = device.new_stream()?;
    let (ones, v) = (stream.fill(f16::ONE, 300 * 64)?, stream.fill(1.0, 2 * 304)?);
    let (x, mut y) = (ones.view_2d(64, 300)?, stream.zeros(300 * 64)?);
    twice::small_pairs(&stream, Grid::new(2, 256), x, x, x, x, v.view_2d(304, 2)?, 2, y.as_atomic())?;
    check(stream, "the third step")?;
    if !has_shared_memory(device, 132)? {
        return Ok(());
    }
    // Two groups.
    let stream = device.new_stream()?;
    let (ones, v) = (stream.fill(bf16::ONE, 300 * 64)?, stream.fill(1.0, 2 * 304)?);
    let [mut y, mut z, mut sums] =
        [stream.zeros(300 * 64)?, stream.zeros(300 * 64)?, stream.zeros(300 * 64)?];
    let (x, to_y, to_z) = (ones.view_2d(64, 300)?, y.as_atomic(), z.as_atomic());
    twice::deep_pairs(&stream, Grid::new(2, 384), x, x, x, x, v.view_2d(304, 2)?, 2, to_y, to_z)?;
    check(stream, "third")?;
    if !has_shared_memory(device, 196)? {
        return Ok(());
    }
    // With additions in flight.
    let stream = device.new_stream()?;
    let (ones, v) = (stream.fill(f16::ONE, 300 * 64)?, stream.fill(1.0, 2 * 304)?);
    let x = ones.view_2d(64, 300)?;
    let sums = sums.view_2d_mut(64, 300)?;
    twice::long_added(
        &stream,
        Grid::new(2, 384),
        x,
        x,
        x,
        x,
        v.view_2d(304, 2)?,
        2,
        y.as_atomic(),
        z.as_atomic(),
        sums,
    )?;
    check(stream, "third")
}
