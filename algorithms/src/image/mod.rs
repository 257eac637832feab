//! Images: other sizes, and luminance.
//!
//! `kernels` has the device code.

pub(crate) mod kernels;

use ferrogrid_host::PitchedView;

use crate::{DeviceViewMut, Error, Result, Stream};
use kernels::kernels::{Colour, Pixel, gray_pixels, resize_pixels};

pub use kernels::kernels::Interpolation;

/// The pixel of an image: `u8`, `f32`, or an array of three or four of these.
#[diagnostic::on_unimplemented(
    message = "images have no pixels of type `{Self}`",
    label = "expected `u8`, `f32`, or an array of 3 or 4 of these"
)]
pub trait ImagePixel: Pixel + resize_pixels::Instance {}

impl<P: Pixel + resize_pixels::Instance> ImagePixel for P {}

/// The pixel of an image in colour: an array of three or four `u8` or `f32`, red, green and blue first.
#[diagnostic::on_unimplemented(
    message = "images in colour have no pixels of type `{Self}`",
    label = "expected an array of 3 or 4 `u8` or `f32`"
)]
pub trait ColourPixel: Colour + gray_pixels::Instance {}

impl<P: Colour + gray_pixels::Instance> ColourPixel for P {}

/// Writes the image `x` in the size of `y` (NPP's `Resize`, OpenCV's `resize`, CuPy's `ndimage.zoom` with `grid_mode`). An image is a view in two
/// dimensions, or one with a pitch.
///
/// Both images cover the same square: the centre of pixel `i` of `n` is at `(i + 1/2) m / n - 1/2` of `m`, exactly. `Linear` takes the four
/// pixels around it, at the edges the nearest ones, in `f32`: first along rows. `u8` is rounded to the nearest, halves up. A result that
/// is much smaller than the image leaves pixels out.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// use algorithms::Interpolation;
///
/// let (x, mut y) = (stream.upload(&[0_u8, 100])?, stream.zeros::<u8>(4)?);
/// algorithms::resize(&stream, x.view_2d(2, 1)?, Interpolation::Linear, y.view_2d_mut(4, 1)?)?;
/// assert_eq!(stream.download(&y)?, [0, 25, 75, 100]);
/// algorithms::resize(&stream, x.view_2d(2, 1)?, Interpolation::Nearest, y.view_2d_mut(4, 1)?)?;
/// assert_eq!(stream.download(&y)?, [0, 0, 100, 100]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::Argument` if `x` has no pixels and `y` has some, or an extent is 2^31 or more; and those of a launch.
pub fn resize<'a, 'b, P: ImagePixel + 'a>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, P>>,
    interpolation: Interpolation,
    y: DeviceViewMut<'b, P, 2>,
) -> Result<()> {
    let (x, to) = (x.into(), y.extent());
    if to.contains(&0) {
        return Ok(());
    }
    let from = [x.width(), x.height()];
    if from.into_iter().any(|extent| extent == 0)
        || from.into_iter().chain(to).any(|extent| extent >= 1 << 31)
    {
        return Err(Error::Argument {
            function: "resize",
            argument: "the size of an image",
            value: format!("from {} x {} to {} x {}", from[0], from[1], to[0], to[1]).into(),
            expected: "from 1 to 2,147,483,647 pixels along each axis",
        });
    }
    let (from, pitch) = (from.map(|extent| extent as u64), x.pitch() as u64);
    let grid = kernels::kernels::resize_pixels::grid(to);
    kernels::kernels::resize_pixels::<P>(stream, grid, interpolation, from, pitch, x.span(), y)
}

/// Writes the luminance of each pixel of `x`, 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601; NPP's `RGBToGray`, OpenCV's
/// `COLOR_RGB2GRAY`), to `y`. A fourth channel is left out. `u8` is exact and then rounded to the nearest, halves up; `f32` are products, added in
/// this order.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut y) = (stream.upload(&[[255_u8, 0, 0], [255, 255, 255]])?, stream.zeros::<u8>(2)?);
/// algorithms::grayscale(&stream, x.view_2d(2, 1)?, y.view_2d_mut(2, 1)?)?;
/// assert_eq!(stream.download(&y)?, [76, 255]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::ShapeMismatch` if the images differ in size; and those of a launch.
pub fn grayscale<'a, 'b, P: ColourPixel + 'a>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, P>>,
    y: DeviceViewMut<'b, P::Channel, 2>,
) -> Result<()> {
    let x = x.into();
    let (from, to) = ([x.width(), x.height()], y.extent());
    if from != to {
        return Err(Error::ShapeMismatch { operation: "grayscale", from, to });
    }
    if to.contains(&0) {
        return Ok(());
    }
    let grid = kernels::kernels::gray_pixels::grid(to);
    kernels::kernels::gray_pixels::<P>(stream, grid, x.pitch() as u64, x.span(), y)
}
