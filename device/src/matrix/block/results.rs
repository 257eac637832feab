//! [`ProductResult`]: what a product stores of a function of its sums, and the kernel of `#[matmul]`.

use bytemuck::Pod;

use super::result_rows::RowOfPairs;
use super::{
    EachProduct, GroupedRows, PartialProduct, ProductElement, ProductSums, ProductTiles, Products,
    ResultTile, RowGroups, RowOfFours, StoredGroup, TiledFactor, WarpRows, each_column,
};
use crate::atomic::{DeviceAtomic, Ordering::Relaxed};
use crate::element::device_copy::DeviceCopy;
use crate::matrix::{COLUMNS, ROWS, unrolled};
use crate::memory::plane::Plane;
#[cfg(feature = "half")]
use crate::number::half::{HalfFloat, bf16, f16};
use crate::number::narrow::{f8e4m3, f8e5m2};
use crate::shared::Shared;
use crate::thread::Thread;
use crate::warp::Warp;

/// An element that a function of `#[matmul]` returns: `f32`, `i32`, `u32`, `i8`, `u8`, `f8e4m3`, `f8e5m2`, and with the feature `half` `f16` and
/// `bf16`.
#[diagnostic::on_unimplemented(
    message = "products do not store `{Self}`",
    label = "expected `f32`, `i32`, `u32`, `i8`, `u8`, `f8e4m3`, `f8e5m2`, or with the feature `half` `f16` or `bf16`"
)]
pub trait ProductResult: DeviceCopy + Pod {
    /// What neighbours are stored as.
    #[doc(hidden)]
    type Group: StoredGroup;
    /// The neighbours in a group.
    #[doc(hidden)]
    const GROUP: usize = size_of::<Self::Group>() / size_of::<Self>();

    /// The group of neighbours, by their numbers in it.
    #[doc(hidden)]
    fn group(result: impl FnMut(usize) -> Option<Self>) -> Self::Group;

    /// Stores what `sums` are as results, by rows if there is memory.
    #[doc(hidden)]
    fn store<U: Copy, F: SumFunction<U, Self>, const N: usize, const IS_WHOLE: bool>(
        sums: &ProductSums<N, U>,
        warp: &Warp,
        memory: Option<&mut WarpRows>,
        target: &Target<'_, Self::Group, F, IS_WHOLE>,
    );
}

/// The element for a row or a column, and the last one beyond the end: a load without a branch, so that all loads of a thread are in flight at once.
/// `None` if there is none at all.
#[doc(hidden)]
#[inline(always)]
pub fn nearest<T>(x: &[T], place: usize) -> Option<&T> {
    let last = x.len().checked_sub(1)?;
    // Places of products are less than 2^32.
    let at = (place as u32).min(last.min(u32::MAX as usize) as u32);
    // SAFETY: it is not beyond the last one.
    Some(unsafe { x.get_unchecked(at as usize) })
}

/// The element for a row and a column, as [`nearest`].
#[doc(hidden)]
#[inline(always)]
pub fn nearest_of_plane<T>(x: Plane<'_, T>, row: usize, column: usize) -> Option<&T> {
    nearest(x.row(row.min(x.height().checked_sub(1)?))?, column)
}

/// A function of sums. Not a closure, since LLVM may leave one that is called for each sum of a thread as a function.
#[doc(hidden)]
pub trait SumFunction<U, C>: Copy {
    /// Whether no input is empty.
    fn has_inputs(self) -> bool;

    /// The result for the sum in that row, of all batches, and column, of that batch or group; `None` if an input is empty.
    fn of(self, matrix: usize, row: usize, column: usize, sum: U) -> Option<C>;
}

/// A tile of a product as results. If it `IS_WHOLE`, all of it is within the product: code without a branch for each sum.
#[doc(hidden)]
pub struct Target<'c, G: StoredGroup, F, const IS_WHOLE: bool> {
    /// From the tile's first sum on, up to the end of its batch or group.
    out: GroupedRows<'c, G>,
    tile: ResultTile,
    columns: usize,
    function: F,
}

impl<G: StoredGroup, F, const IS_WHOLE: bool> Target<'_, G, F, IS_WHOLE> {
    /// A sum by its place in the tile, as a result; none beyond the edges of the product.
    #[inline(always)]
    fn result<U, C>(&self, row: usize, column: usize, sum: U) -> Option<C>
    where
        F: SumFunction<U, C>,
    {
        let ([first, end], matrix) = (self.tile.rows, self.tile.matrix);
        let (row, column) = (first + row, self.tile.column + column);
        if IS_WHOLE || row < end && column < self.columns {
            self.function.of(matrix, row, column, sum)
        } else {
            None
        }
    }
}

macro_rules! words {
    ($($t:ident: $bits:expr;)*) => { $(
        impl ProductResult for $t {
            type Group = u64;

            #[inline(always)]
            fn group(mut result: impl FnMut(usize) -> Option<Self>) -> u64 {
                let [left, right] = [0, 1].map(|i| u64::from(result(i).map_or(0, $bits)));
                left | right << 32
            }

            #[inline(always)]
            fn store<U: Copy, F: SumFunction<U, Self>, const N: usize, const IS_WHOLE: bool>(
                sums: &ProductSums<N, U>,
                warp: &Warp,
                memory: Option<&mut WarpRows>,
                target: &Target<'_, u64, F, IS_WHOLE>,
            ) {
                let [row, column] = sums.first;
                let mut rows = [row, row + ROWS / 2].map(|row| Row::<$t, F, IS_WHOLE> { target, row });
                if let Some(memory) = memory {
                    return sums.store_pairs(warp, memory, rows, target.out);
                }
                macro_rules! store {
                    ($lower:literal, $column:expr, $left:expr, $right:expr) => {
                        if let Some(group) = target.out.get(row + $lower * (ROWS / 2), $column / 2) {
                            group.store(rows[$lower].bits($column, [$left, $right]), Relaxed);
                        }
                    };
                }
                each_column!(n, N, {
                    let ([a, b, c, d], column) = (sums.sums[n], column + n * COLUMNS);
                    store!(0, column, a, b);
                    store!(1, column, c, d);
                });
            }
        }

        impl<U, F: SumFunction<U, $t>, const IS_WHOLE: bool> RowOfPairs<U> for Row<'_, $t, F, IS_WHOLE> {
            type Pair = u64;

            #[inline(always)]
            fn bits(&mut self, column: usize, [left, right]: [U; 2]) -> u64 {
                let left = self.target.result(self.row, column, left).map_or(0, $bits);
                let right = self.target.result(self.row, column + 1, right).map_or(0, $bits);
                u64::from(left) | u64::from(right) << 32
            }
        }
    )* };
}
words! {
    f32: f32::to_bits;
    i32: i32::cast_unsigned;
    u32: u32::from;
}

/// A row of results.
struct Row<'t, C: ProductResult, F, const IS_WHOLE: bool> {
    target: &'t Target<'t, C::Group, F, IS_WHOLE>,
    row: usize,
}

macro_rules! parts {
    ($($t:ident as $group:ident by $width:literal in $pair:ident: $bits:expr, $join:expr;)*) => { $(
        impl ProductResult for $t {
            type Group = $group;

            #[inline(always)]
            fn group(mut result: impl FnMut(usize) -> Option<Self>) -> $group {
                let [a, b, c, d] = [0, 1, 2, 3].map(|i| u64::from(result(i).map_or(0, $bits)));
                $join(a | b << $width | (c | d << $width) << 32)
            }

            #[inline(always)]
            fn store<U: Copy, F: SumFunction<U, Self>, const N: usize, const IS_WHOLE: bool>(
                sums: &ProductSums<N, U>,
                warp: &Warp,
                memory: Option<&mut WarpRows>,
                target: &Target<'_, $group, F, IS_WHOLE>,
            ) {
                let rows = [sums.first[0], sums.first[0] + ROWS / 2];
                let rows = rows.map(|row| Row::<$t, F, IS_WHOLE> { target, row });
                match memory {
                    Some(memory) => sums.store_pairs(warp, memory, rows, target.out),
                    None => sums.store_fours(warp, rows),
                }
            }
        }

        impl<U, F: SumFunction<U, $t>, const IS_WHOLE: bool> RowOfPairs<U> for Row<'_, $t, F, IS_WHOLE> {
            type Pair = $pair;

            #[inline(always)]
            fn bits(&mut self, column: usize, pair: [U; 2]) -> $pair {
                RowOfFours::bits(self, column, pair) as $pair
            }
        }

        impl<U, F: SumFunction<U, $t>, const IS_WHOLE: bool> RowOfFours<U> for Row<'_, $t, F, IS_WHOLE> {
            #[inline(always)]
            fn bits(&mut self, column: usize, [left, right]: [U; 2]) -> u32 {
                let left = self.target.result(self.row, column, left).map_or(0, $bits);
                let right = self.target.result(self.row, column + 1, right).map_or(0, $bits);
                u32::from(left) | u32::from(right) << $width
            }

            #[inline(always)]
            fn store(&mut self, four: usize, bits: u64) {
                if let Some(group) = self.target.out.get(self.row, four) {
                    group.store($join(bits), Relaxed);
                }
            }
        }
    )* };
}
#[cfg(feature = "half")]
parts! {
    f16 as u64 by 16 in u32: HalfFloat::to_bits, core::convert::identity;
    bf16 as u64 by 16 in u32: HalfFloat::to_bits, core::convert::identity;
}
parts! {
    i8 as u32 by 8 in u16: i8::cast_unsigned, joined_bytes;
    u8 as u32 by 8 in u16: u8::from, joined_bytes;
    f8e4m3 as u32 by 8 in u16: f8e4m3::to_bits, joined_bytes;
    f8e5m2 as u32 by 8 in u16: f8e5m2::to_bits, joined_bytes;
}

/// Four bytes of which each 32 bits have two.
#[inline(always)]
fn joined_bytes(four: u64) -> u32 {
    four as u32 | (four >> 16) as u32
}

/// The products of a `#[matmul]`.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Several<'o> {
    /// One.
    One,
    /// As many, below each other.
    Batches(usize),
    /// One for each group of rows, with a matrix each as right factor.
    Groups(&'o [u32]),
}

/// The kernel of `#[matmul]`: stores what `function` makes of each sum of `a b^T`, by all blocks together, by rows if there is memory. `out` has
/// whole groups for each row.
#[doc(hidden)]
#[track_caller]
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "what a kernel has, and its function")]
pub fn multiply_and_store<
    T: ProductElement,
    C: ProductResult,
    const M: usize,
    const N: usize,
    const S: usize,
    const ID: usize,
>(
    t: &Thread<'_, 1>,
    memory: Shared<'_, Products<T, M, N, S>, ID>,
    a: impl TiledFactor<T>,
    b: impl TiledFactor<T>,
    several: Several<'_>,
    rows: Option<WarpRows<'_>>,
    out: &[DeviceAtomic<C::Group>],
    function: impl SumFunction<T::Sum, C>,
) {
    let extent = [a.extent()[0], b.extent()[0]];
    let tiles = several.tiles(extent, [M, N]);
    let is_one = matches!(several, Several::One);
    let groups = tiles.extent[1].div_ceil(C::GROUP);
    let out = GroupedRows::new(out, groups, [extent[0], groups]);
    let stored = Stored::<C, _> { warp: &t.warp(), rows, out, tiles, is_one, function };
    t.multiply_each(memory, a, b, tiles.places(t), stored);
    // At the end, where it needs no registers beside the sums.
    tiles.groups.check(t, extent[0]);
}

impl<'o> Several<'o> {
    /// The tiles of all products, of factors with so many rows.
    #[inline(always)]
    fn tiles(self, [rows, columns]: [usize; 2], tile: [usize; 2]) -> ProductTiles<'o> {
        let (batches, groups) = match self {
            Several::One => (1, RowGroups(&[])),
            Several::Batches(batches) => (batches.max(1), RowGroups(&[])),
            Several::Groups(offsets) => (1, RowGroups(offsets)),
        };
        let extent = [rows / batches, columns / batches.max(groups.len())];
        ProductTiles { extent, tile, batches, groups }
    }
}

/// What is done with each tile of a product.
struct Stored<'c, C: ProductResult, F> {
    warp: &'c Warp<'c>,
    rows: Option<WarpRows<'c>>,
    out: GroupedRows<'c, C::Group>,
    tiles: ProductTiles<'c>,
    /// Whether there is one product: a constant, with which places are not taken apart.
    is_one: bool,
    function: F,
}

impl<U: Copy, C: ProductResult, F: SumFunction<U, C>, const N: usize> EachProduct<[usize; 2], N, U>
    for Stored<'_, C, F>
{
    #[inline(always)]
    fn of(&mut self, place: [usize; 2], sums: &ProductSums<N, U>) {
        let Stored { warp, rows: ref mut memory, out, tiles, is_one, function } = *self;
        // Afterwards LLVM does not ask for each sum.
        if !function.has_inputs() {
            return;
        }
        let ([row, column], [rows, columns]) = (place, tiles.extent);
        let tile = if is_one { ResultTile { matrix: 0, rows: [row, rows], column } } else { tiles.at(place) };
        let out = out.of_tile(tile, C::GROUP);
        if warp.all(row + tiles.tile[0] <= tile.rows[1] && tile.column + tiles.tile[1] <= columns) {
            C::store(sums, warp, memory.as_mut(), &Target::<_, _, true> { out, tile, columns, function });
        } else {
            C::store(sums, warp, None, &Target::<_, _, false> { out, tile, columns, function });
        }
    }
}

/// A sum of products, of which parts are added up.
#[doc(hidden)]
pub trait PartialSum: ProductResult<Group = u64> {
    /// The sum of both.
    fn plus(self, other: Self) -> Self;
}

impl PartialSum for f32 {
    #[inline(always)]
    fn plus(self, other: f32) -> f32 {
        self + other
    }
}

impl PartialSum for i32 {
    #[inline(always)]
    fn plus(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }
}

/// The sum itself.
#[derive(Clone, Copy)]
struct Unchanged;

impl<U> SumFunction<U, U> for Unchanged {
    #[inline(always)]
    fn has_inputs(self) -> bool {
        true
    }

    #[inline(always)]
    fn of(self, _: usize, _: usize, _: usize, sum: U) -> Option<U> {
        Some(sum)
    }
}

/// As [`multiply_and_store`], if parts of the depth, so many with so many elements each, are multiplied apart: it stores the sums of each part, below
/// those of the one before. [`store_parts`] makes results of them.
#[doc(hidden)]
#[track_caller]
#[inline(always)]
pub fn multiply_parts<
    T: ProductElement<Sum: PartialSum>,
    const M: usize,
    const N: usize,
    const S: usize,
    const ID: usize,
>(
    t: &Thread<'_, 1>,
    memory: Shared<'_, Products<T, M, N, S>, ID>,
    a: impl TiledFactor<T>,
    b: impl TiledFactor<T>,
    several: Several<'_>,
    parts: [u64; 2],
    sums: &[DeviceAtomic<u64>],
) {
    let extent = [a.extent()[0], b.extent()[0]];
    let (all, [parts, elements]) = (several.tiles(extent, [M, N]), parts.map(|it| it as usize));
    let ([_, columns], warp, tiles) = (all.extent, t.warp(), all.partial_places(t, [parts, elements]));
    let group = <T::Sum as ProductResult>::GROUP;
    let groups = columns.div_ceil(group);
    let sums = GroupedRows::new(sums, groups, [parts * extent[0], groups]);
    t.multiply_tiles(memory, a, b, tiles, |PartialProduct { place, depth }, of_part| {
        let (tile, above) = (all.at(place), depth[0] / elements.max(1) * extent[0]);
        let tile = ResultTile { rows: tile.rows.map(|row| above + row), ..tile };
        let out = sums.of_tile(tile, group);
        let target = Target::<_, _, false> { out, tile, columns, function: Unchanged };
        <T::Sum as ProductResult>::store(of_part, &warp, None, &target);
    });
}

/// Stores what `function` makes of the sums of so many parts, a group of results for each thread: of a product with rows of all batches, columns, and
/// rows of a batch.
#[doc(hidden)]
#[inline(always)]
pub fn store_parts<U: PartialSum, C: ProductResult>(
    t: &Thread<'_, 1>,
    sums: &[U],
    [parts, rows, columns, of_batch]: [u64; 4],
    out: &[DeviceAtomic<C::Group>],
    function: impl SumFunction<U, C>,
) {
    let [parts, rows, columns, of_batch] = [parts, rows, columns, of_batch.max(1)].map(|it| it as usize);
    let (number, groups) = (t.index().get(), columns.div_ceil(C::GROUP).max(1));
    let (row, first) = (number / groups, number % groups * C::GROUP);
    let Some(group) = out.get(number).filter(|_| row < rows && function.has_inputs()) else { return };
    let pitch = columns.next_multiple_of(U::GROUP);
    let sum = |column: usize| {
        let of_parts = (0..parts).filter_map(|part| sums.get((part * rows + row) * pitch + column).copied());
        of_parts.reduce(U::plus).filter(|_| column < columns)
    };
    let result = |column: usize| function.of(row / of_batch, row, column, sum(column)?);
    group.store(C::group(|i| result(first + i)), Relaxed);
}
