//! The maximum extents of textures and surfaces.

use crate::device::Device;
use crate::error::{Axis, Error, Result};
use crate::properties::attribute::DeviceAttribute as A;

/// The attributes with the limits of textures, by rank.
const TEXTURES: [&[A]; 3] = [
    &[A::MAXIMUM_TEXTURE1D_WIDTH],
    &[A::MAXIMUM_TEXTURE2D_WIDTH, A::MAXIMUM_TEXTURE2D_HEIGHT],
    &[A::MAXIMUM_TEXTURE3D_WIDTH, A::MAXIMUM_TEXTURE3D_HEIGHT, A::MAXIMUM_TEXTURE3D_DEPTH],
];

/// Other limits that a texture of rank 3 may keep within instead.
const OTHERWISE: [A; 3] = [
    A::MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE,
    A::MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE,
    A::MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE,
];

/// The same of surfaces.
const SURFACES: [&[A]; 3] = [
    &[A::MAXIMUM_SURFACE1D_WIDTH],
    &[A::MAXIMUM_SURFACE2D_WIDTH, A::MAXIMUM_SURFACE2D_HEIGHT],
    &[A::MAXIMUM_SURFACE3D_WIDTH, A::MAXIMUM_SURFACE3D_HEIGHT, A::MAXIMUM_SURFACE3D_DEPTH],
];

/// Whether a texture of these extents is possible.
///
/// # Errors
/// [`Error::TextureExtent`], or if the driver fails.
pub(super) fn check_texture(device: &Device, extent: &[usize]) -> Result<()> {
    let checked = check("texture array", device, extent, TEXTURES[extent.len() - 1]);
    if extent.len() == 3
        && matches!(checked, Err(Error::TextureExtent { value: 1.., .. }))
        && check("texture array", device, extent, &OTHERWISE).is_ok()
    {
        return Ok(());
    }
    checked
}

/// Whether kernels may write a texture array of these extents.
///
/// # Errors
/// As for `check_texture`.
pub(super) fn check_surface(device: &Device, extent: &[usize]) -> Result<()> {
    check("surface", device, extent, SURFACES[extent.len() - 1])
}

fn check(what: &'static str, device: &Device, extent: &[usize], attributes: &[A]) -> Result<()> {
    for ((axis, &value), &attribute) in Axis::ALL.into_iter().zip(extent).zip(attributes) {
        let limit = device.attribute(attribute)?.unsigned_abs();
        if value == 0 || value > limit as usize {
            let attribute = attribute.name().unwrap_or_default();
            return Err(Error::TextureExtent {
                what,
                device: device.to_string().into(),
                axis,
                value,
                limit,
                attribute,
            });
        }
    }
    Ok(())
}
