//! Output memory that belongs to blocks: a tile, or a row, for each block, in which each thread reaches
//! what is its own. It must not know how the memory was allocated.

use core::marker::PhantomData;

use crate::thread::Thread;

/// A mutable plane of device memory, cut into tiles of `W` x `H` elements, each of which belongs to one
/// block: tile (x, y) to block (x, y) of a grid of rank 2. Tiles at the edges are cut off there.
///
/// At the launch it is a 2-D view, `buffer.view_2d_mut(width, height)?`, as for `DisjointSlice<T, 2>`.
/// Within its block's tile, element number `i` in row order belongs to thread number `i % threads`, so
/// blocks may have fewer threads than tiles have elements, and neighbouring threads write neighbouring
/// elements.
///
/// ```
/// use ferrogrid_device::prelude::*;
///
/// /// The transpose of `input`, which has `height` columns.
/// fn transpose(t: Thread<2>, height: usize, input: &[f32], mut output: DisjointTiles<f32, 32, 32>) {
///     output.fill_with(&t, |[row, column]| input[column * height + row]);
/// }
/// # let _: fn(Thread<2>, usize, &[f32], DisjointTiles<f32, 32, 32>) = transpose;
/// ```
pub struct DisjointTiles<'a, T, const W: usize, const H: usize> {
    start: *mut T,
    /// Width and height of the plane.
    shape: [usize; 2],
    borrowed: PhantomData<&'a mut [T]>,
}

impl<'a, T, const W: usize, const H: usize> DisjointTiles<'a, T, W, H> {
    /// The plane from `start` on, with extents `shape` (x first).
    ///
    /// # Safety
    /// As for `DisjointSlice::from_raw_parts`, with `DisjointTiles` of the same `W` and `H` in all threads.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw_parts(start: *mut T, shape: [usize; 2]) -> Self {
        const { assert!(W > 0 && H > 0 && W <= 1 << 16 && H <= 1 << 16, "a tile has 1 to 65536 rows and columns") };
        DisjointTiles { start, shape, borrowed: PhantomData }
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

    /// The thread's own elements of its block's tile, each with its place in the plane, `[row, column]`.
    #[inline(always)]
    pub fn iter_mut(&mut self, thread: &Thread<'_, 2>) -> TileIter<'_, T, W, H> {
        TileIter {
            tile: self.tile(thread),
            next: thread.thread_rank() as usize,
            stride: thread.block_threads() as usize,
            borrowed: PhantomData,
        }
    }

    /// Writes `value([row, column])` to every element of the block's tile, each by the thread that owns it;
    /// `[row, column]` is the place in the plane.
    #[inline(always)]
    pub fn fill_with(&mut self, thread: &Thread<'_, 2>, mut value: impl FnMut([usize; 2]) -> T) {
        let tile = self.tile(thread);
        let (rank, stride) = (thread.thread_rank() as usize, thread.block_threads() as usize);
        // Counted from 0, so that LLVM knows the number of rounds where it knows that of the threads.
        let mut first = 0;
        while first < W * H {
            let number = first + rank;
            if tile.contains(number) {
                let value = value(tile.place(number));
                // SAFETY: as in `TileIter::next`.
                unsafe { *tile.element(number) = value };
            }
            first += stride;
        }
    }

    #[inline(always)]
    fn tile(&self, thread: &Thread<'_, 2>) -> BlockTile<T, W, H> {
        let [x, y] = thread.block_idx();
        let (left, top) = (x as usize * W, y as usize * H);
        BlockTile {
            // Not dereferenced where the tile is not inside of the plane.
            start: self.start.wrapping_add(top.wrapping_mul(self.shape[0]).wrapping_add(left)),
            width: self.shape[0],
            corner: [left, top],
            inside: [inside(self.shape[0], left, W), inside(self.shape[1], top, H)],
        }
    }
}

/// How many of `size` places from `first` on are below `extent`. In 32 bits, which halves the comparisons.
#[inline(always)]
fn inside(extent: usize, first: usize, size: usize) -> u32 {
    extent.saturating_sub(first).min(size) as u32
}

/// The tile of a block.
struct BlockTile<T, const W: usize, const H: usize> {
    start: *mut T,
    /// Of the plane.
    width: usize,
    /// Where it is in the plane, x first.
    corner: [usize; 2],
    /// How many columns and rows of it are inside of the plane.
    inside: [u32; 2],
}

impl<T, const W: usize, const H: usize> BlockTile<T, W, H> {
    /// Whether the tile has element `number`, in the plane.
    #[inline(always)]
    fn contains(&self, number: usize) -> bool {
        number < W * H && ((number % W) as u32) < self.inside[0] && ((number / W) as u32) < self.inside[1]
    }

    /// Row and column in the plane.
    #[inline(always)]
    fn place(&self, number: usize) -> [usize; 2] {
        [self.corner[1] + number / W, self.corner[0] + number % W]
    }

    /// # Safety
    /// The tile contains `number`.
    #[inline(always)]
    unsafe fn element(&self, number: usize) -> *mut T {
        // SAFETY: inside of the plane, so nothing wraps.
        unsafe { self.start.add((number / W).unchecked_mul(self.width).unchecked_add(number % W)) }
    }
}

/// A thread's own elements of its block's tile; see [`DisjointTiles::iter_mut`].
pub struct TileIter<'s, T, const W: usize, const H: usize> {
    tile: BlockTile<T, W, H>,
    /// Number in the tile of the next element to look at.
    next: usize,
    stride: usize,
    borrowed: PhantomData<&'s mut T>,
}

impl<'s, T, const W: usize, const H: usize> Iterator for TileIter<'s, T, W, H> {
    type Item = ([usize; 2], &'s mut T);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        while self.next < W * H {
            let number = self.next;
            self.next += self.stride;
            if self.tile.contains(number) {
                // SAFETY: inside of the plane; no other block has this tile, as no other has this index in a
                // grid of rank 2; numbers that are equal modulo the number of threads belong to this
                // thread alone, each is given out once, and the plane is borrowed for as long.
                return Some((self.tile.place(number), unsafe { &mut *self.tile.element(number) }));
            }
        }
        None
    }
}

/// A mutable plane of device memory each row of which belongs to one block: row `i` to block `i` of a
/// grid of rank 1.
///
/// At the launch it is a 2-D view, `buffer.view_2d_mut(width, height)?`. In its block's row, element
/// number `i` belongs to thread number `i % threads`.
///
/// ```
/// use ferrogrid_device::prelude::*;
///
/// /// Each block writes the mean of its row into all of it.
/// fn level(t: Thread<1>, means: &[f32], mut rows: DisjointRows<f32>) {
///     let mean = means[t.block_idx()[0] as usize];
///     rows.fill_with(&t, |_column| mean);
/// }
/// ```
pub struct DisjointRows<'a, T> {
    start: *mut T,
    /// Width and height of the plane.
    shape: [usize; 2],
    borrowed: PhantomData<&'a mut [T]>,
}

impl<'a, T> DisjointRows<'a, T> {
    /// The plane from `start` on, with extents `shape` (x first).
    ///
    /// # Safety
    /// As for `DisjointSlice::from_raw_parts`, with `DisjointRows` in all threads.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw_parts(start: *mut T, shape: [usize; 2]) -> Self {
        DisjointRows { start, shape, borrowed: PhantomData }
    }

    /// Elements per row.
    #[inline(always)]
    pub fn width(&self) -> usize {
        self.shape[0]
    }

    /// How many rows there are.
    #[inline(always)]
    pub fn height(&self) -> usize {
        self.shape[1]
    }

    /// The thread's own elements of its block's row, with their columns; none for a block beyond the last
    /// row.
    #[inline(always)]
    pub fn iter_mut(&mut self, thread: &Thread<'_, 1>) -> RowIter<'_, T> {
        let [row] = thread.block_idx();
        let exists = (row as usize) < self.shape[1];
        RowIter {
            // Not dereferenced if there is no such row.
            start: self.start.wrapping_add(row as usize * self.shape[0]),
            next: thread.thread_rank() as usize,
            end: if exists { self.shape[0] } else { 0 },
            stride: thread.block_threads() as usize,
            borrowed: PhantomData,
        }
    }

    /// Writes `value(column)` to every element of the block's row, each by the thread that owns it.
    #[inline(always)]
    pub fn fill_with(&mut self, thread: &Thread<'_, 1>, mut value: impl FnMut(usize) -> T) {
        let RowIter { start, end, .. } = self.iter_mut(thread);
        for column in thread.block_stride(end) {
            let value = value(column);
            // SAFETY: as in `RowIter::next`.
            unsafe { *start.add(column) = value };
        }
    }
}

/// A thread's own elements of its block's row; see [`DisjointRows::iter_mut`].
pub struct RowIter<'s, T> {
    start: *mut T,
    next: usize,
    end: usize,
    stride: usize,
    borrowed: PhantomData<&'s mut T>,
}

impl<'s, T> Iterator for RowIter<'s, T> {
    type Item = (usize, &'s mut T);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let column = self.next;
        if column >= self.end {
            return None;
        }
        self.next += self.stride;
        // SAFETY: inside of the row, which no other block has, as no other has this index in a grid of
        // rank 1; columns that are equal modulo the number of threads belong to this thread alone, each is
        // given out once, and the plane is borrowed for as long.
        Some((column, unsafe { &mut *self.start.add(column) }))
    }
}
