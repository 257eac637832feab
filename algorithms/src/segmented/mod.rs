//! Reductions of segments: one value for each part of an array.

pub(crate) mod segments;

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;

use crate::accumulate::Accumulated;
use crate::accumulate::accumulations::Accumulation;
use crate::number::numbers::Element;
use crate::reduce::Number;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Error, Grid, Result, Stream};
use segments::kernels::{SEGMENTS, THREADS, segments_of_blocks, segments_of_warps};

/// From this mean length on, a segment has a block of its own. It decides on the order in which floats are added.
const LONG: usize = 512;

/// A number whose segments are combined.
pub trait Segmented: Accumulated<Sum: Instances, Least: Instances> + Element<Total: Pod> {}

impl<T: Accumulated<Sum: Instances, Least: Instances> + Element<Total: Pod>> Segmented for T {}

/// Has both kernels.
pub trait Instances: segments_of_warps::Instance + segments_of_blocks::Instance {}

impl<A: segments_of_warps::Instance + segments_of_blocks::Instance> Instances for A {}

/// An index of an element: `u32` or `u64`.
pub trait Offset: DeviceCopy {
    /// The offsets as those of 32 bits and those of 64, one of them empty.
    #[doc(hidden)]
    fn split<'a>(offsets: DeviceView<'a, Self>) -> Result<(DeviceView<'a, u32>, DeviceView<'a, u64>)>;
}

impl Offset for u32 {
    fn split<'a>(offsets: DeviceView<'a, u32>) -> Result<(DeviceView<'a, u32>, DeviceView<'a, u64>)> {
        Ok((offsets, offsets.slice(..0)?.cast()?))
    }
}

impl Offset for u64 {
    fn split<'a>(offsets: DeviceView<'a, u64>) -> Result<(DeviceView<'a, u32>, DeviceView<'a, u64>)> {
        Ok((offsets.slice(..0)?.cast()?, offsets))
    }
}

fn reduce<T: Number, A: Instances + Accumulation<Item: Pod, Total: Pod>, R: Pod + DeviceCopy>(
    function: &'static str,
    stream: &Stream,
    a: A,
    x: DeviceView<T>,
    offsets: DeviceView<impl Offset>,
    y: DeviceViewMut<R>,
) -> Result<()> {
    let segments = y.len();
    if offsets.len() != segments + 1 {
        return Err(Error::Argument {
            function,
            argument: "the number of offsets",
            value: format!("{} for {segments} results", offsets.len()).into(),
            expected: "one more than there are results",
        });
    }
    if segments == 0 {
        return Ok(());
    }
    let is_long = x.len() / segments >= LONG;
    let (x, y) = (x.cast()?, y.cast()?.into_atomic());
    let (short, long) = Offset::split(offsets)?;
    if is_long {
        return segments::kernels::segments_of_blocks::<A>(
            stream,
            Grid::blocks(segments),
            a,
            x,
            short,
            long,
            y,
        );
    }
    let grid = Grid::blocks(segments.div_ceil(THREADS / 32 * SEGMENTS));
    segments::kernels::segments_of_warps::<A>(stream, grid, a, x, short, long, y)
}

/// Writes to `sums[i]` the sum of the elements of `x` from `offsets[i]` up to `offsets[i + 1]` (CUB's `DeviceSegmentedReduce::Sum`,
/// `numpy.add.reduceat`, `torch.segment_reduce`). That of an empty segment is 0.
///
/// Sums are those of [`sum`](crate::sum): of integers in 64 bits. Offsets are `u32` or `u64`. A segment has a warp if the mean
/// length, `x.len() / sums.len()`, is below 512, else a block. Sums of floats have the same bits on every device: the order of the additions
/// depends on the length of the segment, and on which of the two it has.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let x = stream.upload(&[10_i32, 20, 1, 2, 3, 7])?;
/// let (offsets, mut sums) = (stream.upload(&[0_u32, 2, 2, 5, 6])?, stream.zeros::<i64>(4)?);
/// algorithms::segmented_sum(&stream, &x, &offsets, &mut sums)?;
/// assert_eq!(stream.download(&sums)?, [30, 0, 6, 7]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// `Error::Argument` if there is not one more offset than results; and those of a launch. Offsets that do not ascend, or exceed the number
/// of elements, are a panic of the kernel.
pub fn segmented_sum<'a, 'b, 'c, T: Number + 'a, O: Offset + 'b>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    offsets: impl DeviceInput<'b, O>,
    sums: impl DeviceOutput<'c, <T as Element>::Total>,
) -> Result<()> {
    reduce("segmented_sum", stream, T::SUM, x.into_input(), offsets.into_input(), sums.into_output())
}

/// As [`segmented_sum`], the least element of each segment (CUB's `DeviceSegmentedReduce::Min`). NaN is skipped, as by [`min`](crate::min);
/// the least of nothing is the greatest integer, or NaN.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, offsets) = (stream.upload(&[3, 1, 4, 1, 5])?, stream.upload(&[0_u64, 3, 5])?);
/// let mut y = stream.zeros(2)?;
/// algorithms::segmented_min(&stream, &x, &offsets, &mut y)?;
/// assert_eq!(stream.download(&y)?, [1, 1]);
/// algorithms::segmented_max(&stream, &x, &offsets, &mut y)?;
/// assert_eq!(stream.download(&y)?, [4, 5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`segmented_sum`].
pub fn segmented_min<'a, 'b, 'c, T: Number + 'a, O: Offset + 'b>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    offsets: impl DeviceInput<'b, O>,
    y: impl DeviceOutput<'c, T>,
) -> Result<()> {
    reduce("segmented_min", stream, T::MIN, x.into_input(), offsets.into_input(), y.into_output())
}

/// As [`segmented_min`], the greatest element of each segment (CUB's `DeviceSegmentedReduce::Max`). That of nothing is the least integer,
/// or NaN.
///
/// # Errors
/// As [`segmented_sum`].
pub fn segmented_max<'a, 'b, 'c, T: Number + 'a, O: Offset + 'b>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    offsets: impl DeviceInput<'b, O>,
    y: impl DeviceOutput<'c, T>,
) -> Result<()> {
    reduce("segmented_max", stream, T::MAX, x.into_input(), offsets.into_input(), y.into_output())
}
