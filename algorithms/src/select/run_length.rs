//! Run-length encoding and decoding.

use super::placing::placing::{RUN, THREADS};
use super::{InRuns, count_within, grid, runs};
use crate::reduce::Number;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Grid, Result, Stream};

fn encode<T: Number>(
    stream: &Stream,
    x: DeviceView<T>,
    values: DeviceViewMut<T>,
    lengths: DeviceViewMut<u32>,
    count: DeviceViewMut<u64>,
) -> Result<()> {
    let (x, values) = (x.cast::<T::Bits>()?, values.cast::<T::Bits>()?.into_atomic());
    let (lengths, count) = (lengths.into_atomic(), count.slice(..1)?.into_atomic());
    T::Bits::encode(stream, grid::<T>(x.len()), x, values, lengths, count)
}

fn decode<T: Number>(
    stream: &Stream,
    values: DeviceView<T>,
    lengths: DeviceView<u32>,
    y: DeviceViewMut<T>,
    count: DeviceViewMut<u64>,
) -> Result<()> {
    let mut ends = stream.temporary::<u64>(lengths.len())?;
    let count = count.slice(..1)?.into_atomic();
    runs::kernels::run_ends(stream, grid::<u64>(lengths.len()), lengths, ends.view_mut(), count)?;
    let (values, y) = (values.cast::<T::Unsigned>()?, y.cast::<T::Unsigned>()?);
    let blocks = Grid::blocks(y.len().div_ceil(THREADS / 32 * RUN));
    runs::kernels::decode::<T::Unsigned>(stream, blocks, values, ends.view(), y)
}

/// Writes the first element of each run of equal elements of `x` to `values`, and how many it has to `lengths`; returns the
/// number of runs (CUB's `DeviceRunLengthEncode::Encode`). Elements are equal as for [`unique`](crate::unique). The rest of
/// `values` and `lengths` is unchanged.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let x = stream.upload(&[3, 3, 1, 1, 1, 3])?;
/// let (mut values, mut lengths) = (stream.zeros(6)?, stream.zeros(6)?);
/// let runs = algorithms::run_length_encode(&stream, &x, &mut values, &mut lengths)?;
/// assert_eq!(stream.download(values.slice(..runs)?)?, [3, 1, 3]);
/// assert_eq!(stream.download(lengths.slice(..runs)?)?, [2, 3, 1]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch and of a copy: `x` has fewer than 2^32 elements. `Error::OutOfRange` if `values` or `lengths` is too short
/// for the result: then they have as much of it as they can take.
pub fn run_length_encode<'a, 'b, 'c, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    values: impl DeviceOutput<'b, T>,
    lengths: impl DeviceOutput<'c, u32>,
) -> Result<usize> {
    let (x, values, lengths) = (x.into_input(), values.into_output(), lengths.into_output());
    let room = values.len().min(lengths.len());
    count_within(stream, room, |count| encode(stream, x, values, lengths, count))
}

/// [`run_length_encode`], with the number of runs written to `count[0]` in stream order, without waiting for it. If `values` or
/// `lengths` is too short, it has as much of the result as it can take, and the number is that of all runs.
///
/// # Errors
/// Those of a launch. `x` has fewer than 2^32 elements, and `count` has at least one.
pub fn run_length_encode_into<'a, 'b, 'c, 'd, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    values: impl DeviceOutput<'b, T>,
    lengths: impl DeviceOutput<'c, u32>,
    count: impl DeviceOutput<'d, u64>,
) -> Result<()> {
    encode(stream, x.into_input(), values.into_output(), lengths.into_output(), count.into_output())
}

/// Writes each of `values` to `y` as many times as `lengths` says, and returns the number of elements: the inverse of
/// [`run_length_encode`] (CuPy's `repeat` with an array). The rest of `y` is unchanged.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (values, lengths) = (stream.upload(&[3, 1, 7])?, stream.upload(&[2, 0, 3])?);
/// let mut y = stream.zeros(5)?;
/// assert_eq!(algorithms::run_length_decode(&stream, &values, &lengths, &mut y)?, 5);
/// assert_eq!(stream.download(&y)?, [3, 3, 7, 7, 7]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch and of a copy: `values` and `lengths` have the same length.
/// `Error::OutOfRange` if `y` is too short for the result: then it has as many of the elements as it can take.
pub fn run_length_decode<'a, 'b, 'c, T: Number + 'a>(
    stream: &Stream,
    values: impl DeviceInput<'a, T>,
    lengths: impl DeviceInput<'b, u32>,
    y: impl DeviceOutput<'c, T>,
) -> Result<usize> {
    let (values, lengths, y) = (values.into_input(), lengths.into_input(), y.into_output());
    count_within(stream, y.len(), |count| decode(stream, values, lengths, y, count))
}

/// [`run_length_decode`], with the number of elements written to `count[0]` in stream order, without waiting for it. If `y` is
/// too short, it has as many of the elements as it can take, and the number is that of all.
///
/// # Errors
/// Those of a launch. `values` and `lengths` have the same length, and `count` has at least one element.
pub fn run_length_decode_into<'a, 'b, 'c, 'd, T: Number + 'a>(
    stream: &Stream,
    values: impl DeviceInput<'a, T>,
    lengths: impl DeviceInput<'b, u32>,
    y: impl DeviceOutput<'c, T>,
    count: impl DeviceOutput<'d, u64>,
) -> Result<()> {
    decode(stream, values.into_input(), lengths.into_input(), y.into_output(), count.into_output())
}
