//! Products of matrices by blocks, compared with sums of the host.

use std::fmt::Debug;

use bytemuck::Pod;
use ferrogrid::device::atomic::AtomicLoadStore;
use ferrogrid::device::half::{HalfFloat, bf16, f16};
use ferrogrid::device::narrow::{f8e4m3, f8e5m2, tf32};
use ferrogrid::prelude::*;
use ferrogrid::{DeviceAtomicView, In, LaunchError};

use super::tile_kernels::tiling;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("tiles_of_any_shape_are_multiplied", tiles_of_any_shape_are_multiplied),
    ("transposed_factors_of_any_shape_are_multiplied", transposed_factors_of_any_shape_are_multiplied),
    (
        "transposes_of_matrices_below_each_other_are_multiplied",
        transposes_of_matrices_below_each_other_are_multiplied,
    ),
    ("columns_of_planes_are_multiplied", columns_of_planes_are_multiplied),
    ("columns_that_are_no_whole_copies_are_refused", columns_that_are_no_whole_copies_are_refused),
    ("products_of_tiles_are_close_to_exact", products_of_tiles_are_close_to_exact),
    ("sums_are_stored_by_whole_rows", sums_are_stored_by_whole_rows),
    ("tiles_of_other_elements_are_multiplied", tiles_of_other_elements_are_multiplied),
    ("products_of_narrow_tiles_are_close_to_exact", products_of_narrow_tiles_are_close_to_exact),
    ("parts_of_the_depth_are_multiplied_apart", parts_of_the_depth_are_multiplied_apart),
    ("parts_of_the_depth_are_whole_steps", parts_of_the_depth_are_whole_steps),
    ("a_recorded_product_reads_new_elements", a_recorded_product_reads_new_elements),
    ("rows_of_a_tensor_map_are_aligned", rows_of_a_tensor_map_are_aligned),
    ("long_axes_of_a_tensor_map_are_refused", long_axes_of_a_tensor_map_are_refused),
    ("a_panic_in_a_product_ends_the_launch", a_panic_in_a_product_ends_the_launch),
    ("transposed_factors_are_copied_from_whole_groups", transposed_factors_are_copied_from_whole_groups),
];

/// An element with whole numbers.
trait Whole: Copy {
    /// Sums of products of numbers to this one are exact.
    const MOST: i8;

    fn of(number: i8) -> Self;

    fn number(self) -> f32;
}

macro_rules! whole {
    ($($t:ident $most:literal, $of:expr, $number:expr;)*) => { $(
        impl Whole for $t {
            const MOST: i8 = $most;

            fn of(number: i8) -> Self {
                $of(number)
            }

            fn number(self) -> f32 {
                $number(self)
            }
        }
    )* };
}

// Sums of 8-bit floats have some 14 bits.
whole! {
    f16 16, |it| f16::from_f32(f32::from(it)), |it: f16| it.to_f32();
    bf16 16, |it| bf16::from_f32(f32::from(it)), |it: bf16| it.to_f32();
    tf32 16, |it| tf32::from_f32(f32::from(it)), tf32::to_f32;
    f8e4m3 4, |it| f8e4m3::from_f32(f32::from(it)), f8e4m3::to_f32;
    f8e5m2 4, |it| f8e5m2::from_f32(f32::from(it)), f8e5m2::to_f32;
    i8 100, |it| it, f32::from;
    u8 100, i8::unsigned_abs, f32::from;
}

/// Heights of both factors, and their width in units of two bytes.
const SHAPES: [[usize; 3]; 7] =
    [[64, 32, 64], [1, 1, 8], [129, 100, 72], [70, 40, 1000], [5, 300, 128], [70, 40, 0], [0, 40, 64]];
/// Those for large tiles. The CPU device, which computes tiles as a whole, has the first one.
const LARGE: [[usize; 3]; 2] = [[129, 130, 72], [260, 257, 328]];

/// Rows of a matrix and elements in each, as it is stored or transposed.
fn stored([rows, depth]: [usize; 2], is_transposed: bool) -> [usize; 2] {
    if is_transposed { [rows, depth] } else { [depth, rows] }
}

/// Adds products of these shapes to ones, by two blocks. The flags say which factors are transposed.
macro_rules! check_shapes {
    ($device:ident, $t:ident as $sum:ident, $launch:path, $height:literal, $shapes:ident) => {
        check_shapes!($device, $t as $sum, $launch, $height, $shapes, [false, false])
    };
    ($device:ident, $t:ident as $sum:ident, $launch:path, $height:literal, $shapes:ident, $transposed:expr) => {{
        let [turned_a, turned_b]: [bool; 2] = $transposed;
        let (stream, mut random) = ($device.new_stream()?, fastrand::Rng::with_seed(501));
        for [rows, columns, width] in $shapes.iter().copied() {
            let depth = width * 2 / size_of::<$t>();
            let most = <$t>::MOST;
            let mut matrix =
                |len: usize| -> Vec<$t> { (0..len).map(|_| <$t>::of(random.i8(-most..=most))).collect() };
            let (a, b) = (matrix(rows * depth), matrix(columns * depth));
            let place = |rows: usize, row: usize, k: usize, turned| {
                if turned { k * rows + row } else { row * depth + k }
            };
            let sum = |row: usize, column: usize| -> f32 {
                let of_a = |k| a[place(rows, row, k, turned_a)].number();
                (0..depth).map(|k| of_a(k) * b[place(columns, column, k, turned_b)].number()).sum()
            };
            let expected: Vec<$sum> =
                (0..rows * columns).map(|at| (1.0 + sum(at / columns, at % columns)) as $sum).collect();
            let (a, b) = (stream.upload(&a)?, stream.upload(&b)?);
            let mut c = stream.fill(1 as $sum, rows * columns)?;
            let grid = Grid::new(2, 128 + 2 * $height);
            let [width_a, height_a] = stored([rows, depth], turned_a);
            let [width_b, height_b] = stored([columns, depth], turned_b);
            $launch(
                &stream,
                grid,
                a.view_2d(width_a, height_a)?,
                b.view_2d(width_b, height_b)?,
                c.as_atomic(),
            )?;
            let what = format!(
                "{} of {rows} and {columns} rows with {depth}, {}",
                stringify!($launch),
                stringify!($t)
            );
            expect(&what, stream.download(&c)?, expected)?;
        }
    }};
}

/// Products whose sums are stored as `E`, several to a group, in rows of different distances that begin at any group.
fn check_rows<G: AtomicLoadStore + Pod, E: DeviceCopy + Pod + PartialEq + Debug>(
    device: &Device,
    what: &str,
    poison: E,
    result: impl Fn(f32) -> E,
    launch: impl Fn(&Stream, usize, [DeviceView<bf16, 2>; 2], DeviceAtomicView<G>) -> ferrogrid::Result<()>,
) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(509));
    for ([rows, columns, depth], more, first) in [
        ([129, 100, 72], 0, 0),
        ([70, 264, 136], 1, 0),
        ([130, 301, 8], 2, 1),
        ([5, 512, 64], 0, 2),
        ([1, 1, 8], 0, 0),
    ] {
        let mut matrix = |rows: usize| (0..rows * depth).map(|_| random.i8(-3..=3)).collect::<Vec<_>>();
        let (a, b) = (matrix(rows), matrix(columns));
        let upload = |numbers: &[i8]| {
            stream.upload(&numbers.iter().map(|it| bf16::from_f32(f32::from(*it))).collect::<Vec<_>>())
        };
        let of_group = size_of::<G>() / size_of::<E>();
        let pitch = columns.div_ceil(of_group) + more;
        let mut c = stream.upload(&vec![poison; (first + rows * pitch) * of_group])?;
        let (device_a, device_b) = (upload(&a)?, upload(&b)?);
        let views = [device_a.view_2d(depth, rows)?, device_b.view_2d(depth, columns)?];
        let groups = c.view_mut().cast::<G>()?.into_atomic().slice(first..)?;
        launch(&stream, pitch, views, groups)?;
        for (at, found) in stream.download(&c)?.into_iter().enumerate() {
            let (row, column) = match at.checked_sub(first * of_group) {
                Some(at) => (at / (pitch * of_group), at % (pitch * of_group)),
                None => (rows, 0),
            };
            let sum = |k: usize| i32::from(a[row * depth + k]) * i32::from(b[column * depth + k]);
            let expected = if row < rows && column < columns {
                result((0..depth).map(sum).sum::<i32>() as f32)
            } else if row < rows && column < columns.next_multiple_of(of_group) {
                result(0.0)
            } else {
                poison
            };
            expect(&format!("{what} of {rows} x {columns} x {depth} at {row}, {column}"), found, expected)?;
        }
    }
    Ok(())
}

fn sums_are_stored_by_whole_rows(device: &Device) -> Outcome {
    macro_rules! launch {
        ($launch:path) => {
            |stream, pitch, [a, b], c| $launch(stream, Grid::new(2, 384), pitch, a, b, c)
        };
    }
    let half = |sum: f32| bf16::from_f32(sum).to_bits();
    check_rows(device, "halves", 7_u16, half, launch!(tiling::store_halves::<32>))?;
    if device.properties()?.shared_memory_per_block_optin >= 120 << 10 {
        check_rows(device, "wide halves", 7_u16, half, launch!(tiling::store_halves::<256>))?;
        check_rows(device, "words", 7.0_f32, |sum| sum, launch!(tiling::store_words))?;
        check_rows(device, "bytes", 7_u8, |sum| sum as i32 as u8, launch!(tiling::store_bytes))?;
    }
    Ok(())
}

fn tiles_of_any_shape_are_multiplied(device: &Device) -> Outcome {
    check_shapes!(device, bf16 as f32, tiling::multiply::<bf16, 32>, 64, SHAPES);
    check_shapes!(device, f16 as f32, tiling::multiply::<f16, 32>, 64, SHAPES);
    let large = if device.is_cuda() { &LARGE[..] } else { &LARGE[..1] };
    if device.properties()?.shared_memory_per_block_optin >= 128 << 10 {
        check_shapes!(device, bf16 as f32, tiling::multiply::<bf16, 128>, 64, large);
        check_shapes!(device, f16 as f32, tiling::multiply_tall::<f16, 64>, 128, large);
    }
    if device.properties()?.shared_memory_per_block_optin >= 200 << 10 {
        check_shapes!(device, bf16 as f32, tiling::multiply_tall::<bf16, 256>, 128, large);
        check_shapes!(device, f16 as f32, tiling::multiply_tall::<f16, 256>, 128, large);
    }
    Ok(())
}

/// Their rows have multiples of 8 elements.
const TURNED: [[usize; 3]; 4] = [[136, 72, 72], [264, 264, 136], [8, 8, 8], [16, 64, 0]];

fn transposed_factors_of_any_shape_are_multiplied(device: &Device) -> Outcome {
    let shapes = if device.is_cuda() { &TURNED[..] } else { &TURNED[..1] };
    let memory = device.properties()?.shared_memory_per_block_optin;
    if memory >= 80 << 10 {
        check_shapes!(device, bf16 as f32, tiling::multiply_right::<bf16, 64>, 128, shapes, [false, true]);
        check_shapes!(device, f16 as f32, tiling::multiply_right::<f16, 64>, 128, shapes, [false, true]);
    }
    if memory >= 100 << 10 {
        check_shapes!(device, bf16 as f32, tiling::multiply_both::<bf16, 128>, 128, shapes, [true, true]);
        check_shapes!(device, f16 as f32, tiling::multiply_both::<f16, 128>, 128, shapes, [true, true]);
    }
    if memory >= 150 << 10 {
        check_shapes!(device, bf16 as f32, tiling::multiply_right::<bf16, 256>, 128, shapes, [false, true]);
        check_shapes!(device, f16 as f32, tiling::multiply_right::<f16, 256>, 128, shapes, [false, true]);
    }
    Ok(())
}

fn parts_of_the_depth_are_multiplied_apart(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(504));
    // Parts of one step and of many, without any, and with the end of rows.
    for (depth, ends) in
        [(328, &[0, 64, 64, 320, 328][..]), (640, &[0, 256, 384, 640]), (72, &[64, 72]), (0, &[0, 0])]
    {
        let [rows, columns] = [70, 40];
        let [a, b] =
            [rows, columns].map(|rows| (0..rows * depth).map(|_| random.i8(-9..=9)).collect::<Vec<_>>());
        let upload = |x: &[i8]| stream.upload(&x.iter().map(|it| bf16::of(*it)).collect::<Vec<_>>());
        let (device_a, device_b) = (upload(&a)?, upload(&b)?);
        let sum = |part: &[u64], row: usize, column: usize| -> f32 {
            let term = |k: usize| f32::from(a[row * depth + k]) * f32::from(b[column * depth + k]);
            (part[0] as usize..part[1] as usize).take_while(|k| *k < depth).map(term).sum()
        };
        let sums = |part| (0..rows * columns).map(move |at| sum(part, at / columns, at % columns));
        let expected: Vec<f32> = ends.windows(2).flat_map(sums).collect();
        let (device_ends, mut c) = (stream.upload(ends)?, stream.zeros(expected.len())?);
        let (view_a, view_b) = (device_a.view_2d(depth, rows)?, device_b.view_2d(depth, columns)?);
        tiling::multiply_parts(&stream, Grid::blocks(2), &device_ends, view_a, view_b, c.as_atomic())?;
        expect(&format!("parts of {depth}"), stream.download(&c)?, expected)?;
    }
    Ok(())
}

fn parts_of_the_depth_are_whole_steps(device: &Device) -> Outcome {
    for (ends, message) in [
        ([8, 72], "begins and ends at multiples of 128 bytes"),
        ([0, 65], "begins and ends at multiples of 128 bytes"),
        ([64, 0], "ends where it begins, or after that"),
    ] {
        let stream = device.new_stream()?;
        let (ends, a, mut c) = (stream.upload(&ends)?, stream.fill(bf16::ONE, 64 * 72)?, stream.zeros(4096)?);
        let view = a.view_2d(72, 64)?;
        tiling::multiply_parts(&stream, Grid::blocks(2), &ends, view, view, c.as_atomic())?;
        let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
        names(&expect_error("a part", stream.synchronize(), is_panic)?, &[message])?;
    }
    Ok(())
}

fn transposes_of_matrices_below_each_other_are_multiplied(device: &Device) -> Outcome {
    if device.properties()?.shared_memory_per_block_optin < 64 << 10 {
        return Ok(()); // no device with less has such stages
    }
    const ROWS: usize = 40;
    const COLUMNS: usize = 72;
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(509));
    for (matrices, depth) in [(3, 128), (2, 64), (1, 100)] {
        let mut matrix =
            |len: usize| -> Vec<bf16> { (0..len).map(|_| bf16::of(random.i8(-16..=16))).collect() };
        let (a, b) = (matrix(matrices * depth * ROWS), matrix(matrices * depth * COLUMNS));
        let sum = |at: usize| -> f32 {
            let (matrix, row, column) = (at / (64 * 128), at / 128 % 64, at % 128);
            if row >= ROWS || column >= COLUMNS {
                return 0.0;
            }
            let rows = matrix * depth..(matrix + 1) * depth;
            rows.map(|k| a[k * ROWS + row].number() * b[k * COLUMNS + column].number()).sum()
        };
        let expected: Vec<f32> = (0..matrices * 64 * 128).map(sum).collect();
        let (a, b) = (stream.upload(&a)?, stream.upload(&b)?);
        let mut c = stream.fill(f32::NAN, matrices * 64 * 128)?;
        let (a, b) = (a.view_2d(ROWS, matrices * depth)?, b.view_2d(COLUMNS, matrices * depth)?);
        tiling::multiply_each(&stream, Grid::new(1, 256), depth as u64, a, b, c.as_atomic())?;
        expect(&format!("{matrices} matrices of depth {depth}"), stream.download(&c)?, expected)?;
    }

    let x = stream.zeros::<bf16>(200 * 8)?;
    let mut c = stream.zeros::<f32>(64 * 128)?;
    let x = x.view_2d(8, 200)?;
    tiling::multiply_each(&stream, Grid::new(1, 256), 100, x, x, c.as_atomic())?;
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    let error = expect_error("a part of a tile", stream.synchronize(), is_panic)?;
    names(&error, &["a height that is a multiple of the map's `W`"])?;
    Ok(())
}

fn products_of_tiles_are_close_to_exact(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    close_to_exact::<f16>(&stream)?;
    close_to_exact::<bf16>(&stream)
}

fn close_to_exact<T>(stream: &Stream) -> Outcome
where
    T: HalfFloat + Debug + tiling::multiply::Instance<32>,
{
    const DEPTH: usize = 512;
    let mut random = fastrand::Rng::with_seed(502);
    let [a, b]: [Vec<T>; 2] =
        [100, 60].map(|rows| (0..rows * DEPTH).map(|_| T::from_f32(random.f32() * 2.0 - 1.0)).collect());
    let (device_a, device_b) = (stream.upload(&a)?, stream.upload(&b)?);
    let mut c = stream.zeros(100 * 60)?;
    let (view_a, view_b) = (device_a.view_2d(DEPTH, 100)?, device_b.view_2d(DEPTH, 60)?);
    tiling::multiply::<T, 32>(stream, Grid::new(3, 256), view_a, view_b, c.as_atomic())?;
    for (place, found) in stream.download(&c)?.into_iter().enumerate() {
        let (a, b) = (&a[place / 60 * DEPTH..][..DEPTH], &b[place % 60 * DEPTH..][..DEPTH]);
        let exact: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a.to_f32()) * f64::from(b.to_f32())).sum();
        // Each step may lose what is below 2^-21 of the largest sum so far.
        let most = (DEPTH * DEPTH) as f64 / f64::from(1 << 22);
        expect(&format!("{found} for {exact} at {place}"), (f64::from(found) - exact).abs() <= most, true)?;
    }
    Ok(())
}

fn tiles_of_other_elements_are_multiplied(device: &Device) -> Outcome {
    // On the CPU all elements share the code.
    let shapes = if device.is_cuda() { &SHAPES[..] } else { &SHAPES[..3] };
    check_shapes!(device, i8 as i32, tiling::multiply_bytes::<i8>, 64, SHAPES);
    check_shapes!(device, u8 as i32, tiling::multiply_bytes::<u8>, 64, shapes);
    check_shapes!(device, f8e4m3 as f32, tiling::multiply_bytes::<f8e4m3>, 64, shapes);
    check_shapes!(device, f8e5m2 as f32, tiling::multiply_bytes::<f8e5m2>, 64, shapes);
    check_shapes!(device, tf32 as f32, tiling::multiply_tf32, 64, shapes);
    if device.is_cuda() && device.properties()?.shared_memory_per_block_optin >= 128 << 10 {
        check_shapes!(device, i8 as i32, tiling::multiply_tall_bytes::<i8>, 128, LARGE);
        check_shapes!(device, f8e4m3 as f32, tiling::multiply_tall_bytes::<f8e4m3>, 128, LARGE);
    }
    Ok(())
}

/// Numbers between -1 and 1. Each instruction, which adds 32 bytes of a row, may lose what is below 2^-13 of all that was added.
fn products_of_narrow_tiles_are_close_to_exact(device: &Device) -> Outcome {
    const DEPTH: usize = 512;
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(503));
    macro_rules! check {
        ($t:ident, $launch:path) => {
            let [a, b]: [Vec<$t>; 2] = [100, 60].map(|rows| {
                (0..rows * DEPTH).map(|_| $t::from_f32(random.f32() * 2.0 - 1.0)).collect::<Vec<_>>()
            });
            let (device_a, device_b) = (stream.upload(&a)?, stream.upload(&b)?);
            let mut c = stream.zeros(100 * 60)?;
            let (view_a, view_b) = (device_a.view_2d(DEPTH, 100)?, device_b.view_2d(DEPTH, 60)?);
            $launch(&stream, Grid::new(3, 256), view_a, view_b, c.as_atomic())?;
            for (place, found) in stream.download(&c)?.into_iter().enumerate() {
                let (a, b) = (&a[place / 60 * DEPTH..][..DEPTH], &b[place % 60 * DEPTH..][..DEPTH]);
                let products = || a.iter().zip(b).map(|(a, b)| f64::from(a.to_f32()) * f64::from(b.to_f32()));
                let (exact, all) = (products().sum::<f64>(), products().map(f64::abs).sum::<f64>());
                let most = all * (DEPTH * size_of::<$t>() / 32) as f64 / f64::from(1 << 13);
                let what = format!("{found} for {exact} at {place}, {}", stringify!($t));
                expect(&what, (f64::from(found) - exact).abs() <= most, true)?;
            }
        };
    }
    check!(tf32, tiling::multiply_tf32);
    check!(f8e4m3, tiling::multiply_bytes::<f8e4m3>);
    check!(f8e5m2, tiling::multiply_bytes::<f8e5m2>);
    Ok(())
}

fn a_recorded_product_reads_new_elements(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let ones = vec![bf16::from_f32(1.0); 64 * 64];
    let (mut a, mut c) = (stream.upload(&ones)?, stream.zeros(64 * 32)?);
    let halves = vec![bf16::from_f32(0.5); 32 * 64];
    tiling::multiply::<bf16, 32>(
        &stream,
        Grid::new(1, 256),
        a.view_2d(64, 64)?,
        In(&halves).into_2d(64, 32),
        c.as_atomic(),
    )?;
    expect("a product of a slice of the host", stream.download(&c)?, vec![32.0; 64 * 32])?;
    let b = stream.upload(&halves)?;
    let (graph, (key_a, key_c)) = stream.capture(|capture| {
        let (a, b, mut c) = (capture.write(&mut a)?, capture.read(&b)?, capture.write(&mut c)?);
        let (view_a, view_b) = (a.view_2d(64, 64)?, b.into_2d(64, 32)?);
        tiling::multiply::<bf16, 32>(capture, Grid::new(1, 256), view_a, view_b, c.as_atomic())?;
        Ok((a.key(), c.key()))
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    stream.upload_into(&vec![bf16::from_f32(2.0); 64 * 64], graph.view_mut(key_a)?)?;
    graph.launch(&stream)?;
    expect("a recorded product", stream.download(graph.view(key_c)?)?, vec![32.0 + 32.0 + 64.0; 64 * 32])
}

fn columns_of_planes_are_multiplied(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(509));
    const WIDTH: usize = 200;
    let mut matrix = || -> Vec<f32> { (0..64 * WIDTH).map(|_| f32::from(random.i8(-8..=8))).collect() };
    let (a, b) = (matrix(), matrix());
    let upload = |x: &[f32]| stream.upload(&x.iter().map(|it| bf16::from_f32(*it)).collect::<Vec<_>>());
    let (device_a, device_b) = (upload(&a)?, upload(&b)?);
    let multiply = |first: usize, len: usize| -> ferrogrid::Result<Vec<f32>> {
        let mut c = stream.fill(f32::NAN, 64 * 64)?;
        let (a, b) = (device_a.view_2d(WIDTH, 64)?, device_b.view_2d(WIDTH, 64)?);
        tiling::multiply_columns(&stream, Grid::blocks(1), first, len, a, b, c.as_atomic())?;
        stream.download(&c)
    };
    // Whole tiles, columns up to the end of the plane, and none.
    for (first, len) in [(0, 64), (64, 128), (136, 64), (128, 72), (8, 192), (192, 64), (200, 64), (72, 0)] {
        let columns = first..(first + len).min(WIDTH);
        let sum = |row: usize, column: usize| -> f32 {
            columns.clone().map(|k| a[row * WIDTH + k] * b[column * WIDTH + k]).sum()
        };
        let expected: Vec<f32> = (0..64 * 64).map(|at| sum(at / 64, at % 64)).collect();
        expect(&format!("{len} columns from {first} on"), multiply(first, len)?, expected)?;
    }
    Ok(())
}

fn columns_that_are_no_whole_copies_are_refused(device: &Device) -> Outcome {
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    for (first, len, words) in [
        (4, 64, "multiple of 16 bytes"),
        (208, 64, "begin within the plane"),
        (0, 72, "in whole tiles, or end with it"),
    ] {
        let stream = device.new_stream()?;
        let (x, mut c) = (stream.zeros::<bf16>(64 * 200)?, stream.zeros(64 * 64)?);
        let x = x.view_2d(200, 64)?;
        tiling::multiply_columns(&stream, Grid::blocks(1), first, len, x, x, c.as_atomic())?;
        names(&expect_error(words, stream.synchronize(), is_panic)?, &[words])?;
    }
    Ok(())
}

fn rows_of_a_tensor_map_are_aligned(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (a, b) = (stream.zeros::<bf16>(64 * 64)?, stream.zeros::<bf16>(32 * 68)?);
    let mut c = stream.fill(7.0, 64 * 32)?;
    let is_unaligned =
        |error: &Error| matches!(error, Error::Launch(LaunchError::TensorMapUnaligned { argument: "b", .. }));
    for (first, width, words) in [
        (0, 68, ["`b` begin 136 bytes", "one 0 bytes after"]),
        (4, 64, ["begin 128 bytes", "one 8 bytes after"]),
    ] {
        let b = b.slice(first..first + width * 32)?.into_2d(width, 32)?;
        let refused =
            tiling::multiply::<bf16, 32>(&stream, Grid::new(1, 256), a.view_2d(64, 64)?, b, c.as_atomic());
        names(&expect_error("rows that are not aligned", refused, is_unaligned)?, &words)?;
    }
    expect("after refused launches", stream.download(&c)?, vec![7.0; 64 * 32])
}

fn long_axes_of_a_tensor_map_are_refused(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (a, b) = (stream.zeros::<bf16>(0)?, stream.zeros::<bf16>(32 * 64)?);
    let mut c = stream.zeros(1)?;
    let is_too_large =
        |error: &Error| matches!(error, Error::Launch(LaunchError::TensorMapTooLarge { argument: "a", .. }));
    for (width, height, words) in
        [(1 << 31, 0, "2147483648 elements along axis 0"), (0, 1 << 31, "2147483648 elements along axis 1")]
    {
        let (a, b) = (a.view_2d(width, height)?, b.view_2d(64, 32)?);
        let refused = tiling::multiply::<bf16, 32>(&stream, Grid::new(1, 256), a, b, c.as_atomic());
        names(
            &expect_error("an axis that is too long", refused, is_too_large)?,
            &[words, "at most 2147483647"],
        )?;
    }
    Ok(())
}

fn a_panic_in_a_product_ends_the_launch(device: &Device) -> Outcome {
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    let a = device.new_stream()?.zeros::<bf16>(192 * 256)?;
    if device.properties()?.shared_memory_per_block_optin < 128 << 10 {
        return Ok(());
    }
    let cases = [
        (0, 384, "no more tiles"),
        (1, 384, "one thread"),
        (2, 384, "one warp"),
        (3, 384, "all threads"),
        (4, 256, "a block of 384 threads"),
    ];
    for (kind, threads, message) in cases {
        let stream = device.new_stream()?;
        tiling::panicking(&stream, Grid::new(20, threads), kind, a.view_2d(192, 256)?)?;
        names(&expect_error(message, stream.synchronize(), is_panic)?, &[message])?;
    }
    Ok(())
}

fn transposed_factors_are_copied_from_whole_groups(device: &Device) -> Outcome {
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    let stream = device.new_stream()?;
    let a = stream.fill(bf16::ONE, 64 * 128)?;
    for (column, is_whole) in [(0, true), (56, true), (4, false), (63, false)] {
        let mut c = stream.fill(f32::NAN, 1)?;
        tiling::place_transposed(&stream, Grid::new(1, 256), column, a.view_2d(128, 64)?, c.as_atomic())?;
        if is_whole {
            expect(&format!("column {column}"), stream.download(&c)?, vec![64.0])?;
            continue;
        }
        let error = expect_error("a column within a group", stream.synchronize(), is_panic)?;
        names(&error, &["a transposed factor is copied from multiples of 16 bytes of its rows"])?;
    }
    Ok(())
}
