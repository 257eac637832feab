//! Boxes of tensors that are copied to shared memory, stored and added, compared with what the host copies.

use std::fmt::Debug;
use std::ops::Add;

use bytemuck::NoUninit;
use ferrogrid::prelude::*;
use ferrogrid::{Error, In, LaunchError};

use super::box_kernels::moving::{self, Places};
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("boxes_of_any_rank_are_copied_and_stored", boxes_of_any_rank_are_copied_and_stored),
    ("elements_of_tensors_are_read_at_places", elements_of_tensors_are_read_at_places),
    ("tensors_for_boxes_are_aligned", tensors_for_boxes_are_aligned),
    ("recorded_launches_copy_boxes", recorded_launches_copy_boxes),
];

/// A tensor and its boxes, the rows' axis first; elements of a row in 16 bytes.
#[derive(Clone, Copy)]
struct Form {
    rank: usize,
    group: usize,
    extent: [usize; 5],
    lengths: [usize; 5],
}

impl Form {
    /// The number of the element at a place, if there is one.
    fn number(self, place: [i64; 5]) -> Option<usize> {
        let is_inside = (0..5).all(|axis| (0..self.extent[axis] as i64).contains(&place[axis]));
        is_inside
            .then(|| (0..5).rev().fold(0, |number, axis| number * self.extent[axis] + place[axis] as usize))
    }

    /// Boxes from anywhere, across all faces and beyond them, to places whose boxes do not overlap.
    fn places(self, random: &mut fastrand::Rng) -> Vec<Places> {
        let mut to = vec![[0_i32; 5]];
        for axis in 0..self.rank {
            let unit = if axis == 0 { self.group } else { 1 };
            let (end, step) = (self.extent[axis].div_ceil(unit) + 1, self.lengths[axis] / unit);
            to = to
                .into_iter()
                .flat_map(|place| {
                    (1..end).step_by(step).map(move |at| {
                        let mut place = place;
                        place[axis] = at as i32;
                        place
                    })
                })
                .collect();
        }
        let mut near = |axis: usize| {
            let (unit, far) = (if axis == 0 { self.group } else { 1 }, random.u8(..20) == 0);
            let (length, extent) =
                ((self.lengths[axis] / unit) as i32, self.extent[axis].div_ceil(unit) as i32);
            if axis >= self.rank {
                0
            } else if far {
                1 << 26
            } else {
                random.i32(-length - 1..extent + 2)
            }
        };
        let all =
            to.into_iter().map(|to| std::array::from_fn(|at| if at < 5 { near(at) } else { to[at - 5] }));
        all.collect()
    }
}

/// Launches with random boxes of a tensor of `extent`, and compares what is stored and, but for kernels that do not add, what is added.
fn check<T: DeviceCopy + NoUninit + Default + PartialEq + Debug + Add<Output = T>, const R: usize>(
    stream: &Stream,
    (extent, lengths): ([usize; R], [usize; R]),
    of: impl Fn(u16) -> T,
    launch: impl Fn(
        &DeviceBuffer<Places>,
        [usize; R],
        &DeviceBuffer<T>,
        [&mut DeviceBuffer<T>; 2],
    ) -> ferrogrid::Result<bool>,
) -> Outcome {
    let five = |of: [usize; R]| std::array::from_fn(|axis| *of.get(axis).unwrap_or(&1));
    let form = Form { rank: R, group: 16 / size_of::<T>(), extent: five(extent), lengths: five(lengths) };
    let mut random = fastrand::Rng::with_seed(R as u64);
    let x: Vec<T> = (0..extent.iter().product()).map(|_| of(random.u16(1..1000))).collect();
    let places = form.places(&mut random);
    let (mut stored, mut added) = (vec![of(1001); x.len()], vec![of(2); x.len()]);
    for pair in &places {
        for number in 0..lengths.iter().product::<usize>() {
            let mut rest = number;
            let [from, to] = [0, 5].map(|first| {
                std::array::from_fn::<i64, 5, _>(|axis| {
                    i64::from(pair[first + axis]) * if axis == 0 { form.group as i64 } else { 1 }
                })
            });
            let within: [i64; 5] = std::array::from_fn(|axis| {
                let at = rest % form.lengths[axis];
                rest /= form.lengths[axis];
                at as i64
            });
            let at = |corner: [i64; 5]| form.number(std::array::from_fn(|axis| corner[axis] + within[axis]));
            let value = at(from).map_or(T::default(), |number| x[number]);
            if let Some(to) = at(to) {
                (stored[to], added[to]) = (value, added[to] + value);
            }
        }
    }
    let (device_x, device_places) = (stream.upload(&x)?, stream.upload(&places)?);
    let (mut y, mut z) = (stream.fill(of(1001), x.len())?, stream.fill(of(2), x.len())?);
    let adds = launch(&device_places, extent, &device_x, [&mut y, &mut z])?;
    let what = format!("{extent:?} {}, boxes of {lengths:?}", std::any::type_name::<T>());
    expect(&what, stream.download(&y)?, stored)?;
    let is_added = if adds { added } else { vec![of(2); x.len()] };
    expect(&format!("{what}, added"), stream.download(&z)?, is_added)
}

fn boxes_of_any_rank_are_copied_and_stored(device: &Device) -> Outcome {
    let (stream, grid) = (device.new_stream()?, Grid::new([7, 1, 1], [8, 3, 2]));
    macro_rules! check {
        ($($launch:ident::<$t:ident> $lengths:expr, $of:expr, [$($extent:expr),*];)*) => { $(
            for extent in [$($extent),*] {
                check::<$t, _>(&stream, (extent, $lengths), $of, |places, extent, x, [y, z]| {
                    moving::$launch(&stream, grid, places, x.view_nd(extent)?, y.view_nd_mut(extent)?, z.view_nd_mut(extent)?)?;
                    Ok(true)
                })?;
            }
        )* };
    }
    check! {
        lines::<u32> [32], u32::from, [[1000], [32], [8], [0]];
        blocks::<f32> [12, 3, 2], f32::from, [[40, 7, 9], [12, 3, 2], [4, 1, 1], [16, 1, 30], [8, 0, 5], [0, 3, 3]];
        of_four_axes::<u64> [2, 3, 2, 4], |x| u64::from(x) << 31, [[6, 5, 7, 9], [2, 1, 1, 1], [4, 4, 4, 0]];
        of_five_axes::<i32> [32, 2, 3, 2, 2], |x| 500 - i32::from(x), [[40, 3, 4, 3, 5], [32, 2, 3, 2, 2], [4, 1, 1, 1, 6]];
    }
    for extent in [[128, 7, 8], [64, 5, 3], [72, 11, 2]] {
        check::<u16, _>(
            &stream,
            (extent, [64, 5, 3]),
            |x| x,
            |places, extent, x, [y, _]| {
                moving::swizzled_blocks(&stream, grid, places, x.view_nd(extent)?, y.view_nd_mut(extent)?)?;
                Ok(false)
            },
        )?;
    }
    Ok(())
}

fn elements_of_tensors_are_read_at_places(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u32> = (0..4 * 3 * 2 * 5).collect();
    let places = [
        [0, 0, 0, 0],
        [4, 1, 2, 3],
        [1, 0, 0, 0],
        [0, 1, 1, 1],
        [0, 0, 0, 4],
        [0, 0, 3, 0],
        [0, 2, 0, 0],
        [5, 0, 0, 0],
    ];
    let mut y = stream.zeros(8)?;
    // Of the host, too.
    moving::read(&stream, Grid::cover(8), &stream.upload(&places)?, In(&x).into_nd([4, 3, 2, 5]), &mut y)?;
    expect("found", stream.download(&y)?, vec![43251, 119, 24, 17, 1000, 1000, 1000, 1000])
}

fn tensors_for_boxes_are_aligned(device: &Device) -> Outcome {
    let (stream, grid) = (device.new_stream()?, Grid::new([1, 1, 1], [8, 3, 2]));
    let (x, places) = (stream.fill(3.0_f32, 1000)?, stream.upload(&[[0; 10]])?);
    let (mut y, mut z) = (stream.fill(7.0_f32, 1000)?, stream.zeros(1000)?);
    let mut launch = |of_x: [usize; 3], of_y: [usize; 3], first: usize| {
        let x = x.slice(first..)?.into_nd(of_x)?;
        moving::blocks(&stream, grid, &places, x, y.view_nd_mut(of_y)?, z.view_nd_mut(of_y)?)
    };
    let even = [8, 4, 4];
    let (axis, limit) = (2, i32::MAX as usize);
    for (refused, argument, words) in [
        (launch([9, 2, 2], even, 0), "x", vec!["rows of `x` begin 36 bytes", "one 0 bytes after"]),
        (launch(even, even, 1), "x", vec!["begin 32 bytes", "one 4 bytes after"]),
        (launch(even, [6, 2, 2], 0), "y", vec!["rows of `y` begin 24 bytes"]),
        (
            launch([0, 1, limit + 1], even, 0),
            "x",
            vec!["`x` has 2147483648 elements along axis 2", "at most 2147483647"],
        ),
    ] {
        let is_refused = |error: &Error| match error {
            Error::Launch(LaunchError::TensorMapUnaligned { argument: found, .. }) => *found == argument,
            Error::Launch(LaunchError::TensorMapTooLarge { axis: found, value, .. }) => {
                (*found, *value) == (axis, limit + 1)
            }
            _ => false,
        };
        names(&expect_error("a tensor that does not fit", refused, is_refused)?, &words)?;
    }
    launch(even, even, 4)?;
    // Of one axis, only what is stored has a multiple of 16 bytes.
    let x = stream.fill(5_u32, 30)?;
    let (mut y, mut z) = (stream.fill(7_u32, 30)?, stream.zeros::<u32>(30)?);
    let of_z = z.view_nd_mut([28])?;
    moving::lines(&stream, grid, &places, &x, y.slice_mut(..28)?, of_z)?;
    let found = stream.download(&y)?;
    expect("a line", (found[27], found[28]), (5, 7))?;
    let refused = moving::lines(&stream, grid, &places, &x, &mut y, z.view_nd_mut([28])?);
    let is_partial = |error: &Error| {
        matches!(error, Error::Launch(LaunchError::TensorMapPartial { argument: "y", row: 120, .. }))
    };
    names(&expect_error("a line that ends early", refused, is_partial)?, &["`y` have 120 bytes"])
}

fn recorded_launches_copy_boxes(device: &Device) -> Outcome {
    let (stream, grid) = (device.new_stream()?, Grid::new([2, 1, 1], [8, 3, 2]));
    let x = stream.upload(&(0..12 * 3 * 2).map(|i| i as f32).collect::<Vec<_>>())?;
    let places = stream.upload(&[[0; 10]])?;
    let (mut y, mut z) = (stream.zeros::<f32>(72)?, stream.zeros::<f32>(72)?);
    let (graph, [stored, added]) = stream.capture(|capture| {
        let (x, places) = (capture.read(&x)?, capture.read(&places)?);
        let (mut y, mut z) = (capture.write(&mut y)?, capture.write(&mut z)?);
        let (of_y, of_z) = (y.view_nd_mut([12, 3, 2])?, z.view_nd_mut([12, 3, 2])?);
        moving::blocks(capture, grid, places, x.into_nd([12, 3, 2])?, of_y, of_z)?;
        Ok([y.key(), z.key()])
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    expect("stored", stream.download(graph.view(stored)?)?, (0..72).map(|i| i as f32).collect())?;
    expect("added", stream.download(graph.view(added)?)?, (0..72).map(|i| 2.0 * i as f32).collect())
}
