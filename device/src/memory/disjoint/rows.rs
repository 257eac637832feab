//! [`DisjointRows`]: an output plane with one row per block, whose threads own its elements in turn.

use core::marker::PhantomData;

use crate::thread::Thread;

/// A mutable plane of device memory, each row of which belongs to one block: row `i` to block `i` of a grid
/// of rank 1.
///
/// At the launch it is a 2-D view of `height` rows of `width` elements, `buffer.view_2d_mut(width, height)?`;
/// for one result per block `view_2d_mut(1, blocks)?`. The launch refuses more blocks than there are rows
/// (`LaunchError::MoreBlocksThanRows`), because their results would be lost; only blocks that complete a
/// cluster are exempt. With fewer blocks the remaining rows stay unchanged. In a block's row, element `i`
/// belongs to thread `i % threads`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Subtracts from each row its mean.
/// #[kernel]
/// pub fn centre(t: Thread<1>, means: &[f32], mut rows: DisjointRows<f32>) {
///     let mean = means[t.block_idx()[0] as usize];
///     for (_column, element) in rows.iter_mut(&t) {
///         *element -= mean;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let means = stream.upload(&[2.0, 5.0])?;
/// let mut x = stream.upload(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// kernels::centre(&stream, Grid::new(2, 32), &means, x.view_2d_mut(3, 2)?)?; // a block to a row
/// assert_eq!(stream.download(&x)?, [-1.0, 0.0, 1.0, -1.0, 0.0, 1.0]);
/// # Ok(()) }
/// ```
///
/// Elements that are only written:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// A picture of the line from its upper left to its lower right corner.
/// #[kernel]
/// pub fn diagonal(t: Thread<1>, mut picture: DisjointRows<u8>) {
///     let (width, height, [row]) = (picture.width(), picture.height(), t.block_idx());
///     picture.fill_with(&t, |column| u8::from(column * height / width == row as usize));
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut picture = stream.zeros(8)?;
/// kernels::diagonal(&stream, Grid::new(2, 32), picture.view_2d_mut(4, 2)?)?;
/// assert_eq!(stream.download(&picture)?, [1, 1, 0, 0, 0, 0, 1, 1]);
/// # Ok(()) }
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

    /// The number of rows.
    #[inline(always)]
    pub fn height(&self) -> usize {
        self.shape[1]
    }

    /// The thread's own elements of its block's row, with their columns. A block beyond the last row, which
    /// only completes a cluster, has none.
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
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::RowIter;
///
/// /// Sets all but the first `kept` elements of a row to 0.
/// fn cut(elements: RowIter<u32>, kept: usize) {
///     elements.filter(|&(column, _)| column >= kept).for_each(|(_, x)| *x = 0);
/// }
///
/// /// Makes a lower triangle of a square.
/// #[kernel]
/// pub fn lower(t: Thread<1>, mut x: DisjointRows<u32>) {
///     cut(x.iter_mut(&t), t.block_idx()[0] as usize + 1);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.fill(7_u32, 9)?;
/// kernels::lower(&stream, Grid::new(3, 32), x.view_2d_mut(3, 3)?)?;
/// assert_eq!(stream.download(&x)?, [7, 0, 0, 7, 7, 0, 7, 7, 7]);
/// # Ok(()) }
/// ```
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
