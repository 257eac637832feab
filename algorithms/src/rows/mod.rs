//! Operations on each row of a matrix: softmax and normalisations.

pub(crate) mod kernels;

use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Error, Grid, Result, Stream};
use kernels::kernels::{
    GROUPS, LayerNorm, LogSoftmax, RmsNorm, RowOperation, Softmax, THREADS, rows_in_passes, rows_in_registers,
};

/// What follows a normalisation, and the number in its square root.
///
/// ```
/// use ferrogrid_algorithms::Affine;
///
/// let affine = Affine { epsilon: 1e-6, ..Affine::default() };
/// assert!(affine.weight.is_none() && affine.bias.is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Affine<'a> {
    /// Is added to the variance or the mean of squares: 1e-5, as PyTorch has it.
    pub epsilon: f32,
    /// A factor for each column.
    pub weight: Option<DeviceView<'a, f32>>,
    /// A summand for each column.
    pub bias: Option<DeviceView<'a, f32>>,
}

impl Default for Affine<'_> {
    fn default() -> Self {
        Affine { epsilon: 1e-5, weight: None, bias: None }
    }
}

/// Calls the kernel that suits rows of that width and place.
fn rows_of<O: RowOperation + rows_in_registers::Instance + rows_in_passes::Instance>(
    stream: &Stream,
    x: DeviceView<f32>,
    width: usize,
    affine: Affine,
    y: DeviceViewMut<f32>,
) -> Result<()> {
    let rows = x.len().checked_div(width).unwrap_or(0);
    let agree = |operation, source_length, target_length| match source_length == target_length {
        true => Ok(()),
        false => Err(Error::LengthMismatch { operation, source_length, target_length }),
    };
    agree("whole rows", rows * width, x.len())?;
    agree("rows", x.len(), y.len())?;
    for of_columns in [affine.weight, affine.bias].into_iter().flatten() {
        agree("a number for each column", of_columns.len(), width)?;
    }
    if rows == 0 {
        return Ok(());
    }
    let [weight, bias] = [affine.weight, affine.bias].map(|it| it.map_or_else(|| x.slice(..0), Ok));
    let (weight, bias) = (weight?, bias?);
    // A thread for as many elements as it has in registers, in whole warps.
    let threads = width.div_ceil(4 * GROUPS).next_multiple_of(32);
    let starts =
        [x, weight, bias].map(|it| it.is_empty() || it.as_device_ptr().as_raw().addr().is_multiple_of(16));
    let mut y = y;
    let are_aligned = starts == [true; 3] && y.as_device_ptr_mut().as_raw().addr().is_multiple_of(16);
    if are_aligned && width.is_multiple_of(4) && threads <= THREADS {
        let (groups, grid) = (width / 4, Grid::new(rows, threads));
        let (x, y) =
            (x.as_aligned16::<4>()?.into_2d(groups, rows)?, y.as_aligned16::<4>()?.into_2d(groups, rows)?);
        let (weight, bias) = (weight.as_aligned16::<4>()?, bias.as_aligned16::<4>()?);
        return kernels::kernels::rows_in_registers::<O>(stream, grid, affine.epsilon, x, weight, bias, y);
    }
    let grid = Grid::new(rows, width.next_multiple_of(32).min(THREADS));
    let (x, y) = (x.into_2d(width, rows)?, y.into_2d(width, rows)?);
    kernels::kernels::rows_in_passes::<O>(stream, grid, affine.epsilon, x, weight, bias, y)
}

/// Writes the softmax of each row of `x`, rows of `width` elements, to `y`: `exp(x)` over the sum of these in its row (PyTorch's
/// `softmax(x, -1)`). The greatest element of the row is subtracted first, so nothing overflows. A row with NaN or infinity,
/// or with negative infinity only, becomes NaN.
///
/// Each element is read and written once, up to 32,768 to a row of whole multiples of 16 bytes; other rows are read three times,
/// mostly from a cache. A block has a row, so rows of fewer than some hundred elements do not reach the memory's bandwidth.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut y) = (stream.upload(&[1.0, 1.0, 7.0, f32::NEG_INFINITY])?, stream.zeros(4)?);
/// algorithms::softmax(&stream, &x, 2, &mut y)?;
/// assert_eq!(stream.download(&y)?, [0.5, 0.5, 1.0, 0.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch; `Error::LengthMismatch` if `x` is not made of rows of that width, or `y` has another length.
pub fn softmax<'a, 'b>(
    stream: &Stream,
    x: impl DeviceInput<'a, f32>,
    width: usize,
    y: impl DeviceOutput<'b, f32>,
) -> Result<()> {
    rows_of::<Softmax>(stream, x.into_input(), width, Affine::default(), y.into_output())
}

/// Writes the logarithm of the [`softmax`] of each row, which cannot underflow (PyTorch's `log_softmax(x, -1)`). As that in all
/// else.
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax<'a, 'b>(
    stream: &Stream,
    x: impl DeviceInput<'a, f32>,
    width: usize,
    y: impl DeviceOutput<'b, f32>,
) -> Result<()> {
    rows_of::<LogSoftmax>(stream, x.into_input(), width, Affine::default(), y.into_output())
}

/// Writes each row of `x`, less its mean and over its standard deviation, to `y` (PyTorch's `layer_norm`). As [`softmax`] in the
/// number of accesses.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// use algorithms::Affine;
///
/// let (x, mut y) = (stream.upload(&[1.0, 3.0, 9.0, 7.0])?, stream.zeros(4)?);
/// let bias = stream.upload(&[0.0, 10.0])?;
/// let affine = Affine { epsilon: 0.0, bias: Some(bias.view()), ..Affine::default() };
/// algorithms::layer_norm(&stream, &x, 2, affine, &mut y)?;
/// assert_eq!(stream.download(&y)?, [-1.0, 11.0, 1.0, 9.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`softmax`]; `Error::LengthMismatch` also if weight or bias has another length than a row.
pub fn layer_norm<'a, 'b>(
    stream: &Stream,
    x: impl DeviceInput<'a, f32>,
    width: usize,
    affine: Affine,
    y: impl DeviceOutput<'b, f32>,
) -> Result<()> {
    rows_of::<LayerNorm>(stream, x.into_input(), width, affine, y.into_output())
}

/// Writes each row of `x` over the root of the mean of its squares to `y` (PyTorch's `rms_norm`). As [`layer_norm`] in all else.
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm<'a, 'b>(
    stream: &Stream,
    x: impl DeviceInput<'a, f32>,
    width: usize,
    affine: Affine,
    y: impl DeviceOutput<'b, f32>,
) -> Result<()> {
    rows_of::<RmsNorm>(stream, x.into_input(), width, affine, y.into_output())
}
