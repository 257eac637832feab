//! Images: other sizes and luminance.

use ferrogrid::PitchedView;
use ferrogrid::algorithms::{self, Interpolation};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("images_of_all_pixels_are_resized", images_of_all_pixels_are_resized),
    ("halves_between_bytes_are_rounded_up", halves_between_bytes_are_rounded_up),
    ("luminance_of_all_pixels", luminance_of_all_pixels),
    ("parts_of_images", parts_of_images),
    ("sizes_of_images_are_checked", sizes_of_images_are_checked),
    ("images_are_recorded_in_graphs", images_are_recorded_in_graphs),
];

/// From a width and height to others: the same, smaller, larger, mixed, and around a block of 32 x 8.
const SIZES: [([usize; 2], [usize; 2]); 6] = [
    ([1, 1], [3, 2]),
    ([5, 3], [5, 3]),
    ([5, 3], [7, 2]),
    ([64, 20], [33, 9]),
    ([3, 40], [32, 8]),
    ([7, 6], [1, 1]),
];

/// The value at the centre of pixel `at` of `to`, of a channel.
fn linear(x: impl Fn(usize, usize) -> f64, at: [usize; 2], from: [usize; 2], to: [usize; 2]) -> f64 {
    let centre = |k: usize| {
        ((at[k] as f64 + 0.5) * from[k] as f64 / to[k] as f64 - 0.5).clamp(0.0, from[k] as f64 - 1.0)
    };
    let (column, row) = (centre(0), centre(1));
    let line = |row: usize| {
        let next = (column as usize + 1).min(from[0] - 1);
        x(row, column as usize) * (1.0 - column.fract()) + x(row, next) * column.fract()
    };
    line(row as usize) * (1.0 - row.fract()) + line((row as usize + 1).min(from[1] - 1)) * row.fract()
}

fn images_of_all_pixels_are_resized(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(371);
    macro_rules! images {
        ($($pixel:ty: $of:expr, |$p:ident, $k:ident| $channel:expr, $channels:literal, $error:literal;)*) => {
            $(for (from, to) in SIZES {
                let x: Vec<$pixel> = (0..from[0] * from[1]).map(|_| $of).collect();
                let device_x = stream.upload(&x)?;
                let mut y = stream.upload(&vec![x[0]; to[0] * to[1]])?;
                let resized = |interpolation, y: &mut DeviceBuffer<$pixel>| {
                    let target = y.view_2d_mut(to[0], to[1])?;
                    algorithms::resize(&stream, device_x.view_2d(from[0], from[1])?, interpolation, target)?;
                    stream.download(&*y)
                };
                let what = format!("{}, {from:?} to {to:?}", stringify!($pixel));
                let places = (0..to[1]).flat_map(|row| (0..to[0]).map(move |column| [column, row]));
                let nearest = |at: [usize; 2], k: usize| (2 * at[k] + 1) * from[k] / (2 * to[k]);
                let expected = places.clone().map(|at| x[nearest(at, 1) * from[0] + nearest(at, 0)]).collect();
                expect(&what, resized(Interpolation::Nearest, &mut y)?, expected)?;
                for (at, pixel) in places.zip(resized(Interpolation::Linear, &mut y)?) {
                    for $k in 0..$channels {
                        let channel = |$p: $pixel| f64::from($channel);
                        let exact = linear(|row, column| channel(x[row * from[0] + column]), at, from, to);
                        let is_near = (channel(pixel) - exact).abs() <= $error;
                        expect(&format!("{what}, {at:?}: {pixel:?}, not {exact}"), is_near, true)?;
                    }
                }
            })*
        };
    }
    images! {
        u8: random.u8(..), |p, _k| p, 1, 0.501;
        [u8; 3]: [0; 3].map(|_| random.u8(..)), |p, k| p[k], 3, 0.501;
        [u8; 4]: [0; 4].map(|_| random.u8(..)), |p, k| p[k], 4, 0.501;
        f32: random.f32(), |p, _k| p, 1, 1e-6;
        [f32; 3]: [0; 3].map(|_| random.f32()), |p, k| p[k], 3, 1e-6;
        [f32; 4]: [0; 4].map(|_| random.f32()), |p, k| p[k], 4, 1e-6;
    }
    Ok(())
}

fn halves_between_bytes_are_rounded_up(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    // Two to one: the mean of both. 127.5, 254.5, 0.5; the nearest one is the second.
    let x = stream.upload(&[[128_u8, 255, 1], [127, 254, 0]])?;
    let mut y = stream.zeros::<[u8; 3]>(1)?;
    algorithms::resize(&stream, x.view_2d(2, 1)?, Interpolation::Linear, y.view_2d_mut(1, 1)?)?;
    expect("halves", stream.download(&y)?, vec![[128, 255, 1]])
}

fn luminance_of_all_pixels(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(372);
    let [width, height] = [33, 9];
    macro_rules! images {
        ($($pixel:ty as $channel:ty: $of:expr, |$p:ident| $luminance:expr;)*) => {
            $({
                let x: Vec<$pixel> = (0..width * height).map(|_| $of).collect();
                let (device_x, mut y) = (stream.upload(&x)?, stream.zeros::<$channel>(x.len())?);
                let view = y.view_2d_mut(width, height)?;
                algorithms::grayscale(&stream, device_x.view_2d(width, height)?, view)?;
                let expected: Vec<$channel> = x.into_iter().map(|$p| $luminance).collect();
                expect(stringify!($pixel), stream.download(&y)?, expected)?;
            })*
        };
    }
    let exact = |red: u8, green: u8, blue: u8| {
        let [red, green, blue] = [red, green, blue].map(u64::from);
        ((red * 299 + green * 587 + blue * 114) as f64 / 1000.0 + 0.5).floor() as u8
    };
    images! {
        [u8; 3] as u8: [0; 3].map(|_| random.u8(..)), |p| exact(p[0], p[1], p[2]);
        [u8; 4] as u8: [0; 4].map(|_| random.u8(..)), |p| exact(p[0], p[1], p[2]);
        [f32; 3] as f32: [0; 3].map(|_| random.f32()), |p| 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
        [f32; 4] as f32: [0; 4].map(|_| random.f32()), |p| 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
    }
    // 28.5, exactly.
    let (x, mut y) = (stream.upload(&[[0_u8, 0, 250], [255, 255, 255]])?, stream.zeros::<u8>(2)?);
    algorithms::grayscale(&stream, x.view_2d(2, 1)?, y.view_2d_mut(2, 1)?)?;
    expect("half and white", stream.download(&y)?, vec![29, 255])
}

/// A part has its own edges.
fn parts_of_images(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = stream.upload(&(0..30_u8).map(|i| [i, i, i]).collect::<Vec<_>>())?; // 5 rows of 6
    let part: PitchedView<[u8; 3]> = x.view().pitched(6, 5, 6)?.slice(1..3, 2..4)?; // 13 14, 19 20
    let mut y = stream.zeros::<[u8; 3]>(16)?;
    algorithms::resize(&stream, part, Interpolation::Nearest, y.view_2d_mut(4, 4)?)?;
    let found: Vec<u8> = stream.download(&y)?.into_iter().map(|[red, ..]| red).collect();
    expect("nearest", found, vec![13, 13, 14, 14, 13, 13, 14, 14, 19, 19, 20, 20, 19, 19, 20, 20])?;
    algorithms::resize(&stream, part, Interpolation::Linear, y.slice_mut(..4)?.into_2d(1, 4)?)?;
    let found: Vec<u8> = stream.download(y.slice(..4)?)?.into_iter().map(|[red, ..]| red).collect();
    expect("linear", found, vec![14, 15, 18, 20])?; // 13.5, 15, 18, 19.5
    let mut gray = stream.zeros::<u8>(4)?;
    algorithms::grayscale(&stream, part, gray.view_2d_mut(2, 2)?)?;
    expect("gray", stream.download(&gray)?, vec![13, 14, 19, 20])
}

fn sizes_of_images_are_checked(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.zeros::<[f32; 3]>(6)?, stream.zeros::<[f32; 3]>(6)?);
    let is_argument = |error: &Error| matches!(error, Error::Argument { .. });
    let result = algorithms::resize(&stream, x.view_2d(0, 5)?, Interpolation::Linear, y.view_2d_mut(2, 3)?);
    names(&expect_error("no pixels", result, is_argument)?, &["resize", "from 0 x 5 to 2 x 3"])?;
    algorithms::resize(&stream, x.view_2d(0, 5)?, Interpolation::Linear, y.view_2d_mut(0, 3)?)?;
    let mut gray = stream.zeros::<f32>(6)?;
    let is_shape = |error: &Error| matches!(error, Error::ShapeMismatch { .. });
    let result = algorithms::grayscale(&stream, x.view_2d(2, 3)?, gray.view_2d_mut(3, 2)?);
    names(&expect_error("shapes", result, is_shape)?, &["grayscale", "2", "3"])?;
    algorithms::grayscale(&stream, x.view_2d(0, 3)?, gray.view_2d_mut(0, 3)?)?;
    Ok(())
}

fn images_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y) = (stream.zeros::<f32>(1)?, stream.zeros::<f32>(6)?);
    let (graph, (x, y)) = stream.capture(|capture| {
        let (x, mut y) = (capture.keep(x)?, capture.keep(y)?);
        algorithms::resize(capture, x.view_2d(1, 1)?, Interpolation::Linear, y.view_2d_mut(3, 2)?)?;
        Ok((x.key(), y.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in [1.0, -4.5] {
        stream.fill_into(value, graph.view_mut(x)?)?;
        graph.launch(&stream)?;
        expect("resized", stream.download(graph.view(y)?)?, vec![value; 6])?;
    }
    Ok(())
}
