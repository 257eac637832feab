//! Tiles of planes in stages that take turns, compared with what the host reads of the plane.

use ferrogrid::device::half::bf16;
use ferrogrid::prelude::*;

use super::tile_kernels::copying::{self, HEIGHT};
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("tiles_of_any_element_are_copied_from_any_place", tiles_of_any_element_are_copied_from_any_place),
    ("tiles_of_empty_planes_are_zeros", tiles_of_empty_planes_are_zeros),
    ("tiles_take_turns_with_other_stages", tiles_take_turns_with_other_stages),
    ("fragments_are_loaded_from_copied_tiles", fragments_are_loaded_from_copied_tiles),
    ("a_panic_between_copies_of_tiles_ends_the_launch", a_panic_between_copies_of_tiles_ends_the_launch),
];

/// Rows and columns, of 16 bytes, of tiles: within the plane, across each of its edges, and beyond them.
const PLACES: [[i32; 2]; 11] = [
    [0, 0],
    [3, 2],
    [-1, -1],
    [-8, 2],
    [2, -7],
    [40, 0],
    [44, 4],
    [-100, 0],
    [0, -1000],
    [1 << 30, 1],
    [5, -(1 << 26)],
];
const BLOCKS: usize = 3;

/// Copies tiles of a plane with so many times 16 bytes in a row, and so many rows; of a part of a matrix with as many on either side, less one element
/// of each row, if that is more than 0.
macro_rules! check_windows {
    ($stream:ident, $shape:expr, $beside:expr, $places:expr, $($launch:ident::<$width:literal, $stages:literal> $t:ident),* $(,)?) => { $({
        let ([width, height], places): ([usize; 2], &[[i32; 2]]) = ($shape, $places);
        let [width, beside] = [width, $beside].map(|it| it * 16 / size_of::<$t>());
        let pitch = beside + width + beside;
        let width = width - usize::from(beside > 0);
        let x: Vec<$t> = (0..pitch * height).map(|i| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7) as $t | 1).collect();
        let element = |row: i64, column: i64| {
            let is_within = (0..height as i64).contains(&row) && (0..width as i64).contains(&column);
            if is_within { u64::from(x[row as usize * pitch + beside + column as usize]) } else { 0 }
        };
        let mut expected = Vec::new();
        for block in 0..BLOCKS as i64 {
            for &[row, column] in places {
                let [row, column] = [i64::from(row) + block, (i64::from(column) - block) * 16 / size_of::<$t>() as i64];
                expected.extend((0..HEIGHT * $width).map(|at| element(row + (at / $width) as i64, column + (at % $width) as i64)));
            }
        }
        let (device_x, device_places) = ($stream.upload(&x)?, $stream.upload(places)?);
        let mut y = $stream.fill(u64::MAX, expected.len())?;
        let grid = Grid::new([BLOCKS as u32, 1, 1], [8, 3, 2]);
        let plane = device_x.view().pitched(pitch, height, pitch)?.slice(beside..beside + width, ..)?;
        copying::$launch::<$width, $stages>(&$stream, grid, &device_places, plane, y.as_atomic())?;
        let what = format!("{} by {} stages, {width} x {height}, {pitch} apart", stringify!($launch $width), $stages);
        expect(&what, $stream.download(&y)?, expected)?;
    })* };
}

fn tiles_of_any_element_are_copied_from_any_place(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (shape, beside) in [([5, 47], 0), ([1, 3], 0), ([20, 9], 0), ([5, 47], 2), ([1, 1], 1)] {
        check_windows!(stream, shape, beside, &PLACES,
            bytes::<16, 2> u8, bytes::<128, 5> u8, bytes::<256, 2> u8, halves::<8, 5> u16, halves::<64, 2> u16,
            words::<4, 2> u32, words::<32, 5> u32, words::<36, 2> u32, longs::<2, 5> u64, longs::<16, 2> u64,
        );
    }
    let many: Vec<[i32; 2]> = (0..60).map(|i| [i * 7 % 50 - 5, i * 13 % 11 - 4]).collect();
    check_windows!(stream, [5, 47], 0, &many, words::<32, 2> u32, words::<36, 5> u32);
    check_windows!(stream, [5, 47], 0, &[], words::<36, 5> u32);
    Ok(())
}

fn tiles_of_empty_planes_are_zeros(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    check_windows!(stream, [0, 47], 0, &PLACES, words::<32, 2> u32, bytes::<16, 5> u8);
    check_windows!(stream, [5, 0], 0, &PLACES, words::<36, 5> u32);
    Ok(())
}

fn tiles_take_turns_with_other_stages(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for steps in [0, 1, 2, 9, 40] {
        let x: Vec<u32> = (0..(steps * HEIGHT * 32) as u32).map(|i| i * i % 1013).collect();
        let z: Vec<u32> = (0..steps as u32 * 16).map(|i| i % 91).collect();
        let mut y = stream.fill(u32::MAX, 32)?;
        let (device_x, device_z) = (stream.upload(&x)?, stream.upload(&z)?);
        let x_plane = device_x.view_2d(32, steps * HEIGHT)?;
        copying::multiply_together(&stream, Grid::cover(32), steps, x_plane, &device_z, &mut y)?;
        let product = |step: usize, i: usize| x[step * HEIGHT * 32 + i] * z[step * 16 + i % 16];
        let expected = (0..32).map(|i| (0..steps).step_by(2).map(|step| product(step, i)).sum());
        expect(&format!("{steps} steps"), stream.download(&y)?, expected.collect())?;
    }
    Ok(())
}

fn fragments_are_loaded_from_copied_tiles(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(17));
    let mut matrix = |rows: usize| (0..rows * 64).map(|_| f32::from(random.i8(-8..8))).collect::<Vec<_>>();
    let (a, b) = (matrix(64), matrix(32));
    let upload = |x: &[f32]| stream.upload(&x.iter().copied().map(bf16::from_f32).collect::<Vec<_>>());
    let (device_a, device_b) = (upload(&a)?, upload(&b)?);
    let sum = |row: usize, column: usize| (0..64).map(|k| a[row * 64 + k] * b[column * 64 + k]).sum::<f32>();
    let expected: Vec<f32> = (0..64 * 32).map(|at| sum(at / 32, at % 32)).collect();
    let (a, b, grid) = (device_a.view_2d(64, 64)?, device_b.view_2d(64, 32)?, Grid::new(1, 64));
    let mut c = stream.fill(f32::NAN, 64 * 32)?;
    copying::multiply::<16>(&stream, grid, a, b, c.as_atomic())?;
    expect("tiles of 16 elements", stream.download(&c)?, expected.clone())?;
    stream.upload_into(&vec![f32::NAN; 64 * 32], &mut c)?;
    copying::multiply::<64>(&stream, grid, a, b, c.as_atomic())?;
    expect("swizzled tiles", stream.download(&c)?, expected)
}

fn a_panic_between_copies_of_tiles_ends_the_launch(device: &Device) -> Outcome {
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    let x = device.new_stream()?.zeros::<u32>(64 * 256)?;
    let cases = [
        (0, "the thread that copies"),
        (1, "another thread"),
        (2, "all threads"),
        (3, "a stage is copied to once in a turn"),
        (4, "a tile's place is less than 2^31"),
        (5, "a tile begins at a multiple of 16 bytes of its rows"),
    ];
    for (kind, message) in cases {
        let stream = device.new_stream()?;
        copying::panicking(&stream, Grid::new(300, 64), kind, x.view_2d(64, 256)?)?;
        names(&expect_error(message, stream.synchronize(), is_panic)?, &[message])?;
    }
    Ok(())
}
