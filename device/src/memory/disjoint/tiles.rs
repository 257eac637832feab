//! [`DisjointTiles`]: an output plane with one tile per block, whose threads own its elements or micro-tiles
//! in turn.

use core::marker::PhantomData;

use crate::thread::Thread;
use crate::thread::index::place;

/// A mutable plane of device memory, cut into tiles of `W` x `H` elements: tile (x, y) belongs to block (x,
/// y) of a grid of rank 2. Tiles at the edges are cut off there.
///
/// At the launch it is a 2-D view, `buffer.view_2d_mut(width, height)?`, as for `DisjointSlice<T, 2>`. The
/// launch refuses more blocks than there are tiles along an axis (`LaunchError::MoreBlocksThanTiles`), because
/// their results would be lost; only blocks that complete a cluster are exempt. With fewer blocks the
/// remaining tiles stay unchanged. Within a tile, element `i` in row order belongs to thread `i % threads`.
/// So a block may have fewer threads than a tile has elements, and neighbouring threads write neighbouring
/// elements.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The transpose of `input`, 32 x 32 elements to a block.
/// #[kernel]
/// pub fn transpose(t: Thread<2>, input: Plane<u32>, mut output: DisjointTiles<u32, 32, 32>) {
///     output.fill_with(&t, |[row, column]| input[column][row]);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..100 * 40).collect::<Vec<u32>>())?;
/// let mut y = stream.zeros(40 * 100)?;
/// let tiles = Grid::new([2, 4], [32, 8]); // of 40 x 100 elements; those at the edges are cut off
/// kernels::transpose(&stream, tiles, x.view_2d(100, 40)?, y.view_2d_mut(40, 100)?)?;
/// assert_eq!(stream.download(&y)?[..3], [0, 100, 200]);
/// # Ok(()) }
/// ```
///
/// Elements that are read before they are written:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Darkens a picture towards its lower right corner.
/// #[kernel]
/// pub fn darken(t: Thread<2>, mut picture: DisjointTiles<f32, 16, 16>) {
///     let rest = [picture.height() as f32, picture.width() as f32];
///     for ([row, column], pixel) in picture.iter_mut(&t) {
///         *pixel *= (1.0 - row as f32 / rest[0]) * (1.0 - column as f32 / rest[1]);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut picture = stream.fill(8.0_f32, 40 * 20)?;
/// kernels::darken(&stream, Grid::new([3, 2], [16, 4]), picture.view_2d_mut(40, 20)?)?;
/// let picture = stream.download(&picture)?;
/// assert_eq!((picture[0], picture[20], picture[10 * 40], picture[15 * 40 + 30]), (8.0, 4.0, 4.0, 0.5));
/// # Ok(()) }
/// ```
///
/// With `MW` and `MH` a thread owns micro-tiles of `MW` x `MH` elements instead of single ones, as
/// register-blocked products write them: micro-tile `m` of the tile, in row order, belongs to thread `m %
/// threads`. A tile that is not made of whole micro-tiles is a compile error.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The product of two matrices: 64 threads compute 32 x 32 elements, each 4 x 4 of them in registers.
/// #[kernel(block = [64, 1])]
/// pub fn product(t: Thread<2>, a: Plane<f32>, b: Plane<f32>, mut c: DisjointTiles<f32, 32, 32, 4, 4>) {
///     let Some([row, column]) = c.micro_tile(&t) else { return };
///     let mut sums = [[0.0; 4]; 4];
///     for k in 0..a.width() {
///         let of_a: [f32; 4] = core::array::from_fn(|i| a.get(row + i, k).copied().unwrap_or(0.0));
///         let of_b: [f32; 4] = core::array::from_fn(|j| b.get(k, column + j).copied().unwrap_or(0.0));
///         for i in 0..4 {
///             for j in 0..4 {
///                 sums[i][j] += of_a[i] * of_b[j];
///             }
///         }
///     }
///     c.fill_micro_tiles(&t, |_| sums);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let a = stream.upload(&(0..50 * 40).map(|i| (i % 9) as f32).collect::<Vec<_>>())?;
/// let twice = stream.upload(&(0..40 * 40).map(|i| if i % 41 == 0 { 2.0 } else { 0.0 }).collect::<Vec<f32>>())?;
/// let mut c = stream.zeros(50 * 40)?;
/// let grid = Grid::new([2, 2], [64, 1]);
/// kernels::product(&stream, grid, a.view_2d(40, 50)?, twice.view_2d(40, 40)?, c.view_2d_mut(40, 50)?)?;
/// assert_eq!(stream.download(&c)?, (0..50 * 40).map(|i| 2.0 * (i % 9) as f32).collect::<Vec<_>>());
/// # Ok(()) }
/// ```
pub struct DisjointTiles<'a, T, const W: usize, const H: usize, const MW: usize = 1, const MH: usize = 1> {
    start: *mut T,
    /// Width and height of the plane.
    shape: [usize; 2],
    /// Whether there are fewer than 2^32 elements: offsets are then computed in 32 bits.
    is_narrow: bool,
    borrowed: PhantomData<&'a mut [T]>,
}

impl<'a, T, const W: usize, const H: usize, const MW: usize, const MH: usize>
    DisjointTiles<'a, T, W, H, MW, MH>
{
    /// Width and height of a tile, for the launch.
    #[doc(hidden)]
    pub const TILE: [usize; 2] = [W, H];

    /// The number of micro-tiles in a row of the tile, and of rows of micro-tiles.
    const MICRO: [usize; 2] = {
        assert!(W.is_multiple_of(MW) && H.is_multiple_of(MH), "a tile is made of whole micro-tiles");
        [W / MW, H / MH]
    };

    /// The plane from `start` on, with extents `shape` (x first).
    ///
    /// # Safety
    /// As for `DisjointSlice::from_raw_parts`, with `DisjointTiles` of the same type in all threads.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw_parts(start: *mut T, shape: [usize; 2]) -> Self {
        // Evaluates the assertions about micro-tiles in any case.
        const { assert!(Self::MICRO[0] > 0 || W == 0) };
        const { assert!(W > 0 && H > 0 && W <= 1 << 16 && H <= 1 << 16, "a tile has 1 to 65536 rows and columns") };
        DisjointTiles { start, shape, is_narrow: false, borrowed: PhantomData }
    }

    /// The same plane, known to have fewer than 2^32 elements.
    ///
    /// # Safety
    /// It has.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn narrow(self) -> Self {
        DisjointTiles { is_narrow: true, ..self }
    }

    /// Elements per row of the plane.
    #[inline(always)]
    pub fn width(&self) -> usize {
        self.shape[0]
    }

    /// Rows of the plane.
    #[inline(always)]
    pub fn height(&self) -> usize {
        self.shape[1]
    }

    /// The thread's own elements of its block's tile, each with its indices in the plane, `[row, column]`.
    #[inline(always)]
    pub fn iter_mut(&mut self, thread: &Thread<'_, 2>) -> TileIter<'_, T, W, H, MW, MH> {
        TileIter {
            tile: self.tile(thread),
            next: thread.thread_rank() as usize,
            within: 0,
            stride: thread.block_threads() as usize,
            borrowed: PhantomData,
        }
    }

    /// Writes `value([row, column])` to every element of the block's tile, each by the thread that owns it;
    /// `[row, column]` are the indices in the plane.
    #[inline(always)]
    pub fn fill_with(&mut self, thread: &Thread<'_, 2>, mut value: impl FnMut([usize; 2]) -> T) {
        let tile = self.tile(thread);
        if MW * MH > 1 {
            for number in thread.block_stride(Self::MICRO[0] * Self::MICRO[1]) {
                let [row, column] = Self::micro_corner(number);
                for i in 0..MW * MH {
                    let place = [row + i / MW, column + i % MW];
                    if tile.contains(place) {
                        let value = value(tile.place(place));
                        // SAFETY: as in `TileIter::next`.
                        unsafe { *tile.element(place) = value };
                    }
                }
            }
            return;
        }
        let stride = thread.block_threads() as usize;
        // Counted from 0, so that LLVM knows the number of rounds if it knows the number of threads.
        let mut first = 0;
        while first < W * H {
            let place = thread.place_in_rows::<W>(first);
            if tile.contains(place) {
                let value = value(tile.place(place));
                // SAFETY: as in `TileIter::next`.
                unsafe { *tile.element(place) = value };
            }
            first += stride;
        }
    }

    /// Row and column in the plane of the thread's first micro-tile; `None` for threads that have none inside
    /// the plane.
    #[inline(always)]
    pub fn micro_tile(&self, thread: &Thread<'_, 2>) -> Option<[usize; 2]> {
        let (tile, corner) = (self.tile(thread), Self::micro_corner(thread.thread_rank() as usize));
        tile.contains(corner).then(|| tile.place(corner))
    }

    /// Writes `values([row, column])` to every micro-tile of the block's tile, each by the thread that owns
    /// it; `[row, column]` are the plane's indices of its first element. Elements outside the plane are
    /// dropped.
    #[expect(
        clippy::needless_range_loop,
        reason = "over an array's iterator LLVM keeps the values in memory"
    )]
    #[inline(always)]
    pub fn fill_micro_tiles(
        &mut self,
        thread: &Thread<'_, 2>,
        mut values: impl FnMut([usize; 2]) -> [[T; MW]; MH],
    ) where
        T: Copy,
    {
        let tile = self.tile(thread);
        for number in thread.block_stride(Self::MICRO[0] * Self::MICRO[1]) {
            let [row, column] = Self::micro_corner(number);
            if !tile.contains([row, column]) {
                continue;
            }
            let values = values(tile.place([row, column]));
            for i in 0..MH {
                for j in 0..MW {
                    let place = [row + i, column + j];
                    if tile.contains(place) {
                        // SAFETY: as in `TileIter::next`.
                        unsafe { *tile.element(place) = values[i][j] };
                    }
                }
            }
        }
    }

    /// Row and column in the tile of the first element of a micro-tile.
    #[inline(always)]
    fn micro_corner(number: usize) -> [usize; 2] {
        [number / Self::MICRO[0] * MH, number % Self::MICRO[0] * MW]
    }

    #[inline(always)]
    fn tile(&self, thread: &Thread<'_, 2>) -> BlockTile<T, W, H> {
        let [width, height] = self.shape;
        let corner = if self.is_narrow { narrow_corner::<W, H>(thread) } else { corner::<W, H>(thread) };
        let inside = if self.is_narrow {
            [inside(width as u32, corner[0] as u32, W), inside(height as u32, corner[1] as u32, H)]
        } else {
            [wide_inside(width, corner[0], W), wide_inside(height, corner[1], H)]
        };
        BlockTile { start: self.start, width, is_narrow: self.is_narrow, corner, inside }
    }
}

/// The corner of a block's tile in the plane, x first.
#[inline(always)]
fn corner<const W: usize, const H: usize>(thread: &Thread<'_, 2>) -> [usize; 2] {
    let [x, y] = thread.block_idx();
    [x as usize * W, y as usize * H]
}

/// The same in 32 bits; saturates beyond any plane with fewer elements.
#[inline(always)]
fn narrow_corner<const W: usize, const H: usize>(thread: &Thread<'_, 2>) -> [usize; 2] {
    let (block, threads) = (thread.block_idx(), thread.block_dim());
    let along = |axis: usize, size: usize| {
        if size as u32 <= threads[axis] {
            // SAFETY: no more than the threads of the blocks before this one, which a launch keeps below 2^32.
            unsafe { block[axis].unchecked_mul(size as u32) as usize }
        } else {
            block[axis].saturating_mul(size as u32) as usize
        }
    };
    [along(0, W), along(1, H)]
}

/// How many of `size` indices from `first` on are below `extent`. In 32 bits, which halves the cost of the
/// comparisons.
#[inline(always)]
fn inside(extent: u32, first: u32, size: usize) -> u32 {
    extent.saturating_sub(first).min(size as u32)
}

/// The same where 32 bits are not enough.
#[inline(always)]
fn wide_inside(extent: usize, first: usize, size: usize) -> u32 {
    extent.saturating_sub(first).min(size) as u32
}

/// The tile of a block.
struct BlockTile<T, const W: usize, const H: usize> {
    /// Of the plane.
    start: *mut T,
    /// Of the plane.
    width: usize,
    /// Whether offsets in the plane fit 32 bits.
    is_narrow: bool,
    /// Its corner in the plane, x first.
    corner: [usize; 2],
    /// The number of its columns and rows inside the plane.
    inside: [u32; 2],
}

impl<T, const W: usize, const H: usize> BlockTile<T, W, H> {
    /// Whether the tile has this row and column, and the plane too.
    #[inline(always)]
    fn contains(&self, [row, column]: [usize; 2]) -> bool {
        // In 32 bits: rows and columns of tiles with fewer elements are below 2^32.
        row < H && (column as u32) < self.inside[0] && (row as u32) < self.inside[1]
    }

    /// Row and column in the plane of a row and column of the tile.
    #[inline(always)]
    fn place(&self, [row, column]: [usize; 2]) -> [usize; 2] {
        [self.corner[1] + row, self.corner[0] + column]
    }

    /// # Safety
    /// The tile contains it.
    #[inline(always)]
    unsafe fn element(&self, of_tile: [usize; 2]) -> *mut T {
        // SAFETY: inside of the plane, so nothing wraps.
        unsafe { self.start.add(place(self.is_narrow, self.place(of_tile), self.width)) }
    }
}

/// A thread's own elements of its block's tile; see [`DisjointTiles::iter_mut`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::TileIter;
///
/// /// Raises what is below `least` to it.
/// fn raise<const W: usize, const H: usize>(elements: TileIter<f32, W, H>, least: f32) {
///     elements.filter(|(_, x)| **x < least).for_each(|(_, x)| *x = least);
/// }
///
/// #[kernel]
/// pub fn not_below(t: Thread<2>, least: f32, mut x: DisjointTiles<f32, 32, 32>) {
///     raise(x.iter_mut(&t), least);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&[0.5, -2.0, 3.0, 1.0])?;
/// kernels::not_below(&stream, Grid::new([1, 1], [32, 8]), 1.0, x.view_2d_mut(2, 2)?)?;
/// assert_eq!(stream.download(&x)?, [1.0, 1.0, 3.0, 1.0]);
/// # Ok(()) }
/// ```
pub struct TileIter<'s, T, const W: usize, const H: usize, const MW: usize = 1, const MH: usize = 1> {
    tile: BlockTile<T, W, H>,
    /// The next micro-tile of the tile, and the next element in it.
    next: usize,
    within: usize,
    stride: usize,
    borrowed: PhantomData<&'s mut T>,
}

impl<'s, T, const W: usize, const H: usize, const MW: usize, const MH: usize> Iterator
    for TileIter<'s, T, W, H, MW, MH>
{
    type Item = ([usize; 2], &'s mut T);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        while self.next < W / MW * (H / MH) {
            let [row, column] = DisjointTiles::<T, W, H, MW, MH>::micro_corner(self.next);
            let place = [row + self.within / MW, column + self.within % MW];
            self.within += 1;
            if self.within == MW * MH {
                (self.within, self.next) = (0, self.next + self.stride);
            }
            if self.tile.contains(place) {
                // SAFETY: inside of the plane; no other block has this tile, as no other has this index in a
                // grid of rank 2; numbers that are equal modulo the number of threads belong to this
                // thread alone, each is given out once, and the plane is borrowed for as long.
                return Some((self.tile.place(place), unsafe { &mut *self.tile.element(place) }));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Block;

    const WIDTH: usize = 40;
    const HEIGHT: usize = 70;

    /// What the tiles of a plane are filled with by a grid of `blocks` blocks of `threads` threads.
    fn filled(
        blocks: [u32; 3],
        threads: [u32; 3],
        shape: [usize; 2],
        is_narrow: bool,
    ) -> [usize; WIDTH * HEIGHT] {
        let mut plane = [0; WIDTH * HEIGHT];
        let start = plane.as_mut_ptr();
        for (x, y) in (0..blocks[1]).flat_map(|y| (0..blocks[0]).map(move |x| (x, y))) {
            let block = Block::new([x, y, 0], threads, blocks);
            // SAFETY: each block of a launch of rank 2 runs once; the plane is no larger than the array.
            unsafe {
                block.for_each_thread::<2>(|t| {
                    let tiles = DisjointTiles::<usize, 16, 32>::from_raw_parts(start, shape);
                    let mut tiles = if is_narrow { tiles.narrow() } else { tiles };
                    tiles.fill_with(&t, |[row, column]| 1 + row * shape[0] + column);
                });
            }
        }
        plane
    }

    #[test]
    fn a_plane_is_filled_by_tiles_of_any_blocks_in_32_bits_as_in_64() {
        for shape in [[40, 70], [1, 1], [16, 32], [17, 33], [33, 5], [0, 9], [9, 0]] {
            for threads in [[16, 2, 1], [16, 3, 1], [32, 4, 1], [5, 7, 1], [1, 1, 1]] {
                // The last tiles are outside.
                let blocks = [4, 4, 1];
                let expected: [usize; WIDTH * HEIGHT] =
                    core::array::from_fn(|place| if place < shape[0] * shape[1] { 1 + place } else { 0 });
                assert_eq!(filled(blocks, threads, shape, true), expected, "narrow: {shape:?}, {threads:?}");
                assert_eq!(filled(blocks, threads, shape, false), expected, "wide: {shape:?}, {threads:?}");
            }
        }
    }

    #[test]
    fn a_tile_beyond_32_bits_is_outside_of_a_narrow_plane() {
        let block = Block::new([1 << 28, 0, 0], [1, 1, 1], [(1 << 28) + 1, 1, 1]);
        let mut plane = [0_u8; 8];
        // SAFETY: a block of a launch of rank 2, whose other blocks do not run.
        unsafe {
            block.for_each_thread::<2>(|t| {
                let tiles = DisjointTiles::<u8, 16, 1>::from_raw_parts(plane.as_mut_ptr(), [8, 1]);
                tiles.narrow().fill_with(&t, |_| 1);
            });
        }
        assert_eq!(plane, [0; 8], "2^28 tiles of 16 columns wrap to column 0");
    }
}
