//! Elements in a row: sequences, the reverse order, rolls, and differences of neighbours.

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;

use crate::movement::striped::TILE;
use crate::movement::{assert_movable, by_size};
use crate::reduce::Number;
use crate::scan::Scanned;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Error, Grid, Result, Stream};
use kernels::{differences, reverse_elements, sequence_elements};

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::movement::striped::{RUN, THREADS, each, load};
    use crate::number::numbers::Element;

    /// y[i] <- first + step * i
    #[kernel(
        block = THREADS,
        wide,
        T = [u8, u16, u32, u64, f32, f64, #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16]
    )]
    pub fn sequence_elements<T: Element>(t: Thread<1>, first: T, step: T, mut y: DisjointWarps<T, RUN>) {
        let items = each(&t, y.first(&t), |i| T::of_sequence(first, step, i));
        y.fill_striped(&t, items);
    }

    /// y[i] <- x[n - 1 - i]
    #[kernel(block = THREADS, wide, same_shape(x, y), T = [u8, u16, u32, u64, u128])]
    pub fn reverse_elements<T: DeviceCopy + Default>(t: Thread<1>, x: &[T], mut y: DisjointWarps<T, RUN>) {
        // Beyond the end it wraps to an index that no slice has.
        let items = each(&t, y.first(&t), |i| load(x, x.len().wrapping_sub(i + 1)));
        y.fill_striped(&t, items);
    }

    /// y[i] <- x[i] - x[i - 1], with 0 before the first one
    #[kernel(
        block = THREADS,
        wide,
        same_shape(x, y),
        T = [u8, u16, u32, u64, f32, f64, #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16]
    )]
    pub fn differences<T: Element + Default>(t: Thread<1>, x: &[T], mut y: DisjointWarps<T, RUN>) {
        let items = each(&t, y.first(&t), |i| load(x, i).subtract(load(x, i.wrapping_sub(1))));
        y.fill_striped(&t, items);
    }
}

/// A number with sequences and differences: unsigned integers stand for signed ones.
pub trait Differing: Scanned<Bits: sequence_elements::Instance + differences::Instance> {}

impl<T: Scanned<Bits: sequence_elements::Instance + differences::Instance>> Differing for T {}

fn reverse_as<B: Pod + DeviceCopy + Default + reverse_elements::Instance>(
    stream: &Stream,
    x: DeviceView<impl Pod + DeviceCopy>,
    y: DeviceViewMut<impl Pod + DeviceCopy>,
) -> Result<()> {
    let grid = Grid::blocks(x.len().div_ceil(TILE).max(1));
    kernels::reverse_elements::<B>(stream, grid, x.cast()?, y.cast()?)
}

/// Writes `first + step * i` to `y[i]` (Thrust's `sequence`, CuPy's `arange`). Integers wrap around; floats are rounded twice,
/// so errors do not add up.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let mut y = stream.zeros(4)?;
/// algorithms::sequence(&stream, 10, -3, &mut y)?;
/// assert_eq!(stream.download(&y)?, [10, 7, 4, 1]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch.
pub fn sequence<'a, T: Number>(
    stream: &Stream,
    first: T,
    step: T,
    y: impl DeviceOutput<'a, T>,
) -> Result<()> {
    let (first, step, y) = (bytemuck::cast(first), bytemuck::cast(step), y.into_output());
    if y.is_empty() {
        return Ok(());
    }
    let grid = Grid::blocks(y.len().div_ceil(TILE));
    kernels::sequence_elements::<T::Bits>(stream, grid, first, step, y.cast()?)
}

/// Writes the elements of `x` to `y`, the last one first (Thrust's `reverse_copy`, NumPy's `x[::-1]`). Elements are plain data
/// of 1, 2, 4, 8 or 16 bytes.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut y) = (stream.upload(&[1, 2, 3])?, stream.zeros(3)?);
/// algorithms::reverse(&stream, &x, &mut y)?;
/// assert_eq!(stream.download(&y)?, [3, 2, 1]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch: `x` and `y` have the same length. `Error::ViewCast` if elements of 8 or 16 bytes do not start at a
/// multiple of that.
pub fn reverse<'a, 'b, T: Pod + DeviceCopy>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    const { assert_movable::<T>(16) };
    let (x, y) = (x.into_input(), y.into_output());
    if x.is_empty() && y.is_empty() {
        return Ok(());
    }
    by_size!(T as 1: u8, 2: u16, 4: u32, 8: u64, 16: u128; reverse_as(stream, x, y))
}

/// Writes each element of `x` to `y`, `shift` places further; what leaves the end comes in at the beginning (CuPy's `roll`). A
/// negative `shift` moves towards the beginning. It is two copies.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut y) = (stream.upload(&[1, 2, 3, 4])?, stream.zeros(4)?);
/// algorithms::roll(&stream, &x, -1, &mut y)?;
/// assert_eq!(stream.download(&y)?, [2, 3, 4, 1]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::LengthMismatch` if the lengths differ; a failure of the device.
pub fn roll<'a, 'b, T: DeviceCopy>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    shift: isize,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    let (x, y) = (x.into_input(), y.into_output());
    let n = x.len();
    if n != y.len() {
        return Err(Error::LengthMismatch { operation: "roll", source_length: n, target_length: y.len() });
    }
    if n == 0 {
        return Ok(());
    }
    // A slice has at most `isize::MAX` elements.
    let shift = shift.rem_euclid(n as isize) as usize;
    let ((front, back), (low, high)) = (x.split_at(n - shift)?, y.split_at(shift)?);
    stream.copy(front, high)?;
    stream.copy(back, low)
}

/// Writes to `y` the first element of `x`, then the difference of each to the one before it (CUB's
/// `DeviceAdjacentDifference::SubtractLeftCopy`). Integers wrap around: [`inclusive_sum`](crate::inclusive_sum) of the
/// result is `x`.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut y) = (stream.upload(&[3, 1, 4, 1])?, stream.zeros(4)?);
/// algorithms::adjacent_difference(&stream, &x, &mut y)?;
/// assert_eq!(stream.download(&y)?, [3, -2, 3, -3]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch: `x` and `y` have the same length.
pub fn adjacent_difference<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    let (x, y) = (x.into_input(), y.into_output());
    if x.is_empty() && y.is_empty() {
        return Ok(());
    }
    let grid = Grid::blocks(x.len().div_ceil(TILE).max(1));
    kernels::differences::<T::Bits>(stream, grid, x.cast()?, y.cast()?)
}
