//! Textures and surfaces: what is read between, at and outside of elements, against a reference in `f64`;
//! what surfaces write; the order of their uses; and what is refused.
//!
//! The reference has no weights of 8 bits, and the hardware computes with fewer bits than the guide tells. So
//! a mean may differ by a step of 1/256 of the elements' range along each axis, and points are taken no
//! nearer than 1/50 to an edge.

use std::thread;

use ferrogrid::device::TextureElement;
use ferrogrid::device::half::f16;
use ferrogrid::prelude::*;
use ferrogrid::{AddressMode, Axis, CpuOptions, FilterMode, GraphError, Sampler, TextureArray};

use super::table::not_for_this_device;
use super::texture_kernels::texturing;
use super::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("a_texture_of_rank_1_is_sampled_by_the_rules", a_texture_of_rank_1_is_sampled_by_the_rules),
    ("a_texture_of_rank_2_is_sampled_by_the_rules", a_texture_of_rank_2_is_sampled_by_the_rules),
    ("a_texture_of_rank_3_is_sampled_by_the_rules", a_texture_of_rank_3_is_sampled_by_the_rules),
    ("means_in_the_middle_of_elements_are_the_elements", means_in_the_middle_of_elements_are_the_elements),
    ("texture_arrays_are_copied_as_they_are", texture_arrays_are_copied_as_they_are),
    ("surfaces_are_written_each_element_by_its_thread", surfaces_are_written_each_element_by_its_thread),
    ("a_surface_has_a_rule_for_what_is_outside", a_surface_has_a_rule_for_what_is_outside),
    ("a_trap_outside_of_a_surface_is_a_panic", a_trap_outside_of_a_surface_is_a_panic),
    ("a_texture_decides_for_all_threads", a_texture_decides_for_all_threads),
    ("uses_of_a_texture_array_are_ordered", uses_of_a_texture_array_are_ordered),
    (
        "a_dropped_texture_array_is_kept_for_its_last_kernel",
        a_dropped_texture_array_is_kept_for_its_last_kernel,
    ),
    (
        "what_a_failed_kernel_left_on_a_surface_is_no_result",
        what_a_failed_kernel_left_on_a_surface_is_no_result,
    ),
    ("texture_arrays_are_of_one_device", texture_arrays_are_of_one_device),
    ("extents_that_no_texture_has_are_named", extents_that_no_texture_has_are_named),
    ("kernels_of_a_graph_use_texture_arrays", kernels_of_a_graph_use_texture_arrays),
    ("a_graph_uses_the_arrays_that_it_was_given", a_graph_uses_the_arrays_that_it_was_given),
    ("a_graph_takes_no_slices_for_texture_arrays", a_graph_takes_no_slices_for_texture_arrays),
    ("foreign_kernels_take_textures_and_surfaces", foreign_kernels_take_textures_and_surfaces),
];

/// A channel of an element, and what the reference makes of it.
trait Channel: Copy {
    fn random(random: &mut fastrand::Rng) -> Self;
    /// As a kernel that reads `f32` finds it.
    fn fraction(self) -> f64;
    /// As a kernel that reads it as it is.
    fn whole(self) -> f64;
}

macro_rules! integers {
    ($($ty:ident),*) => { $(
        impl Channel for $ty {
            fn random(random: &mut fastrand::Rng) -> Self {
                random.$ty(..)
            }

            fn fraction(self) -> f64 {
                (f64::from(self) / f64::from($ty::MAX)).max(-1.0)
            }

            fn whole(self) -> f64 {
                f64::from(self)
            }
        }
    )* };
}

integers!(u8, i8, u16, i16, u32, i32);

impl Channel for f32 {
    fn random(random: &mut fastrand::Rng) -> Self {
        random.f32() * 4.0 - 2.0
    }

    fn fraction(self) -> f64 {
        f64::from(self)
    }

    fn whole(self) -> f64 {
        f64::from(self)
    }
}

impl Channel for f16 {
    fn random(random: &mut fastrand::Rng) -> Self {
        f16::from_f32(f32::random(random))
    }

    fn fraction(self) -> f64 {
        self.to_f64()
    }

    fn whole(self) -> f64 {
        self.to_f64()
    }
}

/// Elements and values by their channels.
trait Channels {
    type Of: Channel;
    fn channels(&self) -> Vec<Self::Of>;
    fn from_channels(channels: impl FnMut() -> Self::Of) -> Self;
}

macro_rules! channels {
    ($($ty:ident),*) => { $(
        impl Channels for $ty {
            type Of = $ty;

            fn channels(&self) -> Vec<$ty> {
                vec![*self]
            }

            fn from_channels(mut channels: impl FnMut() -> $ty) -> Self {
                channels()
            }
        }

        channels!($ty; 2);
        channels!($ty; 4);
    )* };
    ($ty:ident; $count:literal) => {
        impl Channels for [$ty; $count] {
            type Of = $ty;

            fn channels(&self) -> Vec<$ty> {
                self.to_vec()
            }

            fn from_channels(mut channels: impl FnMut() -> $ty) -> Self {
                std::array::from_fn(|_| channels())
            }
        }
    };
}

channels!(u8, i8, u16, i16, u32, i32, f32, f16);

fn random_elements<T: Channels>(count: usize, random: &mut fastrand::Rng) -> Vec<T> {
    (0..count).map(|_| T::from_channels(|| T::Of::random(random))).collect()
}

/// A sampler as the reference knows it.
#[derive(Debug, Clone, Copy)]
struct Rules {
    filter: FilterMode,
    addresses: [AddressMode; 3],
    is_normalized: bool,
}

impl Rules {
    fn sampler(self) -> Sampler {
        let sampler = Sampler::new().filter_mode(self.filter).address_modes(self.addresses);
        if self.is_normalized { sampler.normalized_coordinates() } else { sampler }
    }

    /// All of them for a rank.
    fn all(is_float: bool) -> Vec<Rules> {
        use AddressMode::{Border, Clamp, Mirror, Wrap};
        let ends = [[Clamp; 3], [Border; 3], [Clamp, Border, Clamp], [Border, Clamp, Border]];
        let repeats = [[Wrap; 3], [Mirror; 3], [Wrap, Mirror, Clamp], [Border, Wrap, Mirror]];
        let filters: &[FilterMode] =
            if is_float { &[FilterMode::Point, FilterMode::Linear] } else { &[FilterMode::Point] };
        let mut all = Vec::new();
        for &filter in filters {
            all.extend(ends.map(|addresses| Rules { filter, addresses, is_normalized: false }));
            let normalized = ends.into_iter().chain(repeats);
            all.extend(normalized.map(|addresses| Rules { filter, addresses, is_normalized: true }));
        }
        all
    }

    /// The number of the element that stands at `index` of an axis with `extent` elements.
    fn number(self, axis: usize, index: i64, extent: i64) -> Option<i64> {
        let is_inside = (0..extent).contains(&index);
        Some(match self.addresses[axis] {
            _ if is_inside => index,
            AddressMode::Clamp if index < 0 => 0,
            AddressMode::Clamp => extent - 1,
            AddressMode::Border => return None,
            AddressMode::Wrap => index - index.div_euclid(extent) * extent,
            AddressMode::Mirror => {
                let within = index - index.div_euclid(extent) * extent;
                if index.div_euclid(extent) % 2 == 0 { within } else { extent - 1 - within }
            }
        })
    }
}

/// What a texture gives at a place, and how far off a device may be.
struct Expected {
    value: f64,
    tolerance: f64,
}

/// How exact means are, beside their weights: of the largest element, and by themselves. An H200 gives those of 16-bit floating-point
/// numbers as such, and those of fractions to some 17 bits.
fn precision(element: &str, read: &str) -> (f64, f64) {
    match (element.contains("f16"), read) {
        (true, _) => (f64::exp2(-10.0), 0.0),
        (false, "fraction") => (1e-5, f64::exp2(-15.0)),
        _ => (1e-5, 0.0),
    }
}

/// The reference: a channel of a texture of `extent`, at a place in elements.
fn reference(
    rules: Rules,
    extent: &[usize],
    place: &[f64],
    element: impl Fn(usize) -> f64,
    (relative, absolute): (f64, f64),
) -> Expected {
    let at = |index: &[i64]| {
        let mut number = 0;
        for axis in (0..extent.len()).rev() {
            let Some(found) = rules.number(axis, index[axis], extent[axis] as i64) else { return 0.0 };
            number = number * extent[axis] + found as usize;
        }
        element(number)
    };
    if rules.filter == FilterMode::Point {
        let index: Vec<i64> = place.iter().map(|x| x.floor() as i64).collect();
        let value = at(&index);
        return Expected { value, tolerance: value.abs() * 1e-6 };
    }
    let (mut value, mut least, mut most) = (0.0, f64::MAX, f64::MIN);
    for corner in 0..1 << extent.len() {
        let beyond = |axis: usize| i64::from(corner >> axis & 1);
        let first: Vec<f64> = place.iter().map(|x| (x - 0.5).floor()).collect();
        let index: Vec<i64> = first.iter().enumerate().map(|(axis, x)| *x as i64 + beyond(axis)).collect();
        let weights = place.iter().zip(&first).enumerate().map(|(axis, (x, first))| {
            let weight = x - 0.5 - first;
            if beyond(axis) == 1 { weight } else { 1.0 - weight }
        });
        let found = at(&index);
        value += weights.product::<f64>() * found;
        (least, most) = (least.min(found), most.max(found));
    }
    let tolerance =
        extent.len() as f64 * (most - least) / 256.0 + most.abs().max(least.abs()) * relative + absolute;
    Expected { value, tolerance }
}

/// Places inside, at the edges and outside, in elements; none near an element's edge.
fn places<const R: usize>(extent: [usize; R], random: &mut fastrand::Rng) -> Vec<[f64; R]> {
    let along = |extent: usize, random: &mut fastrand::Rng| {
        let (before, beyond) = (-2 * extent as i64 - 3, 3 * extent as i64 + 3);
        let element = if random.bool() { random.i64(0..extent as i64) } else { random.i64(before..beyond) };
        element as f64 + 0.02 + 0.96 * random.f64()
    };
    (0..300).map(|_| extent.map(|extent| along(extent, random))).collect()
}

/// Samples a texture of random elements by all rules, and compares with the reference.
macro_rules! sampled {
    ($device:ident, $rank:literal, $kernel:ident, $of:ident: $element:ty as $value:ty, $extent:expr) => {{
        let stream = $device.new_stream()?;
        let mut random = fastrand::Rng::with_seed(16);
        let extent: [usize; $rank] = $extent;
        let elements: Vec<$element> = random_elements(extent.iter().product(), &mut random);
        let array = stream.upload_array(&elements, extent)?;
        let precision = precision(stringify!($element), stringify!($of));
        for rules in Rules::all(<<$value as Channels>::Of as Kind>::IS_FLOAT) {
            let places = places(extent, &mut random);
            let coordinates: Vec<[f32; 3]> = places
                .iter()
                .map(|place| {
                    std::array::from_fn(|axis| match place.get(axis) {
                        Some(x) if rules.is_normalized => (x / extent[axis] as f64) as f32,
                        Some(x) => *x as f32,
                        None => 0.0,
                    })
                })
                .collect();
            let device_places = stream.upload(&coordinates)?;
            let mut out = stream.zeros::<$value>(places.len())?;
            let texture = array.texture::<$value>(&rules.sampler())?;
            texturing::$kernel::<$value>(
                &stream,
                Grid::cover(places.len()),
                &device_places,
                texture,
                &mut out,
            )?;
            for (place, found) in places.iter().zip(stream.download(&out)?) {
                for (channel, found) in found.channels().into_iter().enumerate() {
                    let element = |number: usize| elements[number].channels()[channel].$of();
                    let Expected { value, tolerance } = reference(rules, &extent, place, element, precision);
                    if (found.whole() - value).abs() > tolerance {
                        let (element, read) = (stringify!($element), stringify!($value));
                        return Err(format!(
                            "{element} as {read}, channel {channel} at {place:?} of {extent:?} by {rules:?}: \
                             expected {value} within {tolerance}, found {}",
                            found.whole()
                        )
                        .into());
                    }
                }
            }
        }
    }};
}

/// Whether means can be had.
trait Kind {
    const IS_FLOAT: bool;
}

macro_rules! kinds {
    ($($ty:ident: $is_float:literal),*) => { $(
        impl Kind for $ty {
            const IS_FLOAT: bool = $is_float;
        }
    )* };
}

kinds!(u8: false, i8: false, u16: false, i16: false, u32: false, i32: false, f32: true);

/// All formats and numbers of channels, each as it may be read.
macro_rules! all_sampled {
    ($device:ident, $rank:literal, $kernel:ident, $extent:expr) => {
        sampled!($device, $rank, $kernel, whole: u8 as u8, $extent);
        sampled!($device, $rank, $kernel, whole: i8 as i8, $extent);
        sampled!($device, $rank, $kernel, whole: u16 as u16, $extent);
        sampled!($device, $rank, $kernel, whole: i16 as i16, $extent);
        sampled!($device, $rank, $kernel, whole: u32 as u32, $extent);
        sampled!($device, $rank, $kernel, whole: i32 as i32, $extent);
        sampled!($device, $rank, $kernel, whole: f32 as f32, $extent);
        sampled!($device, $rank, $kernel, whole: f16 as f32, $extent);
        sampled!($device, $rank, $kernel, fraction: u8 as f32, $extent);
        sampled!($device, $rank, $kernel, fraction: i8 as f32, $extent);
        sampled!($device, $rank, $kernel, fraction: u16 as f32, $extent);
        sampled!($device, $rank, $kernel, fraction: i16 as f32, $extent);
        sampled!($device, $rank, $kernel, whole: [i8; 2] as [i8; 2], $extent);
        sampled!($device, $rank, $kernel, whole: [u16; 4] as [u16; 4], $extent);
        sampled!($device, $rank, $kernel, whole: [u32; 4] as [u32; 4], $extent);
        sampled!($device, $rank, $kernel, whole: [f32; 2] as [f32; 2], $extent);
        sampled!($device, $rank, $kernel, whole: [f32; 4] as [f32; 4], $extent);
        sampled!($device, $rank, $kernel, whole: [f16; 4] as [f32; 4], $extent);
        sampled!($device, $rank, $kernel, fraction: [u8; 4] as [f32; 4], $extent);
        sampled!($device, $rank, $kernel, fraction: [i16; 2] as [f32; 2], $extent);
    };
}

fn a_texture_of_rank_1_is_sampled_by_the_rules(device: &Device) -> Outcome {
    all_sampled!(device, 1, sample_1d, [37]);
    sampled!(device, 1, sample_1d, whole: f32 as f32, [1]);
    sampled!(device, 1, sample_1d, whole: u8 as u8, [1000]);
    Ok(())
}

fn a_texture_of_rank_2_is_sampled_by_the_rules(device: &Device) -> Outcome {
    all_sampled!(device, 2, sample_2d, [13, 9]);
    sampled!(device, 2, sample_2d, whole: f32 as f32, [1, 5]);
    sampled!(device, 2, sample_2d, fraction: u8 as f32, [300, 1]);
    Ok(())
}

fn a_texture_of_rank_3_is_sampled_by_the_rules(device: &Device) -> Outcome {
    all_sampled!(device, 3, sample_3d, [7, 5, 3]);
    sampled!(device, 3, sample_3d, whole: f32 as f32, [1, 1, 9]);
    sampled!(device, 3, sample_3d, whole: i16 as i16, [65, 33, 2]);
    Ok(())
}

fn means_in_the_middle_of_elements_are_the_elements(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(3);
    let elements: Vec<f32> = random_elements(40 * 25, &mut random);
    let array = stream.upload_array(&elements, [40, 25])?;
    let places: Vec<[f32; 3]> =
        (0..40 * 25).map(|i| [(i % 40) as f32 + 0.5, (i / 40) as f32 + 0.5, 0.0]).collect();
    let (places, mut out) = (stream.upload(&places)?, stream.zeros(40 * 25)?);
    for address in [AddressMode::Clamp, AddressMode::Border] {
        let texture = array.texture(&Sampler::new().linear().address_mode(address))?;
        texturing::sample_2d::<f32>(&stream, Grid::cover(40 * 25), &places, texture, &mut out)?;
        expect("bits", stream.download(&out)?, elements.clone())?;
    }
    Ok(())
}

fn texture_arrays_are_copied_as_they_are(device: &Device) -> Outcome {
    fn copied<T, const R: usize>(stream: &Stream, extent: [usize; R]) -> Outcome
    where
        T: TextureElement + Channels + PartialEq + std::fmt::Debug,
    {
        let mut random = fastrand::Rng::with_seed(9);
        let count = extent.iter().product();
        let (first, second) =
            (random_elements::<T>(count, &mut random), random_elements(count + 3, &mut random));
        let mut array = stream.upload_array(&first, extent)?;
        expect("extents", (array.extent(), array.len()), (extent, count))?;
        expect("uploaded", stream.download_array(&array)?, first.clone())?;
        // To a part of a buffer that does not begin at the start of a line of cache.
        let mut buffer = stream.upload(&second)?;
        stream.copy_from_array(&array, buffer.slice_mut(2..count + 2)?)?;
        let mut expected = second.clone();
        expected[2..count + 2].clone_from_slice(&first);
        expect("to a buffer", stream.download(&buffer)?, expected.clone())?;
        stream.upload_into(&second, &mut buffer)?;
        stream.copy_to_array(buffer.slice(3..)?, &mut array)?;
        expect("from a buffer", stream.download_array(&array)?, second[3..].to_vec())?;
        stream.upload_into_array(&first, &mut array)?;
        expect("anew", stream.download_array(&array)?, first.clone())?;
        expect(
            "zeros",
            stream.download_array(&stream.zeros_array::<T, R>(extent)?)?,
            vec![T::zeroed(); count],
        )?;
        let short = stream.upload_into_array(&first[1..], &mut array);
        expect_error("too short", short, |error| matches!(error, Error::LengthMismatch { .. }))?;
        let long = stream.copy_to_array(&buffer, &mut array);
        expect_error("too long", long, |error| matches!(error, Error::LengthMismatch { .. }))?;
        let long = stream.copy_from_array(&array, &mut buffer);
        expect_error("to too many", long, |error| matches!(error, Error::LengthMismatch { .. }))?;
        expect("as before", stream.download_array(&array)?, first)
    }
    let stream = device.new_stream()?;
    copied::<u8, 1>(&stream, [1])?;
    copied::<u8, 1>(&stream, [1001])?;
    copied::<[f32; 4], 1>(&stream, [333])?;
    copied::<u8, 2>(&stream, [17, 5])?;
    copied::<[u8; 2], 2>(&stream, [1, 40])?;
    copied::<i16, 2>(&stream, [640, 3])?;
    copied::<f16, 2>(&stream, [31, 31])?;
    copied::<[u32; 2], 2>(&stream, [5, 5])?;
    copied::<f32, 3>(&stream, [7, 3, 5])?;
    copied::<i8, 3>(&stream, [1, 1, 1])?;
    copied::<[i16; 4], 3>(&stream, [33, 2, 9])
}

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

fn a_surface_has_a_rule_for_what_is_outside(device: &Device) -> Outcome {
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

fn a_texture_decides_for_all_threads(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let elements: Vec<f32> = (0..64).map(|i| if i % 3 == 0 { 2.0 } else { -1.0 }).collect();
    let (array, mut out) = (stream.upload_array(&elements, [64])?, stream.zeros(128)?);
    texturing::meeting(&stream, Grid::cover(128), array.texture(&Sampler::new())?, &mut out)?;
    // Rounds 0 and 3, and 22 threads in each.
    expect("sums", stream.download(&out)?, vec![44; 128])
}

/// So many that a kernel is at work for a while.
fn rounds(device: &Device) -> u32 {
    if device.is_cuda() { 2000 } else { 3 }
}

fn uses_of_a_texture_array_are_ordered(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?, device.new_stream()?];
    let (width, height) = (64, 48);
    let mut array = streams[0].zeros_array::<u32, 2>([width, height])?;
    for round in 0..60 {
        texturing::count(&streams[round % 3], Grid::cover([width, height]), array.surface()?)?;
    }
    expect("counts", streams[1].download_array(&array)?, vec![60; width * height])?;

    // Written by copies on one stream, read by kernels on others, with many rounds so that they run for a
    // while.
    let mut image = streams[0].zeros_array::<f32, 2>([width, height])?;
    let mut sums = [streams[1].zeros(width * height)?, streams[2].zeros(width * height)?];
    let mut expected = 0.0;
    for round in 1..=20 {
        let values = streams[0].fill(round as f32, width * height)?;
        streams[0].copy_to_array(&values, &mut image)?;
        for (sum, stream) in sums.iter_mut().zip(&streams[1..]) {
            let texture = image.texture(&Sampler::new())?;
            let sum = sum.view_2d_mut(width, height)?;
            texturing::add(stream, Grid::cover([width, height]), rounds(device), texture, sum)?;
        }
        expected += round as f32;
    }
    for sum in &sums {
        expect("sums", streams[0].download(sum)?, vec![expected; width * height])?;
    }
    Ok(())
}

fn a_dropped_texture_array_is_kept_for_its_last_kernel(device: &Device) -> Outcome {
    let (width, height) = (128, 64);
    let stream = device.new_stream()?;
    let mut sum = stream.zeros(width * height)?;
    for round in 1..=12 {
        let image = stream.upload_array(&vec![round as f32; width * height], [width, height])?;
        let texture = image.texture(&Sampler::new())?;
        texturing::add(
            &stream,
            Grid::cover([width, height]),
            rounds(device),
            texture,
            sum.view_2d_mut(width, height)?,
        )?;
        // On another thread, whose next array may lie where this one was.
        let other = device.clone();
        let dropped = thread::spawn(move || -> ferrogrid::Result<()> {
            drop(image);
            let stream = other.new_stream()?;
            let next = stream.upload_array(&vec![-1000.0_f32; width * height], [width, height])?;
            stream.download_array(&next).map(drop)
        });
        dropped.join().map_err(|_| "the other thread has panicked")??;
    }
    expect("sums", stream.download(&sum)?, vec![78.0; width * height])
}

fn what_a_failed_kernel_left_on_a_surface_is_no_result(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (good, bad) = (stream.upload(&[1.0, 4.0, 9.0])?, stream.upload(&[1.0, -4.0, 9.0])?);
    let mut array = stream.zeros_array::<f32, 1>([3])?;
    texturing::roots(&stream, Grid::cover(3), &bad, array.surface()?)?;
    let found = stream.download_array(&array);
    let text = expect_error("of the kernel", found, |error| matches!(error, Error::KernelPanic { .. }))?;
    names(&text, &["-4 has no root"])?;
    // Told, too, of what was copied from it.
    let mut copy = stream.zeros(3)?;
    stream.copy_from_array(&array, &mut copy)?;
    expect_error("of a copy", stream.download(&copy), |error| matches!(error, Error::KernelPanic { .. }))?;
    stream.upload_into_array(&[0.0; 3], &mut array)?;
    expect("written anew", stream.download_array(&array)?, vec![0.0; 3])?;
    texturing::roots(&stream, Grid::cover(3), &good, array.surface()?)?;
    expect("roots", stream.download_array(&array)?, vec![1.0, 2.0, 3.0])
}

fn texture_arrays_are_of_one_device(device: &Device) -> Outcome {
    let other = Device::cpu_with(CpuOptions::new().workers(2))?;
    // A peer's buffers could be used; not so its arrays, whose objects mean nothing on another device.
    if !device.is_cuda() {
        other.enable_peer_access(device)?;
    }
    let (ours, theirs) = (device.new_stream()?, other.new_stream()?);
    let mut array = ours.upload_array(&[1_u32, 2, 3, 4], [2, 2])?;
    let is_mismatch = |error: &Error| matches!(error, Error::DeviceMismatch { .. });
    let refused = texturing::count(&theirs, Grid::cover([2, 2]), array.surface()?);
    expect_error("surface", refused, is_mismatch)?;
    let pixels = ours.upload_array(&[1.0_f32; 4], [2, 2])?;
    let mut sum = theirs.zeros(4)?;
    let texture = pixels.texture(&Sampler::new())?;
    let refused = texturing::add(&theirs, Grid::cover([2, 2]), 1, texture, sum.view_2d_mut(2, 2)?);
    expect_error("texture", refused, is_mismatch)?;
    expect_error("download", theirs.download_array(&array), is_mismatch)?;
    expect_error("upload", theirs.upload_into_array(&[0; 4], &mut array), is_mismatch)?;
    expect("as before", ours.download_array(&array)?, vec![1, 2, 3, 4])
}

fn extents_that_no_texture_has_are_named(device: &Device) -> Outcome {
    fn refused<const R: usize>(stream: &Stream, extent: [usize; R], axis: Axis, attribute: &str) -> Outcome {
        let limit = stream.device().attribute(attribute.parse()?)?;
        let is_it = |error: &Error| matches!(error, Error::TextureExtent { axis: found, limit: most, .. } if *found == axis && *most == limit as u32);
        let made: ferrogrid::Result<TextureArray<u8, R>> = stream.zeros_array(extent);
        let text = expect_error(attribute, made, is_it)?;
        let value = extent[axis as usize].to_string();
        names(&text, &[attribute, &axis.to_string(), &value, &limit.to_string()])
    }
    let stream = device.new_stream()?;
    refused(&stream, [0], Axis::X, "MAXIMUM_TEXTURE1D_WIDTH")?;
    refused(&stream, [usize::MAX], Axis::X, "MAXIMUM_TEXTURE1D_WIDTH")?;
    refused(&stream, [2, 0], Axis::Y, "MAXIMUM_TEXTURE2D_HEIGHT")?;
    refused(&stream, [1 << 32, 1], Axis::X, "MAXIMUM_TEXTURE2D_WIDTH")?;
    refused(&stream, [1, 1 << 32], Axis::Y, "MAXIMUM_TEXTURE2D_HEIGHT")?;
    refused(&stream, [1, 1, 0], Axis::Z, "MAXIMUM_TEXTURE3D_DEPTH")?;
    refused(&stream, [1, 1, usize::MAX], Axis::Z, "MAXIMUM_TEXTURE3D_DEPTH")?;
    // Deeper than it may be high, which is within the other limits.
    let deep = device.attribute("MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE".parse()?)? as usize;
    if deep > device.attribute("MAXIMUM_TEXTURE3D_DEPTH".parse()?)? as usize {
        expect("deep", stream.zeros_array::<u8, 3>([1, 1, deep])?.extent(), [1, 1, deep])?;
    }
    // A texture that no surface may be.
    let (texture, surface) = (
        device.attribute("MAXIMUM_TEXTURE1D_WIDTH".parse()?)? as usize,
        device.attribute("MAXIMUM_SURFACE1D_WIDTH".parse()?)? as usize,
    );
    refused(&stream, [texture + 1], Axis::X, "MAXIMUM_TEXTURE1D_WIDTH")?;
    let mut long = stream.zeros_array::<u8, 1>([texture])?;
    if texture > surface {
        let is_it = |error: &Error| matches!(error, Error::TextureExtent { what: "surface", .. });
        let text = expect_error("surface", long.surface(), is_it)?;
        names(&text, &["MAXIMUM_SURFACE1D_WIDTH", &texture.to_string(), &surface.to_string()])?;
    }
    let mut bounded = stream.zeros_array::<u8, 1>([surface.min(texture)])?;
    expect("surface", bounded.surface()?.extent(), [surface.min(texture)])?;
    expect("texture", long.texture::<u8>(&Sampler::new())?.extent(), [texture])
}

fn kernels_of_a_graph_use_texture_arrays(device: &Device) -> Outcome {
    let streams = [device.new_stream()?, device.new_stream()?];
    let stream = &streams[0];
    let (x, before) = (stream.zeros::<f32>(12)?, stream.zeros::<f32>(12)?);
    let (sum, seen) = (stream.zeros::<f32>(12)?, stream.upload_array(&[0.25_f32; 12], [4, 3])?);
    let mut array = stream.zeros_array::<f32, 2>([4, 3])?;
    let (graph, (x, before, sum)) = stream.capture(|capture| {
        let (x, mut before, mut sum) = (capture.keep(x)?, capture.keep(before)?, capture.keep(sum)?);
        let (seen, mut array) = (capture.read_array(&seen)?, capture.write_array(&mut array)?);
        expect("extent", array.extent(), [4, 3]).unwrap();
        let (grid, nearest) = (Grid::cover([4, 3]), Sampler::new());
        // The array holds what the launch before has written; then what this one does.
        let found = before.view_2d_mut(4, 3)?;
        texturing::exchange_2d(capture, grid, x.view_2d(4, 3)?, array.surface()?, found)?;
        texturing::add(capture, grid, 1, array.texture(&nearest)?, sum.view_2d_mut(4, 3)?)?;
        texturing::add(capture, grid, 1, seen.texture(&nearest)?, sum.view_2d_mut(4, 3)?)?;
        Ok((x.key(), before.key(), sum.key()))
    })?;
    let mut graph = graph.instantiate()?;
    let row = |round: usize| (0..12).map(|i| (i * round) as f32).collect::<Vec<f32>>();
    let mut total = vec![0.0; 12];
    for (round, stream) in (1..).zip(streams.iter().cycle().take(5)) {
        stream.upload_into(&row(round), graph.view_mut(x)?)?;
        graph.launch(stream)?;
        total.iter_mut().zip(row(round)).for_each(|(total, x)| *total += x + 0.25);
        expect("what was there", stream.download(graph.view(before)?)?, row(round - 1))?;
        expect("sums", stream.download(graph.view(sum)?)?, total.clone())?;
    }
    drop(graph);
    expect("the array", streams[1].download_array(&array)?, row(5))?;
    expect("the other, as it was", stream.download_array(&seen)?, vec![0.25; 12])
}

fn a_graph_uses_the_arrays_that_it_was_given(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut array = stream.zeros_array::<u32, 2>([4, 4])?;
    let mut given = stream.zeros_array::<u32, 2>([4, 4])?;
    let grid = Grid::cover([4, 4]);
    let (graph, unknown) = stream.capture(|capture| {
        let mut given = capture.write_array(&mut given)?;
        let unknown = texturing::count(capture, grid, array.surface()?);
        for _ in 0..2 {
            texturing::count(capture, grid, given.surface()?)?;
        }
        Ok(unknown)
    })?;
    let text =
        expect_error("an array of nobody", unknown, |error| *error == GraphError::UnknownBuffer.into())?;
    names(&text, &["capture.read_array", "capture.write_array"])?;
    let mut graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    drop(graph);
    expect("counted", stream.download_array(&given)?, vec![4; 16])?;
    expect("as before", stream.download_array(&array)?, vec![0; 16])
}

fn a_graph_takes_no_slices_for_texture_arrays(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut array, sum) = (stream.zeros_array::<u32, 2>([4, 4])?, stream.zeros::<u32>(16)?);
    let mut errors = Vec::new();
    let (graph, unknown) = stream.capture(|capture| {
        let (recorded, sum): (&Stream, _) = (capture, capture.read(&sum)?);
        let unknown = recorded.copy_to_array(sum, &mut array);
        errors.push(recorded.upload_into_array(&[0; 16], &mut array).err());
        errors.push(recorded.zeros_array::<u8, 1>([4]).err());
        errors.push(recorded.download_array(capture.read_array(&array)?).err());
        Ok(unknown)
    })?;
    expect("nodes", graph.len(), 0)?;
    expect_error("an array of nobody", unknown, |error| *error == GraphError::UnknownBuffer.into())?;
    for error in errors {
        let error = error.ok_or("recorded")?;
        let is_refused = matches!(error, Error::Graph(GraphError::NotRecordable { .. }));
        expect(&error.to_string(), is_refused, true)?;
    }
    Ok(())
}

fn foreign_kernels_take_textures_and_surfaces(device: &Device) -> Outcome {
    if !device.is_cuda() {
        return not_for_this_device("it takes no code for GPUs");
    }
    let stream = device.new_stream()?;
    let function = device.load_ptx(include_str!("foreign/textures.ptx"))?.function("shade")?;
    let image = stream.upload_array(&[0_u8, 255, 0, 255, 0, 255], [3, 2])?;
    let mut out = stream.zeros_array::<f32, 1>([4])?;
    let sampler = Sampler::new().linear().address_mode(AddressMode::Border);
    let texture = image.texture::<f32>(&sampler)?;
    // SAFETY: these are its types, and its threads write elements of their own.
    unsafe { function.launch(&stream, Grid::new(1, 4), (texture, out.surface()?))? };
    drop(image);
    // A quarter of the way from each element to the next, then to the border, and beyond it.
    for (found, expected) in stream.download_array(&out)?.into_iter().zip([0.5, 1.5, 0.0, 0.0]) {
        expect(&format!("{found} for {expected}"), (found - expected).abs() < 0.02, true)?;
    }
    let mut elsewhere = Device::cpu().new_stream()?.zeros_array::<f32, 1>([4])?;
    // SAFETY: as above.
    let refused = unsafe { function.launch(&stream, Grid::new(1, 4), (0_u64, elsewhere.surface()?)) };
    expect_error("another device's", refused, |error| matches!(error, Error::DeviceMismatch { .. })).map(drop)
}
