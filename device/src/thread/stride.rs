//! Grid-stride and block-stride loops: a grid or block of any size covers any number of elements, each thread
//! its own.

use core::hint::assert_unchecked;
use core::marker::PhantomData;

use crate::thread::Thread;
use crate::thread::index::Index;

/// The indices of one thread in a grid-stride loop: its own, then steps by the number of threads in the grid,
/// up to an end. Created by [`Thread::grid_stride`].
///
/// Like its [`Index`], they are unique to the thread: along each axis they are its own index plus multiples
/// of the number of threads, so they differ from those of every other thread.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::GridStride;
///
/// /// Those of the places that are on the diagonal or above it.
/// fn upper(places: GridStride<2>) -> impl Iterator<Item = Index<2>> {
///     places.filter(|i| i.x() >= i.y())
/// }
///
/// /// y <- x in the upper triangle of a plane, by a grid of any size.
/// #[kernel]
/// pub fn copy_upper(t: Thread<2>, x: Plane<u32>, mut y: DisjointSlice<u32, 2>) {
///     for i in upper(t.grid_stride(y.width(), y.height())) {
///         if let Some(y) = y.get_mut(i) {
///             *y = x[i.y()][i.x()];
///         }
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[1, 2, 3, 4, 5, 6, 7, 8, 9])?;
/// let mut y = stream.zeros(9)?;
/// kernels::copy_upper(&stream, Grid::new([1, 1], [2, 1]), x.view_2d(3, 3)?, y.view_2d_mut(3, 3)?)?; // two threads
/// assert_eq!(stream.download(&y)?, [1, 2, 3, 0, 5, 6, 0, 0, 9]);
/// # Ok(()) }
/// ```
pub struct GridStride<'t, const R: usize> {
    axes: [Walk; R],
    finished: bool,
    thread: PhantomData<(&'t (), *mut ())>,
}

/// The numbers of one thread in a block-stride loop: its rank in the block, then steps by the number of
/// threads in the block. Created by [`Thread::block_stride`].
///
/// ```
/// use ferrogrid_device::{BlockStride, prelude::*};
///
/// /// The sum of the elements at some of the places, for each thread and each warp in the same order.
/// fn sum(places: BlockStride, x: &[f32]) -> f32 {
///     places.map(|place| x[place]).sum()
/// }
///
/// fn sum_of_own(t: &Thread<1>, x: &[f32]) -> f32 {
///     sum(t.block_stride(x.len()), x)
/// }
/// # let block = ferrogrid_device::native::Block::new([7, 0, 0], [4, 1, 1], [9, 1, 1]);
/// # let mut found = vec![];
/// # // SAFETY: there are no slices to be written.
/// # unsafe { block.for_each_thread::<1>(|t| found.push(sum_of_own(&t, &[3.0, 1.0, 4.0, 1.0, 5.0, 9.0]))) };
/// # assert_eq!(found, [8.0, 10.0, 4.0, 1.0]);
/// ```
pub struct BlockStride {
    walk: Walk,
    finished: bool,
}

/// Steps along one axis. Where the end is known to fit into 32 bits, as a slice's length does in a kernel
/// that is not `wide`, the compiler drops the 64-bit half, and with it every second instruction of the loop.
#[derive(Clone, Copy)]
struct Walk {
    is_narrow: bool,
    narrow: Steps<u32>,
    wide: Steps<usize>,
}

#[derive(Clone, Copy)]
struct Steps<N> {
    /// Unless finished, `first` and `next` are below `end`.
    first: N,
    next: N,
    end: N,
    stride: N,
    /// Below this value another step remains: it is the end minus the stride, so their sum cannot overflow,
    /// and a step costs one comparison.
    last: N,
}

macro_rules! steps {
    ($number:ty) => {
        impl Steps<$number> {
            #[inline(always)]
            fn new(first: $number, end: $number, stride: $number) -> Self {
                Steps { first, next: first, end, stride, last: end.saturating_sub(stride) }
            }

            /// The next index, known to the compiler to be below the end, so that bounds checks of a slice of
            /// that length disappear. Call it only before the end.
            #[inline(always)]
            fn place(&self) -> usize {
                // SAFETY: it is not called where `first` is not below the end; and `step` adds the stride
                // only where `next < last = end - stride`, and else takes `first`.
                unsafe { assert_unchecked(self.next < self.end) };
                self.next as usize
            }

            /// Advances; at the end, resets to the first index and returns `false`.
            #[inline(always)]
            fn step(&mut self) -> bool {
                let further = self.next < self.last;
                self.next = if further {
                    // SAFETY: from below `last = end - stride` it comes to below the end.
                    unsafe { self.next.unchecked_add(self.stride) }
                } else {
                    self.first
                };
                further
            }
        }
    };
}

steps!(u32);
steps!(usize);

impl Walk {
    /// From `first` in steps of `stride`, below `end`.
    #[inline(always)]
    fn new(first: u32, end: usize, stride: u32) -> Self {
        Walk {
            is_narrow: end <= u32::MAX as usize,
            narrow: Steps::<u32>::new(first, end as u32, stride),
            wide: Steps::<usize>::new(first as usize, end, stride as usize),
        }
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.wide.first >= self.wide.end
    }

    #[inline(always)]
    fn place(&self) -> usize {
        if self.is_narrow { self.narrow.place() } else { self.wide.place() }
    }

    #[inline(always)]
    fn step(&mut self) -> bool {
        if self.is_narrow { self.narrow.step() } else { self.wide.step() }
    }
}

impl<const R: usize> Thread<'_, R> {
    #[inline(always)]
    fn stride_to(&self, end: [usize; R]) -> GridStride<'_, R> {
        let (first, stride) = (self.grid_rank(), self.grid_threads());
        let axes: [Walk; R] = core::array::from_fn(|axis| Walk::new(first[axis], end[axis], stride[axis]));
        GridStride { axes, finished: axes.iter().any(Walk::is_empty), thread: PhantomData }
    }

    /// The numbers below `end` that fall to this thread when its block covers them all: its
    /// [rank](Self::thread_rank), then steps by [the number of threads](Self::block_threads) in the block.
    /// This is CUB's striped arrangement: neighbouring threads reach neighbouring elements.
    ///
    /// Other blocks get the same numbers, so they are plain numbers to read with, not [`Index`]es. A block
    /// writes through [`DisjointRows`](crate::DisjointRows) or [`DisjointTiles`](crate::DisjointTiles). With
    /// a block of fixed size the compiler unrolls the loop.
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    ///
    /// /// The greatest element of those that are this thread's.
    /// fn own_part(t: &Thread<1>, x: &[f32]) -> f32 {
    ///     t.block_stride(x.len()).fold(f32::NEG_INFINITY, |greatest, i| greatest.max(x[i]))
    /// }
    /// # let block = ferrogrid_device::native::Block::new([7, 0, 0], [4, 1, 1], [9, 1, 1]);
    /// # let mut found = vec![];
    /// # // SAFETY: there are no slices to be written.
    /// # unsafe { block.for_each_thread::<1>(|t| found.push(own_part(&t, &[3.0, 1.0, 4.0, 1.0, 5.0]))) };
    /// # assert_eq!(found, [5.0, 1.0, 4.0, 1.0]);
    /// ```
    #[inline(always)]
    pub fn block_stride(&self, end: usize) -> BlockStride {
        let walk = Walk::new(self.thread_rank(), end, self.block_threads());
        BlockStride { walk, finished: walk.is_empty() }
    }
}

impl Thread<'_, 1> {
    /// The indices below `end` that fall to this thread when the grid covers them all: its own index, then
    /// steps by the number of threads in the grid (CUDA's grid-stride loop, by `gridDim.x * blockDim.x`).
    ///
    /// So a grid of any size does the work of `end` threads, and a grid that just fills the device spends no
    /// time on starting blocks. Neighbouring threads reach neighbouring elements.
    ///
    /// ```
    /// use ferrogrid_device::prelude::*;
    ///
    /// fn scale(t: Thread<1>, factor: f32, mut y: DisjointSlice<f32>) {
    ///     for i in t.grid_stride(y.len()) {
    ///         if let Some(y) = y.get_mut(i) {
    ///             *y *= factor;
    ///         }
    ///     }
    /// }
    /// # let mut data = [1.0_f32; 5];
    /// # let pointer = data.as_mut_ptr();
    /// # let block = ferrogrid_device::native::Block::new([0; 3], [2, 1, 1], [1; 3]);
    /// # // SAFETY: this block is the whole launch, and the only one to use the slice of five elements.
    /// # unsafe {
    /// #     block.for_each_thread::<1>(|t| scale(t, 2.0, DisjointSlice::from_raw_parts(pointer, [5])));
    /// # }
    /// # assert_eq!(data, [2.0; 5]);
    /// ```
    #[inline(always)]
    pub fn grid_stride(&self, end: usize) -> GridStride<'_, 1> {
        self.stride_to([end])
    }
}

impl Thread<'_, 2> {
    /// The indices (x, y), with x below `width` and y below `height`, that fall to this thread when the grid
    /// covers them all, row by row; [`GridStride`] has an example.
    #[inline(always)]
    pub fn grid_stride(&self, width: usize, height: usize) -> GridStride<'_, 2> {
        self.stride_to([width, height])
    }
}

impl<'t> Iterator for GridStride<'t, 1> {
    type Item = Index<'t, 1>;

    #[inline(always)]
    fn next(&mut self) -> Option<Index<'t, 1>> {
        if self.finished {
            return None;
        }
        let place = self.axes[0].place();
        self.finished = !self.axes[0].step();
        Some(Index::new([place]))
    }
}

impl<'t> Iterator for GridStride<'t, 2> {
    type Item = Index<'t, 2>;

    #[inline(always)]
    fn next(&mut self) -> Option<Index<'t, 2>> {
        if self.finished {
            return None;
        }
        let place = [self.axes[0].place(), self.axes[1].place()];
        self.finished = !self.axes[0].step() && !self.axes[1].step();
        Some(Index::new(place))
    }
}

impl Iterator for BlockStride {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.finished {
            return None;
        }
        let place = self.walk.place();
        self.finished = !self.walk.step();
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Block;

    /// How often each of `end` places is visited by a grid of `blocks` blocks of `threads` threads.
    fn visits<const N: usize>(blocks: u32, threads: u32, end: usize) -> [u32; N] {
        let mut visits = [0; N];
        for block in 0..blocks {
            let block = Block::new([block, 0, 0], [threads, 1, 1], [blocks, 1, 1]);
            // SAFETY: each block of a launch of rank 1 runs once; there are no slices.
            unsafe {
                block.for_each_thread::<1>(|t| t.grid_stride(end).for_each(|i| visits[i.get()] += 1));
            }
        }
        visits
    }

    #[test]
    fn every_place_is_visited_once_by_any_grid() {
        for (blocks, threads) in [(1, 1), (1, 7), (3, 5), (8, 32)] {
            for end in [0, 1, 2, 14, 15, 16, 97, 100] {
                let expected: [u32; 100] = core::array::from_fn(|place| u32::from(place < end));
                assert_eq!(visits::<100>(blocks, threads, end), expected, "{blocks} x {threads}, {end}");
            }
        }
    }

    #[test]
    fn every_place_of_a_plane_is_visited_once() {
        for (width, height) in [(0, 5), (5, 0), (1, 1), (7, 9), (20, 3)] {
            let mut visits = [0_u32; 100];
            for x in 0..2 {
                let block = Block::new([x, 0, 0], [3, 2, 1], [2, 1, 1]);
                // SAFETY: each block of a launch of rank 2 runs once; there are no slices.
                unsafe {
                    block.for_each_thread::<2>(|t| {
                        t.grid_stride(width, height).for_each(|i| visits[i.y() * width + i.x()] += 1);
                    });
                }
            }
            let expected: [u32; 100] = core::array::from_fn(|place| u32::from(place < width * height));
            assert_eq!(visits, expected, "{width} x {height}");
        }
    }

    #[test]
    fn the_end_of_all_addresses_is_not_stepped_over() {
        let block = Block::new([(1 << 22) - 2, 0, 0], [1024, 1, 1], [(1 << 22) - 1, 1, 1]);
        // SAFETY: one block of a launch of rank 1, run once; there are no slices.
        unsafe {
            block.for_each_thread::<1>(|t| {
                let mut places = t.grid_stride(usize::MAX);
                let first = places.next().map(Index::get);
                assert_eq!(first, Some(t.index().get()));
                places.axes[0].wide.next = usize::MAX - 1;
                assert_eq!(places.next().map(Index::get), Some(usize::MAX - 1));
                assert!(places.next().is_none() && places.next().is_none());
            });
        }
    }

    #[test]
    fn the_last_32_bit_place_is_reached_and_not_stepped_over() {
        let block = Block::new([0; 3], [1024, 1, 1], [1; 3]);
        // SAFETY: one block of a launch of rank 1, run once; there are no slices.
        unsafe {
            block.for_each_thread::<1>(|t| {
                let mut places = t.grid_stride(u32::MAX as usize);
                places.next();
                places.axes[0].narrow.next = u32::MAX - 1024;
                assert_eq!(places.next().map(Index::get), Some(u32::MAX as usize - 1024));
                assert!(places.next().is_none());
                let mut further = t.grid_stride(u32::MAX as usize + 1);
                further.next();
                further.axes[0].wide.next = u32::MAX as usize - 1024;
                assert_eq!(further.nth(1).map(Index::get), Some(u32::MAX as usize));
                assert!(further.next().is_none());
            });
        }
    }

    #[test]
    fn a_block_visits_every_place_once() {
        for (threads, end) in [([1, 1], 5), ([7, 1], 5), ([4, 2], 100), ([32, 1], 96), ([3, 3], 0)] {
            let mut visits = [0_u32; 100];
            let block = Block::new([5, 1, 0], [threads[0], threads[1], 1], [9, 9, 1]);
            // SAFETY: one block of a launch of rank 2, run once; there are no slices.
            unsafe {
                block.for_each_thread::<2>(|t| t.block_stride(end).for_each(|place| visits[place] += 1))
            };
            let expected: [u32; 100] = core::array::from_fn(|place| u32::from(place < end));
            assert_eq!(visits, expected, "{threads:?}, {end}");
        }
    }
}
