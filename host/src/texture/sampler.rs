//! Samplers: filter, address modes and coordinates of texture reads.

use ferrogrid_device::{AddressMode, FilterMode};

use crate::error::{Error, Result};

/// How a kernel reads a texture by coordinates: filter, address modes, and whether coordinates are numbers of
/// elements or from 0 to 1 (`cudaTextureDesc`, `CUDA_TEXTURE_DESC`). The kernel's signature
/// determines whether integers become numbers up to 1.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The texture at places of a line.
/// #[kernel]
/// pub fn along(t: Thread<1>, step: f32, line: Texture<f32>, mut out: DisjointSlice<f32>) {
///     let i = t.index();
///     if let Some(out) = out.get_mut(i) {
///         *out = line.sample(step * i.get() as f32);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{AddressMode, Sampler};
///
/// let line = stream.upload_array(&[2.0, 4.0], [2])?;
/// let mut out = stream.zeros(5)?;
/// let mut read = |step, sampler: Sampler| {
///     kernels::along(&stream, Grid::cover(5), step, line.texture(&sampler)?, &mut out)?;
///     stream.download(&out)
/// };
/// assert_eq!(read(0.5, Sampler::new())?, [2.0, 2.0, 4.0, 4.0, 4.0]);
/// assert_eq!(read(0.5, Sampler::new().linear())?, [2.0, 2.0, 3.0, 4.0, 4.0]);
/// let wrapped = Sampler::new().normalized_coordinates().address_mode(AddressMode::Wrap);
/// assert_eq!(read(0.5, wrapped)?, [2.0, 4.0, 2.0, 4.0, 2.0]);
/// let error = line.texture::<f32>(&Sampler::new().address_mode(AddressMode::Mirror)).unwrap_err();
/// assert!(error.to_string().contains("normalized_coordinates"), "{error}");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[must_use]
pub struct Sampler {
    pub(super) filter: FilterMode,
    pub(super) addresses: [AddressMode; 3],
    pub(super) has_normalized_coordinates: bool,
}

impl Sampler {
    /// The element in which the coordinate lies ([`FilterMode::Point`]), that at the edge outside
    /// ([`AddressMode::Clamp`]), and coordinates in elements: CUDA's default.
    pub const fn new() -> Self {
        Sampler {
            filter: FilterMode::Point,
            addresses: [AddressMode::Clamp; 3],
            has_normalized_coordinates: false,
        }
    }

    /// The result of reads between elements (`cudaTextureDesc::filterMode`).
    pub const fn filter_mode(self, filter: FilterMode) -> Self {
        Sampler { filter, ..self }
    }

    /// Weighted means of the nearest elements: [`FilterMode::Linear`].
    pub const fn linear(self) -> Self {
        self.filter_mode(FilterMode::Linear)
    }

    /// The handling of coordinates outside, along all axes (`cudaTextureDesc::addressMode`).
    pub const fn address_mode(self, address: AddressMode) -> Self {
        self.address_modes([address; 3])
    }

    /// The same for each axis, x first; those above the rank of a texture do not count.
    pub const fn address_modes(self, addresses: [AddressMode; 3]) -> Self {
        Sampler { addresses, ..self }
    }

    /// Coordinates go from 0 to 1, whatever the extents are (`cudaTextureDesc::normalizedCoords`).
    pub const fn normalized_coordinates(self) -> Self {
        Sampler { has_normalized_coordinates: true, ..self }
    }

    /// Whether a texture of that rank can be read so; `is_float` if it gives `f32`.
    pub(crate) fn check(&self, rank: usize, is_float: bool) -> Result<()> {
        let repeats = |address| matches!(address, AddressMode::Wrap | AddressMode::Mirror);
        if !self.has_normalized_coordinates && self.addresses[..rank].iter().copied().any(repeats) {
            return Err(Error::TextureSampler {
                reason: "the address modes `Wrap` and `Mirror` need coordinates from 0 to 1: add `.normalized_coordinates()`",
            });
        }
        if self.filter == FilterMode::Linear && !is_float {
            return Err(Error::TextureSampler {
                reason: "linear filtering gives `f32`, and the kernel reads integers: let it take `Texture<f32, _>`, or use `FilterMode::Point`",
            });
        }
        Ok(())
    }
}
