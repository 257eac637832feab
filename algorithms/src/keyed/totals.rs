//! One value for each run of equal keys.

use bytemuck::{Pod, Zeroable};
use ferrogrid_device::DeviceCopy;

use super::values::kernels::combine_runs;
use super::{expect_pairs, grid, runs_of, values};
use crate::accumulate::accumulations::Accumulation;
use crate::number::numbers::Element;
use crate::reduce::Number;
use crate::select::count_within;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Result, Stream};

/// What a function reads and writes.
struct Pairs<'a, 'b, K, V, R> {
    keys: DeviceView<'a, K>,
    values: DeviceView<'a, V>,
    unique: DeviceViewMut<'b, K>,
    totals: DeviceViewMut<'b, R>,
}

impl<K: Number, V: Number, R: Pod + DeviceCopy> Pairs<'_, '_, K, V, R> {
    fn reduce<A: combine_runs::Instance + Accumulation<Item: Pod, Total: Pod>>(
        self,
        function: &'static str,
        stream: &Stream,
        a: A,
        count: DeviceViewMut<u64>,
    ) -> Result<()> {
        expect_pairs(function, ["keys", "values"], [self.keys.len(), self.values.len()])?;
        let runs = runs_of(stream, self.keys, self.unique, count)?;
        if self.values.is_empty() {
            return Ok(());
        }
        let (first, values, totals) =
            (A::Item::zeroed(), self.values.cast()?, self.totals.cast()?.into_atomic());
        let (marks, places, mut none) = (runs.marks.view(), runs.places.view(), stream.temporary(0)?);
        values::kernels::combine_runs::<A>(
            stream,
            grid(values.len()),
            a,
            false,
            first,
            values,
            marks,
            places,
            totals,
            none.view_mut(),
        )
    }

    /// As [`Pairs::reduce`], and returns the number of runs.
    fn reduce_and_count<A: combine_runs::Instance + Accumulation<Item: Pod, Total: Pod>>(
        self,
        function: &'static str,
        stream: &Stream,
        a: A,
    ) -> Result<usize> {
        let room = self.unique.len().min(self.totals.len());
        count_within(stream, room, |count| self.reduce(function, stream, a, count))
    }
}

/// Writes the first key of each run of equal keys to `unique` and the sum of its values to `sums`; returns the number of runs (CUB's
/// `DeviceReduce::ReduceByKey`, Thrust's `reduce_by_key`). Sorted keys have one run each, as pandas' `groupby(keys).sum()` has them.
///
/// Keys are equal as for [`unique`](crate::unique), sums are those of [`sum`](crate::sum): of integers in 64 bits. Sums of floats may differ in
/// their last bits from run to run where keys are equal on both sides of a multiple of 8192 elements. The rest of `unique` and
/// `sums` is unchanged.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (keys, values) = (stream.upload(&[3, 3, 1, 1, 1, 3])?, stream.upload(&[10_i32, 20, 1, 2, 3, 7])?);
/// let (mut unique, mut sums) = (stream.zeros(6)?, stream.zeros::<i64>(6)?);
/// let runs = algorithms::sum_by_key(&stream, &keys, &values, &mut unique, &mut sums)?;
/// assert_eq!(stream.download(unique.slice(..runs)?)?, [3, 1, 3]);
/// assert_eq!(stream.download(sums.slice(..runs)?)?, [30, 6, 7]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch and of a copy: `keys` and `values` have the same length, below 2^32. `Error::OutOfRange` if `unique` or `sums` is too
/// short for the result: then they have as much of it as they can take.
pub fn sum_by_key<'a, 'b, K: Number + 'a, V: Number + 'a>(
    stream: &Stream,
    keys: impl DeviceInput<'a, K>,
    values: impl DeviceInput<'a, V>,
    unique: impl DeviceOutput<'b, K>,
    sums: impl DeviceOutput<'b, <V as Element>::Total>,
) -> Result<usize> {
    pairs(keys, values, unique, sums).reduce_and_count("sum_by_key", stream, V::SUM)
}

/// [`sum_by_key`], with the number of runs written to `count[0]` in stream order, without waiting for it. If `unique` or `sums` is too short,
/// it has as much of the result as it can take, and the number is that of all runs.
///
/// # Errors
/// Those of a launch. `keys` and `values` have the same length, below 2^32, and `count` has at least one element.
pub fn sum_by_key_into<'a, 'b, K: Number + 'a, V: Number + 'a>(
    stream: &Stream,
    keys: impl DeviceInput<'a, K>,
    values: impl DeviceInput<'a, V>,
    unique: impl DeviceOutput<'b, K>,
    sums: impl DeviceOutput<'b, <V as Element>::Total>,
    count: impl DeviceOutput<'b, u64>,
) -> Result<()> {
    pairs(keys, values, unique, sums).reduce("sum_by_key_into", stream, V::SUM, count.into_output())
}

/// As [`sum_by_key`], with the least of the values of each run, as [`min`](crate::min) has it. That of NaN alone is NaN.
///
/// # Errors
/// As [`sum_by_key`].
pub fn min_by_key<'a, 'b, K: Number + 'a, V: Number + 'a>(
    stream: &Stream,
    keys: impl DeviceInput<'a, K>,
    values: impl DeviceInput<'a, V>,
    unique: impl DeviceOutput<'b, K>,
    least: impl DeviceOutput<'b, V>,
) -> Result<usize> {
    pairs(keys, values, unique, least).reduce_and_count("min_by_key", stream, V::MIN)
}

/// [`min_by_key`], with the number of runs written to `count[0]` in stream order, without waiting for it. If `unique` or `least` is too short,
/// it has as much of the result as it can take, and the number is that of all runs.
///
/// # Errors
/// Those of a launch. `keys` and `values` have the same length, below 2^32, and `count` has at least one element.
pub fn min_by_key_into<'a, 'b, K: Number + 'a, V: Number + 'a>(
    stream: &Stream,
    keys: impl DeviceInput<'a, K>,
    values: impl DeviceInput<'a, V>,
    unique: impl DeviceOutput<'b, K>,
    least: impl DeviceOutput<'b, V>,
    count: impl DeviceOutput<'b, u64>,
) -> Result<()> {
    pairs(keys, values, unique, least).reduce("min_by_key_into", stream, V::MIN, count.into_output())
}

/// As [`sum_by_key`], with the greatest of the values of each run, as [`max`](crate::max) has it. That of NaN alone is NaN.
///
/// # Errors
/// As [`sum_by_key`].
pub fn max_by_key<'a, 'b, K: Number + 'a, V: Number + 'a>(
    stream: &Stream,
    keys: impl DeviceInput<'a, K>,
    values: impl DeviceInput<'a, V>,
    unique: impl DeviceOutput<'b, K>,
    greatest: impl DeviceOutput<'b, V>,
) -> Result<usize> {
    pairs(keys, values, unique, greatest).reduce_and_count("max_by_key", stream, V::MAX)
}

/// [`max_by_key`], with the number of runs written to `count[0]` in stream order, without waiting for it. If `unique` or `greatest` is too short,
/// it has as much of the result as it can take, and the number is that of all runs.
///
/// # Errors
/// Those of a launch. `keys` and `values` have the same length, below 2^32, and `count` has at least one element.
pub fn max_by_key_into<'a, 'b, K: Number + 'a, V: Number + 'a>(
    stream: &Stream,
    keys: impl DeviceInput<'a, K>,
    values: impl DeviceInput<'a, V>,
    unique: impl DeviceOutput<'b, K>,
    greatest: impl DeviceOutput<'b, V>,
    count: impl DeviceOutput<'b, u64>,
) -> Result<()> {
    pairs(keys, values, unique, greatest).reduce("max_by_key_into", stream, V::MAX, count.into_output())
}

fn pairs<'a, 'b, K: Number, V: Number, R: DeviceCopy>(
    keys: impl DeviceInput<'a, K>,
    values: impl DeviceInput<'a, V>,
    unique: impl DeviceOutput<'b, K>,
    totals: impl DeviceOutput<'b, R>,
) -> Pairs<'a, 'b, K, V, R> {
    Pairs {
        keys: keys.into_input(),
        values: values.into_input(),
        unique: unique.into_output(),
        totals: totals.into_output(),
    }
}
