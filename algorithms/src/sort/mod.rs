//! Stable radix sorts of keys, and of keys with values; `segmented` has those of segments.
//!
//! `digits` counts digits, `pass` moves elements by one, and `ranking` is what passes share with `few`, the sort of few
//! elements by one block. `native` has the native bodies.

pub(crate) mod digits;
pub(crate) mod few;
mod native;
pub(crate) mod pass;
pub(crate) mod ranking;
pub(crate) mod segmented;

use std::ops::Range;

use bytemuck::Pod;
use ferrogrid_device::DeviceCopy;
#[cfg(feature = "half")]
use ferrogrid_device::half::{bf16, f16};

use crate::keyed::expect_pairs;
use crate::passes::{Column, PORTION, Turn};
use crate::reduce::Number;
use crate::tuning::{Tuning, tuned};
use crate::{
    DeviceAtomicView, DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Grid, Result, Stream, Temporary,
};
use digits::kernels::{Bits, DIGIT, DIGITS, Digit, Flips, THREADS, TILE, count_digits};
use few::kernels::{move_few, sort_few};
use pass::kernels::{move_keys, move_long_keys, move_long_pairs, move_long_values, move_pairs};

pub use segmented::{segmented_sort, segmented_sort_pairs};

/// A number as bits that kernels sort.
pub trait Sorted: Pod + DeviceCopy {
    /// Unsigned integers of its size.
    type Unsigned: Keys;
    /// The bits to flip for the ascending order, and all bits.
    const ORDER: (Flips<Self::Unsigned>, Self::Unsigned);
}

/// Where the values of a digit begin in the output: those of a portion, and, once it is moved, those of the next one.
type Starts<'a> = (DeviceView<'a, u64>, DeviceAtomicView<'a, u64>);

/// What a pass needs to know of an order: the bits to flip, the digit, and where its values begin.
type Order<'a, K> = (Flips<K>, Digit, Starts<'a>);

/// Unsigned integers that kernels sort.
pub trait Keys: Pod + Bits + count_digits::Instance + sort_few::Instance + With<u32> + With<u64> {
    /// The elements of a block in a pass over so many.
    fn tile(stream: &Stream, elements: usize) -> usize;

    /// Launches a pass, of a portion to the whole output.
    fn pass(
        stream: &Stream,
        grid: Grid<1>,
        order: Order<Self>,
        x: DeviceView<Self>,
        y: DeviceAtomicView<Self>,
    ) -> Result<()>;
}

/// Keys that kernels sort with values `V`.
pub trait With<V: Pod + Bits>: Pod + Bits {
    /// The elements of a block in a pass over so many.
    fn tile(stream: &Stream, elements: usize) -> usize;

    /// Launches a pass, of portions of keys and values to the whole outputs.
    fn pass(
        stream: &Stream,
        grid: Grid<1>,
        order: Order<Self>,
        from: (DeviceView<Self>, DeviceView<V>),
        to: (DeviceAtomicView<Self>, DeviceAtomicView<V>),
    ) -> Result<()>;
}

/// Whether the blocks of a pass over so many take few elements, so that more blocks have work.
fn is_small<K, V>(stream: &Stream, elements: usize) -> bool {
    elements <= tuned::<K, V>(stream, Tuning::SortSmall)
}

/// For each type of keys, and of values: the kernel of a pass, and how many elements a thread takes of few and of many.
macro_rules! keys {
    ($($t:ty: $pass:ident $few:literal $many:literal
        $(, $value:ty: $pass_of_pairs:ident $few_pairs:literal $many_pairs:literal)*;)*) => {
        $(impl Keys for $t {
            fn tile(stream: &Stream, elements: usize) -> usize {
                THREADS * if is_small::<$t, ()>(stream, elements) { $few } else { $many }
            }

            fn pass(
                stream: &Stream,
                grid: Grid<1>,
                (flips, digit, (starts, next)): Order<Self>,
                x: DeviceView<Self>,
                y: DeviceAtomicView<Self>,
            ) -> Result<()> {
                let is_small = is_small::<$t, ()>(stream, x.len());
                let pass = if is_small { $pass::<Self, $few> } else { $pass::<Self, $many> };
                pass(stream, grid, flips, digit, starts, next, x, y)
            }
        }
        $(impl With<$value> for $t {
            fn tile(stream: &Stream, elements: usize) -> usize {
                THREADS * if is_small::<$t, $value>(stream, elements) { $few_pairs } else { $many_pairs }
            }

            fn pass(
                stream: &Stream,
                grid: Grid<1>,
                (flips, digit, (starts, next)): Order<Self>,
                (x, values): (DeviceView<Self>, DeviceView<$value>),
                (y, values_out): (DeviceAtomicView<Self>, DeviceAtomicView<$value>),
            ) -> Result<()> {
                let is_small = is_small::<$t, $value>(stream, x.len());
                let pass = if is_small {
                    $pass_of_pairs::<Self, $value, $few_pairs>
                } else {
                    $pass_of_pairs::<Self, $value, $many_pairs>
                };
                pass(stream, grid, flips, digit, starts, next, x, values, y, values_out)
            }
        })*)*
    };
}
keys! {
    u8: move_keys 8 32, u32: move_pairs 8 28, u64: move_long_values 20 20;
    u16: move_keys 8 32, u32: move_pairs 8 28, u64: move_long_values 20 20;
    u32: move_keys 8 32, u32: move_pairs 8 28, u64: move_long_values 20 20;
    u64: move_long_keys 8 20, u32: move_long_pairs 20 20, u64: move_long_pairs 20 20;
}

macro_rules! sorted {
    ($($t:ty: $bits:ty, $negative:expr, $all:expr;)*) => {
        $(impl Sorted for $t {
            type Unsigned = $bits;
            const ORDER: (Flips<$bits>, $bits) = (Flips { negative: $negative, all: $all }, <$bits>::MAX);
        })*
    };
}
sorted! {
    u8: u8, 0, 0;
    u16: u16, 0, 0;
    u32: u32, 0, 0;
    u64: u64, 0, 0;
    i8: u8, 0, 1 << 7;
    i16: u16, 0, 1 << 15;
    i32: u32, 0, 1 << 31;
    i64: u64, 0, 1 << 63;
    f32: u32, u32::MAX >> 1, 1 << 31;
    f64: u64, u64::MAX >> 1, 1 << 63;
}
#[cfg(feature = "half")]
sorted! {
    f16: u16, u16::MAX >> 1, 1 << 15;
    bf16: u16, u16::MAX >> 1, 1 << 15;
}

/// A radix sort: its direction, and the bits that it compares. It is stable: keys that are equal there stay in order.
///
/// Floats have the order of `total_cmp`: negative NaN, negative infinity, negative numbers, -0.0, 0.0, positive numbers, infinity,
/// NaN. (CUB treats -0.0 and 0.0 as equal.) Bits count from the lowest of the key, after the map to unsigned integers of that
/// order. Fewer bits take fewer passes: one for each 8.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// use algorithms::RadixSort;
///
/// let (x, mut y) = (stream.upload(&[0x31_u32, 0x12, 0x21, 0x22])?, stream.zeros(4)?);
/// RadixSort::descending().of_bits(0..4).keys(&stream, &x, &mut y)?;
/// assert_eq!(stream.download(&y)?, [0x12, 0x22, 0x31, 0x21]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadixSort {
    descending: bool,
    bits: Range<u32>,
    portion: usize,
}

impl RadixSort {
    /// The least key first.
    pub const fn ascending() -> Self {
        RadixSort { descending: false, bits: 0..u32::MAX, portion: PORTION }
    }

    /// The greatest key first.
    pub const fn descending() -> Self {
        RadixSort { descending: true, bits: 0..u32::MAX, portion: PORTION }
    }

    /// By these bits alone. What is beyond the highest bit of a key does not count.
    #[must_use]
    pub const fn of_bits(self, bits: Range<u32>) -> Self {
        RadixSort { bits, ..self }
    }

    /// Moves at most so many elements at a time, or a tile, for tests of what several portions share.
    #[doc(hidden)]
    #[must_use]
    pub const fn in_portions_of(self, portion: usize) -> Self {
        RadixSort { portion, ..self }
    }

    /// Writes the elements of `x` to `y`, in order (CUB's `DeviceRadixSort::SortKeys`).
    ///
    /// # Errors
    /// Those of a launch. `x` and `y` have the same length.
    pub fn keys<'a, 'b, T: Number + 'a>(
        &self,
        stream: &Stream,
        x: impl DeviceInput<'a, T>,
        y: impl DeviceOutput<'b, T>,
    ) -> Result<()> {
        let mut column = Column::<T::Unsigned>::new(x.into_input().cast()?, y.into_output().cast()?);
        expect_pairs("RadixSort::keys", ["x", "y"], [column.input.len(), column.output.len()])?;
        let flips = self.flips::<T>();
        if column.input.len() <= tuned::<T, ()>(stream, Tuning::SortAtOnce) {
            return self.few::<T>(stream, column, stream.temporary(0)?.view_mut());
        }
        let tile = <T::Unsigned as Keys>::tile;
        self.passes::<T>(stream, column.input, tile, |turn, digit, starts, (portion, grid)| {
            let (x, y) = column.turn(stream, turn)?;
            Keys::pass(stream, grid, (flips, digit, starts), x.slice(portion)?, y)
        })
    }

    /// Writes the elements of `x` to `y`, in order, and to `values_out` each element of `values` at the place of its key (CUB's
    /// `DeviceRadixSort::SortPairs`). Values have 4 or 8 bytes.
    ///
    /// ```
    /// # use ferrogrid_host::{Device, Result};
    /// # fn main() -> Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// # use ferrogrid_algorithms as algorithms;
    /// let (keys, values) = (stream.upload(&[2_u8, 0, 1, 0])?, stream.upload(&[0.5, 1.5, 2.5, 3.5])?);
    /// let (mut sorted, mut moved) = (stream.zeros(4)?, stream.zeros(4)?);
    /// algorithms::RadixSort::ascending().pairs(&stream, &keys, &values, &mut sorted, &mut moved)?;
    /// assert_eq!(stream.download(&sorted)?, [0, 0, 1, 2]);
    /// assert_eq!(stream.download(&moved)?, [1.5, 3.5, 2.5, 0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RadixSort::keys`], for all four; and `Error::ViewCast` if values of 8 bytes do not start at a multiple of 8.
    pub fn pairs<'a, 'b, 'c, 'd, T: Number + 'a, V: Pod + DeviceCopy + 'c>(
        &self,
        stream: &Stream,
        x: impl DeviceInput<'a, T>,
        values: impl DeviceInput<'c, V>,
        y: impl DeviceOutput<'b, T>,
        values_out: impl DeviceOutput<'d, V>,
    ) -> Result<()> {
        const { assert!(matches!(size_of::<V>(), 4 | 8), "the values of a sort have 4 or 8 bytes") };
        let keys = Column::new(x.into_input().cast()?, y.into_output().cast()?);
        let (values, values_out) = (values.into_input(), values_out.into_output());
        match size_of::<V>() {
            4 => self.pairs_of::<T, u32>(stream, keys, Column::new(values.cast()?, values_out.cast()?)),
            _ => self.pairs_of::<T, u64>(stream, keys, Column::new(values.cast()?, values_out.cast()?)),
        }
    }

    fn pairs_of<T: Number, V: Pod + Bits + move_few::Instance>(
        &self,
        stream: &Stream,
        mut keys: Column<T::Unsigned>,
        mut values: Column<V>,
    ) -> Result<()>
    where
        T::Unsigned: With<V>,
    {
        let (flips, len) = (self.flips::<T>(), keys.input.len());
        let refuse =
            |arguments, len_of_other| expect_pairs("RadixSort::pairs", arguments, [len, len_of_other]);
        refuse(["x", "y"], keys.output.len())?;
        refuse(["x", "values"], values.input.len())?;
        refuse(["x", "values_out"], values.output.len())?;
        if len <= tuned::<T, V>(stream, Tuning::SortAtOnce) {
            let mut origins = stream.temporary::<u32>(len)?;
            self.few::<T>(stream, keys, origins.view_mut())?;
            let grid = Grid::cover(len.max(1));
            return move_few::<V>(stream, grid, origins.view(), values.input, values.output);
        }
        let tile = <T::Unsigned as With<V>>::tile;
        self.passes::<T>(stream, keys.input, tile, |turn, digit, starts, (portion, grid)| {
            let (x, y) = keys.turn(stream, turn)?;
            let (values, values_out) = values.turn(stream, turn)?;
            let from = (x.slice(portion.clone())?, values.slice(portion)?);
            With::pass(stream, grid, (flips, digit, starts), from, (y, values_out))
        })
    }

    /// Sorts in one block, and writes to `origins`, unless that is empty, where the elements were.
    fn few<T: Sorted>(
        &self,
        stream: &Stream,
        column: Column<T::Unsigned>,
        origins: DeviceViewMut<u32>,
    ) -> Result<()> {
        if column.input.is_empty() {
            return Ok(());
        }
        let (bits, y, origins) = (self.bits_of::<T>(), column.output.into_atomic(), origins.into_atomic());
        let flips = self.flips::<T>();
        sort_few::<T::Unsigned>(
            stream,
            Grid::blocks(1),
            flips,
            bits.start,
            bits.end,
            column.input,
            y,
            origins,
        )
    }

    /// The bits that count, of those that a key has.
    fn bits_of<T>(&self) -> Range<u32> {
        let end = self.bits.end.min(8 * size_of::<T>() as u32);
        self.bits.start.min(end)..end
    }

    pub(crate) fn flips<T: Sorted>(&self) -> Flips<T::Unsigned> {
        let (flips, ones) = T::ORDER;
        if self.descending { Flips { all: flips.all ^ ones, ..flips } } else { flips }
    }

    /// Counts the digits of `x`, and calls `pass` for each and each portion, the lowest and the first ones first, with where its
    /// values begin and the grid of its blocks, which have `tile(portion.len())` elements.
    fn passes<T: Sorted>(
        &self,
        stream: &Stream,
        x: DeviceView<T::Unsigned>,
        tile: fn(&Stream, usize) -> usize,
        mut pass: impl FnMut(Turn, Digit, Starts, (Range<usize>, Grid<1>)) -> Result<()>,
    ) -> Result<()> {
        let Range { start: first, end } = self.bits_of::<T>();
        // No bits are a pass that copies.
        let passes = (end - first).div_ceil(DIGIT).max(1);
        let mut starts = self.starts_of::<T>(stream, x, passes as usize)?;
        // All tiles but the last one of all are full.
        let portion = self.portion.next_multiple_of(tile(stream, self.portion));
        for number in 0..passes {
            let turn = Turn::of(number, passes);
            let begin = first + number * DIGIT;
            let digit = Digit { first: begin, mask: (1 << (end - begin).min(DIGIT)) - 1 };
            let (spare, rest) = starts.view_mut().split_at(DIGITS)?;
            let own = rest.slice(number as usize * DIGITS..)?.slice(..DIGITS)?;
            let (mut own, mut next) = (own, spare);
            for begin in (0..x.len()).step_by(portion) {
                let range = begin..x.len().min(begin + portion);
                let grid = Grid::blocks(range.len().div_ceil(tile(stream, range.len())));
                pass(turn, digit, (own.view(), next.reborrow().into_atomic()), (range, grid))?;
                std::mem::swap(&mut own, &mut next);
            }
        }
        Ok(())
    }

    /// Where the digits of so many passes begin in their order, after a place for those of another portion.
    fn starts_of<T: Sorted>(
        &self,
        stream: &Stream,
        x: DeviceView<T::Unsigned>,
        passes: usize,
    ) -> Result<Temporary<u64>> {
        let mut counts = stream.temporary::<u64>(passes * DIGITS)?;
        let mut starts = stream.temporary::<u64>((1 + passes) * DIGITS)?;
        stream.fill_into(0, counts.view_mut())?;
        let blocks = x.len().div_ceil(TILE).min(tuned::<T, ()>(stream, Tuning::SortCount)).max(1);
        let (grid, all) = (Grid::blocks(blocks), counts.view_mut().into_atomic());
        let Range { start, end } = self.bits_of::<T>();
        digits::kernels::count_digits::<T::Unsigned>(stream, grid, self.flips::<T>(), start, end, x, all)?;
        let of_passes = starts.view_mut().slice(DIGITS..)?;
        digits::kernels::starts(stream, Grid::blocks(passes), counts.view(), of_passes)?;
        Ok(starts)
    }
}

/// Writes the elements of `x` to `y`, the least first (CUB's `DeviceRadixSort::SortKeys`, CuPy's `sort`). [`RadixSort`] says more
/// about the order, and sorts by some of the bits.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut y) = (stream.upload(&[0.5, f32::INFINITY, -0.0, 0.0, -1.5])?, stream.zeros(5)?);
/// algorithms::sort(&stream, &x, &mut y)?;
/// assert_eq!(stream.download(&y)?, [-1.5, -0.0, 0.0, 0.5, f32::INFINITY]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`RadixSort::keys`].
pub fn sort<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    RadixSort::ascending().keys(stream, x, y)
}

/// As [`sort`], the greatest first (CUB's `SortKeysDescending`).
///
/// # Errors
/// As [`RadixSort::keys`].
pub fn sort_descending<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    y: impl DeviceOutput<'b, T>,
) -> Result<()> {
    RadixSort::descending().keys(stream, x, y)
}

/// Writes the elements of `x` to `y`, the least first, and to `values_out` each element of `values` at the place of its key (CUB's
/// `DeviceRadixSort::SortPairs`, Thrust's `stable_sort_by_key`). [`RadixSort::pairs`] has an example.
///
/// # Errors
/// As [`RadixSort::pairs`].
pub fn sort_pairs<'a, 'b, 'c, 'd, T: Number + 'a, V: Pod + DeviceCopy + 'c>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    values: impl DeviceInput<'c, V>,
    y: impl DeviceOutput<'b, T>,
    values_out: impl DeviceOutput<'d, V>,
) -> Result<()> {
    RadixSort::ascending().pairs(stream, x, values, y, values_out)
}

/// Writes to `indices` where the elements of `x` are that come first, second and so on (CuPy's `argsort`). Equal ones stay in
/// order.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let (x, mut indices) = (stream.upload(&[3, 1, 4, 1])?, stream.zeros(4)?);
/// algorithms::argsort(&stream, &x, &mut indices)?;
/// assert_eq!(stream.download(&indices)?, [1, 3, 0, 2]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`RadixSort::keys`], for `x` and `indices`, of fewer than 2^32 elements.
pub fn argsort<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    indices: impl DeviceOutput<'b, u32>,
) -> Result<()> {
    let x = x.into_input();
    let (mut keys, mut numbers) = (stream.temporary::<T>(x.len())?, stream.temporary::<u32>(x.len())?);
    if !x.is_empty() {
        digits::kernels::number(stream, Grid::cover(x.len()), numbers.view_mut())?;
    }
    sort_pairs(stream, x, numbers.view(), keys.view_mut(), indices)
}
