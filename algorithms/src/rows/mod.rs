//! Operations on each row of a matrix: softmax and normalisations.
//!
//! `operations` says what becomes of a row, `kernels` has the device code, and `halves` that for 16-bit floats.

#[cfg(feature = "half")]
pub(crate) mod halves;
pub(crate) mod kernels;
pub(crate) mod operations;

use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Error, Grid, Result, Stream};
#[cfg(feature = "half")]
use ferrogrid_device::half::{bf16, f16};
#[cfg(feature = "half")]
use halves::kernels::{half_rows_in_passes, half_rows_in_registers};
use kernels::kernels::{QUADS, THREADS, rows_in_passes, rows_in_registers};
use operations::operations::{Norm, RowElement, RowOperation, Softmax};

/// A number whose rows are normalised: `f32`, and with the feature `half` also `f16` and `bf16`, which are computed in `f32` and
/// rounded once.
#[diagnostic::on_unimplemented(
    message = "rows of `{Self}` cannot be normalised",
    label = "expected `f32`, or `f16` or `bf16` with the feature `half`"
)]
pub trait RowNumber:
    Rows<Softmax<false>> + Rows<Softmax<true>> + Rows<Norm<false>> + Rows<Norm<true>>
{
}

impl<T: Rows<Softmax<false>> + Rows<Softmax<true>> + Rows<Norm<false>> + Rows<Norm<true>>> RowNumber for T {}

/// A number with both kernels for an operation.
pub trait Rows<O>: RowElement {
    /// Launches the kernel for aligned rows; `of_columns` has weight and bias.
    fn in_registers(
        stream: &Stream,
        grid: Grid<1>,
        epsilon: f32,
        matrices: Matrices<Self>,
        of_columns: [DeviceView<Self>; 2],
    ) -> Result<()>;
    /// Launches the kernel for any rows.
    fn in_passes(
        stream: &Stream,
        grid: Grid<1>,
        epsilon: f32,
        matrices: Matrices<Self>,
        of_columns: [DeviceView<Self>; 2],
    ) -> Result<()>;
}

/// Rows to read, rows to write, and their shape.
#[derive(Debug)]
pub struct Matrices<'a, 'b, T> {
    x: DeviceView<'a, T>,
    y: DeviceViewMut<'b, T>,
    width: usize,
    rows: usize,
}

macro_rules! rows {
    ($($t:ty: $group:literal, $in_registers:ident, $in_passes:ident;)*) => {
        $(impl<O: RowOperation> Rows<O> for $t
        where
            $t: $in_registers::Instance<O> + $in_passes::Instance<O>,
        {
            fn in_registers(
                stream: &Stream,
                grid: Grid<1>,
                epsilon: f32,
                Matrices { x, y, width, rows }: Matrices<Self>,
                [weight, bias]: [DeviceView<Self>; 2],
            ) -> Result<()> {
                let groups = width / $group;
                let x = x.as_aligned16::<$group>()?.into_2d(groups, rows)?;
                let y = y.as_aligned16::<$group>()?.into_2d(groups, rows)?;
                let (weight, bias) = (weight.as_aligned16::<$group>()?, bias.as_aligned16::<$group>()?);
                $in_registers::<$t, O>(stream, grid, epsilon, x, weight, bias, y)
            }

            fn in_passes(
                stream: &Stream,
                grid: Grid<1>,
                epsilon: f32,
                Matrices { x, y, width, rows }: Matrices<Self>,
                [weight, bias]: [DeviceView<Self>; 2],
            ) -> Result<()> {
                let (x, y) = (x.into_2d(width, rows)?, y.into_2d(width, rows)?);
                $in_passes::<$t, O>(stream, grid, epsilon, x, weight, bias, y)
            }
        })*
    };
}
rows! { f32: 4, rows_in_registers, rows_in_passes; }
#[cfg(feature = "half")]
rows! {
    f16: 8, half_rows_in_registers, half_rows_in_passes;
    bf16: 8, half_rows_in_registers, half_rows_in_passes;
}

/// What follows a normalisation, and the number in its square root.
///
/// ```
/// use ferrogrid_algorithms::Affine;
///
/// let affine = Affine { epsilon: 1e-6, ..Affine::<f32>::default() };
/// assert!(affine.weight.is_none() && affine.bias.is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Affine<'a, T = f32> {
    /// Is added to the variance or the mean of squares: 1e-5, as PyTorch has it.
    pub epsilon: f32,
    /// A factor for each column.
    pub weight: Option<DeviceView<'a, T>>,
    /// A summand for each column.
    pub bias: Option<DeviceView<'a, T>>,
}

impl<T> Default for Affine<'_, T> {
    fn default() -> Self {
        Affine { epsilon: 1e-5, weight: None, bias: None }
    }
}

/// Calls the kernel that suits rows of that width and place.
fn rows_of<T: Rows<O>, O>(
    stream: &Stream,
    x: DeviceView<T>,
    width: usize,
    affine: Affine<T>,
    mut y: DeviceViewMut<T>,
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
    let of_columns = [weight?, bias?];
    // A thread for as many elements as it has in registers, in whole warps.
    let threads = width.div_ceil(4 * QUADS).next_multiple_of(32);
    let is_aligned =
        |it: DeviceView<T>| it.is_empty() || it.as_device_ptr().as_raw().addr().is_multiple_of(16);
    let are_aligned = is_aligned(x)
        && of_columns.into_iter().all(is_aligned)
        && y.as_device_ptr_mut().as_raw().addr().is_multiple_of(16);
    let matrices = Matrices { x, y, width, rows };
    if are_aligned && width.is_multiple_of(4 * T::QUADS) && threads <= THREADS {
        return T::in_registers(stream, Grid::new(rows, threads), affine.epsilon, matrices, of_columns);
    }
    let grid = Grid::new(rows, width.next_multiple_of(32).min(THREADS));
    T::in_passes(stream, grid, affine.epsilon, matrices, of_columns)
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
pub fn softmax<'a, 'b, T: RowNumber + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    width: usize,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    rows_of::<T, Softmax<false>>(stream, x.into_input(), width, Affine::default(), y.into_output())
}

/// Writes the logarithm of the [`softmax`] of each row, which cannot underflow (PyTorch's `log_softmax(x, -1)`). As that in all
/// else.
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax<'a, 'b, T: RowNumber + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    width: usize,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    rows_of::<T, Softmax<true>>(stream, x.into_input(), width, Affine::default(), y.into_output())
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
pub fn layer_norm<'a, 'b, T: RowNumber + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    width: usize,
    affine: Affine<T>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    rows_of::<T, Norm<true>>(stream, x.into_input(), width, affine, y.into_output())
}

/// Writes each row of `x` over the root of the mean of its squares to `y` (PyTorch's `rms_norm`). As [`layer_norm`] in all else.
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm<'a, 'b, T: RowNumber + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    width: usize,
    affine: Affine<T>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    rows_of::<T, Norm<false>>(stream, x.into_input(), width, affine, y.into_output())
}
