//! Texture reads on the CPU device, by the arithmetic of the CUDA programming guide ("Texture Fetching").
//!
//! The hardware has fewer bits in places that the guide does not name, so its results may differ: in linear
//! filtering by a step of 1/256 in the weights of each axis, in point sampling within 1/256 of an element's
//! edge.

extern crate std;

use super::element::Format;
use super::reading::{AddressMode, FilterMode, Reading};

/// The number of weights between two elements: 8 bits.
const STEPS: f64 = 256.0;

/// A texture: elements row by row, layer by layer.
#[derive(Clone, Copy)]
pub(super) struct Image {
    start: *const u8,
    rank: usize,
    /// Along each axis; 1 above the rank. None is 0.
    extent: [u32; 3],
    reading: Reading,
}

impl Image {
    /// # Safety
    /// `start` points to as many elements of the format as `extent` says, for as long as this is used.
    pub(super) unsafe fn new<const R: usize>(start: *const u8, extent: [u32; R], reading: Reading) -> Self {
        let extent = std::array::from_fn(|axis| extent.get(axis).copied().unwrap_or(1));
        Image { start, rank: R, extent, reading }
    }

    /// The value at a place, as the texture instruction leaves it in its registers.
    pub(super) fn sample(&self, place: [f32; 3]) -> [u32; 4] {
        let scaled: [f64; 3] = std::array::from_fn(|axis| self.scaled(axis, place[axis]));
        match self.reading.filter {
            FilterMode::Point => self.registers(scaled.map(|x| x.floor() as i64)),
            FilterMode::Linear => self.linear(scaled),
        }
    }

    /// A coordinate in elements. Repeated ones are wrapped while the coordinate still has all its bits.
    fn scaled(&self, axis: usize, x: f32) -> f64 {
        let x = f64::from(x);
        if !self.reading.has_normalized_coordinates {
            return x;
        }
        let fraction = x - x.floor();
        let inside = match self.reading.addresses[axis] {
            AddressMode::Wrap => fraction,
            AddressMode::Mirror if x.floor() % 2.0 != 0.0 => 1.0 - fraction,
            AddressMode::Mirror => fraction,
            AddressMode::Clamp | AddressMode::Border => x,
        };
        inside * f64::from(self.extent[axis])
    }

    /// The index of an element along an axis; `None` in the border.
    fn along(&self, axis: usize, index: i64) -> Option<u32> {
        let extent = i64::from(self.extent[axis]);
        let index = match self.reading.addresses[axis] {
            AddressMode::Clamp => index.clamp(0, extent - 1),
            AddressMode::Wrap => index.rem_euclid(extent),
            AddressMode::Mirror => {
                let twice = index.rem_euclid(2 * extent);
                if twice < extent { twice } else { 2 * extent - 1 - twice }
            }
            AddressMode::Border if index < 0 || index >= extent => return None,
            AddressMode::Border => index,
        };
        Some(index as u32)
    }

    /// The channels of the element with these numbers; 0 in the border.
    fn registers(&self, place: [i64; 3]) -> [u32; 4] {
        let [Some(x), Some(y), Some(z)] = [0, 1, 2].map(|axis| self.along(axis, place[axis])) else {
            return [0; 4];
        };
        let [width, height, _] = self.extent.map(|extent| extent as usize);
        let element = (z as usize * height + y as usize) * width + x as usize;
        let channels = self.reading.channels;
        std::array::from_fn(
            |channel| {
                if channel < channels { self.register(element * channels + channel) } else { 0 }
            },
        )
    }

    /// A channel, by its number among all.
    fn register(&self, number: usize) -> u32 {
        let Reading { format, is_normalized, .. } = self.reading;
        // SAFETY: the element lies inside, so its bytes are there.
        let word = unsafe {
            match format.size() {
                1 => u32::from(self.start.add(number).read()),
                2 => u32::from(self.start.cast::<u16>().add(number).read_unaligned()),
                _ => self.start.cast::<u32>().add(number).read_unaligned(),
            }
        };
        let half = word as u16;
        let fraction = |value: f32, most: f32| (value / most).max(-1.0).to_bits();
        match (format, is_normalized) {
            (Format::U8, true) => fraction(f32::from(word as u8), 255.0),
            (Format::I8, true) => fraction(f32::from(word as i8), 127.0),
            (Format::U16, true) => fraction(f32::from(half), 65535.0),
            (Format::I16, true) => fraction(f32::from(half as i16), 32767.0),
            (Format::F16, _) => widened(half),
            // Integers use the lowest bits.
            _ => word,
        }
    }

    /// The weighted mean of the elements around a place: `(1 - a) * T[i] + a * T[i + 1]` along each axis,
    /// where `i + a` is the place less one half, and `a` is counted in 256ths.
    fn linear(&self, scaled: [f64; 3]) -> [u32; 4] {
        // Along an axis beyond the texture's rank there is one element.
        let last = self.rank;
        let steps: [i64; 3] = std::array::from_fn(|axis| match axis < last {
            true => ((scaled[axis] - 0.5) * STEPS).round() as i64,
            false => 0,
        });
        let first = steps.map(|steps| steps >> 8);
        let weight = steps.map(|steps| (steps & 255) as f64 / STEPS);
        let mut sums = [0.0; 4];
        for corner in 0..8 {
            let beyond: [bool; 3] = std::array::from_fn(|axis| corner >> axis & 1 != 0);
            let place = std::array::from_fn(|axis| first[axis] + i64::from(beyond[axis]));
            let part: f64 =
                (0..3).map(|axis| if beyond[axis] { weight[axis] } else { 1.0 - weight[axis] }).product();
            if part == 0.0 {
                continue;
            }
            for (sum, register) in sums.iter_mut().zip(self.registers(place)) {
                *sum += part * f64::from(f32::from_bits(register));
            }
        }
        sums.map(|sum| (sum as f32).to_bits())
    }
}

#[cfg(feature = "half")]
fn widened(bits: u16) -> u32 {
    crate::half::f16::from_bits(bits).to_f32().to_bits()
}

/// Without the feature `half` there are no elements of that format.
#[cfg(not(feature = "half"))]
fn widened(_: u16) -> u32 {
    0
}
