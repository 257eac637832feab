//! Grid-stride loops: a grid of any size walks over any number of places, each thread over its own. It
//! must not know what is at these places.

use core::hint::assert_unchecked;
use core::marker::PhantomData;

use crate::index::Index;
use crate::thread::Thread;

/// The places of one thread: its own, and those a whole grid further on, up to an end. Made by
/// [`Thread::grid_stride`].
///
/// They are unique to the thread, like its [`Index`]: along each axis they are its own place plus
/// multiples of the number of threads, so they differ from those of every other thread.
pub struct GridStride<'t, const R: usize> {
    /// Unless finished, `first` and `next` are below `end` along each axis.
    first: [usize; R],
    next: [usize; R],
    end: [usize; R],
    /// The threads of the grid along each axis.
    stride: [usize; R],
    /// Below it there is a further place along the axis: the end less the stride, so that no sum of
    /// the two can overflow, and a step costs one comparison.
    last: [usize; R],
    finished: bool,
    thread: PhantomData<(&'t (), *mut ())>,
}

impl<const R: usize> Thread<'_, R> {
    #[inline(always)]
    fn stride_to(&self, end: [usize; R]) -> GridStride<'_, R> {
        let (blocks, threads) = (self.grid_dim(), self.block_dim());
        let stride: [usize; R] = core::array::from_fn(|axis| blocks[axis] as usize * threads[axis] as usize);
        let first = self.index().position();
        GridStride {
            first,
            next: first,
            end,
            stride,
            last: core::array::from_fn(|axis| end[axis].saturating_sub(stride[axis])),
            finished: (0..R).any(|axis| first[axis] >= end[axis]),
            thread: PhantomData,
        }
    }
}

impl Thread<'_, 1> {
    /// The places below `end` that are this thread's when the grid walks over all of them: its own
    /// index, then steps by the number of threads in the grid.
    ///
    /// So a grid of any size does the work of `end` threads, and one that just fills the device
    /// spends nothing on starting blocks. Neighbouring threads reach neighbouring elements.
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
    /// The places (x, y) with x below `width` and y below `height` that are this thread's when the
    /// grid walks over all of them, row by row.
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
        let place = self.place();
        self.finished = !self.step(0);
        Some(Index::new(place))
    }
}

impl<'t> Iterator for GridStride<'t, 2> {
    type Item = Index<'t, 2>;

    #[inline(always)]
    fn next(&mut self) -> Option<Index<'t, 2>> {
        if self.finished {
            return None;
        }
        let place = self.place();
        self.finished = !self.step(0) && !self.step(1);
        Some(Index::new(place))
    }
}

impl<const R: usize> GridStride<'_, R> {
    /// The next place, known to the compiler to be below the end: bounds checks of a slice as long fall
    /// away. Only to be asked for before the end.
    #[inline(always)]
    fn place(&self) -> [usize; R] {
        for axis in 0..R {
            // SAFETY: `stride_to` finishes at once unless it holds of `first`; and `step` adds the stride
            // only where `next < last = end - stride`, and else takes `first`.
            unsafe { assert_unchecked(self.next[axis] < self.end[axis]) };
        }
        self.next
    }

    /// Goes on along `axis`; at the end of it, back to the first place, and returns `false`.
    #[inline(always)]
    fn step(&mut self, axis: usize) -> bool {
        let further = self.next[axis] < self.last[axis];
        self.next[axis] = if further { self.next[axis] + self.stride[axis] } else { self.first[axis] };
        further
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
        let block = Block::new([i32::MAX as u32 - 1, 0, 0], [1024, 1, 1], [i32::MAX as u32, 1, 1]);
        // SAFETY: one block of a launch of rank 1, run once; there are no slices.
        unsafe {
            block.for_each_thread::<1>(|t| {
                let mut places = t.grid_stride(usize::MAX);
                let first = places.next().map(Index::get);
                assert_eq!(first, Some(t.index().get()));
                places.next = [usize::MAX - 1];
                assert_eq!(places.next().map(Index::get), Some(usize::MAX - 1));
                assert!(places.next().is_none() && places.next().is_none());
            });
        }
    }
}
