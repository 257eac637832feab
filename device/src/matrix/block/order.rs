//! [`ProductTiles`]: the tiles of a product, of batches or of groups of rows, in the order in which blocks take them.

use super::PartialProduct;
use crate::thread::Thread;

/// The tiles beside or below each other that blocks take at the same time: they read the same rows of a factor.
const TOGETHER: usize = 8;

/// Groups of rows that follow each other, by offsets in device memory: the first row of each group, and the end of the last one. A kernel that
/// has a block for each tile of `height` rows asks which group a tile is of: sequences of different lengths, the experts of a mixture.
///
/// ```
/// use ferrogrid_device::matrix::RowGroups;
///
/// let groups = RowGroups(&[0, 3, 3, 9]); // 3 rows, none, 6
/// assert_eq!([groups.rows(0), groups.rows(2)], [[0, 3], [3, 9]]);
/// assert_eq!(RowGroups::most_tiles(groups.len(), 9, 4), 5);
/// // Tiles of up to 4 rows, with their first row and the end of their group; some have no rows.
/// let tiles: Vec<_> = (0..5).map(|number| groups.tile(number, 4)).collect();
/// assert_eq!(tiles, [Some((0, [0, 3])), None, Some((2, [3, 9])), Some((2, [7, 9])), None]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RowGroups<'o>(pub &'o [u32]);

impl RowGroups<'_> {
    /// How many there are.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The first row of group number `group`, and the row after its last one; none if there is no such group.
    #[inline(always)]
    pub fn rows(self, group: usize) -> [usize; 2] {
        // No panic, which would need a stack.
        [group, group + 1].map(|i| self.0.get(i).map_or(0, |offset| *offset as usize))
    }

    /// How many tiles of `height` rows so many groups can have among `rows` rows, wherever they begin.
    #[inline(always)]
    pub const fn most_tiles(groups: usize, rows: usize, height: usize) -> usize {
        rows / height + groups
    }

    /// The group of tile number `number`, of `height` rows, with the tile's first row and the row after the group's last one. `None` for a tile
    /// without rows: there are [`most_tiles`](Self::most_tiles).
    #[inline(always)]
    pub fn tile(self, number: usize, height: usize) -> Option<(usize, [usize; 2])> {
        let first_tile = |group: usize| self.rows(group)[0] / height + group;
        let (mut group, mut end) = (0, self.len());
        while group + 1 < end {
            let middle = group.midpoint(end);
            if first_tile(middle) <= number {
                group = middle;
            } else {
                end = middle;
            }
        }
        let ([first, end], number) = (self.rows(group), number.checked_sub(first_tile(group))?);
        let has_rows = number < end.saturating_sub(first).div_ceil(height);
        has_rows.then(|| (group, [first + number * height, end]))
    }

    /// Checks all offsets, in the first block.
    ///
    /// # Panics
    /// Unless the offsets ascend up to `rows`: in all threads of the first block, since those of a warp may multiply together.
    #[track_caller]
    #[inline(always)]
    pub fn check(self, t: &Thread<1>, rows: usize) {
        if t.block_idx()[0] == 0 && !self.0.is_empty() {
            expect_ascending(t.sync_threads_and(self.own_ascend(t, rows)));
        }
    }

    /// As [`check`](Self::check), of one thread that has no others.
    #[doc(hidden)]
    pub fn check_all(self, rows: usize) {
        expect_ascending(self.0.is_sorted() && self.0.last().is_none_or(|end| *end as usize <= rows));
    }

    /// Whether those of the offsets ascend, up to `rows`, that the thread looks at: all of them for all threads of a block.
    #[inline(always)]
    pub fn own_ascend(self, t: &Thread<1>, rows: usize) -> bool {
        let offset = |i: usize| self.0.get(i).map_or(rows, |offset| *offset as usize);
        t.block_stride(self.0.len()).all(|i| offset(i) <= offset(i + 1))
    }
}

#[track_caller]
#[inline(always)]
fn expect_ascending(are_ascending: bool) {
    assert!(are_ascending, "the offsets of groups ascend up to the number of rows");
}

/// The tiles of a product, of batches of one size, or of groups of rows of which each has a matrix of its own as right factor. The blocks of a
/// persistent kernel take every `grid_dim`-th one ([`places`](Self::places)), in an order in which those at the same time read the same rows of
/// the factors.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
/// use ferrogrid::device::half::bf16;
/// use ferrogrid::device::matrix::{ProductTiles, Products, RowGroups};
///
/// /// Rows of group `i` of `a` by the transpose of matrix `i` of `b`: all have as many rows.
/// #[kernel(block = 256)]
/// pub fn by_experts(
///     t: Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 64>, offsets: &[u32], c: &[DeviceAtomic<f32>],
///     memory: Shared<Products<bf16, 64, 64, 2>>,
/// ) {
///     let groups = RowGroups(offsets);
///     let columns = b.height() / groups.len().max(1);
///     let tiles = ProductTiles { extent: [a.height(), columns], tile: [64, 64], batches: 1, groups };
///     groups.check(&t, a.height());
///     t.multiply_tiles(memory, a, b, tiles.places(&t), |place, sums| {
///         let tile = tiles.at(place);
///         sums.for_each_pair(|i, j, pair| {
///             for (column, sum) in (tile.column + j..columns).zip(pair) {
///                 if tile.rows[0] + i < tile.rows[1] {
///                     c[(tile.rows[0] + i) * columns + column].store(sum, Relaxed);
///                 }
///             }
///         });
///     });
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::device::half::bf16;
///
/// let (a, b) = (stream.fill(bf16::ONE, 5 * 64)?, stream.upload(&[[bf16::ONE; 64], [bf16::from_f32(2.0); 64]])?);
/// let (offsets, mut c) = (stream.upload(&[0, 3, 5])?, stream.zeros(5)?);
/// let b = b.view().cast()?.into_2d(64, 2)?; // a row of each matrix
/// kernels::by_experts(&stream, Grid::blocks(2), a.view_2d(64, 5)?, b, &offsets, c.as_atomic())?;
/// assert_eq!(stream.download(&c)?, [64.0, 64.0, 64.0, 128.0, 128.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ProductTiles<'o> {
    /// Rows and columns of each product: all rows, if they have groups.
    pub extent: [usize; 2],
    /// Rows and columns of a tile.
    pub tile: [usize; 2],
    /// How many products are below each other: 1, if rows have groups.
    pub batches: usize,
    /// The groups of rows, if there are any.
    pub groups: RowGroups<'o>,
}

/// A tile of [`ProductTiles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultTile {
    /// Its batch or group.
    pub matrix: usize,
    /// Its first row among those of all batches, and the row after the last one of its batch or group.
    pub rows: [usize; 2],
    /// Its first column in the product.
    pub column: usize,
}

impl<'o> ProductTiles<'o> {
    /// How many there are, with those that have no rows.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.down() * self.across() * self.batches
    }

    /// Those below each other in a product, or in all groups.
    #[inline(always)]
    fn down(&self) -> usize {
        let ([rows, _], [height, _]) = (self.extent, self.tile);
        if self.groups.0.is_empty() {
            rows.div_ceil(height)
        } else {
            RowGroups::most_tiles(self.groups.len(), rows, height)
        }
    }

    #[inline(always)]
    fn across(&self) -> usize {
        self.extent[1].div_ceil(self.tile[1])
    }

    /// Tile number `number`; `None` if it has no rows. Some are taken from below each other, column by column; of groups from beside each other, so
    /// that all blocks have as many without rows.
    #[inline(always)]
    pub fn get(&self, number: usize) -> Option<ResultTile> {
        let (down, across, [rows, _]) = (self.down(), self.across(), self.extent);
        // Code for a division by zero would be long.
        let of_batch = (down * across).max(1);
        let (batch, number) = (number / of_batch, number % of_batch);
        if self.groups.0.is_empty() {
            let [down, across] = together([down, across], number);
            let rows = [batch * rows + down * self.tile[0], (batch + 1) * rows];
            return Some(ResultTile { matrix: batch, rows, column: across * self.tile[1] });
        }
        let [across, down] = together([across, down], number);
        let (matrix, rows) = self.groups.tile(down, self.tile[0])?;
        Some(ResultTile { matrix, rows, column: across * self.tile[1] })
    }

    /// The places of the block's tiles for [`multiply_tiles`](crate::Thread::multiply_tiles): the columns of each matrix of the right factor follow
    /// those of the one before.
    #[inline(always)]
    pub fn places(self, t: &Thread<1>) -> impl Iterator<Item = [usize; 2]> + use<'o> {
        let (first, step) = (t.block_idx()[0] as usize, t.grid_dim()[0] as usize);
        (first..self.count()).step_by(step).filter_map(move |number| self.place(number))
    }

    /// The block's tiles, as [`places`](Self::places), if the depth has so many parts of so many elements, a multiple of 128 bytes: all tiles of a part
    /// come before those of the next one.
    #[inline(always)]
    pub fn partial_places(
        self,
        t: &Thread<1>,
        [parts, elements]: [usize; 2],
    ) -> impl Iterator<Item = PartialProduct> + use<'o> {
        let (first, step, count) = (t.block_idx()[0] as usize, t.grid_dim()[0] as usize, self.count());
        (first..parts * count).step_by(step).filter_map(move |number| {
            // Code for a division by zero would be long.
            let (part, tile) = (number / count.max(1), number % count.max(1));
            Some(PartialProduct { place: self.place(tile)?, depth: [part * elements, (part + 1) * elements] })
        })
    }

    /// The place of tile number `number`.
    #[inline(always)]
    pub fn place(&self, number: usize) -> Option<[usize; 2]> {
        let tile = self.get(number)?;
        Some([tile.rows[0], tile.matrix * self.extent[1] + tile.column])
    }

    /// The tile at a place.
    #[inline(always)]
    pub fn at(&self, [row, column]: [usize; 2]) -> ResultTile {
        let [rows, columns] = self.extent;
        // Places are less than 2^31, and a division of 32 bits is a fraction of one of 64.
        let matrix = (column as u32 / columns.clamp(1, u32::MAX as usize) as u32) as usize;
        let end = if self.groups.0.is_empty() { (matrix + 1) * rows } else { self.groups.rows(matrix)[1] };
        ResultTile { matrix, rows: [row, end], column: column - matrix * columns }
    }
}

/// The line, and the place in it, of number `number` of all places in `lines` of so many: first those of some lines, place by place.
#[inline(always)]
fn together([lines, places]: [usize; 2], number: usize) -> [usize; 2] {
    let of_some = (TOGETHER * places).max(1);
    let (first, number) = (number / of_some * TOGETHER, number % of_some);
    let together = (lines - first).clamp(1, TOGETHER);
    [first + number % together, number / together]
}
