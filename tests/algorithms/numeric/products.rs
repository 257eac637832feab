//! Products of matrices, beside sums in the order of the documentation.

use std::fmt::Debug;

use ferrogrid::algorithms::{self, Gemm, Multiplied};
use ferrogrid::device::half::{bf16, f16};
use ferrogrid::device::narrow::{f8e4m3, f8e5m2};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("matrices_of_all_numbers_are_multiplied", matrices_of_all_numbers_are_multiplied),
    ("batches_of_matrices_are_multiplied", batches_of_matrices_are_multiplied),
    ("groups_of_rows_are_multiplied_by_matrices", groups_of_rows_are_multiplied_by_matrices),
    ("offsets_of_groups_are_checked", offsets_of_groups_are_checked),
    ("products_that_fill_the_device_are_right", products_that_fill_the_device_are_right),
    ("deep_products_of_few_tiles_are_right", deep_products_of_few_tiles_are_right),
    ("large_products_of_tf32_are_right", large_products_of_tf32_are_right),
    ("products_of_floats_have_the_same_bits_everywhere", products_of_floats_have_the_same_bits_everywhere),
    ("products_of_tf32_are_those_of_rounded_elements", products_of_tf32_are_those_of_rounded_elements),
    ("products_of_half_matrices_are_close_to_exact", products_of_half_matrices_are_close_to_exact),
    ("products_of_nothing_scale_what_was_there", products_of_nothing_scale_what_was_there),
    ("factors_that_do_not_fit_are_refused", factors_that_do_not_fit_are_refused),
    ("products_are_recorded", products_are_recorded),
];

/// A number, and how the model computes with it to results of `C`.
trait Modelled<C: DeviceCopy = Self>: Multiplied<C> {
    fn of(number: f32) -> Self;
    fn scale(number: f32) -> Self::Scale;
    /// A result that was there before.
    fn before(number: f32) -> C;
    /// `alpha` times the sum of products in their order, and `beta` times what was there.
    fn model(factors: impl Iterator<Item = (Self, Self)>, scales: [Self::Scale; 2], before: C) -> C;
}

macro_rules! modelled {
    ($($t:ident to $c:ident by $scale:ident: $of:expr, $widen:expr, $before:expr, $read:expr, $narrow:expr;)*) => {
        $(impl Modelled<$c> for $t {
            fn of(number: f32) -> Self {
                $of(number)
            }
            fn scale(number: f32) -> $scale {
                number as $scale
            }
            fn before(number: f32) -> $c {
                $before(number)
            }
            fn model(factors: impl Iterator<Item = (Self, Self)>, [alpha, beta]: [$scale; 2], before: $c) -> $c {
                let zero = 0 as $scale;
                let sum = factors.fold(zero, |sum, (a, b)| added($widen(a), $widen(b), sum));
                $narrow(if beta == zero { alpha * sum } else { added(beta, $read(before), alpha * sum) })
            }
        })*
    };
}
modelled! {
    f32 to f32 by f32: |it| it, |it| it, |it| it, |it| it, |it| it;
    f64 to f64 by f64: f64::from, |it| it, f64::from, |it| it, |it| it;
    f16 to f16 by f32: f16::from_f32, f16::to_f32, f16::from_f32, f16::to_f32, f16::from_f32;
    bf16 to bf16 by f32: bf16::from_f32, bf16::to_f32, bf16::from_f32, bf16::to_f32, bf16::from_f32;
    i8 to i32 by i32: |it| it as i8, i32::from, |it| it as i32, |it| it, |it| it;
    f8e4m3 to f32 by f32: f8e4m3::from_f32, f8e4m3::to_f32, |it| it, |it| it, |it| it;
    f8e4m3 to bf16 by f32: f8e4m3::from_f32, f8e4m3::to_f32, bf16::from_f32, bf16::to_f32, bf16::from_f32;
    f8e5m2 to f32 by f32: f8e5m2::from_f32, f8e5m2::to_f32, |it| it, |it| it, |it| it;
    f8e5m2 to bf16 by f32: f8e5m2::from_f32, f8e5m2::to_f32, bf16::from_f32, bf16::to_f32, bf16::from_f32;
}

/// `a b + sum`, rounded once.
fn added<T: Added>(a: T, b: T, sum: T) -> T {
    a.added(b, sum)
}

trait Added {
    fn added(self, b: Self, sum: Self) -> Self;
}

impl Added for i32 {
    fn added(self, b: i32, sum: i32) -> i32 {
        self * b + sum
    }
}

impl Added for f32 {
    fn added(self, b: f32, sum: f32) -> f32 {
        self.mul_add(b, sum)
    }
}

impl Added for f64 {
    fn added(self, b: f64, sum: f64) -> f64 {
        self.mul_add(b, sum)
    }
}

/// A product: rows, columns and depth of each batch, which factors are stored transposed, and what is between the rows.
#[derive(Debug, Clone, Copy)]
struct Shape {
    extents: [usize; 3],
    batches: usize,
    /// Where groups of rows begin, and the end of the last one; nothing if there are none.
    groups: &'static [u32],
    transposed: [bool; 2],
    gaps: [usize; 3],
}

/// The group of a row.
fn group_of(groups: &[u32], row: usize) -> Option<usize> {
    groups.windows(2).position(|ends| (ends[0] as usize..ends[1] as usize).contains(&row))
}

/// A matrix in memory with gaps between its rows.
struct Stored<T> {
    elements: Vec<T>,
    width: usize,
    height: usize,
    pitch: usize,
}

impl<T: Copy> Stored<T> {
    fn new([height, width]: [usize; 2], gap: usize, mut element: impl FnMut() -> T) -> Self {
        let pitch = width + gap;
        Stored { elements: (0..height * pitch).map(|_| element()).collect(), width, height, pitch }
    }

    fn get(&self, row: usize, column: usize) -> T {
        self.elements[row * self.pitch + column]
    }
}

/// Multiplies numbers of `next` on the device, and compares each element with the model; `c` is NaN before where it does not count.
fn check<T: Modelled<C>, C: DeviceCopy + Debug>(
    stream: &Stream,
    shape: Shape,
    scales: [f32; 2],
    next: impl FnMut() -> f32,
) -> Outcome {
    check_with(stream, shape, scales, next, |product: Gemm<T, C>| product)
}

/// As `check`, with further options.
fn check_with<T: Modelled<C>, C: DeviceCopy + Debug>(
    stream: &Stream,
    shape: Shape,
    [alpha, beta]: [f32; 2],
    mut next: impl FnMut() -> f32,
    options: impl for<'a, 'c> FnOnce(Gemm<'a, 'c, T, C>) -> Gemm<'a, 'c, T, C>,
) -> Outcome {
    let Shape { extents: [rows, columns, depth], batches, groups, transposed: [turned_a, turned_b], gaps } =
        shape;
    let stored = |[rows, columns]: [usize; 2], turned, matrices: usize| {
        let [rows, columns] = if turned { [columns, rows] } else { [rows, columns] };
        [rows * matrices, columns]
    };
    let matrices = if groups.is_empty() { batches } else { groups.len() - 1 };
    let a = Stored::new(stored([rows, depth], turned_a, batches), gaps[0], || T::of(next()));
    let b = Stored::new(stored([depth, columns], turned_b, matrices), gaps[1], || T::of(next()));
    let before = Stored::new([rows * batches, columns], gaps[2], || {
        T::before(if beta == 0.0 { f32::NAN } else { next() })
    });

    let (device_a, device_b) = (stream.upload(&a.elements)?, stream.upload(&b.elements)?);
    let (mut device_c, offsets) = (stream.upload(&before.elements)?, stream.upload(groups)?);
    let product = Gemm::new(
        device_a.view().pitched(a.width, a.height, a.pitch)?,
        device_b.view().pitched(b.width, b.height, b.pitch)?,
        device_c.view_mut().pitched(before.width, before.height, before.pitch)?,
    );
    let product = if turned_a { product.transpose_a() } else { product };
    let product = if turned_b { product.transpose_b() } else { product };
    let product = if groups.is_empty() { product } else { product.groups(offsets.view()) };
    let scales = [T::scale(alpha), T::scale(beta)];
    algorithms::gemm(stream, options(product.alpha(scales[0]).beta(scales[1]).batches(batches)))?;

    let mut expected = before.elements.clone();
    for row in 0..rows * batches {
        let (batch, own) = (row / rows, row % rows);
        let Some(matrix) = (if groups.is_empty() { Some(batch) } else { group_of(groups, row) }) else {
            continue; // it stays as it is
        };
        for column in 0..columns {
            let pair = |k: usize| {
                let of_a = if turned_a { a.get(batch * depth + k, own) } else { a.get(row, k) };
                let of_b = if turned_b {
                    b.get(matrix * columns + column, k)
                } else {
                    b.get(matrix * depth + k, column)
                };
                (of_a, of_b)
            };
            let place = row * before.pitch + column;
            expected[place] = T::model((0..depth).map(pair), scales, before.elements[place]);
        }
    }
    // What is between the rows stays. NaN there is compared as text.
    for (place, (found, expected)) in stream.download(&device_c)?.into_iter().zip(expected).enumerate() {
        let what = || {
            format!(
                "{} {shape:?} at {}, {}",
                std::any::type_name::<T>(),
                place / before.pitch,
                place % before.pitch
            )
        };
        if format!("{found:?}") != format!("{expected:?}") {
            return Err(format!("{}: {found:?}, expected {expected:?}", what()).into());
        }
    }
    Ok(())
}

/// Small whole numbers: their sums are exact in all types, so the order of sums does not matter.
fn whole(random: &mut fastrand::Rng) -> f32 {
    f32::from(random.i8(-4..=4))
}

/// Around the tiles of 64, 128 and 256 rows and columns, and steps of 4 to 64 along the depth.
const EXTENTS: [[usize; 3]; 11] = [
    [1, 1, 1],
    [3, 5, 7],
    [33, 70, 17],
    [6, 260, 9],
    [64, 128, 64],
    [65, 130, 33],
    [128, 256, 64],
    [129, 260, 72],
    [17, 300, 130],
    [200, 8, 16],
    [300, 264, 136],
];

fn matrices_of_all_numbers_are_multiplied(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(601));
    // The model is slow, and the CPU device has no tiles that the largest ones are for.
    for extents in if device.is_cuda() { &EXTENTS[..] } else { &EXTENTS[..4] }.iter().copied() {
        for transposed in [[false, false], [false, true], [true, false], [true, true]] {
            for gaps in [[0; 3], [3, 1, 2], [8, 16, 4]] {
                let shape = Shape { extents, batches: 1, groups: &[], transposed, gaps };
                let scales = if gaps[0] == 3 { [3.0, 2.0] } else { [1.0, 0.0] };
                check::<bf16, _>(&stream, shape, scales, || whole(&mut random))?;
                check::<f16, _>(&stream, shape, scales, || whole(&mut random))?;
                check::<i8, _>(&stream, shape, scales, || whole(&mut random))?;
                check::<f8e4m3, f32>(&stream, shape, scales, || whole(&mut random))?;
                check::<f8e4m3, bf16>(&stream, shape, scales, || whole(&mut random))?;
                check::<f8e5m2, f32>(&stream, shape, scales, || whole(&mut random))?;
                check::<f8e5m2, bf16>(&stream, shape, scales, || whole(&mut random))?;
                if gaps[0] != 8 {
                    check::<f32, _>(&stream, shape, scales, || whole(&mut random))?;
                    check_with::<f32, _>(&stream, shape, scales, || whole(&mut random), |it| it.tf32())?;
                    check::<f64, _>(&stream, shape, scales, || whole(&mut random))?;
                }
            }
        }
    }
    Ok(())
}

fn batches_of_matrices_are_multiplied(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(602));
    // Of a depth with whole tiles, 16-bit factors are read in place, unless their rows are odd.
    for (extents, batches) in
        [([16, 8, 24], 7), ([66, 20, 17], 3), ([5, 3, 2], 20), ([16, 24, 128], 3), ([9, 12, 64], 2)]
    {
        for transposed in [[false, false], [false, true], [true, false], [true, true]] {
            let shape = Shape { extents, batches, groups: &[], transposed, gaps: [0, 0, 4] };
            check::<bf16, _>(&stream, shape, [2.0, 1.0], || whole(&mut random))?;
            check::<f16, _>(&stream, shape, [1.0, 0.0], || whole(&mut random))?;
            check::<f32, _>(&stream, shape, [1.0, 0.0], || whole(&mut random))?;
            check_with::<f32, _>(&stream, shape, [1.0, 0.0], || whole(&mut random), |it| it.tf32())?;
            check::<f64, _>(&stream, shape, [1.0, -1.0], || whole(&mut random))?;
            check::<i8, _>(&stream, shape, [2.0, -1.0], || whole(&mut random))?;
            check::<f8e4m3, f32>(&stream, shape, [2.0, 1.0], || whole(&mut random))?;
            check::<f8e5m2, bf16>(&stream, shape, [1.0, 0.0], || whole(&mut random))?;
        }
    }
    Ok(())
}

/// Of groups without rows, with one, and with more than tiles have, and rows of none before, between and after.
fn groups_of_rows_are_multiplied_by_matrices(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(608));
    let shapes: [([usize; 3], &'static [u32]); 4] = [
        ([9, 8, 16], &[2, 2, 3, 8, 8]),
        ([75, 20, 17], &[0, 70, 71, 75]),
        ([5, 3, 8], &[0, 0]),
        ([400, 264, 192], &[3, 132, 132, 391, 392]),
    ];
    // The model is slow.
    for (extents, groups) in if device.is_cuda() { &shapes[..] } else { &shapes[..3] }.iter().copied() {
        for transposed in [[false, false], [false, true], [true, false], [true, true]] {
            for (gaps, scales) in [([0; 3], [1.0, 0.0]), ([3, 1, 2], [3.0, 2.0])] {
                let shape = Shape { extents, batches: 1, groups, transposed, gaps };
                check::<bf16, _>(&stream, shape, scales, || whole(&mut random))?;
                check::<f16, _>(&stream, shape, scales, || whole(&mut random))?;
                check::<f32, _>(&stream, shape, scales, || whole(&mut random))?;
                check_with::<f32, _>(&stream, shape, scales, || whole(&mut random), |it| it.tf32())?;
                check::<f64, _>(&stream, shape, scales, || whole(&mut random))?;
                check::<i8, _>(&stream, shape, scales, || whole(&mut random))?;
                check::<f8e4m3, f32>(&stream, shape, scales, || whole(&mut random))?;
                check::<f8e4m3, bf16>(&stream, shape, scales, || whole(&mut random))?;
                check::<f8e5m2, f32>(&stream, shape, scales, || whole(&mut random))?;
                check::<f8e5m2, bf16>(&stream, shape, scales, || whole(&mut random))?;
            }
        }
    }
    Ok(())
}

fn offsets_of_groups_are_checked(device: &Device) -> Outcome {
    fn check<T: Modelled>(device: &Device) -> Outcome {
        for offsets in [[0_u32, 3, 2, 4], [0, 1, 2, 5]] {
            let stream = device.new_stream()?;
            let (x, offsets) = (stream.fill(T::of(1.0), 3 * 16 * 16)?, stream.upload(&offsets)?);
            let mut c = stream.fill(T::of(0.0), 4 * 16)?;
            let product = Gemm::new(
                x.view().slice(..4 * 16)?.into_2d(16, 4)?,
                x.view_2d(16, 48)?,
                c.view_2d_mut(16, 4)?,
            );
            algorithms::gemm(&stream, product.transpose_b().groups(offsets.view()))?;
            let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
            let error = expect_error("offsets of groups", stream.synchronize(), is_panic)?;
            names(&error, &["the offsets of groups ascend up to the number of rows"])?;
        }
        Ok(())
    }
    check::<bf16>(device)?;
    check::<f32>(device)?;
    check::<f64>(device)?;
    let stream = device.new_stream()?;
    let (x, offsets) = (stream.zeros::<f32>(16)?, stream.zeros::<u32>(4)?);
    let mut c = stream.fill(7.0_f32, 16)?;
    let is_argument = |error: &Error| matches!(error, Error::Argument { function: "gemm", .. });
    for (len, batches, words) in [
        (0, 1, ["offsets", "0"]),
        (1, 1, ["offsets", "1"]),
        (4, 1, ["groups", "3 for 4 rows"]),
        (3, 2, ["batches", "2"]),
    ] {
        let product = Gemm::new(x.view_2d(4, 4)?, x.view_2d(4, 4)?, c.view_2d_mut(4, 4)?).batches(batches);
        let refused = algorithms::gemm(&stream, product.groups(offsets.view().slice(..len)?));
        names(&expect_error("offsets", refused, is_argument)?, &words)?;
    }
    expect("after refused products", stream.download(&c)?, vec![7.0; 16])
}

/// So many tiles that the largest ones are taken: of batches, and of groups.
fn products_that_fill_the_device_are_right(device: &Device) -> Outcome {
    fn check<T: Modelled<C>, C: DeviceCopy + Debug>(device: &Device) -> Outcome {
        let [rows, columns, depth] = [128, 256, 8];
        let processors =
            if device.is_cuda() { device.properties()?.multiprocessor_count as usize } else { 1 };
        check_filled::<T, C>(device, [rows, columns, depth], 2 * processors, &[])?;
        // A round of large tiles, three of which have few rows.
        let end = 128 * processors.saturating_sub(4).max(1) as u32;
        check_filled::<T, C>(device, [end as usize + 9, columns, depth], 1, &[5, 70, 70, end])
    }
    check::<f32, _>(device)?;
    check::<f64, _>(device)?;
    check::<f16, _>(device)?;
    check::<bf16, _>(device)?;
    check::<i8, _>(device)?;
    check::<f8e4m3, f32>(device)?;
    check::<f8e4m3, bf16>(device)
}

/// Multiplies so many batches, or groups with such offsets, and compares each element with the sum of two numbers: of its row, and of its
/// column in its group.
fn check_filled<T: Modelled<C>, C: DeviceCopy + Debug>(
    device: &Device,
    [rows, columns, depth]: [usize; 3],
    batches: usize,
    groups: &[u32],
) -> Outcome {
    let of_row = |row: usize| (row % 13) as f32;
    let of_column = |group: usize, column: usize| ((column + 3 * group) % 11) as f32;
    let matrices = if groups.is_empty() { batches } else { groups.len() - 1 };
    let a = (0..rows * batches * depth).map(|place| match place % depth {
        0 => T::of(of_row(place / depth)),
        5 => T::of(1.0),
        _ => T::of(0.0),
    });
    let b = (0..depth * matrices * columns).map(|place| match place / columns % depth {
        0 => T::of(1.0),
        5 => T::of(of_column(place / columns / depth, place % columns)),
        _ => T::of(0.0),
    });
    let stream = device.new_stream()?;
    let (a, b) = (stream.upload(&a.collect::<Vec<_>>())?, stream.upload(&b.collect::<Vec<_>>())?);
    let mut c = stream.upload(&vec![T::before(f32::NAN); rows * batches * columns])?;
    let (product, offsets) = (
        Gemm::new(
            a.view_2d(depth, rows * batches)?,
            b.view_2d(columns, depth * matrices)?,
            c.view_2d_mut(columns, rows * batches)?,
        ),
        stream.upload(groups)?,
    );
    let product = if groups.is_empty() { product } else { product.groups(offsets.view()) };
    algorithms::gemm(&stream, product.batches(batches))?;
    for (place, found) in stream.download(&c)?.into_iter().enumerate() {
        let row = place / columns;
        let matrix = if groups.is_empty() { Some(row / rows) } else { group_of(groups, row) };
        let sum = |matrix| of_row(row) + of_column(matrix, place % columns);
        let expected = T::before(matrix.map_or(f32::NAN, sum));
        if format!("{found:?}") != format!("{expected:?}") {
            return Err(format!("{found:?} instead of {expected:?} at {place}").into());
        }
    }
    Ok(())
}

/// So few tiles that GPUs multiply parts of the depth apart.
fn deep_products_of_few_tiles_are_right(device: &Device) -> Outcome {
    if !device.is_cuda() {
        return Ok(()); // there is one way to compute them
    }
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(607));
    for (extents, batches) in [([3, 140, 7205], 1), ([66, 20, 8200], 1), ([65, 8, 7168], 2)] {
        for transposed in [[false, false], [false, true], [true, false], [true, true]] {
            for (gaps, scales) in [([3, 1, 2], [3.0, 2.0]), ([0; 3], [1.0, 0.0])] {
                let shape = Shape { extents, batches, groups: &[], transposed, gaps };
                check::<bf16, _>(&stream, shape, scales, || whole(&mut random))?;
                check::<f16, _>(&stream, shape, scales, || whole(&mut random))?;
                check::<i8, _>(&stream, shape, scales, || whole(&mut random))?;
                check::<f8e4m3, f32>(&stream, shape, scales, || whole(&mut random))?;
                check::<f8e4m3, bf16>(&stream, shape, scales, || whole(&mut random))?;
            }
        }
    }
    Ok(())
}

/// So large that a GPU of compute capability 9.0 multiplies rounded copies by the tensor cores of blocks.
fn large_products_of_tf32_are_right(device: &Device) -> Outcome {
    if !device.is_cuda() {
        return Ok(()); // there is one way to compute them
    }
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(606));
    for transposed in [[false, false], [false, true], [true, false], [true, true]] {
        for (extents, gaps) in [([1030, 1101, 36], [3, 1, 2]), ([1024, 1088, 70], [0; 3])] {
            let shape = Shape { extents, batches: 1, groups: &[], transposed, gaps };
            let scales = if gaps[0] == 3 { [3.0, 2.0] } else { [1.0, 0.0] };
            check_with::<f32, _>(&stream, shape, scales, || whole(&mut random), |it| it.tf32())?;
        }
    }
    Ok(())
}

/// Numbers whose sums are rounded in each step: they have the bits of the model only in its order.
fn products_of_floats_have_the_same_bits_everywhere(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(603));
    for (extents, transposed) in [([150, 140, 133], [false, false]), ([40, 129, 64], [true, true])] {
        let shape = Shape { extents, batches: 1, groups: &[], transposed, gaps: [0; 3] };
        check::<f32, _>(&stream, shape, [0.3, 0.7], || random.f32() - 0.5)?;
        check::<f64, _>(&stream, shape, [0.3, 0.7], || random.f32() - 0.5)?;
    }
    // A round of large tiles, of several stages each.
    if device.is_cuda() {
        let columns = 64 * device.properties()?.multiprocessor_count as usize - 4;
        let extents = [130, columns, 70];
        let shape = Shape { extents, batches: 1, groups: &[], transposed: [false; 2], gaps: [0; 3] };
        check::<f32, _>(&stream, shape, [0.3, 0.7], || random.f32() - 0.5)?;
    }
    Ok(())
}

/// Rounded to 11 bits, with ties away from zero.
fn products_of_tf32_are_those_of_rounded_elements(device: &Device) -> Outcome {
    const DEPTH: usize = 16;
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(605));
    let last = 2.0_f32.powi(-10);
    // A number of 11 bits and a part of its last place, a half among them.
    let mut element = || {
        let (exact, part) = (f32::from(random.u16(1024..2048)) * last, random.u8(..4));
        let rounded = if part < 2 { exact } else { exact + last };
        let sign = if random.bool() { 1.0 } else { -1.0 };
        (sign * (exact + f32::from(part) / 4.0 * last), sign * rounded)
    };
    let [a, b]: [Vec<(f32, f32)>; 2] = [30, 140].map(|rows| (0..rows * DEPTH).map(|_| element()).collect());
    let upload = |elements: &[(f32, f32)]| stream.upload(&elements.iter().map(|it| it.0).collect::<Vec<_>>());
    let (device_a, device_b) = (upload(&a)?, upload(&b)?);
    let mut c = stream.zeros::<f32>(30 * 140)?;
    let product =
        Gemm::new(device_a.view_2d(DEPTH, 30)?, device_b.view_2d(DEPTH, 140)?, c.view_2d_mut(140, 30)?);
    algorithms::gemm(&stream, product.transpose_b().tf32())?;
    for (place, found) in stream.download(&c)?.into_iter().enumerate() {
        let (a, b) = (&a[place / 140 * DEPTH..][..DEPTH], &b[place % 140 * DEPTH..][..DEPTH]);
        let exact: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a.1) * f64::from(b.1)).sum();
        // Each step may lose what is below 2^-21 of the sum: in all, less than one element rounded the other way.
        let is_near = (f64::from(found) - exact).abs() <= (4 * DEPTH * DEPTH) as f64 / f64::from(1 << 22);
        expect(&format!("{found} for {exact} at {place}"), is_near, true)?;
    }
    Ok(())
}

fn products_of_half_matrices_are_close_to_exact(device: &Device) -> Outcome {
    const DEPTH: usize = 400;
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(604));
    let [a, b]: [Vec<bf16>; 2] =
        [50, 60].map(|rows| (0..rows * DEPTH).map(|_| bf16::from_f32(random.f32() * 2.0 - 1.0)).collect());
    let (device_a, device_b) = (stream.upload(&a)?, stream.upload(&b)?);
    let mut c = stream.zeros::<bf16>(50 * 60)?;
    let product =
        Gemm::new(device_a.view_2d(DEPTH, 50)?, device_b.view_2d(DEPTH, 60)?, c.view_2d_mut(60, 50)?);
    algorithms::gemm(&stream, product.transpose_b())?;
    for (place, found) in stream.download(&c)?.into_iter().enumerate() {
        let (a, b) = (&a[place / 60 * DEPTH..][..DEPTH], &b[place % 60 * DEPTH..][..DEPTH]);
        let exact: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a.to_f32()) * f64::from(b.to_f32())).sum();
        // The rounding of the result, and of the sums before it.
        let most = exact.abs() / 256.0 + (DEPTH * DEPTH) as f64 / f64::from(1 << 22);
        let is_near = (f64::from(found.to_f32()) - exact).abs() <= most;
        expect(&format!("{found} for {exact} at {place}"), is_near, true)?;
    }
    Ok(())
}

fn products_of_nothing_scale_what_was_there(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for extents in [[5, 8, 0], [0, 3, 4], [4, 0, 4], [0, 0, 0]] {
        for transposed in [[false, false], [true, true]] {
            let shape = Shape { extents, batches: 1, groups: &[], transposed, gaps: [0; 3] };
            check::<f32, _>(&stream, shape, [1.0, 2.0], || 3.0)?;
            check_with::<f32, _>(&stream, shape, [1.0, 2.0], || 3.0, |it| it.tf32())?;
            check::<f64, _>(&stream, shape, [1.0, 0.0], || 3.0)?;
            check::<bf16, _>(&stream, shape, [1.0, 2.0], || 3.0)?;
            check::<f16, _>(&stream, shape, [1.0, 0.0], || 3.0)?;
            check::<i8, _>(&stream, shape, [1.0, 2.0], || 3.0)?;
            check::<f8e4m3, f32>(&stream, shape, [1.0, 2.0], || 3.0)?;
            check::<f8e4m3, bf16>(&stream, shape, [1.0, 0.0], || 3.0)?;
        }
    }
    Ok(())
}

fn factors_that_do_not_fit_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut c) = (stream.zeros::<f32>(24)?, stream.fill(7.0_f32, 24)?);
    let refused = algorithms::matmul(&stream, x.view_2d(3, 4)?, x.view_2d(6, 4)?, c.view_2d_mut(6, 4)?);
    let is_length =
        |error: &Error| matches!(error, Error::LengthMismatch { source_length: 3, target_length: 4, .. });
    names(
        &expect_error("depths that differ", refused, is_length)?,
        &["columns of the left factor", "3", "4"],
    )?;
    let refused = algorithms::matmul(&stream, x.view_2d(4, 3)?, x.view_2d(6, 4)?, c.view_2d_mut(3, 6)?);
    let is_shape = |error: &Error| matches!(error, Error::ShapeMismatch { from: [6, 3], to: [3, 6], .. });
    names(
        &expect_error("another size of c", refused, is_shape)?,
        &["the product and `c`", "3 rows of 6", "6 of 3"],
    )?;
    let is_argument = |error: &Error| matches!(error, Error::Argument { function: "gemm", .. });
    for (batches, words) in [(3, "3 for 4 rows"), (0, "0 for")] {
        let product = Gemm::new(x.view_2d(6, 4)?, x.view_2d(4, 6)?, c.view_2d_mut(4, 4)?).batches(batches);
        names(
            &expect_error("batches", algorithms::gemm(&stream, product), is_argument)?,
            &[words, "divides"],
        )?;
    }
    expect("after refused products", stream.download(&c)?, vec![7.0; 24])
}

/// With a copy of a factor that is made at each launch.
fn products_are_recorded(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (a, b, c) =
        (stream.zeros::<f32>(6)?, stream.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?, stream.zeros(4)?);
    let (graph, (a, c)) = stream.capture(|capture| {
        let (a, b, mut c) = (capture.keep(a)?, capture.keep(b)?, capture.keep(c)?);
        let product = Gemm::new(a.view_2d(2, 3)?, b.view_2d(2, 3)?, c.view_2d_mut(2, 2)?);
        algorithms::gemm(capture, product.transpose_a())?;
        Ok((a.key(), c.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in [1.0, -2.0] {
        stream.fill_into(value, graph.view_mut(a)?)?;
        graph.launch(&stream)?;
        expect(
            "a recorded product",
            stream.download(graph.view(c)?)?,
            vec![9.0 * value, 12.0 * value, 9.0 * value, 12.0 * value],
        )?;
    }
    Ok(())
}
