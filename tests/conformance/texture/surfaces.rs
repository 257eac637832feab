//! Surfaces: elements that threads write, accesses outside, and results of failed kernels.

use ferrogrid::device::half::f16;
use ferrogrid::prelude::*;

use crate::table::not_for_this_device;
use crate::texture::reference::random_elements;
use crate::texture::texture_kernels::texturing;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("surfaces_are_written_each_element_by_its_thread", surfaces_are_written_each_element_by_its_thread),
    ("a_surface_has_a_boundary_mode", a_surface_has_a_boundary_mode),
    ("a_trap_outside_of_a_surface_is_a_panic", a_trap_outside_of_a_surface_is_a_panic),
    (
        "what_a_failed_kernel_left_on_a_surface_is_no_result",
        what_a_failed_kernel_left_on_a_surface_is_no_result,
    ),
];

fn surfaces_are_written_each_element_by_its_thread(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(11);
    macro_rules! exchanged {
        ($ty:ty) => {{
            let what = stringify!($ty);
            let [width, height, depth] = [19, 7, 3];
            let count = width * height * depth;
            let (old, new) =
                (random_elements::<$ty>(count, &mut random), random_elements::<$ty>(count, &mut random));
            let device_new = stream.upload(&new)?;

            let mut array = stream.upload_array(&old[..width], [width])?;
            let mut before = stream.zeros(width)?;
            let (grid, x) = (Grid::cover(width + 40), device_new.slice(..width)?);
            texturing::exchange_1d::<$ty>(&stream, grid, x, array.surface()?, &mut before)?;
            expect(what, stream.download(&before)?, old[..width].to_vec())?;
            expect(what, stream.download_array(&array)?, new[..width].to_vec())?;

            let plane = width * height;
            let mut array = stream.upload_array(&old[..plane], [width, height])?;
            let mut before = stream.zeros(plane)?;
            let (grid, x) = (Grid::cover([width + 30, height + 10]), device_new.view_2d(width, height)?);
            let y = before.view_2d_mut(width, height)?;
            texturing::exchange_2d::<$ty>(&stream, grid, x, array.surface()?, y)?;
            expect(what, stream.download(&before)?, old[..plane].to_vec())?;
            expect(what, stream.download_array(&array)?, new[..plane].to_vec())?;

            let mut array = stream.upload_array(&old, [width, height, depth])?;
            let mut before = stream.zeros(count)?;
            let grid = Grid::cover([width + 9, height + 9, depth + 9]);
            let (x, y) =
                (device_new.view_3d(width, height, depth)?, before.view_3d_mut(width, height, depth)?);
            texturing::exchange_3d::<$ty>(&stream, grid, x, array.surface()?, y)?;
            expect(what, stream.download(&before)?, old.clone())?;
            expect(what, stream.download_array(&array)?, new.clone())?;
        }};
    }
    exchanged!(u8);
    exchanged!(i16);
    exchanged!(f16);
    exchanged!(u32);
    exchanged!(f32);
    exchanged!([u8; 2]);
    exchanged!([u8; 4]);
    exchanged!([f16; 4]);
    exchanged!([f32; 2]);
    exchanged!([i32; 4]);
    Ok(())
}

fn a_surface_has_a_boundary_mode(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let elements: Vec<u32> = (1..=12).collect();
    // Rows of 4. Far away are places whose offset in bytes has more than 32 bits.
    let outside =
        [[-1, 1], [4, 1], [0, -1], [0, 3], [i32::MAX, 0], [i32::MIN, 0], [1 << 30, 2], [2, i32::MAX]];
    let places = [outside.as_slice(), &[[3, 2], [1, 0]]].concat();
    let (device_places, mut out) = (stream.upload(&places)?, stream.zeros(places.len())?);
    let mut array = stream.upload_array(&elements, [4, 3])?;
    let grid = Grid::cover(places.len());
    // SAFETY: the two places inside are two elements.
    unsafe { texturing::at_places(&stream, grid, 0, &device_places, 100, array.surface()?, &mut out)? };
    expect("zeros", stream.download(&out)?, vec![0, 0, 0, 0, 0, 0, 0, 0, 12, 2])?;
    let mut expected = elements.clone();
    (expected[11], expected[1]) = (108, 109);
    expect("dropped", stream.download_array(&array)?, expected)?;

    let at_edges = [[-9, -9], [7, -1], [i32::MIN, 2], [i32::MAX, i32::MAX], [1, 1]];
    let device_places = stream.upload(&at_edges)?;
    let (mut array, mut out) = (stream.upload_array(&elements, [4, 3])?, stream.zeros(5)?);
    // SAFETY: they are the four corners and one in the middle.
    unsafe {
        texturing::at_places(&stream, Grid::cover(5), 1, &device_places, 200, array.surface()?, &mut out)?
    };
    expect("edges", stream.download(&out)?, vec![1, 4, 9, 12, 6])?;
    let mut expected = elements;
    for (number, value) in [(0, 200), (3, 201), (8, 202), (11, 203), (5, 204)] {
        expected[number] = value;
    }
    expect("written at edges", stream.download_array(&array)?, expected)
}

fn a_trap_outside_of_a_surface_is_a_panic(device: &Device) -> Outcome {
    if device.is_cuda() {
        return not_for_this_device("it ends the context");
    }
    let stream = device.new_stream()?;
    let mut array = stream.upload_array(&[1, 2, 3], [3])?;
    // SAFETY: there is one thread.
    unsafe { texturing::trap(&stream, Grid::cover(1), 2, array.surface()?)? };
    expect("inside", stream.download_array(&array)?, vec![1, 2, 7])?;
    // SAFETY: as above.
    unsafe { texturing::trap(&stream, Grid::cover(1), 3, array.surface()?)? };
    let text =
        expect_error("outside", stream.synchronize(), |error| matches!(error, Error::KernelPanic { .. }))?;
    names(&text, &["a surface has no element at [3]"])
}

fn what_a_failed_kernel_left_on_a_surface_is_no_result(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (good, bad) = (stream.upload(&[1.0, 4.0, 9.0])?, stream.upload(&[1.0, -4.0, 9.0])?);
    let mut array = stream.zeros_array::<f32, 1>([3])?;
    texturing::roots(&stream, Grid::cover(3), &bad, array.surface()?)?;
    let found = stream.download_array(&array);
    let text = expect_error("of the kernel", found, |error| matches!(error, Error::KernelPanic { .. }))?;
    names(&text, &["-4 has no root"])?;
    // Also reported for copies of it.
    let mut copy = stream.zeros(3)?;
    stream.copy_from_array(&array, &mut copy)?;
    expect_error("of a copy", stream.download(&copy), |error| matches!(error, Error::KernelPanic { .. }))?;
    stream.upload_into_array(&[0.0; 3], &mut array)?;
    expect("written anew", stream.download_array(&array)?, vec![0.0; 3])?;
    texturing::roots(&stream, Grid::cover(3), &good, array.surface()?)?;
    expect("roots", stream.download_array(&array)?, vec![1.0, 2.0, 3.0])
}
