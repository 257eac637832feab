//! Tiles that are stored to planes or added, compared with what the host stores.

use std::fmt::Debug;

use bytemuck::NoUninit;
use ferrogrid::device::MapNumber;
use ferrogrid::device::atomic::AtomicValue;
use ferrogrid::device::half::{bf16, f16};
use ferrogrid::prelude::*;
use ferrogrid::{Error, LaunchError, Out};

use super::output_kernels::storing::{self, HEIGHT, Numbered};
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("tiles_of_any_element_are_stored_to_any_place", tiles_of_any_element_are_stored_to_any_place),
    ("tiles_are_added_by_many_blocks", tiles_are_added_by_many_blocks),
    ("a_stored_tile_is_read_and_written_again", a_stored_tile_is_read_and_written_again),
    ("planes_for_tiles_are_aligned", planes_for_tiles_are_aligned),
    ("recorded_launches_add_tiles", recorded_launches_add_tiles),
    ("a_panic_between_stores_of_tiles_ends_the_launch", a_panic_between_stores_of_tiles_ends_the_launch),
];

const BLOCKS: u32 = 3;

/// Stores tiles of `W` columns, which do not overlap, to a plane that has so many times 16 bytes in a row, and so many rows: within it, across its
/// edges and beyond them. On either side of it the matrix has `beside` times 16 bytes. The first tile begins at `first`.
fn check_stores<T: Numbered + NoUninit + PartialEq + Debug, const W: usize>(
    stream: &Stream,
    ([width, height], beside): ([usize; 2], usize),
    first: [u32; 2],
    launch: impl Fn(&DeviceBuffer<[u32; 2]>, ferrogrid::PitchedViewMut<'_, T>) -> ferrogrid::Result<()>,
) -> Outcome {
    let group = 16 / size_of::<T>();
    let [width, beside] = [width, beside].map(|it| it * group);
    let pitch = beside + width + beside;
    let down = (first[0]..height as u32 + 20).step_by(HEIGHT);
    let mut places: Vec<[u32; 2]> = down
        .flat_map(|row| {
            (first[1]..(width / group) as u32 + 40).step_by(W / group).map(move |column| [row, column])
        })
        .collect();
    fastrand::Rng::with_seed(521).shuffle(&mut places);
    places.extend([[1 << 30, 1], [5, 1 << 26]]);

    let mut expected = vec![T::of(100); pitch * height];
    for (number, place) in places.iter().enumerate() {
        for at in 0..HEIGHT * W {
            let [row, column] = [place[0] as usize + at / W, place[1] as usize * group + at % W];
            if row < height && column < width {
                expected[row * pitch + beside + column] = T::of(((number * HEIGHT * W + at) % 100) as u8);
            }
        }
    }
    let mut y = stream.fill(T::of(100), pitch * height)?;
    let plane = y.view_mut().pitched(pitch, height, pitch)?.slice(beside..beside + width, ..)?;
    launch(&stream.upload(&places)?, plane)?;
    let what = format!("{} by {W}, {width} x {height}, {pitch} apart, {first:?}", std::any::type_name::<T>());
    expect(&what, stream.download(&y)?, expected)
}

fn tiles_of_any_element_are_stored_to_any_place(device: &Device) -> Outcome {
    let (stream, grid) = (device.new_stream()?, Grid::new([BLOCKS, 1, 1], [8, 3, 2]));
    for shape in
        [([5, 47], 0), ([1, 3], 0), ([20, 9], 0), ([5, 47], 2), ([1, 1], 1), ([0, 9], 0), ([5, 0], 0)]
    {
        macro_rules! check {
            ($($launch:ident::<$t:ident, $width:literal>),* $(,)?) => { $(
                for first in [[0, 0], [5, 1]] {
                    check_stores::<$t, $width>(&stream, shape, first, |places, plane| {
                        storing::$launch::<$t, $width>(&stream, grid, places, plane)
                    })?;
                }
            )* };
        }
        check! {
            bytes::<u8, 16>, bytes::<i8, 128>, bytes::<u8, 256>, halves::<u16, 8>, halves::<i16, 64>, halves::<f16, 8>,
            halves::<bf16, 64>, words::<u32, 4>, words::<i32, 32>, words::<f32, 36>, longs::<u64, 2>, longs::<i64, 16>,
            longs::<f64, 16>,
        }
    }
    Ok(())
}

/// Adds numbers whose sums are exact at random places, within a plane and across its edges. The bits of subnormal ones are whole.
fn check_sums<T: MapNumber + AtomicValue + std::ops::AddAssign + PartialEq + Debug>(
    stream: &Stream,
    of: impl Fn(i32) -> T,
    launch: impl Fn(&DeviceBuffer<[u32; 2]>, &DeviceBuffer<T>, &mut DeviceBuffer<T>) -> ferrogrid::Result<()>,
) -> Outcome {
    let mut random = fastrand::Rng::with_seed(523);
    const ROWS: usize = 30;
    const COLUMNS: usize = 40;
    let places: Vec<[u32; 2]> = (0..500).map(|_| [random.u32(..35), random.u32(..22)]).collect();
    let x: Vec<i32> = (0..HEIGHT * 16).map(|_| random.i32(0..1000)).collect();
    let mut expected: Vec<T> = (0..ROWS * COLUMNS).map(|at| of(at as i32)).collect();
    let mut y = stream.upload(&expected)?;
    for &[row, column] in &places {
        for (at, &x) in x.iter().enumerate() {
            let [row, column] = [row as usize + at / 16, column as usize * (16 / size_of::<T>()) + at % 16];
            if row < ROWS && column < COLUMNS {
                expected[row * COLUMNS + column] += of(x);
            }
        }
    }
    let x = stream.upload(&x.into_iter().map(of).collect::<Vec<T>>())?;
    launch(&stream.upload(&places)?, &x, &mut y)?;
    expect(std::any::type_name::<T>(), stream.download(&y)?, expected)
}

fn tiles_are_added_by_many_blocks(device: &Device) -> Outcome {
    let (stream, grid) = (device.new_stream()?, Grid::new([40, 1, 1], [8, 3, 2]));
    macro_rules! check {
        ($($t:ident $of:expr;)*) => { $(
            check_sums::<$t>(&stream, $of, |places, x, y| {
                storing::add::<$t>(&stream, grid, places, x.view_2d(16, HEIGHT)?, y.view_2d_mut(40, 30)?)
            })?;
        )* };
    }
    check! {
        u32 |x| x as u32 * 2000; i32 |x| -x; u64 |x| x as u64 + (1 << 33); i64 |x| 7 - i64::from(x);
        f32 |x| x as f32; f64 |x| f64::from(x) + 0.5; f32 |x| f32::from_bits(x as u32);
    }
    Ok(())
}

fn a_stored_tile_is_read_and_written_again(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<f32> = (0..100 * 40).map(|i| i as f32).collect(); // 40 rows
    let (device_x, mut y, mut z) = (stream.upload(&x)?, vec![-2.0; 40 * 100], stream.fill(-2.0, 40 * 100)?);
    let (plane, of_host) = (device_x.view_2d(100, 40)?, Out(&mut y).into_2d(40, 100));
    storing::transpose(&stream, Grid::new([4, 2], [32, 4]), plane, of_host, z.view_2d_mut(100, 40)?)?;
    expect("there", y, (0..100 * 40).map(|i| x[i % 40 * 100 + i / 40]).collect())?;
    expect("and back", stream.download(&z)?, x)
}

fn planes_for_tiles_are_aligned(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut y = stream.fill(7_u32, 36 * 64)?;
    for (pitch, columns, words) in [
        (33, 0..32, ["`y` begin 132 bytes", "one 0 bytes after"]),
        (32, 2..30, ["begin 128 bytes", "one 8 bytes after"]),
        (36, 0..31, ["`y` have 124 bytes", "multiples of 16 bytes"]),
    ] {
        let is_refused = |error: &Error| match error {
            Error::Launch(LaunchError::TensorMapUnaligned { argument, .. }) => *argument == "y" && pitch < 36,
            Error::Launch(LaunchError::TensorMapPartial { argument, row, .. }) => {
                *argument == "y" && *row == 124
            }
            _ => false,
        };
        let plane = y.view_mut().pitched(pitch, 64, pitch)?.slice(columns, ..)?;
        let refused = storing::panicking(&stream, Grid::new(1, 64), 5, plane);
        names(&expect_error("rows that are not aligned", refused, is_refused)?, &words)?;
    }
    expect("after refused launches", stream.download(&y)?, vec![7; 36 * 64])
}

fn recorded_launches_add_tiles(device: &Device) -> Outcome {
    let (stream, grid) = (device.new_stream()?, Grid::new([2, 1, 1], [8, 3, 2]));
    let (x, places) = (stream.fill(2_i32, 16 * HEIGHT)?, stream.upload(&[[0_u32, 0]; 5])?);
    let mut y = stream.zeros::<i32>(16 * HEIGHT)?;
    let (graph, key) = stream.capture(|capture| {
        let (x, places, mut y) = (capture.read(&x)?, capture.read(&places)?, capture.write(&mut y)?);
        let plane = y.view_2d_mut(16, HEIGHT)?;
        storing::add::<i32>(capture, grid, places, x.into_2d(16, HEIGHT)?, plane)?;
        Ok(y.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    expect("two launches", stream.download(graph.view(key)?)?, vec![20; 16 * HEIGHT])
}

fn a_panic_between_stores_of_tiles_ends_the_launch(device: &Device) -> Outcome {
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    let cases = [
        (0, "the thread that stores"),
        (1, "another thread"),
        (2, "all threads"),
        (3, "a tile's place is less than 2^31"),
        (4, "a tile begins at a multiple of 16 bytes of its rows"),
    ];
    for (kind, message) in cases {
        let stream = device.new_stream()?;
        let mut y = stream.zeros::<u32>(64 * 256)?;
        storing::panicking(&stream, Grid::new(300, 64), kind, y.view_2d_mut(64, 256)?)?;
        names(&expect_error(message, stream.synchronize(), is_panic)?, &[message])?;
    }
    Ok(())
}
