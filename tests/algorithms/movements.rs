//! Movement of elements: by indices, in another order, along other axes.

use ferrogrid::LaunchError;
use ferrogrid::algorithms::{self, PlaceNumber};
use ferrogrid::bytemuck::Pod;
use ferrogrid::prelude::*;

use super::LENGTHS;
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("elements_of_all_sizes_are_gathered_and_scattered", elements_of_all_sizes_are_gathered_and_scattered),
    ("one_of_colliding_elements_is_scattered", one_of_colliding_elements_is_scattered),
    ("indices_beyond_the_end_are_errors", indices_beyond_the_end_are_errors),
    ("sequences_of_all_types", sequences_of_all_types),
    ("elements_are_reversed_and_rolled", elements_are_reversed_and_rolled),
    ("differences_undo_running_sums", differences_undo_running_sums),
    ("matrices_are_transposed", matrices_are_transposed),
    ("axes_are_permuted_in_every_way", axes_are_permuted_in_every_way),
    ("rows_keep_their_elements_in_any_place", rows_keep_their_elements_in_any_place),
    ("wrong_axes_are_errors", wrong_axes_are_errors),
    ("movements_are_recorded_in_graphs", movements_are_recorded_in_graphs),
    ("more_than_2_to_the_32_elements_are_moved", more_than_2_to_the_32_elements_are_moved),
];

/// An element of any size that shows its number.
trait Numbered: Pod + DeviceCopy + PartialEq + std::fmt::Debug {
    fn numbered(number: usize) -> Self;
}

macro_rules! numbered {
    ($($t:ty: $of:expr),*) => {
        $(impl Numbered for $t {
            fn numbered(number: usize) -> Self {
                $of(number)
            }
        })*
    };
}
numbered! {
    u8: |n| (n * 31 % 251) as u8,
    i16: |n| n as i16,
    f32: |n| n as f32,
    u64: |n| n as u64 * 0x1_0000_0001,
    u128: |n| n as u128 * 0x1_0000_0000_0000_0001
}

fn numbers<T: Numbered>(n: usize) -> Vec<T> {
    (0..n).map(T::numbered).collect()
}

/// The lengths of this module's tiles: rows of a warp, the tile of a block (2048 elements), the next block.
const TILES: &[usize] = &[0, 1, 31, 33, 255, 257, 2047, 2048, 2049, 4099];

fn elements_of_all_sizes_are_gathered_and_scattered(device: &Device) -> Outcome {
    fn gather<T: Numbered, I: PlaceNumber + TryFrom<usize>>(stream: &Stream) -> Outcome {
        let mut random = fastrand::Rng::with_seed(201);
        for &n in TILES {
            let x: Vec<T> = numbers(n / 2 + 1);
            let places: Vec<usize> = (0..n).map(|_| random.usize(..x.len())).collect();
            let indices: Vec<I> = places.iter().filter_map(|&it| I::try_from(it).ok()).collect();
            let mut y = stream.upload(&numbers::<T>(n + 3))?;
            let indices = stream.upload(&indices)?;
            algorithms::gather(stream, &stream.upload(&x)?, &indices, y.slice_mut(..n)?)?;
            let mut expected = numbers(n + 3);
            (0..n).for_each(|i| expected[i] = x[places[i]]);
            expect(&format!("{n} of {} bytes", size_of::<T>()), stream.download(&y)?, expected)?;
        }
        Ok(())
    }
    fn scatter<T: Numbered, I: PlaceNumber + TryFrom<usize>>(stream: &Stream) -> Outcome {
        let mut random = fastrand::Rng::with_seed(202);
        for &n in TILES {
            let x: Vec<T> = (0..n).map(|i| T::numbered(i + 7)).collect();
            let mut places: Vec<usize> = (0..n + 5).collect();
            random.shuffle(&mut places);
            let indices: Vec<I> = places[..n].iter().filter_map(|&it| I::try_from(it).ok()).collect();
            let mut y = stream.upload(&numbers::<T>(n + 5))?;
            algorithms::scatter(stream, &stream.upload(&x)?, &stream.upload(&indices)?, &mut y)?;
            let mut expected = numbers(n + 5);
            (0..n).for_each(|i| expected[places[i]] = x[i]);
            expect(&format!("{n} of {} bytes", size_of::<T>()), stream.download(&y)?, expected)?;
        }
        Ok(())
    }
    let stream = &device.new_stream()?;
    gather::<u8, u32>(stream)?;
    gather::<i16, i64>(stream)?;
    gather::<f32, i32>(stream)?;
    gather::<u64, u64>(stream)?;
    gather::<u128, u32>(stream)?;
    gather::<u128, i64>(stream)?;
    scatter::<u8, i32>(stream)?;
    scatter::<i16, u32>(stream)?;
    scatter::<f32, u64>(stream)?;
    scatter::<u64, i64>(stream)
}

fn one_of_colliding_elements_is_scattered(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let n = 10_000;
    let (x, indices) = (stream.upload(&numbers::<f32>(n))?, stream.upload(&vec![1_u32; n])?);
    let mut y = stream.fill(-1.0_f32, 3)?;
    algorithms::scatter(&stream, &x, &indices, &mut y)?;
    let y = stream.download(&y)?;
    let is_one = y[1] >= 0.0 && y[1] < n as f32 && y[1].fract() == 0.0;
    expect("the result", (y[0], is_one, y[2]), (-1.0, true, -1.0))
}

fn indices_beyond_the_end_are_errors(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&numbers::<f32>(3000))?;
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    for (place, index) in [(0, 3000_i64), (2999, -1), (2048, i64::MIN)] {
        let mut indices = vec![0_i64; 3000];
        indices[place] = index;
        let (indices, mut y) = (stream.upload(&indices)?, stream.fill(0.0_f32, 3000)?);
        algorithms::gather(&stream, &x, &indices, &mut y)?;
        let text = expect_error("gather", stream.synchronize(), is_panic)?;
        names(&text, &["3000", &(index as u64).to_string()])?;
        algorithms::scatter(&stream, &x, &indices, &mut y)?;
        let text = expect_error("scatter", stream.synchronize(), is_panic)?;
        names(&text, &["3000", &(index as u64).to_string()])?;
    }
    let nothing = stream.zeros::<f32>(0)?;
    algorithms::gather(&stream, &nothing, &stream.upload(&[0_u32])?, stream.zeros::<f32>(1)?.view_mut())?;
    expect_error("of nothing", stream.synchronize(), is_panic)?;
    let (indices, mut y) = (stream.zeros::<u32>(5)?, stream.zeros::<f32>(4)?);
    let differ = |error: &Error| matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }));
    expect_error("lengths", algorithms::gather(&stream, &x, &indices, &mut y), differ)?;
    expect_error("lengths", algorithms::scatter(&stream, &x, &indices, &mut y), differ)?;
    Ok(())
}

fn sequences_of_all_types(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    macro_rules! check {
        ($($t:ident: $of:expr),*) => {
            $(for &n in LENGTHS {
                let (first, step) = (100 as $t, 3 as $t);
                let mut y = stream.upload(&vec![0 as $t; n + 1])?;
                algorithms::sequence(&stream, first, step, y.slice_mut(1..)?)?;
                let of = $of;
                let expected: Vec<$t> = [0 as $t].into_iter().chain((0..n).map(|i| of(first, step, i))).collect();
                expect(&format!("{n} {}", stringify!($t)), stream.download(&y)?, expected)?;
            })*
        };
    }
    macro_rules! wrapping {
        ($($t:ident),*) => {
            check!($($t: |first: $t, step: $t, i: usize| first.wrapping_add(step.wrapping_mul(i as $t))),*)
        };
    }
    wrapping!(i8, i16, i32, i64, u8, u16, u32, u64);
    check!(f32: |first, step, i| first + step * i as f32, f64: |first, step, i| first + step * i as f64);
    let mut y = stream.zeros(3)?;
    algorithms::sequence(&stream, -1.0, 0.1, &mut y)?;
    expect("tenths", stream.download(&y)?, vec![-1.0, -0.9, -0.8])
}

fn elements_are_reversed_and_rolled(device: &Device) -> Outcome {
    fn check<T: Numbered>(stream: &Stream) -> Outcome {
        for &n in TILES {
            // Also of a misaligned view.
            for first in [0, 16 / size_of::<T>().max(8) - 1] {
                let x: Vec<T> = numbers(n + first);
                let (device_x, mut y) = (stream.upload(&x)?, stream.upload(&x)?);
                let view = device_x.slice(first..)?;
                algorithms::reverse(stream, view, y.slice_mut(first..)?)?;
                let mut expected = x.clone();
                expected[first..].reverse();
                let what = format!("{n} of {} bytes, from {first}", size_of::<T>());
                expect(&what, stream.download(&y)?, expected)?;
                for shift in [0, 1, -1, n as isize, isize::MAX, isize::MIN] {
                    algorithms::roll(stream, view, shift, y.slice_mut(first..)?)?;
                    let mut expected = x.clone();
                    expected[first..]
                        .rotate_right(shift.checked_rem_euclid(n as isize).unwrap_or(0) as usize);
                    expect(&format!("{what}, rolled by {shift}"), stream.download(&y)?, expected)?;
                }
            }
        }
        Ok(())
    }
    let stream = &device.new_stream()?;
    check::<u8>(stream)?;
    check::<i16>(stream)?;
    check::<f32>(stream)?;
    check::<u64>(stream)?;
    check::<u128>(stream)?;
    let (x, mut y) = (stream.zeros::<u8>(5)?, stream.zeros::<u8>(4)?);
    let differ = |error: &Error| matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }));
    expect_error("lengths", algorithms::reverse(stream, &x, &mut y), differ)?;
    let text = expect_error("lengths", algorithms::roll(stream, &x, 1, &mut y), |error| {
        matches!(error, Error::LengthMismatch { .. })
    })?;
    names(&text, &["roll", "5", "4"])
}

fn differences_undo_running_sums(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(203);
    macro_rules! check {
        ($($t:ident),*) => {
            $(for &n in TILES {
                let x: Vec<$t> = (0..n).map(|_| random.$t(..)).collect();
                let (device_x, mut sums, mut y) = (stream.upload(&x)?, stream.upload(&x)?, stream.upload(&x)?);
                algorithms::inclusive_sum(&stream, &device_x, &mut sums)?;
                algorithms::adjacent_difference(&stream, &sums, &mut y)?;
                expect(&format!("{n} {}", stringify!($t)), stream.download(&y)?, x)?;
            })*
        };
    }
    check!(i8, i16, i32, i64, u8, u16, u32, u64);
    let (x, mut y) = (stream.upload(&[-0.0, 1.5, f32::INFINITY, f32::INFINITY])?, stream.zeros(4)?);
    algorithms::adjacent_difference(&stream, &x, &mut y)?;
    let y = stream.download(&y)?;
    let bits = (y[0].to_bits(), y[1], y[2], y[3].is_nan());
    expect("floats", bits, ((-0.0_f32).to_bits(), 1.5, f32::INFINITY, true))
}

/// The elements of `x` along permuted axes.
fn permuted<T: Copy>(x: &[T], shape: [usize; 4], axes: [usize; 4]) -> Vec<T> {
    let strides = [shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1];
    let [a, b, c, d] = axes.map(|axis| (shape[axis], strides[axis]));
    let mut y = Vec::with_capacity(x.len());
    for i in 0..a.0 {
        for j in 0..b.0 {
            for k in 0..c.0 {
                y.extend((0..d.0).map(|l| x[i * a.1 + j * b.1 + k * c.1 + l * d.1]));
            }
        }
    }
    y
}

fn check_permuted<T: Numbered>(stream: &Stream, shape: [usize; 4], axes: [usize; 4]) -> Outcome {
    let x: Vec<T> = numbers(shape.iter().product());
    let (device_x, mut y) = (stream.upload(&x)?, stream.upload(&numbers::<T>(x.len() + 1))?);
    algorithms::permute(stream, &device_x, shape, axes, y.slice_mut(..x.len())?)?;
    let mut expected = permuted(&x, shape, axes);
    expected.push(T::numbered(x.len()));
    expect(&format!("{shape:?}, {axes:?}, {} bytes", size_of::<T>()), stream.download(&y)?, expected)
}

fn matrices_are_transposed(device: &Device) -> Outcome {
    fn check<T: Numbered>(stream: &Stream) -> Outcome {
        // Around the tiles of 64 rows and columns, and rows that are too short for them.
        for rows in [1, 2, 15, 16, 17, 63, 64, 65, 129] {
            for columns in [1, 3, 16, 64, 130] {
                check_permuted::<T>(stream, [1, 1, rows, columns], [0, 1, 3, 2])?;
            }
        }
        let (x, mut y) = (stream.upload(&numbers::<T>(70 * 90))?, stream.upload(&numbers::<T>(70 * 90))?);
        algorithms::transpose(stream, &x, 70, 90, &mut y)?;
        let expected = permuted(&numbers::<T>(70 * 90), [1, 1, 70, 90], [0, 1, 3, 2]);
        expect("transpose", stream.download(&y)?, expected)
    }
    let stream = &device.new_stream()?;
    check::<u8>(stream)?;
    check::<i16>(stream)?;
    check::<f32>(stream)?;
    check::<u64>(stream)?;
    check::<u128>(stream)
}

fn axes_are_permuted_in_every_way(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for shape in [[2, 3, 5, 7], [17, 3, 20, 70], [1, 66, 2, 33], [3, 0, 2, 2], [16, 2, 1, 64]] {
        for number in 0..256 {
            let axes = [number / 64, number / 16 % 4, number / 4 % 4, number % 4];
            if (0..4).all(|axis| axes.contains(&axis)) {
                check_permuted::<f32>(&stream, shape, axes)?;
            }
        }
    }
    for shape in [[2, 3, 5, 7], [17, 2, 18, 66]] {
        for axes in [[0, 2, 1, 3], [3, 2, 1, 0], [2, 0, 3, 1], [0, 1, 3, 2]] {
            check_permuted::<u8>(&stream, shape, axes)?;
            check_permuted::<i16>(&stream, shape, axes)?;
            check_permuted::<u64>(&stream, shape, axes)?;
            check_permuted::<u128>(&stream, shape, axes)?;
        }
    }
    let (x, mut y) = (stream.upload(&[1_u8, 2])?, stream.zeros(2)?);
    algorithms::permute(&stream, x.slice(..1)?, [], [], y.slice_mut(..1)?)?;
    algorithms::permute(&stream, &x, [2], [0], &mut y)?;
    expect("few axes", stream.download(&y)?, vec![1, 2])
}

/// Rows of a multiple of 16 bytes, where larger elements cannot start.
fn rows_keep_their_elements_in_any_place(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for width in [16, 24, 20, 6, 5] {
        let shape = [1, 7, 9, width];
        let n = 63 * width;
        for (from, to) in [(0, 0), (1, 0), (0, 2), (4, 4), (8, 8), (16, 8), (3, 5)] {
            let x: Vec<u8> = numbers(n + from);
            let (device_x, mut y) = (stream.upload(&x)?, stream.zeros::<u8>(n + to)?);
            algorithms::permute(&stream, device_x.slice(from..)?, shape, [0, 2, 1, 3], y.slice_mut(to..)?)?;
            let found = stream.download(y.slice(to..)?)?;
            expect(&format!("{width}, {from}, {to}"), found, permuted(&x[from..], shape, [0, 2, 1, 3]))?;
        }
    }
    Ok(())
}

fn wrong_axes_are_errors(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.zeros::<f32>(6)?, stream.zeros::<f32>(6)?);
    for axes in [[0, 0], [1, 2], [2, 0]] {
        let found = algorithms::permute(&stream, &x, [2, 3], axes, &mut y);
        let text = expect_error("axes", found, |error| matches!(error, Error::NoPermutation { .. }))?;
        names(&text, &[&format!("{axes:?}"), "2 axes"])?;
    }
    for shape in [[2, 4], [usize::MAX, 2]] {
        let found = algorithms::permute(&stream, &x, shape, [1, 0], &mut y);
        expect_error("shape", found, |error| matches!(error, Error::LengthMismatch { .. }))?;
    }
    let found = algorithms::transpose(&stream, &x, 2, 3, y.slice_mut(..5)?);
    let text = expect_error("y", found, |error| matches!(error, Error::LengthMismatch { .. }))?;
    names(&text, &["6", "5"])
}

fn movements_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y) = (stream.zeros::<f32>(64 * 32)?, stream.zeros::<f32>(64 * 32)?);
    let (graph, y) = stream.capture(|capture| {
        let (mut x, mut y) = (capture.keep(x)?, capture.keep(y)?);
        algorithms::sequence(capture, 0.0, 1.0, &mut x)?;
        algorithms::transpose(capture, &x, 64, 32, &mut y)?;
        algorithms::roll(capture, &y, 2, &mut x)?;
        algorithms::reverse(capture, &x, &mut y)?;
        Ok(y.key())
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    let mut expected = permuted(&numbers::<f32>(64 * 32), [1, 1, 64, 32], [0, 1, 3, 2]);
    expected.rotate_right(2);
    expected.reverse();
    expect("y", stream.download(graph.view(y)?)?, expected)
}

fn more_than_2_to_the_32_elements_are_moved(device: &Device) -> Outcome {
    if !device.is_cuda() {
        return not_for_this_device("it would take a minute");
    }
    let stream = device.new_stream()?;
    let (rows, columns) = (65_537, 65_600);
    let n = rows * columns;
    let (mut x, mut y) = (stream.fill(1_u8, n)?, stream.zeros::<u8>(n)?);
    stream.fill_into(3, x.slice_mut(n - columns..n - columns + 1)?)?;
    algorithms::transpose(&stream, &x, rows, columns, &mut y)?;
    expect("transposed", stream.download(y.slice(rows - 2..rows + 1)?)?, vec![1, 3, 1])?;
    algorithms::reverse(&stream, &x, &mut y)?;
    expect("reversed", stream.download(y.slice(columns - 2..columns + 1)?)?, vec![1, 3, 1])?;
    let mut found = stream.zeros::<u8>(2)?;
    let indices = stream.upload(&[(n - columns) as u64, (n - 1) as u64])?;
    algorithms::gather(&stream, &x, &indices, &mut found)?;
    expect("gathered", stream.download(&found)?, vec![3, 1])
}
