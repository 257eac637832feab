//! Sets of sorted numbers: what is in two slices, in one of them, or in both.

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;
use ferrogrid_device::ordered::kept::{COMMON, OF_A, OF_B};
use ferrogrid_host::__private::{count_within, set};

use crate::reduce::Number;
use crate::sort::Sorted;
use crate::sort::digits::kernels::{Bits, Flips};
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Result, Stream};
use kernels::{members_of_set, take_members};

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::ordered::{MEMBERS, THREADS, members, taken};
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::scan::scan_rows;

    use crate::sort::digits::kernels::{Bits, Flips, ordered};

    /// Whether `a` is before `b`.
    #[inline(always)]
    fn is_less<K: Bits + Ord>(flips: Flips<K>, a: K, b: K) -> bool {
        ordered(a, flips) < ordered(b, flips)
    }

    /// ends[i] <- how many of the first `i + 1` elements of the merged slices are in the set
    #[kernel(block = THREADS, wide, K = [u8, u16, u32, u64])]
    pub fn members_of_set<K: Bits + Ord>(
        t: Thread<1>,
        flips: Flips<K>,
        kept: u32,
        a: &[K],
        b: &[K],
        mut ends: DisjointWarps<u64, MEMBERS>,
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>>,
    ) {
        let rows = members(&t, (a, b), kept, ends.first(&t), |a, b| is_less(flips, *a, *b));
        let sums = scan_rows(&t.warp(), rows, 0, |a, b| a + b);
        let start = order.exclusive_of_warps(&t, scratch, sums.total, |a, b| a + b).unwrap_or(0);
        ends.fill_grouped(&t, sums.inclusive(start, |a, b| a + b));
    }

    /// y <- the elements of the set, as far as there is room, and count[0] <- how many there are
    #[kernel(block = THREADS, wide, K = [u8, u16, u32, u64])]
    pub fn take_members<K: Bits + Ord>(
        t: Thread<1>,
        flips: Flips<K>,
        a: &[K],
        b: &[K],
        ends: &[u64],
        mut y: DisjointWarps<K, 32>,
        count: &[DeviceAtomic<u64>],
    ) {
        for (number, y) in y.iter_mut(&t) {
            if let Some(item) = taken((a, b), ends, number, |a, b| is_less(flips, *a, *b)) {
                *y = *item;
            }
        }
        if t.block_idx()[0] == 0
            && t.thread_rank() == 0
            && let Some(count) = count.first()
        {
            count.store(ends.last().copied().unwrap_or(0), Relaxed);
        }
    }
}

/// A number of which there are sets.
pub trait Member: Sorted<Unsigned: Ord + members_of_set::Instance + take_members::Instance> {}

impl<T: Sorted<Unsigned: Ord + members_of_set::Instance + take_members::Instance>> Member for T {}

fn set_of<T: Number>(
    stream: &Stream,
    kept: u32,
    (a, b): (DeviceView<T>, DeviceView<T>),
    y: DeviceViewMut<T>,
    count: DeviceViewMut<u64>,
) -> Result<()> {
    set_of_bits(stream, T::ORDER.0, kept, (a.cast()?, b.cast()?), y.cast()?, count)
}

fn set_of_bits<K: Pod + DeviceCopy + Bits + Ord + members_of_set::Instance + take_members::Instance>(
    stream: &Stream,
    flips: Flips<K>,
    kept: u32,
    (a, b): (DeviceView<K>, DeviceView<K>),
    y: DeviceViewMut<K>,
    count: DeviceViewMut<u64>,
) -> Result<()> {
    set(
        stream,
        (a.len(), b.len()),
        y,
        count,
        |grid, ends| kernels::members_of_set::<K>(stream, grid, flips, kept, a, b, ends),
        |grid, ends, y, count| kernels::take_members::<K>(stream, grid, flips, a, b, ends, y, count),
    )
}

macro_rules! sets {
    ($($(#[$text:meta])* $name:ident, $into:ident: $kept:expr;)*) => {
        $(
            $(#[$text])*
            ///
            /// # Errors
            /// `Error::OutOfRange` if `y` has less room; what fits has been written. Those of a launch.
            pub fn $name<'a, 'b, 'y, T: Number + 'a + 'b>(
                stream: &Stream,
                a: impl DeviceInput<'a, T>,
                b: impl DeviceInput<'b, T>,
                y: impl DeviceOutput<'y, T>,
            ) -> Result<usize> {
                let (a, b, mut y) = (a.into_input(), b.into_input(), y.into_output());
                count_within(stream, y.len(), |count| set_of(stream, $kept, (a, b), y.reborrow(), count))
            }

            #[doc = concat!("As [`", stringify!($name), "`], with the number of elements in `count[0]`, without waiting for it.")]
            ///
            /// # Errors
            /// Those of a launch. If `y` has less room, what fits is written.
            pub fn $into<'a, 'b, 'y, 'c, T: Number + 'a + 'b>(
                stream: &Stream,
                a: impl DeviceInput<'a, T>,
                b: impl DeviceInput<'b, T>,
                y: impl DeviceOutput<'y, T>,
                count: impl DeviceOutput<'c, u64>,
            ) -> Result<()> {
                let slices = (a.into_input(), b.into_input());
                set_of(stream, $kept, slices, y.into_output(), count.into_output())
            }
        )*
    };
}
sets! {
    /// Writes the elements that `a` or `b` has, both in the order of [`sort`](crate::sort()), to the beginning of `y` in that order, and
    /// returns how many they are (Thrust's `set_union`, NumPy's `union1d`). Of `m` and `n` equal ones the greater number is there.
    ///
    /// ```
    /// # use ferrogrid_host::{Device, Result};
    /// # fn main() -> Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// # use ferrogrid_algorithms as algorithms;
    /// let (a, b, mut y) = (stream.upload(&[1, 2, 2, 5])?, stream.upload(&[2, 3, 5])?, stream.zeros(7)?);
    /// let count = algorithms::set_union(&stream, &a, &b, &mut y)?;
    /// assert_eq!(stream.download(&y)?[..count], [1, 2, 2, 3, 5]);
    /// let count = algorithms::set_intersection(&stream, &a, &b, &mut y)?;
    /// assert_eq!(stream.download(&y)?[..count], [2, 5]);
    /// let count = algorithms::set_difference(&stream, &a, &b, &mut y)?;
    /// assert_eq!(stream.download(&y)?[..count], [1, 2]);
    /// let count = algorithms::set_symmetric_difference(&stream, &a, &b, &mut y)?;
    /// assert_eq!(stream.download(&y)?[..count], [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    set_union, set_union_into: COMMON | OF_A | OF_B;
    /// As [`set_union`], the elements that both have (Thrust's `set_intersection`, NumPy's `intersect1d`). Of `m` and `n` equal ones the
    /// lesser number is there.
    set_intersection, set_intersection_into: COMMON;
    /// As [`set_union`], the elements of `a` that `b` has not (Thrust's `set_difference`, NumPy's `setdiff1d`). Of `m` equal ones there are
    /// `m - n`, if `b` has `n`.
    set_difference, set_difference_into: OF_A;
    /// As [`set_union`], the elements that only one of them has (Thrust's `set_symmetric_difference`, NumPy's `setxor1d`). Of `m` and `n`
    /// equal ones the difference is there.
    set_symmetric_difference, set_symmetric_difference_into: OF_A | OF_B;
}
