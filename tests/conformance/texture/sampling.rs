//! Texture reads between, at and outside of elements, by all rules of a sampler and for all formats.

use ferrogrid::device::half::f16;
use ferrogrid::prelude::*;
use ferrogrid::{AddressMode, Sampler};

use crate::texture::reference::{
    Channel, Channels, Expected, Kind, Rules, places, precision, random_elements, reference,
};
use crate::texture::texture_kernels::texturing;
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("a_texture_of_rank_1_is_sampled_by_the_rules", a_texture_of_rank_1_is_sampled_by_the_rules),
    ("a_texture_of_rank_2_is_sampled_by_the_rules", a_texture_of_rank_2_is_sampled_by_the_rules),
    ("a_texture_of_rank_3_is_sampled_by_the_rules", a_texture_of_rank_3_is_sampled_by_the_rules),
    ("means_in_the_middle_of_elements_are_the_elements", means_in_the_middle_of_elements_are_the_elements),
    ("a_texture_decides_for_all_threads", a_texture_decides_for_all_threads),
];

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

fn a_texture_decides_for_all_threads(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let elements: Vec<f32> = (0..64).map(|i| if i % 3 == 0 { 2.0 } else { -1.0 }).collect();
    let (array, mut out) = (stream.upload_array(&elements, [64])?, stream.zeros(128)?);
    texturing::meeting(&stream, Grid::cover(128), array.texture(&Sampler::new())?, &mut out)?;
    // Rounds 0 and 3, and 22 threads in each.
    expect("sums", stream.download(&out)?, vec![44; 128])
}
