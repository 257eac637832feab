//! Scans that begin anew with each run of equal keys, and running extrema.

use bytemuck::Pod;

use super::values::kernels::combine_runs;
use super::{expect_pairs, grid, runs_of, values};
use crate::accumulate::accumulations::Accumulation;
use crate::reduce::Number;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Result, Stream, Temporary};

/// What precedes the results.
#[derive(Clone, Copy)]
pub(crate) enum Kind<T> {
    Inclusive,
    Exclusive(T),
}

fn scan<T: Number, A: combine_runs::Instance + Accumulation<Item: Pod, Total: Pod>>(
    function: &'static str,
    stream: &Stream,
    a: A,
    kind: Kind<T>,
    x: DeviceView<T>,
    marks: DeviceView<u32>,
    y: DeviceViewMut<T>,
) -> Result<()> {
    expect_pairs(function, ["x", "y"], [x.len(), y.len()])?;
    if x.is_empty() {
        return Ok(());
    }
    let (is_exclusive, first) = match kind {
        Kind::Inclusive => (false, T::ZERO),
        Kind::Exclusive(first) => (true, first),
    };
    let (places, mut totals) = (marks.slice(..0)?, stream.temporary(0)?);
    let (x, y, totals) = (x.cast()?, y.cast()?, totals.view_mut().into_atomic());
    values::kernels::combine_runs::<A>(
        stream,
        grid(x.len()),
        a,
        is_exclusive,
        bytemuck::cast(first),
        x,
        marks,
        places,
        totals,
        y,
    )
}

/// Combines all elements before each, as one run.
pub(crate) fn scan_without_keys<
    T: Number,
    A: combine_runs::Instance + Accumulation<Item: Pod, Total: Pod>,
>(
    function: &'static str,
    stream: &Stream,
    a: A,
    kind: Kind<T>,
    x: DeviceView<T>,
    y: DeviceViewMut<T>,
) -> Result<()> {
    let none: Temporary<u32> = stream.temporary(0)?;
    scan(function, stream, a, kind, x, none.view(), y)
}

fn sum_by_key<K: Number, T: Number>(
    function: &'static str,
    stream: &Stream,
    keys: DeviceView<K>,
    kind: Kind<T>,
    x: DeviceView<T>,
    y: DeviceViewMut<T>,
) -> Result<()> {
    expect_pairs(function, ["keys", "x"], [keys.len(), x.len()])?;
    let (mut count, mut none) = (stream.temporary(1)?, stream.temporary(0)?);
    let runs = runs_of(stream, keys, none.view_mut(), count.view_mut())?;
    scan(function, stream, T::SUM, kind, x, runs.marks.view(), y)
}

/// Writes to `y[i]` the sum of `x[i]` and the elements before it in the run of keys equal to `keys[i]` (CUB's
/// `DeviceScan::InclusiveSumByKey`, Thrust's `inclusive_scan_by_key`). Integers wrap around in their own type; keys are equal as for
/// [`unique`](crate::unique).
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (keys, x) = (stream.upload(&[3, 3, 1, 1, 1, 3])?, stream.upload(&[10, 20, 1, 2, 3, 7])?);
/// let mut y = stream.zeros(6)?;
/// algorithms::inclusive_sum_by_key(&stream, &keys, &x, &mut y)?;
/// assert_eq!(stream.download(&y)?, [10, 30, 1, 3, 6, 7]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch. `keys`, `x` and `y` have the same length, below 2^32.
pub fn inclusive_sum_by_key<'a, 'b, K: Number + 'a, T: Number + 'a>(
    stream: &Stream,
    keys: impl DeviceInput<'a, K>,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    let (keys, x, y) = (keys.into_input(), x.into_input(), y.into_output());
    sum_by_key("inclusive_sum_by_key", stream, keys, Kind::Inclusive, x, y)
}

/// Writes to `y[i]` the sum of `first` and the elements before `x[i]` in the run of keys equal to `keys[i]` (CUB's
/// `DeviceScan::ExclusiveSumByKey`, Thrust's `exclusive_scan_by_key`). Integers wrap around in their own type; keys are equal as for
/// [`unique`](crate::unique).
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let keys = stream.upload(&[3, 3, 1, 1, 1, 3])?;
/// let (ones, mut ranks) = (stream.fill(1_u32, 6)?, stream.zeros(6)?);
/// algorithms::exclusive_sum_by_key(&stream, &keys, &ones, 0, &mut ranks)?;
/// assert_eq!(stream.download(&ranks)?, [0, 1, 0, 1, 2, 0]); // the place of each element in its run
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`inclusive_sum_by_key`].
pub fn exclusive_sum_by_key<'a, 'b, K: Number + 'a, T: Number + 'a>(
    stream: &Stream,
    keys: impl DeviceInput<'a, K>,
    x: impl DeviceInput<'a, T>,
    first: T,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    let (keys, x, y) = (keys.into_input(), x.into_input(), y.into_output());
    sum_by_key("exclusive_sum_by_key", stream, keys, Kind::Exclusive(first), x, y)
}

/// Writes to `y[i]` the least of `x[0]` to `x[i]` (CUB's `DeviceScan::InclusiveScan` with `cuda::minimum`, NumPy's `fmin.accumulate`). NaN is
/// skipped, as by [`min`](crate::min): the least of NaN alone is NaN.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut y) = (stream.upload(&[0.5, f32::NAN, -1.5, 2.0])?, stream.zeros(4)?);
/// algorithms::inclusive_min(&stream, &x, &mut y)?;
/// assert_eq!(stream.download(&y)?, [0.5, 0.5, -1.5, -1.5]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch; `x` and `y` have the same length.
pub fn inclusive_min<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    scan_without_keys("inclusive_min", stream, T::MIN, Kind::Inclusive, x.into_input(), y.into_output())
}

/// As [`inclusive_min`], the greatest (`cuda::maximum`, `fmax.accumulate`).
///
/// # Errors
/// As [`inclusive_min`].
pub fn inclusive_max<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    scan_without_keys("inclusive_max", stream, T::MAX, Kind::Inclusive, x.into_input(), y.into_output())
}
