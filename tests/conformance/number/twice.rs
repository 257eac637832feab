//! Two products by blocks with work between them, and two pairs, compared with those of the host.

use ferrogrid::DeviceAttribute;
use ferrogrid::device::half::{HalfFloat, bf16, f16};
use ferrogrid::prelude::*;

use super::twice_kernels::twice;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("products_of_what_comes_of_products", products_of_what_comes_of_products),
    ("a_panic_between_two_products_ends_the_launch", a_panic_between_two_products_ends_the_launch),
    ("pairs_of_products_have_common_factors", pairs_of_products_have_common_factors),
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

/// What the kernels of pairs compute, with sums of whole numbers.
fn pairs<T: HalfFloat>([a, b, c, d]: [&[T]; 4], depth: usize) -> [Vec<f32>; 2] {
    let dot = |a: &[T], b: &[T]| -> f32 { a.iter().zip(b).map(|(a, b)| a.to_f32() * b.to_f32()).sum() };
    let mut results = [vec![0.0; a.len()], vec![0.0; a.len()]];
    for (row, (a, b)) in a.chunks(depth).zip(b.chunks(depth)).enumerate() {
        for (c, d) in c.chunks(depth).zip(d.chunks(depth)) {
            let (p, q) = (dot(a, c), dot(b, d));
            for (result, (weight, right)) in results.iter_mut().zip([(2.0 * p - q, c), (2.0 * p, d)]) {
                let weight = T::from_f32(weight).to_f32();
                let result = &mut result[row * depth..][..depth];
                result.iter_mut().zip(right).for_each(|(y, x)| *y += weight * x.to_f32());
            }
        }
    }
    results
}

fn pairs_of_products_have_common_factors(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(512));
    macro_rules! check {
        ($($launch:path as $t:ident: $rows:literal, $deep:literal, $($result:ident)*;)*) => { $(
            for [rows, others, depth] in SHAPES.into_iter().chain([[130, 200, $deep]]) {
                let mut matrix = |len: usize| -> Vec<$t> {
                    (0..len * depth).map(|_| $t::from_f32(f32::from(random.i8(-3..=3)))).collect()
                };
                let (a, b, c, d) = (matrix(rows), matrix(rows), matrix(others), matrix(others));
                let expected = pairs([&a, &b, &c, &d], depth);
                let (a, b) = (stream.upload(&a)?, stream.upload(&b)?);
                let (c, d) = (stream.upload(&c)?, stream.upload(&d)?);
                let [a, b] = [a.view_2d(depth, rows)?, b.view_2d(depth, rows)?];
                let [c, d] = [c.view_2d(depth, others)?, d.view_2d(depth, others)?];
                $(let mut $result = stream.fill(f32::NAN, rows * depth)?;)*
                let grid = Grid::new(rows.div_ceil($rows) as u32, 128 + 2 * $rows);
                $launch(&stream, grid, a, b, c, d, u32::MAX, $($result.as_atomic()),*)?;
                for (found, expected) in [$(&$result),*].into_iter().zip(expected) {
                    let what = format!("{} of {rows} and {others} rows of {depth}", stringify!($launch));
                    expect(&what, stream.download(found)?, expected)?;
                }
            }
        )* };
    }
    check! {
        twice::small_pairs as f16: 64, 64, y;
    }
    if takes_deep_pairs(device)? {
        check! {
            twice::deep_pairs as bf16: 128, 128, y z;
        }
    }
    Ok(())
}

/// Whether a block may have the shared memory of `deep_pairs`.
fn takes_deep_pairs(device: &Device) -> Result<bool, Error> {
    Ok(device.attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? >= 132 << 10)
}

fn a_panic_between_pairs_of_products_ends_the_launch(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    let (ones, mut y) = (stream.fill(f16::ONE, 300 * 64)?, stream.zeros(300 * 64)?);
    let x = ones.view_2d(64, 300)?;
    twice::small_pairs(&stream, Grid::new(2, 256), x, x, x, x, 2, y.as_atomic())?;
    names(&expect_error("a panic", stream.synchronize(), is_panic)?, &["the third step"])?;
    if !takes_deep_pairs(device)? {
        return Ok(());
    }
    // Two groups.
    let stream = device.new_stream()?;
    let ones = stream.fill(bf16::ONE, 300 * 64)?;
    let (mut y, mut z) = (stream.zeros(300 * 64)?, stream.zeros(300 * 64)?);
    let (x, y, z) = (ones.view_2d(64, 300)?, y.as_atomic(), z.as_atomic());
    twice::deep_pairs(&stream, Grid::new(2, 384), x, x, x, x, 2, y, z)?;
    names(&expect_error("a panic", stream.synchronize(), is_panic)?, &["third"])
}
