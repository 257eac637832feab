//! Reductions to one value.
//!
//! `totals` and `extrema` have the kernels of the functions here; `moments`, `norms` and `counts` have functions and kernels,
//! `native` has the bodies for the CPU device.

pub(crate) mod counts;
pub(crate) mod extrema;
pub(crate) mod moments;
mod native;
pub(crate) mod norms;
pub(crate) mod totals;

use bytemuck::AnyBitPattern;
use ferrogrid_device::DeviceCopy;
use ferrogrid_device::shared::AnyBits;
use ferrogrid_host::__private::{in_steps, value_of};

use crate::histogram::Sampled;
use crate::keyed::Keyed;
use crate::matrix::Tabular;
use crate::movement::Differing;
use crate::number::numbers::{Add, Element, Multiply, Operation};
use crate::scan::Scanned;
use crate::search::Searched;
use crate::segmented::Segmented;
use crate::select::Selected;
use crate::sets::Member;
use crate::sort::Sorted;
use crate::sort::segmented::SortedSegments;
use crate::top_k::Ranked;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Result, Stream};
use counts::Counted;
use extrema::kernels::{best_position, extremum, extremum_position};
use moments::kernels::moments_of_tiles;
use totals::kernels::{dot_of_tiles, totals as totals_kernel};

pub use counts::{all, all_into, any, any_into, count, count_into, count_nonzero, count_nonzero_into};
pub use extrema::kernels::Indexed;
pub use moments::{Moments, mean, mean_into, moments, moments_into, variance, variance_into};
pub use norms::{Real, amax, amax_into, asum, asum_into, nrm2, nrm2_into};

/// A number that the ready-made algorithms take: an integer of 8 to 64 bits, `f32` or `f64`; with the feature `half` also `f16` and
/// `bf16`.
#[diagnostic::on_unimplemented(
    message = "ready-made algorithms take no elements of type `{Self}`",
    label = "expected an integer of 8 to 64 bits, `f32` or `f64`, or `f16` or `bf16` with the feature `half`"
)]
pub trait Number:
    Element<Total: Totalled + Element<Total = <Self as Element>::Total>>
    + Totalled
    + dot_of_tiles::Instance
    + Keyed
    + Ordered
    + Sampled
    + Counted
    + moments_of_tiles::Instance
    + Differing
    + Searched
    + Scanned
    + Segmented
    + Selected
    + Sorted
    + SortedSegments
    + Member
    + Ranked
    + Tabular
{
}

impl<T> Number for T where
    T: Element<Total: Totalled + Element<Total = <T as Element>::Total>>
        + Totalled
        + dot_of_tiles::Instance
        + Keyed
        + Ordered
        + Sampled
        + Counted
        + moments_of_tiles::Instance
        + Differing
        + Searched
        + Scanned
        + Segmented
        + Selected
        + Sorted
        + SortedSegments
        + Member
        + Ranked
        + Tabular
{
}

/// Has kernels for sums and products.
pub trait Totalled: AnyBitPattern + totals_kernel::Instance<Add> + totals_kernel::Instance<Multiply> {}

impl<T: AnyBitPattern + totals_kernel::Instance<Add> + totals_kernel::Instance<Multiply>> Totalled for T {}

/// Has kernels for the least and the greatest element.
pub trait Ordered:
    AnyBitPattern + extremum::Instance + extremum_position::Instance + best_position::Instance
{
}

impl<T: AnyBitPattern + extremum::Instance + extremum_position::Instance + best_position::Instance> Ordered
    for T
{
}

// SAFETY: any bits are an index, and any are a `T`; those of padding mean nothing.
unsafe impl<T: AnyBitPattern + DeviceCopy> AnyBitPattern for Indexed<T> {}

/// As [`value_of`], of the elements of `x`; `None` if there are none.
fn value_unless_empty<T: DeviceCopy, S: DeviceCopy + AnyBits>(
    stream: &Stream,
    x: DeviceView<T>,
    into: impl FnOnce(DeviceView<T>, DeviceViewMut<S>) -> Result<()>,
) -> Result<Option<S>> {
    (!x.is_empty()).then(|| value_of(stream, |out| into(x, out))).transpose()
}

fn total_into<T: Number + totals_kernel::Instance<O>, O: Operation>(
    stream: &Stream,
    x: DeviceView<T>,
    out: DeviceViewMut<T::Total>,
) -> Result<()>
where
    T::Total: totals_kernel::Instance<O>,
{
    in_steps(
        stream,
        x.len(),
        out,
        |grid, totals| totals::kernels::totals::<T, O>(stream, grid, x, totals),
        |grid, totals, out| totals::kernels::totals::<T::Total, O>(stream, grid, totals, out),
    )
}

fn dot_of<T: Number>(
    stream: &Stream,
    x: DeviceView<T>,
    y: DeviceView<T>,
    out: DeviceViewMut<T::Total>,
) -> Result<()> {
    in_steps(
        stream,
        x.len(),
        out,
        |grid, sums| totals::kernels::dot_of_tiles::<T>(stream, grid, x, y, sums),
        |grid, sums, out| totals::kernels::totals::<T::Total, Add>(stream, grid, sums, out),
    )
}

fn extremum_into<T: Number>(
    stream: &Stream,
    greatest: bool,
    x: DeviceView<T>,
    out: DeviceViewMut<T>,
) -> Result<()> {
    let step = |grid, x: DeviceView<T>, found: DeviceViewMut<T>| {
        extrema::kernels::extremum::<T>(stream, grid, greatest, x, found)
    };
    in_steps(stream, x.len(), out, |grid, found| step(grid, x, found), step)
}

fn position_into<T: Number>(
    stream: &Stream,
    greatest: bool,
    x: DeviceView<T>,
    out: DeviceViewMut<Indexed<T>>,
) -> Result<()> {
    in_steps(
        stream,
        x.len(),
        out,
        |grid, found| extrema::kernels::extremum_position::<T>(stream, grid, greatest, x, found),
        |grid, found, out| extrema::kernels::best_position::<T>(stream, grid, greatest, found, out),
    )
}

/// The sum of the elements, 0 if there are none (CUB's `DeviceReduce::Sum`). Integers are added up as `i64` or `u64`, and
/// wrap around there; `f16` and `bf16` as `f32`.
///
/// The sum of floats is the same to the last bit in each run, on each GPU and on the CPU device: the order of the additions
/// depends on the length alone. It is close to pairwise summation, so errors grow slowly.
///
/// ```
/// # use ferrogrid_host::Device;
/// # fn main() -> ferrogrid_host::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid_algorithms as algorithms;
///
/// let x = stream.upload(&[200_u8, 100, 50])?;
/// assert_eq!(algorithms::sum(&stream, &x)?, 350_u64);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch and of a copy: see [`Stream`].
pub fn sum<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<T::Total> {
    let x = x.into_input();
    value_of(stream, |out| total_into::<T, Add>(stream, x, out))
}

/// [`sum`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// Those of a launch. `out` has at least one element.
pub fn sum_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, T::Total>,
) -> Result<()> {
    total_into::<T, Add>(stream, x.into_input(), out.into_output())
}

/// The product of the elements, 1 if there are none. As [`sum`] in all else.
///
/// # Errors
/// As [`sum`].
pub fn product<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<T::Total> {
    let x = x.into_input();
    value_of(stream, |out| total_into::<T, Multiply>(stream, x, out))
}

/// [`product`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// As [`sum_into`].
pub fn product_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, T::Total>,
) -> Result<()> {
    total_into::<T, Multiply>(stream, x.into_input(), out.into_output())
}

/// The sum of `x[i] * y[i]`. As [`sum`] in all else; the products of integers are `i64` or `u64`, too.
///
/// # Errors
/// `Error::ShapesDiffer` if the lengths differ; else as [`sum`].
pub fn dot<'a, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceInput<'a, T>,
) -> Result<T::Total> {
    let (x, y) = (x.into_input(), y.into_input());
    value_of(stream, |out| dot_of(stream, x, y, out))
}

/// [`dot`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// As [`dot`] and [`sum_into`].
pub fn dot_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, T::Total>,
) -> Result<()> {
    dot_of(stream, x.into_input(), y.into_input(), out.into_output())
}

/// The least element, `None` if there are none (CUB's `DeviceReduce::Min`). NaN counts as greater than all
/// else; the zeros are equal, and 0.0 stands for both.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let x = stream.upload(&[0.5, f32::NAN, -1.5])?;
/// assert_eq!(algorithms::min(&stream, &x)?, Some(-1.5));
/// assert_eq!(algorithms::max(&stream, &x)?, Some(0.5));
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`sum`].
pub fn min<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<Option<T>> {
    value_unless_empty(stream, x.into_input(), |x, out| extremum_into(stream, false, x, out))
}

/// [`min`], written to the first element of `out` in stream order, without waiting for it. The least of nothing is the
/// greatest integer, or NaN.
///
/// # Errors
/// As [`sum_into`].
pub fn min_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, T>,
) -> Result<()> {
    extremum_into(stream, false, x.into_input(), out.into_output())
}

/// The greatest element, `None` if there are none (CUB's `DeviceReduce::Max`). NaN counts as less than all else.
///
/// # Errors
/// As [`sum`].
pub fn max<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<Option<T>> {
    value_unless_empty(stream, x.into_input(), |x, out| extremum_into(stream, true, x, out))
}

/// [`max`], written to the first element of `out` in stream order, without waiting for it. The greatest of nothing is
/// the least integer, or NaN.
///
/// # Errors
/// As [`sum_into`].
pub fn max_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, T>,
) -> Result<()> {
    extremum_into(stream, true, x.into_input(), out.into_output())
}

/// The least element and its index, that of the first of equals; `None` if there are none (CUB's `DeviceReduce::ArgMin`).
/// NaN counts as greater than all else.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let x = stream.upload(&[3, 1, 4, 1])?;
/// assert_eq!(algorithms::argmin(&stream, &x)?, Some(algorithms::Indexed { index: 1, value: 1 }));
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`sum`].
pub fn argmin<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<Option<Indexed<T>>> {
    value_unless_empty(stream, x.into_input(), |x, out| position_into(stream, false, x, out))
}

/// [`argmin`], written to the first element of `out` in stream order, without waiting for it. The index is `u64::MAX` if
/// `x` is empty.
///
/// # Errors
/// As [`sum_into`].
pub fn argmin_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, Indexed<T>>,
) -> Result<()> {
    position_into(stream, false, x.into_input(), out.into_output())
}

/// The greatest element and its index, that of the first of equals; `None` if there are none (CUB's
/// `DeviceReduce::ArgMax`). NaN counts as less than all else.
///
/// # Errors
/// As [`sum`].
pub fn argmax<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<Option<Indexed<T>>> {
    value_unless_empty(stream, x.into_input(), |x, out| position_into(stream, true, x, out))
}

/// [`argmax`], written to the first element of `out` in stream order, without waiting for it. The index is `u64::MAX` if
/// `x` is empty.
///
/// # Errors
/// As [`sum_into`].
pub fn argmax_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, Indexed<T>>,
) -> Result<()> {
    position_into(stream, true, x.into_input(), out.into_output())
}
