//! Scans: each element combined with all before it.
//!
//! `running` has the kernels, `halves` those for 16-bit floats, and `native` the native bodies.

#[cfg(feature = "half")]
mod halves;
mod native;
pub(crate) mod running;

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;

use crate::reduce::Number;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Grid, Result, Stream};
use running::kernels::{exclusive_sums, exclusive_sums_wide, inclusive_sums, inclusive_sums_wide, tile};

/// A number whose sums are those of `Bits`: unsigned integers stand for signed ones of their size.
pub trait Scanned: Pod + DeviceCopy {
    /// The number that kernels add up.
    type Bits: Summed;
}

/// Has kernels for running sums.
pub trait Summed: Pod + DeviceCopy {
    /// Launches the kernel for sums that include each element itself.
    fn inclusive(stream: &Stream, grid: Grid<1>, x: DeviceView<Self>, y: DeviceViewMut<Self>) -> Result<()>;

    /// Launches the kernel for sums of `start` and all before each element.
    fn exclusive(
        stream: &Stream,
        grid: Grid<1>,
        x: DeviceView<Self>,
        start: Self,
        y: DeviceViewMut<Self>,
    ) -> Result<()>;
}

macro_rules! summed {
    ($($bits:ty: $inclusive:ident, $exclusive:ident, of $($t:ty),*;)*) => {
        $(
            impl Summed for $bits {
                fn inclusive(
                    stream: &Stream,
                    grid: Grid<1>,
                    x: DeviceView<Self>,
                    y: DeviceViewMut<Self>,
                ) -> Result<()> {
                    $inclusive(stream, grid, x, y)
                }

                fn exclusive(
                    stream: &Stream,
                    grid: Grid<1>,
                    x: DeviceView<Self>,
                    start: Self,
                    y: DeviceViewMut<Self>,
                ) -> Result<()> {
                    $exclusive(stream, grid, x, start, y)
                }
            }
            $(impl Scanned for $t {
                type Bits = $bits;
            })*
        )*
    };
}
summed! {
    u8: inclusive_sums, exclusive_sums, of i8, u8;
    u16: inclusive_sums, exclusive_sums, of i16, u16;
    u32: inclusive_sums, exclusive_sums, of i32, u32;
    f32: inclusive_sums, exclusive_sums, of f32;
    u64: inclusive_sums_wide, exclusive_sums_wide, of i64, u64;
    f64: inclusive_sums_wide, exclusive_sums_wide, of f64;
}

/// Calls `launch` with the grid for `x`, unless there is nothing to do.
fn scan<T: Scanned>(
    x: DeviceView<T>,
    y: DeviceViewMut<T>,
    launch: impl FnOnce(Grid<1>, DeviceView<T::Bits>, DeviceViewMut<T::Bits>) -> Result<()>,
) -> Result<()> {
    if x.is_empty() && y.is_empty() {
        return Ok(());
    }
    launch(Grid::blocks(x.len().div_ceil(tile::<T>()).max(1)), x.cast()?, y.cast()?)
}

/// Writes to `y[i]` the sum of `x[0]` to `x[i]` (CUB's `DeviceScan::InclusiveSum`, NumPy's `cumsum`). Integers wrap around
/// in their own type; sums of `f16` and `bf16` are those in `f32`, each rounded once.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut y) = (stream.upload(&[3, 1, 4, 1])?, stream.zeros(4)?);
/// algorithms::inclusive_sum(&stream, &x, &mut y)?;
/// assert_eq!(stream.download(&y)?, [3, 4, 8, 9]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch; `x` and `y` have the same length.
pub fn inclusive_sum<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    scan::<T>(x.into_input(), y.into_output(), |grid, x, y| T::Bits::inclusive(stream, grid, x, y))
}

/// Writes to `y[i]` the sum of `first` and `x[0]` to `x[i - 1]` (CUB's `DeviceScan::ExclusiveScan`): where part `i` begins, if
/// `x` has the lengths of parts. Integers wrap around in their own type.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (lengths, mut starts) = (stream.upload(&[3, 0, 5, 2])?, stream.zeros(4)?);
/// algorithms::exclusive_sum(&stream, &lengths, 100, &mut starts)?;
/// assert_eq!(stream.download(&starts)?, [100, 103, 103, 108]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`inclusive_sum`].
pub fn exclusive_sum<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    first: T,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    scan::<T>(x.into_input(), y.into_output(), |grid, x, y| {
        T::Bits::exclusive(stream, grid, x, bytemuck::cast(first), y)
    })
}
