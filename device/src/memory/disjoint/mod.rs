//! Output memory that is split among threads: [`DisjointSlice`] by index here, [`DisjointChunks`],
//! [`DisjointTiles`] and [`DisjointRows`] by block (`chunks`, `tiles`, `rows`), [`DisjointWarps`] by warp (`warps`), and
//! [`ScatterSlice`] by claim (`scatter`).

mod chunks;
mod rows;
mod scatter;
mod tiles;
mod warps;

use core::marker::PhantomData;

pub use chunks::{ChunkIter, DisjointChunks};
pub use rows::{DisjointRows, RowIter};
pub use scatter::ScatterSlice;
pub use tiles::{DisjointTiles, TileIter};
pub use warps::DisjointWarps;

use crate::thread::index::{Index, place};

/// A mutable slice of device memory of rank `R` (1, 2 or 3), each element of which belongs to one thread.
///
/// At the launch it is a `&mut DeviceBuffer<T>` (rank 1) or a mutable view. A thread reaches an element by
/// its [`Index`], which no other thread has, so two threads never hold the same `&mut T`. Rank 2 is
/// row-major: (x, y) is element `y * width + x`; rank 3 follows layer by layer.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// y <- a*x + y
/// #[kernel]
/// pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) { // `None` for threads beyond the end
///         *y += a * x[i.get()];
///     }
/// }
///
/// /// Sets the diagonal of a plane.
/// #[kernel]
/// pub fn diagonal(t: Thread<2>, value: f32, mut plane: DisjointSlice<f32, 2>) {
///     let i = t.index();
///     if let Some(element) = plane.get_mut(i) && i.x() == i.y() {
///         *element = value;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[1.0, 2.0, 3.0, 4.0])?;
/// let mut y = stream.zeros(4)?;
/// kernels::saxpy(&stream, Grid::cover(4), 2.0, &x, &mut y)?;
/// kernels::diagonal(&stream, Grid::cover([2, 2]), 9.0, y.view_2d_mut(2, 2)?)?;
/// assert_eq!(stream.download(&y)?, [9.0, 4.0, 6.0, 9.0]);
/// # Ok(()) }
/// ```
///
/// A kernel that uses the extents:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Numbers from 0 to 1, at equal distances.
/// #[kernel]
/// pub fn steps(t: Thread<1>, mut y: DisjointSlice<f32>) {
///     let (i, last) = (t.index(), if y.is_empty() { 0 } else { y.len() - 1 });
///     if let Some(y) = y.get_mut(i) {
///         *y = i.get() as f32 / last as f32;
///     }
/// }
///
/// /// 1 at the edges of a plane.
/// #[kernel]
/// pub fn frame(t: Thread<2>, mut plane: DisjointSlice<f32, 2>) {
///     let (i, right, bottom) = (t.index(), plane.width() - 1, plane.height() - 1);
///     if let Some(element) = plane.get_mut(i) && (i.x() % right == 0 || i.y() % bottom == 0) {
///         *element = 1.0;
///     }
/// }
///
/// /// Counts the elements of a volume down to 1.
/// #[kernel]
/// pub fn count_down(t: Thread<3>, mut volume: DisjointSlice<f32, 3>) {
///     let (i, elements) = (t.index(), volume.shape().iter().product::<usize>());
///     let (width, height, depth) = (volume.width(), volume.height(), volume.depth());
///     assert_eq!(width * height * depth, elements);
///     if let Some(element) = volume.get_mut(i) {
///         *element = (elements - ((i.z() * height + i.y()) * width + i.x())) as f32;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let (mut line, mut y) = (stream.zeros(5)?, stream.zeros(12)?);
/// kernels::steps(&stream, Grid::cover(5), &mut line)?;
/// assert_eq!(stream.download(&line)?, [0.0, 0.25, 0.5, 0.75, 1.0]);
/// kernels::frame(&stream, Grid::cover([4, 3]), y.view_2d_mut(4, 3)?)?;
/// assert_eq!(stream.download(&y)?, [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
/// kernels::count_down(&stream, Grid::cover([3, 2, 2]), y.view_3d_mut(3, 2, 2)?)?;
/// assert_eq!(stream.download(&y)?, (1..=12).rev().map(|n| n as f32).collect::<Vec<_>>());
/// # Ok(()) }
/// ```
pub struct DisjointSlice<'a, T, const R: usize = 1> {
    start: *mut T,
    /// The extents, x first; in rank 1 the length.
    shape: [usize; R],
    /// Whether there are fewer than 2^32 elements: offsets are then computed in 32 bits.
    is_narrow: bool,
    borrowed: PhantomData<&'a mut [T]>,
}

impl<'a, T, const R: usize> DisjointSlice<'a, T, R> {
    /// The memory from `start` on, with extents `shape` (x first).
    ///
    /// # Safety
    /// For `'a`, `start` must be valid for reads and writes of the product of `shape` elements, all
    /// initialised (or well-aligned and non-null when that is 0). Nothing else may reach them except
    /// `DisjointSlice`s with the same `start` and `shape`, in threads with distinct indices of one launch of
    /// rank `R`.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw_parts(start: *mut T, shape: [usize; R]) -> Self {
        DisjointSlice { start, shape, is_narrow: false, borrowed: PhantomData }
    }

    /// The same memory, known to have fewer than 2^32 elements.
    ///
    /// # Safety
    /// It has.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn narrow(self) -> Self {
        DisjointSlice { is_narrow: true, ..self }
    }

    /// The extents, x first; in rank 1 the length.
    #[inline(always)]
    pub fn shape(&self) -> [usize; R] {
        self.shape
    }
}

impl<T> DisjointSlice<'_, T, 1> {
    /// The number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.shape[0]
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element of the thread with this index; `None` beyond the end.
    #[inline(always)]
    pub fn get_mut(&mut self, index: Index<'_, 1>) -> Option<&mut T> {
        if index.get() >= self.shape[0] {
            return None;
        }
        // SAFETY: in bounds; only this thread has this index (`Index`), and this thread's access is
        // exclusive by `&mut self`, whose borrow the result keeps.
        Some(unsafe { &mut *self.start.add(index.get()) })
    }
}

impl<T> DisjointSlice<'_, T, 2> {
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

    /// The element of the thread with this index: column x of row y. `None` outside.
    #[inline(always)]
    pub fn get_mut(&mut self, index: Index<'_, 2>) -> Option<&mut T> {
        if index.x() >= self.shape[0] || index.y() >= self.shape[1] {
            return None;
        }
        // SAFETY: in bounds (and so nothing wraps), as x < width, y < height and there are width * height elements; two
        // different (x, y) with x < width are different elements, only this thread has this index,
        // and this thread's access is exclusive by `&mut self`, whose borrow the result keeps.
        Some(unsafe { &mut *self.start.add(place(self.is_narrow, [index.y(), index.x()], self.shape[0])) })
    }
}

impl<T> DisjointSlice<'_, T, 3> {
    /// Elements per row.
    #[inline(always)]
    pub fn width(&self) -> usize {
        self.shape[0]
    }

    /// Rows per layer.
    #[inline(always)]
    pub fn height(&self) -> usize {
        self.shape[1]
    }

    /// The number of layers.
    #[inline(always)]
    pub fn depth(&self) -> usize {
        self.shape[2]
    }

    /// The element of the thread with this index: column x of row y of layer z. `None` outside.
    #[inline(always)]
    pub fn get_mut(&mut self, index: Index<'_, 3>) -> Option<&mut T> {
        let ([x, y, z], [width, height, depth]) = (index.position(), self.shape);
        if x >= width || y >= height || z >= depth {
            return None;
        }
        // SAFETY: in bounds (and so nothing wraps), as there are width * height * depth elements; different (x, y, z) are
        // different elements, only this thread has this index, and this thread's access is exclusive by
        // `&mut self`, whose borrow the result keeps.
        Some(unsafe {
            let row = place(self.is_narrow, [z, y], height);
            &mut *self.start.add(place(self.is_narrow, [row, x], width))
        })
    }
}
