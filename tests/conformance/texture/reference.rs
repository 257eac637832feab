//! The reference for texture reads, in `f64`, and random elements of all formats.
//!
//! The reference has no weights of 8 bits, and the hardware computes with fewer bits than the programming
//! guide says. So a mean may differ by a step of 1/256 of the elements' range along each axis, and points are
//! sampled no nearer than 1/50 to an edge.

use ferrogrid::device::half::f16;
use ferrogrid::{AddressMode, FilterMode, Sampler};

/// A channel of an element, and its value in the reference.
pub(crate) trait Channel: Copy {
    fn random(random: &mut fastrand::Rng) -> Self;
    /// As a kernel reads it as `f32`.
    fn fraction(self) -> f64;
    /// As a kernel reads it unchanged.
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
pub(crate) trait Channels {
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

pub(crate) fn random_elements<T: Channels>(count: usize, random: &mut fastrand::Rng) -> Vec<T> {
    (0..count).map(|_| T::from_channels(|| T::Of::random(random))).collect()
}

/// The reference's form of a sampler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) filter: FilterMode,
    pub(crate) addresses: [AddressMode; 3],
    pub(crate) is_normalized: bool,
}

impl Rules {
    pub(crate) fn sampler(self) -> Sampler {
        let sampler = Sampler::new().filter_mode(self.filter).address_modes(self.addresses);
        if self.is_normalized { sampler.normalized_coordinates() } else { sampler }
    }

    /// All of them for a rank.
    pub(crate) fn all(is_float: bool) -> Vec<Rules> {
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

/// The reference value of a texture at a position, and the tolerance for devices.
pub(crate) struct Expected {
    pub(crate) value: f64,
    pub(crate) tolerance: f64,
}

/// The tolerance of means besides their weights: relative to the largest element, and absolute. An H200
/// returns means of 16-bit floating-point numbers in that format, and means of fractions with some 17 bits.
pub(crate) fn precision(element: &str, read: &str) -> (f64, f64) {
    match (element.contains("f16"), read) {
        (true, _) => (f64::exp2(-10.0), 0.0),
        (false, "fraction") => (1e-5, f64::exp2(-15.0)),
        _ => (1e-5, 0.0),
    }
}

/// The reference: a channel of a texture of `extent`, at a place in elements.
pub(crate) fn reference(
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
pub(crate) fn places<const R: usize>(extent: [usize; R], random: &mut fastrand::Rng) -> Vec<[f64; R]> {
    let along = |extent: usize, random: &mut fastrand::Rng| {
        let (before, beyond) = (-2 * extent as i64 - 3, 3 * extent as i64 + 3);
        let element = if random.bool() { random.i64(0..extent as i64) } else { random.i64(before..beyond) };
        element as f64 + 0.02 + 0.96 * random.f64()
    };
    (0..300).map(|_| extent.map(|extent| along(extent, random))).collect()
}

/// Whether the format supports linear filtering.
pub(crate) trait Kind {
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
