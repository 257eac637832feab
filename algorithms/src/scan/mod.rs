//! Scans: each element combined with all before it.

pub(crate) mod running;

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;

use crate::reduce::Number;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Grid, Result, Stream};
use running::kernels::{TILE, exclusive, inclusive};

/// A number whose sums are those of `Bits`: unsigned integers stand for signed ones of their size.
pub trait Scanned: Pod + DeviceCopy {
    /// The number that kernels add up.
    type Bits: Pod + inclusive::Instance + exclusive::Instance;
}

macro_rules! scanned {
    ($($t:ty: $bits:ty,)*) => {
        $(impl Scanned for $t {
            type Bits = $bits;
        })*
    };
}
scanned! { i8: u8, i16: u16, i32: u32, i64: u64, u8: u8, u16: u16, u32: u32, u64: u64, f32: f32, f64: f64, }

/// The grid for so many elements.
pub(crate) fn grid(len: usize) -> Grid<1> {
    Grid::blocks(len.div_ceil(TILE).max(1))
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
    launch(grid(x.len()), x.cast()?, y.cast()?)
}

/// Writes to `y[i]` the sum of `x[0]` to `x[i]` (CUB's `DeviceScan::InclusiveSum`, NumPy's `cumsum`). Integers wrap around
/// in their own type.
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
    scan::<T>(x.into_input(), y.into_output(), |grid, x, y| {
        running::kernels::inclusive::<T::Bits>(stream, grid, x, y)
    })
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
        running::kernels::exclusive::<T::Bits>(stream, grid, x, bytemuck::cast(first), y)
    })
}
