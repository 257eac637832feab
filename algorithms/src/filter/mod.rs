//! Filters: correlation and convolution of signals and images with weights.
//!
//! `kernels` has the device code.

pub(crate) mod kernels;

use bytemuck::AnyBitPattern;
use ferrogrid_device::DeviceCopy;
use ferrogrid_host::PitchedView;

use crate::tuning::{Tuning, tuned};
use crate::{DeviceOutput, DeviceView, DeviceViewMut, Error, Grid, Result, Stream};
use kernels::kernels::{Filter, ROUNDS, THREADS, filter_elements, filter_tiles};

pub use kernels::kernels::Border;

/// The shared memory that every GPU has for a block, in bytes.
const SHARED: usize = 48 << 10;

/// A number that filters take: `f32` or `f64`.
#[diagnostic::on_unimplemented(
    message = "filters take no elements of type `{Self}`",
    label = "expected `f32` or `f64`"
)]
pub trait Filtered: DeviceCopy + AnyBitPattern + filter_tiles::Instance + filter_elements::Instance {}

impl<T: DeviceCopy + AnyBitPattern + filter_tiles::Instance + filter_elements::Instance> Filtered for T {}

/// Whether the weights meet the elements in their own order, as in a correlation, or the last one first.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Correlation,
    Convolution,
}

fn filter<T: Filtered>(
    function: &'static str,
    stream: &Stream,
    order: Order,
    x: PitchedView<T>,
    weights: DeviceView<T, 2>,
    border: Border,
    y: DeviceViewMut<T>,
) -> Result<()> {
    let ([width, height], [columns, rows]) = ([x.width(), x.height()], weights.extent());
    let is_some = |extent: usize| (1..=1 << 20).contains(&extent);
    if !is_some(columns) || !is_some(rows) {
        return Err(Error::Argument {
            function,
            argument: "the number of weights",
            value: format!("{columns} x {rows}").into(),
            expected: "from 1 to 1,048,576 along each axis",
        });
    }
    // Extents of a view with elements fit into memory, those of one without need not.
    let (source_length, target_length) = (width.saturating_mul(height), y.len());
    if source_length != target_length {
        return Err(Error::LengthMismatch { operation: function, source_length, target_length });
    }
    if source_length == 0 {
        return Ok(());
    }
    let high = height.min(tuned::<T, ()>(stream, Tuning::FilterRows)).next_power_of_two();
    let wide = THREADS * ROUNDS / high;
    let shared = (wide + columns - 1) * (high + rows - 1) + columns * rows;
    let centre = [columns, rows].map(|extent| match order {
        Order::Correlation => extent / 2,
        Order::Convolution => extent - 1 - extent / 2,
    });
    let across = width.div_ceil(wide);
    let f = Filter {
        extent: [width, height].map(|extent| extent as u64),
        pitch: x.pitch() as u64,
        weights: [columns, rows].map(|extent| extent as u32),
        centre: centre.map(|place| place as u32),
        // The launch refuses so many blocks that this does not fit.
        across: across as u32,
        shift: wide.ilog2(),
        border,
        is_reversed: order == Order::Convolution,
        padding: [0; 3],
    };
    let weights = PitchedView::from(weights).span();
    if shared * size_of::<T>() > SHARED {
        let grid = kernels::kernels::filter_elements::grid(y.len());
        return kernels::kernels::filter_elements::<T>(stream, grid, f, x.span(), weights, y);
    }
    let grid = Grid::blocks(across.saturating_mul(height.div_ceil(high)));
    kernels::kernels::filter_tiles::<T>(stream, grid, f, x.span(), weights, y.into_atomic(), shared)
}

/// Writes to `y` for each element of `x` the sum of the weights times the elements around it (SciPy's and CuPy's
/// `ndimage.correlate`): the weight in column `w / 2` and row `h / 2` of `w` x `h` weights is that of the element itself,
/// those before it are of elements to the left and above. A signal is a matrix of one row: `x.view_2d(n, 1)`.
///
/// Sums have the same bits on every device: the products, each rounded, are added in the order of the weights. Tiles of the matrix go through
/// shared memory, if tile and weights fit into 48 KiB (63 x 61 weights of `f32`).
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// use algorithms::Border;
///
/// let (x, weights) = (stream.upload(&[1.0_f32, 2.0, 4.0, 8.0])?, stream.upload(&[-1.0, 0.0, 1.0])?);
/// let mut y = stream.zeros(4)?;
/// algorithms::correlate(&stream, x.view_2d(4, 1)?, weights.view_2d(3, 1)?, Border::Clamp, &mut y)?;
/// assert_eq!(stream.download(&y)?, [1.0, 3.0, 6.0, 4.0]); // the next one less the one before
/// algorithms::correlate(&stream, x.view_2d(2, 2)?, weights.view_2d(1, 3)?, Border::Zero, &mut y)?;
/// assert_eq!(stream.download(&y)?, [4.0, 8.0, -1.0, -2.0]); // the one below less the one above
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::LengthMismatch` if `y` has not as many elements as `x`; `Error::Argument` if there are no weights, or more than 2^20 along an
/// axis; and those of a launch.
pub fn correlate<'a, 'b, 'c, T: Filtered + 'a>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, T>>,
    weights: DeviceView<'b, T, 2>,
    border: Border,
    y: impl DeviceOutput<'c, T>,
) -> Result<()> {
    filter("correlate", stream, Order::Correlation, x.into(), weights, border, y.into_output())
}

/// As [`correlate`], with the weights the other way around: the last one first (SciPy's and CuPy's `ndimage.convolve`;
/// with `Border::Zero` `numpy.convolve(x, weights, "same")`). Weight `w / 2`, `h / 2` is that of the element itself here, too.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// use algorithms::Border;
///
/// let (x, weights) = (stream.upload(&[0.0, 1.0, 0.0, 0.0])?, stream.upload(&[0.5, 2.0, 0.25])?);
/// let mut y = stream.zeros(4)?;
/// algorithms::convolve(&stream, x.view_2d(4, 1)?, weights.view_2d(3, 1)?, Border::Wrap, &mut y)?;
/// assert_eq!(stream.download(&y)?, [0.5, 2.0, 0.25, 0.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`correlate`].
pub fn convolve<'a, 'b, 'c, T: Filtered + 'a>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, T>>,
    weights: DeviceView<'b, T, 2>,
    border: Border,
    y: impl DeviceOutput<'c, T>,
) -> Result<()> {
    filter("convolve", stream, Order::Convolution, x.into(), weights, border, y.into_output())
}

/// As [`convolve`], of weights that are the products of `across`, one for each column, and `down`, one for each row (SciPy's and CuPy's
/// `ndimage.convolve1d` along both axes). Each element takes `across.len() + down.len()` products
/// instead of `across.len() * down.len()`. The sums along rows are rounded before those along columns.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// use algorithms::Border;
///
/// let (x, weights) = (stream.upload(&[0.0_f32, 0.0, 0.0, 0.0, 16.0, 0.0])?, stream.upload(&[0.25, 0.5, 0.25])?);
/// let mut y = stream.zeros(6)?;
/// let (across, down) = (weights.view(), weights.view());
/// algorithms::convolve_separable(&stream, x.view_2d(3, 2)?, across, down, Border::Zero, &mut y)?;
/// assert_eq!(stream.download(&y)?, [1.0, 2.0, 1.0, 2.0, 4.0, 2.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`correlate`].
pub fn convolve_separable<'a, 'b, 'c, 'd, T: Filtered + 'a + 'b + 'c>(
    stream: &Stream,
    x: impl Into<PitchedView<'a, T>>,
    across: DeviceView<'b, T>,
    down: DeviceView<'c, T>,
    border: Border,
    y: impl DeviceOutput<'d, T>,
) -> Result<()> {
    let (x, y, function) = (x.into(), y.into_output(), "convolve_separable");
    let [width, height] = [x.width(), x.height()];
    let (across, down) = (across.into_2d(across.len(), 1)?, down.into_2d(1, down.len())?);
    let mut rows = stream.temporary::<T>(width.saturating_mul(height))?;
    filter(function, stream, Order::Convolution, x, across, border, rows.view_mut())?;
    filter(function, stream, Order::Convolution, rows.view().into_2d(width, height)?.into(), down, border, y)
}
