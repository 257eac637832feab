//! Run-length encoding and decoding.

use super::placing::placing::{RUN, THREADS};
use super::{InRuns, count_within, grid, runs};
use crate::passes::PORTION;
use crate::reduce::Number;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Grid, Result, Stream};

fn encode<T: Number>(
    stream: &Stream,
    x: DeviceView<T>,
    values: DeviceViewMut<T>,
    lengths: DeviceViewMut<u32>,
    count: DeviceViewMut<u64>,
) -> Result<()> {
    encode_portions(stream, PORTION, x, values, lengths, count)
}

/// Portions have whole tiles.
fn encode_portions<T: Number>(
    stream: &Stream,
    portion: usize,
    x: DeviceView<T>,
    values: DeviceViewMut<T>,
    mut lengths: DeviceViewMut<u32>,
    count: DeviceViewMut<u64>,
) -> Result<()> {
    let (x, mut values, mut count) = (x.cast::<T::Bits>()?, values.cast::<T::Bits>()?, count.slice(..1)?);
    let portions = x.len().div_ceil(portion).max(1);
    let mut carried = stream.temporary::<u64>(2 * (portions - 1))?;
    for number in 0..portions {
        let (before, next) = carried.view_mut().split_at(2 * number)?;
        let before = before.slice((2 * number).saturating_sub(2)..)?;
        let next = next.slice(..if number + 1 < portions { 2 } else { 0 })?.into_atomic();
        let begin = number * portion;
        let grid = grid::<T>(portion.min(x.len() - begin));
        let carried = (before.view(), next);
        let (values, lengths) = (values.reborrow().into_atomic(), lengths.reborrow().into_atomic());
        T::Bits::encode(stream, grid, (x, begin), carried, values, lengths, count.reborrow().into_atomic())?;
    }
    Ok(())
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
/// Those of a launch and of a copy. `Error::OutOfRange` if `values` or `lengths` is too short for the result: then they have as much
/// of it as they can take. A run of 2^32 elements or more is a panic of the kernel.
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
/// Those of a launch: `count` has at least one element. A run of 2^32 elements or more is a panic of the kernel.
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

#[cfg(test)]
mod tests {
    use ferrogrid_host::{CpuOptions, Device};

    use super::super::placing::placing::tile;
    use super::*;

    /// Encodes in portions of one tile, by kernels and by the native body.
    fn check<T: Number + PartialEq>(x: &[T]) {
        let mut runs: Vec<(T, u32)> = Vec::new();
        for &value in x {
            match runs.last_mut() {
                Some((last, length)) if *last == value => *length += 1,
                _ => runs.push((value, 1)),
            }
        }
        let (expected, expected_lengths): (Vec<T>, Vec<u32>) = runs.into_iter().unzip();
        let kernels = CpuOptions::new().without_native_bodies();
        for device in [Device::cpu(), Device::cpu_with(kernels).unwrap()] {
            let stream = device.new_stream().unwrap();
            let (mut values, mut lengths) = (stream.zeros(x.len()).unwrap(), stream.zeros(x.len()).unwrap());
            let (x, mut count) = (stream.upload(x).unwrap(), stream.zeros(1).unwrap());
            let (to, to_lengths) = (values.view_mut(), lengths.view_mut());
            encode_portions(&stream, tile::<T>(), x.view(), to, to_lengths, count.view_mut()).unwrap();
            assert_eq!(stream.download(&count).unwrap(), [expected.len() as u64]);
            assert!(stream.download(values.slice(..expected.len()).unwrap()).unwrap() == expected);
            let lengths = stream.download(lengths.slice(..expected.len()).unwrap()).unwrap();
            assert_eq!(lengths, expected_lengths);
        }
    }

    #[test]
    fn runs_go_on_from_portion_to_portion() {
        // Runs of 3, of 5 and of several portions; one that begins with a portion; none.
        check::<u8>(&(0..20_000).map(|i| (i / 3) as u8).collect::<Vec<_>>());
        check::<u64>(&(0..9000).map(|i| if i < 4096 { 1 } else { i / 5 }).collect::<Vec<_>>());
        check::<f32>(
            &(0..40_000)
                .map(|i| if (5000..30_000).contains(&i) { 2.0 } else { (i % 2) as f32 })
                .collect::<Vec<_>>(),
        );
        check::<u32>(&[]);
    }
}
