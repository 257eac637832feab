//! How a texture is read: what CUDA keeps in a texture object, and the CPU device in one word.

#[cfg(not(target_arch = "nvptx64"))]
use super::element::Format;

/// What a coordinate outside a texture reads (`cudaTextureAddressMode`, `CUaddress_mode`).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{AddressMode, Sampler};
///
/// // What lies outside continues the texture as a mirror would, along both axes.
/// let mirrored = Sampler::new().normalized_coordinates().address_mode(AddressMode::Mirror);
/// // Around the x axis it is closed, along y it ends.
/// let globe = mirrored.address_modes([AddressMode::Wrap, AddressMode::Clamp, AddressMode::Clamp]);
/// assert_ne!(mirrored, globe);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum AddressMode {
    /// The nearest element at the edge.
    #[default]
    Clamp,
    /// The texture repeated. With normalised coordinates only.
    Wrap,
    /// The texture repeated, every second time mirrored. With normalised coordinates only.
    Mirror,
    /// 0.
    Border,
}

/// What a read between elements returns (`cudaTextureFilterMode`, `CUfilter_mode`).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{FilterMode, Sampler};
///
/// assert_eq!(Sampler::new().filter_mode(FilterMode::Linear), Sampler::new().linear());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum FilterMode {
    /// The element in which the coordinate lies.
    #[default]
    Point,
    /// The mean of the nearest elements, weighted by their distance along each axis in steps of 1/256. For
    /// textures that are read as `f32`. An H200 returns means of `f16` as 16-bit numbers, and means of
    /// integers as fractions of some 17 bits; the CPU device returns both as `f32`.
    Linear,
}

/// How the CPU device reads a texture.
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    pub format: Format,
    pub channels: usize,
    pub filter: FilterMode,
    pub addresses: [AddressMode; 3],
    /// Whether coordinates are from 0 to 1.
    pub has_normalized_coordinates: bool,
    /// Whether integers are normalised to at most 1.
    pub is_normalized: bool,
}

#[cfg(not(target_arch = "nvptx64"))]
impl Reading {
    /// As a kernel's parameter.
    pub fn to_word(self) -> u32 {
        let addresses = self.addresses.iter().rev().fold(0, |word, &address| word << 2 | address as u32);
        self.format as u32
            | (self.channels as u32) << 3
            | (self.filter as u32) << 6
            | u32::from(self.has_normalized_coordinates) << 7
            | u32::from(self.is_normalized) << 8
            | addresses << 9
    }

    /// The inverse of `to_word`.
    pub(super) fn from_word(word: u32) -> Self {
        const ADDRESSES: [AddressMode; 4] =
            [AddressMode::Clamp, AddressMode::Wrap, AddressMode::Mirror, AddressMode::Border];
        let address = |axis: u32| ADDRESSES[(word >> (9 + 2 * axis) & 3) as usize];
        Reading {
            format: Format::ALL[(word & 7) as usize],
            channels: (word >> 3 & 7) as usize,
            filter: if word >> 6 & 1 == 0 { FilterMode::Point } else { FilterMode::Linear },
            addresses: [address(0), address(1), address(2)],
            has_normalized_coordinates: word >> 7 & 1 != 0,
            is_normalized: word >> 8 & 1 != 0,
        }
    }
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;

    #[test]
    fn a_word_holds_all_of_it() {
        use AddressMode::{Border, Clamp, Mirror, Wrap};
        for (number, format) in Format::ALL.into_iter().enumerate() {
            assert_eq!(number, format as usize);
            for channels in [1, 2, 4] {
                for bits in 0..8 {
                    for addresses in [[Clamp, Wrap, Mirror], [Border, Clamp, Wrap], [Mirror, Border, Border]]
                    {
                        let reading = Reading {
                            format,
                            channels,
                            filter: if bits & 1 == 0 { FilterMode::Point } else { FilterMode::Linear },
                            addresses,
                            has_normalized_coordinates: bits & 2 != 0,
                            is_normalized: bits & 4 != 0,
                        };
                        assert_eq!(Reading::from_word(reading.to_word()), reading);
                    }
                }
            }
        }
    }
}
