//! Sorts of segments: by key, and then by segment, both stable.

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;

use super::digits::kernels::number;
use super::{RadixSort, Sorted};
use crate::reduce::Number;
use crate::segmented::Offset;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Error, Grid, Result, Stream, Temporary};
use kernels::{THREADS, take_in_segments};

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::ordered::bound;
    use ferrogrid::device::prelude::*;

    /// The threads of a block.
    pub const THREADS: usize = 256;

    /// How many of the offsets, of which one slice is empty, are at most `index`.
    #[inline(always)]
    fn segment_of(short: &[u32], long: &[u64], index: usize) -> usize {
        bound(short, |offset| *offset as usize <= index) + bound(long, |offset| *offset as usize <= index)
    }

    /// segments[i] <- the number of the segment that element `indices[i]` is in, from 1 on; checks the offsets, too.
    #[kernel(block = THREADS, same_shape(indices, segments))]
    pub fn segment_numbers(
        t: Thread<1>,
        short: &[u32],
        long: &[u64],
        indices: &[u32],
        mut segments: DisjointWarps<u32, 32>,
    ) {
        let last = (short.len() + long.len()).saturating_sub(1);
        let offset = |at: usize| match short.get(at) {
            Some(offset) => *offset as usize,
            None => long.get(at).map_or(0, |offset| *offset as usize),
        };
        for segment in t.grid_stride(last) {
            let segment = segment.get();
            assert!(
                offset(segment) <= offset(segment + 1),
                "a segment ends before it begins: offsets must ascend"
            );
        }
        assert!(
            offset(last) <= indices.len(),
            "a segment ends beyond the elements: the last offset must be at most their number"
        );
        for (i, segment) in segments.iter_mut(&t) {
            if let Some(index) = indices.get(i) {
                *segment = segment_of(short, long, *index as usize) as u32;
            }
        }
    }

    /// y[i] <- x[indices[i]] for the elements of all segments
    #[kernel(block = THREADS, same_shape(x, indices, y), K = [u8, u16, u32, u64])]
    pub fn take_in_segments<K: DeviceCopy>(
        t: Thread<1>,
        short: &[u32],
        long: &[u64],
        indices: &[u32],
        x: &[K],
        mut y: DisjointWarps<K, 32>,
    ) {
        let end = short.last().map_or(0, |end| *end as usize) + long.last().map_or(0, |end| *end as usize);
        let begin = short.first().map_or(0, |it| *it as usize) + long.first().map_or(0, |it| *it as usize);
        for (i, y) in y.iter_mut(&t) {
            if (begin..end).contains(&i)
                && let Some(item) = indices.get(i).and_then(|index| x.get(*index as usize))
            {
                *y = *item;
            }
        }
    }
}

/// A number whose segments are sorted.
pub trait SortedSegments: Sorted<Unsigned: take_in_segments::Instance> {}

impl<T: Sorted<Unsigned: take_in_segments::Instance>> SortedSegments for T {}

/// The offsets of segments of 32 bits and those of 64, one of them empty.
type Offsets<'a> = (DeviceView<'a, u32>, DeviceView<'a, u64>);

impl RadixSort {
    /// Writes the elements of `x` to `y`, those from `offsets[i]` up to `offsets[i + 1]` in order (CUB's
    /// `DeviceSegmentedSort::StableSortKeys`). Elements outside of all segments are not written.
    ///
    /// It sorts all elements by their key, and then by their segment: segments may have any lengths. Offsets are `u32` or `u64`.
    ///
    /// ```
    /// # use ferrogrid_host::{Device, Result};
    /// # fn main() -> Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// # use ferrogrid_algorithms as algorithms;
    /// let (x, offsets) = (stream.upload(&[3, 1, 2, 9, 8])?, stream.upload(&[0_u32, 3, 3, 5])?);
    /// let mut y = stream.zeros(5)?;
    /// algorithms::segmented_sort(&stream, &x, &offsets, &mut y)?;
    /// assert_eq!(stream.download(&y)?, [1, 2, 3, 8, 9]);
    /// algorithms::RadixSort::descending().segmented_keys(&stream, &x, &offsets, &mut y)?;
    /// assert_eq!(stream.download(&y)?, [3, 2, 1, 9, 8]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Error::Argument` if there are no offsets; and as [`RadixSort::keys`], for fewer than 2^32 elements. Offsets that do not ascend, or
    /// exceed the number of elements, are a panic of the kernel.
    pub fn segmented_keys<'a, 'b, 'c, T: Number + 'a, O: Offset + 'c>(
        &self,
        stream: &Stream,
        x: impl DeviceInput<'a, T>,
        offsets: impl DeviceInput<'c, O>,
        y: impl DeviceOutput<'b, T>,
    ) -> Result<()> {
        let (x, y) = (x.into_input(), y.into_output());
        let offsets = offsets_of("segmented_sort", offsets.into_input())?;
        let order = self.order_in_segments(stream, x, offsets)?;
        take::<T::Unsigned>(stream, offsets, &order, x.cast()?, y.cast()?)
    }

    /// As [`RadixSort::segmented_keys`], with each element of `values` at the place of its key in `values_out` (CUB's
    /// `DeviceSegmentedSort::StableSortPairs`). Values have 4 or 8 bytes.
    ///
    /// # Errors
    /// As [`RadixSort::segmented_keys`] and [`RadixSort::pairs`].
    pub fn segmented_pairs<'a, 'b, 'c, 'd, 'e, T: Number + 'a, V: Pod + DeviceCopy + 'c, O: Offset + 'e>(
        &self,
        stream: &Stream,
        x: impl DeviceInput<'a, T>,
        values: impl DeviceInput<'c, V>,
        offsets: impl DeviceInput<'e, O>,
        y: impl DeviceOutput<'b, T>,
        values_out: impl DeviceOutput<'d, V>,
    ) -> Result<()> {
        const { assert!(matches!(size_of::<V>(), 4 | 8), "the values of a sort have 4 or 8 bytes") };
        let (x, y) = (x.into_input(), y.into_output());
        let (values, values_out) = (values.into_input(), values_out.into_output());
        let offsets = offsets_of("segmented_sort_pairs", offsets.into_input())?;
        let order = self.order_in_segments(stream, x, offsets)?;
        take::<T::Unsigned>(stream, offsets, &order, x.cast()?, y.cast()?)?;
        match size_of::<V>() {
            4 => take::<u32>(stream, offsets, &order, values.cast()?, values_out.cast()?),
            _ => take::<u64>(stream, offsets, &order, values.cast()?, values_out.cast()?),
        }
    }

    /// Where the elements are that come first, second and so on.
    fn order_in_segments<T: Number>(
        &self,
        stream: &Stream,
        x: DeviceView<T>,
        (short, long): Offsets,
    ) -> Result<Temporary<u32>> {
        let len = x.len();
        let mut indices = stream.temporary::<u32>(len)?;
        let mut keys = stream.temporary::<T>(len)?;
        let mut by_key = stream.temporary::<u32>(len)?;
        if len > 0 {
            number(stream, Grid::cover(len), indices.view_mut())?;
        }
        self.pairs(stream, x, indices.view(), keys.view_mut(), by_key.view_mut())?;
        let (mut segments, mut sorted) = (stream.temporary::<u32>(len)?, stream.temporary::<u32>(len)?);
        let grid = Grid::blocks(len.div_ceil(THREADS).max(1));
        kernels::segment_numbers(stream, grid, short, long, by_key.view(), segments.view_mut())?;
        // Numbers of segments are at most that of the offsets.
        let bits = usize::BITS - (short.len() + long.len()).leading_zeros();
        RadixSort::ascending().of_bits(0..bits).pairs(
            stream,
            segments.view(),
            by_key.view(),
            sorted.view_mut(),
            indices.view_mut(),
        )?;
        Ok(indices)
    }
}

fn offsets_of<'a, O: Offset>(function: &'static str, offsets: DeviceView<'a, O>) -> Result<Offsets<'a>> {
    if offsets.is_empty() {
        return Err(Error::Argument {
            function,
            argument: "the number of offsets",
            value: "0".into(),
            expected: "one more than there are segments",
        });
    }
    O::split(offsets)
}

fn take<K: Pod + DeviceCopy + take_in_segments::Instance>(
    stream: &Stream,
    (short, long): Offsets,
    order: &Temporary<u32>,
    x: DeviceView<K>,
    y: DeviceViewMut<K>,
) -> Result<()> {
    let grid = Grid::blocks(x.len().div_ceil(THREADS).max(1));
    take_in_segments::<K>(stream, grid, short, long, order.view(), x, y)
}

/// Writes the elements of `x` to `y`, each segment sorted (CUB's `DeviceSegmentedSort::StableSortKeys`):
/// [`RadixSort::segmented_keys`] in ascending order.
///
/// # Errors
/// As [`RadixSort::segmented_keys`].
pub fn segmented_sort<'a, 'b, 'c, T: Number + 'a, O: Offset + 'c>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    offsets: impl DeviceInput<'c, O>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    RadixSort::ascending().segmented_keys(stream, x, offsets, y)
}

/// As [`segmented_sort`], with values: [`RadixSort::segmented_pairs`] in ascending order (CUB's `DeviceSegmentedSort::StableSortPairs`).
///
/// # Errors
/// As [`RadixSort::segmented_pairs`].
pub fn segmented_sort_pairs<'a, 'b, 'c, 'd, 'e, T: Number + 'a, V: Pod + DeviceCopy + 'c, O: Offset + 'e>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    values: impl DeviceInput<'c, V>,
    offsets: impl DeviceInput<'e, O>,
    y: impl DeviceOutput<'b, T>,
    values_out: impl DeviceOutput<'d, V>,
) -> Result<()> {
    RadixSort::ascending().segmented_pairs(stream, x, values, offsets, y, values_out)
}
