//! Counts: how many elements equal a value, whether all differ from 0, and whether any does.

use ferrogrid_host::__private::{in_steps, in_two_steps, value_of};

use crate::number::numbers::{Add, Element};
use crate::reduce::{Number, totals};
use crate::scan::Scanned;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Grid, Result, Stream};
use kernels::count_same;

/// The kernels.
#[ferrogrid::module]
pub mod kernels {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::number::numbers::Element;
    use ferrogrid::device::fold::{ITEMS, THREADS, by_pairs, fold, fold_tiles};

    /// counts[b] <- of the elements in the tiles of block `b`, how many equal `value`, or with `same` false how many do not.
    #[kernel(
        block = THREADS,
        dependent_launch,
        wide,
        T = [u8, u16, u32, u64, f32, f64, #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16],
        native = super::super::native::count_same
    )]
    pub fn count_same<T: Element>(
        t: Thread<1>,
        value: T,
        same: bool,
        x: &[T],
        mut counts: DisjointChunks<u64, 1>,
        mut scratch: Shared<Scratch<u64>>,
    ) {
        t.launch_dependents();
        let one = |x: T| u32::from(x.is_same(value) == same);
        // A tile's count takes half a register.
        let of_items = |_, items: [T; ITEMS]| u64::from(by_pairs(items.map(one), |a, b| a + b));
        let own = fold_tiles(&t, x, 0, of_items, |_, x| one(x).into(), |a, b| a + b);
        let count = t.block_reduce(&mut scratch, own, |a, b| a + b);
        counts.fill_with(&t, |_| count);
    }

    /// found[0] <- whether all counts are 0, or with `none` false whether one is not.
    #[kernel(block = THREADS, dependent_launch, native = super::super::native::test_counts)]
    pub fn test_counts(
        t: Thread<1>,
        none: bool,
        counts: &[u64],
        mut found: DisjointChunks<bool, 1>,
        mut scratch: Shared<Scratch<u64>>,
    ) {
        t.launch_dependents();
        let own = fold(&t, counts, 0, |count| count, |a, b| a | b);
        let all = t.block_reduce(&mut scratch, own, |a, b| a | b);
        found.fill_with(&t, |_| (all == 0) == none);
    }
}

/// A number whose equals can be counted: unsigned integers stand for signed ones.
pub trait Counted: Scanned<Bits: count_same::Instance> {}

impl<T: Scanned<Bits: count_same::Instance>> Counted for T {}

/// Counts what is equal to `value`, or all else.
fn count_of<T: Number>(
    stream: &Stream,
    (value, same): (T, bool),
    x: DeviceView<T>,
    out: DeviceViewMut<u64>,
) -> Result<()> {
    let (value, x) = (bytemuck::cast(value), x.cast::<T::Bits>()?);
    in_steps(
        stream,
        x.len(),
        out,
        |grid, counts| kernels::count_same::<T::Bits>(stream, grid, value, same, x, counts),
        |grid, counts, out| totals::kernels::totals::<u64, Add>(stream, grid, counts, out),
    )
}

/// Whether no element equals 0 (`same`), or one differs from it.
fn test_of<T: Number>(stream: &Stream, same: bool, x: DeviceView<T>, out: DeviceViewMut<bool>) -> Result<()> {
    let (zero, x) = (<T::Bits as Element>::ZERO, x.cast::<T::Bits>()?);
    let count = |grid: Grid<1>, counts: DeviceViewMut<u64>| {
        kernels::count_same::<T::Bits>(stream, grid, zero, same, x, counts)
    };
    in_two_steps(stream, x.len(), out, count, |grid, counts, out| {
        kernels::test_counts(stream, grid, same, counts, out)
    })
}

/// The number of elements that equal `value` (Thrust's `count`). The zeros are equal, and so are all NaN.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let x = stream.upload(&[0.5, f32::NAN, -0.0, 0.0])?;
/// assert_eq!(algorithms::count(&stream, &x, 0.0)?, 2);
/// assert_eq!(algorithms::count_nonzero(&stream, &x)?, 2);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch and of a copy: see [`Stream`].
pub fn count<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>, value: T) -> Result<usize> {
    let x = x.into_input();
    Ok(value_of(stream, |out| count_of(stream, (value, true), x, out))? as usize)
}

/// [`count`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// Those of a launch. `out` has at least one element.
pub fn count_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    value: T,
    out: impl DeviceOutput<'b, u64>,
) -> Result<()> {
    count_of(stream, (value, true), x.into_input(), out.into_output())
}

/// The number of elements that are not 0 (CuPy's `count_nonzero`). NaN is not 0, and -0.0 is.
///
/// # Errors
/// As [`count`].
pub fn count_nonzero<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<usize> {
    let x = x.into_input();
    Ok(value_of(stream, |out| count_of(stream, (T::ZERO, false), x, out))? as usize)
}

/// [`count_nonzero`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// As [`count_into`].
pub fn count_nonzero_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, u64>,
) -> Result<()> {
    count_of(stream, (T::ZERO, false), x.into_input(), out.into_output())
}

/// Whether no element is 0, as of nothing (CuPy's `all`, Thrust's `all_of`). NaN is not 0, and -0.0 is.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let x = stream.upload(&[0, 1, 2])?;
/// assert!(!algorithms::all(&stream, &x)? && algorithms::any(&stream, &x)?);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`count`].
pub fn all<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<bool> {
    Ok(count(stream, x, T::ZERO)? == 0)
}

/// [`all`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// As [`count_into`].
pub fn all_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, bool>,
) -> Result<()> {
    test_of(stream, true, x.into_input(), out.into_output())
}

/// Whether an element is not 0 (CuPy's `any`, Thrust's `any_of`). NaN is not 0, and -0.0 is.
///
/// # Errors
/// As [`count`].
pub fn any<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<bool> {
    Ok(count_nonzero(stream, x)? != 0)
}

/// [`any`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// As [`count_into`].
pub fn any_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, bool>,
) -> Result<()> {
    test_of(stream, false, x.into_input(), out.into_output())
}
