//! Sorted numbers: binary search and merging.

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;

use crate::reduce::Number;
use crate::sort::Sorted;
use crate::sort::digits::kernels::{Bits, Flips};
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Error, Grid, Result, Stream};
use kernels::{THREADS, find_bounds, merge_side};

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::prelude::*;

    use crate::movement::striped::load;
    use crate::sort::digits::kernels::{Bits, Flips};

    /// The threads of a block, each with one search.
    pub const THREADS: usize = 256;

    /// The number of elements of `sorted` that are before `key`, or with `upper` are not after it.
    #[inline(always)]
    fn bound<K: Bits + Ord + Default>(flips: Flips<K>, upper: bool, sorted: &[K], key: K) -> usize {
        let ordered = |key: K| key ^ (key.sign() & flips.negative) ^ flips.all;
        let (mut first, mut len, key) = (0, sorted.len(), ordered(key));
        while len > 0 {
            let (half, middle) = (len / 2, ordered(load(sorted, first + len / 2)));
            let is_before = middle < key || upper && middle == key;
            first += if is_before { half + 1 } else { 0 };
            len = if is_before { len - half - 1 } else { half };
        }
        first
    }

    /// found[i] <- where `values[i]` is or would be in `sorted`
    #[kernel(block = THREADS, wide, same_shape(values, found), K = [u8, u16, u32, u64])]
    pub fn find_bounds<K: Bits + Ord + Default>(
        t: Thread<1>,
        flips: Flips<K>,
        upper: bool,
        sorted: &[K],
        values: &[K],
        mut found: DisjointWarps<u64, 32>,
    ) {
        found.fill_with(&t, |i| bound(flips, upper, sorted, load(values, i)) as u64);
    }

    /// y[i + how many of `other` come first] <- own[i]; equal ones come first if `upper`.
    #[kernel(block = THREADS, wide, K = [u8, u16, u32, u64])]
    pub fn merge_side<K: Bits + Ord + Default>(
        t: Thread<1>,
        flips: Flips<K>,
        upper: bool,
        own: &[K],
        other: &[K],
        y: &[DeviceAtomic<K>],
    ) {
        let i = t.block_idx()[0] as usize * THREADS + t.thread_rank() as usize;
        if let Some(&key) = own.get(i)
            && let Some(y) = y.get(i + bound(flips, upper, other, key))
        {
            y.store(key, Relaxed);
        }
    }
}

/// A number that can be searched for.
pub trait Searched: Sorted<Unsigned: Ord + Default + find_bounds::Instance + merge_side::Instance> {}

impl<T: Sorted<Unsigned: Ord + Default + find_bounds::Instance + merge_side::Instance>> Searched for T {}

fn bounds<T: Number>(
    stream: &Stream,
    upper: bool,
    sorted: DeviceView<T>,
    values: DeviceView<T>,
    found: DeviceViewMut<u64>,
) -> Result<()> {
    if values.is_empty() && found.is_empty() {
        return Ok(());
    }
    let (flips, grid) = (T::ORDER.0, Grid::blocks(values.len().div_ceil(THREADS).max(1)));
    kernels::find_bounds::<T::Unsigned>(stream, grid, flips, upper, sorted.cast()?, values.cast()?, found)
}

/// Writes to `found[i]` how many elements of `sorted` are less than `values[i]`: where it is, or could be inserted, before its
/// equals (Thrust's `lower_bound`, CuPy's `searchsorted`). `sorted` has the order of [`sort`](crate::sort()); else the
/// results mean nothing.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (sorted, values) = (stream.upload(&[1, 3, 3, 8])?, stream.upload(&[3, 0, 9])?);
/// let mut found = stream.zeros(3)?;
/// algorithms::lower_bound(&stream, &sorted, &values, &mut found)?;
/// assert_eq!(stream.download(&found)?, [1, 0, 4]);
/// algorithms::upper_bound(&stream, &sorted, &values, &mut found)?;
/// assert_eq!(stream.download(&found)?, [3, 0, 4]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch: `values` and `found` have the same length.
pub fn lower_bound<'a, 'b, 'c, T: Number + 'a + 'b>(
    stream: &Stream,
    sorted: impl DeviceInput<'a, T>,
    values: impl DeviceInput<'b, T>,
    found: impl DeviceOutput<'c, u64>,
) -> Result<()> {
    bounds(stream, false, sorted.into_input(), values.into_input(), found.into_output())
}

/// As [`lower_bound`], after its equals: how many elements are not greater (Thrust's `upper_bound`, CuPy's `searchsorted` with
/// `side="right"`).
///
/// # Errors
/// As [`lower_bound`].
pub fn upper_bound<'a, 'b, 'c, T: Number + 'a + 'b>(
    stream: &Stream,
    sorted: impl DeviceInput<'a, T>,
    values: impl DeviceInput<'b, T>,
    found: impl DeviceOutput<'c, u64>,
) -> Result<()> {
    bounds(stream, true, sorted.into_input(), values.into_input(), found.into_output())
}

fn merge_as<K: Pod + DeviceCopy + Bits + Ord + Default + merge_side::Instance>(
    stream: &Stream,
    flips: Flips<K>,
    (a, b): (DeviceView<K>, DeviceView<K>),
    y: DeviceViewMut<K>,
) -> Result<()> {
    let y = y.into_atomic();
    for (upper, own, other) in [(false, a, b), (true, b, a)] {
        if !own.is_empty() {
            let grid = Grid::blocks(own.len().div_ceil(THREADS));
            kernels::merge_side::<K>(stream, grid, flips, upper, own, other, y)?;
        }
    }
    Ok(())
}

/// Writes the elements of `a` and `b`, both in the order of [`sort`](crate::sort()), to `y` in that order; of equal ones those of
/// `a` come first (CUB's `DeviceMerge::MergeKeys`, Thrust's `merge`). Each element is searched for in the other slice.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (a, b, mut y) = (stream.upload(&[1, 4])?, stream.upload(&[0, 2, 9])?, stream.zeros(5)?);
/// algorithms::merge(&stream, &a, &b, &mut y)?;
/// assert_eq!(stream.download(&y)?, [0, 1, 2, 4, 9]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch; `Error::LengthMismatch` if `y` has not the length of both.
pub fn merge<'a, 'b, 'c, T: Number + 'a + 'b>(
    stream: &Stream,
    a: impl DeviceInput<'a, T>,
    b: impl DeviceInput<'b, T>,
    y: impl DeviceOutput<'c, T>,
) -> Result<()> {
    let (a, b, y) = (a.into_input(), b.into_input(), y.into_output());
    let (source_length, target_length) = (a.len() + b.len(), y.len());
    if source_length != target_length {
        return Err(Error::LengthMismatch { operation: "merge", source_length, target_length });
    }
    merge_as::<T::Unsigned>(stream, T::ORDER.0, (a.cast()?, b.cast()?), y.cast()?)
}
