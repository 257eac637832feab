//! [`DisjointChunks`]: a one-dimensional output with one chunk per block, whose threads own its elements in
//! turn.

use core::marker::PhantomData;

use crate::thread::Thread;

/// A mutable slice of device memory, cut into chunks of `N` elements: chunk `i` belongs to block `i` of a
/// grid of rank 1. The last chunk may be shorter. [`DisjointTiles`](crate::DisjointTiles) does the same in
/// two dimensions.
///
/// At the launch it is a buffer or a view, as for `DisjointSlice<T>`. The launch refuses more blocks than
/// there are chunks (`LaunchError::MoreBlocksThanTiles`), because their results would be lost; only blocks that
/// complete a cluster are exempt. With fewer blocks the remaining chunks stay unchanged. Within a chunk,
/// element `i` belongs to thread `i % threads`. So a block may have fewer threads than a chunk has elements,
/// and neighbouring threads write neighbouring elements.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Turns each 256 elements around, by 64 threads.
/// #[kernel(block = 64)]
/// pub fn reverse(t: Thread<1>, x: &[u32], mut y: DisjointChunks<u32, 256>) {
///     let first = t.block_idx()[0] as usize * 256;
///     let last = (first + 256).min(x.len()) - 1;
///     y.fill_with(&t, |place| x[first + last - place]);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..600).collect::<Vec<u32>>())?;
/// let mut y = stream.zeros(600)?;
/// kernels::reverse(&stream, kernels::reverse::grid(600), &x, &mut y)?; // three blocks
/// let y = stream.download(&y)?;
/// assert_eq!((y[0], y[255], y[256], y[512], y[599]), (255, 0, 511, 599, 512));
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
/// /// Adds to each element the number of its block.
/// #[kernel]
/// pub fn add_block(t: Thread<1>, mut x: DisjointChunks<u32, 4>) {
///     assert!(x.len() == 6 && !x.is_empty());
///     for (_place, x) in x.iter_mut(&t) {
///         *x += t.block_idx()[0];
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::LaunchError;
///
/// let mut x = stream.fill(10_u32, 6)?;
/// kernels::add_block(&stream, Grid::new(2, 32), &mut x)?;
/// assert_eq!(stream.download(&x)?, [10, 10, 10, 10, 11, 11]);
/// let refused = kernels::add_block(&stream, Grid::new(3, 32), &mut x);
/// let Err(Error::Launch(LaunchError::MoreBlocksThanTiles { blocks, tiles, .. })) = refused else { panic!() };
/// assert_eq!((blocks, tiles), (3, 2));
/// # Ok(()) }
/// ```
pub struct DisjointChunks<'a, T, const N: usize> {
    start: *mut T,
    len: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

impl<'a, T, const N: usize> DisjointChunks<'a, T, N> {
    /// The number of elements of a chunk, for the launch.
    #[doc(hidden)]
    pub const TILE: [usize; 1] = [N];

    /// The slice of `len` elements from `start` on.
    ///
    /// # Safety
    /// As for `DisjointSlice::from_raw_parts`, with `DisjointChunks` of the same `N` in all threads.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw_parts(start: *mut T, [len]: [usize; 1]) -> Self {
        const { assert!(N > 0 && N <= 1 << 31, "a chunk has 1 to 2^31 elements") };
        DisjointChunks { start, len, borrowed: PhantomData }
    }

    /// The number of elements of all chunks.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The thread's own elements of its block's chunk, each with its index in the slice. A block beyond the
    /// last chunk, which only completes a cluster, has none.
    #[inline(always)]
    pub fn iter_mut(&mut self, thread: &Thread<'_, 1>) -> ChunkIter<'_, T> {
        let (first, inside) = self.chunk(thread);
        ChunkIter {
            // Not dereferenced if there is no such chunk.
            chunk: self.start.wrapping_add(first),
            first,
            next: thread.thread_rank() as usize,
            end: inside,
            stride: thread.block_threads() as usize,
            borrowed: PhantomData,
        }
    }

    /// Writes `value(index)` to every element of the block's chunk, each by the thread that owns it; `index`
    /// is the index in the slice.
    #[inline(always)]
    pub fn fill_with(&mut self, thread: &Thread<'_, 1>, mut value: impl FnMut(usize) -> T) {
        let (first, inside) = self.chunk(thread);
        let (rank, stride) = (thread.thread_rank() as usize, thread.block_threads() as usize);
        // Counted from 0 to `N`, so that LLVM knows the number of rounds if it knows the number of threads.
        let mut round = 0;
        while round < N {
            let number = round + rank;
            if number < inside {
                let value = value(first + number);
                // SAFETY: as in `ChunkIter::next`.
                unsafe { *self.start.add(first + number) = value };
            }
            round += stride;
        }
    }

    /// The start of the block's chunk, and the number of its elements.
    #[inline(always)]
    fn chunk(&self, thread: &Thread<'_, 1>) -> (usize, usize) {
        let [block] = thread.block_idx();
        // Fewer than 2^32 blocks of at most 2^31 elements do not wrap.
        let first = block as usize * N;
        (first, self.len.saturating_sub(first).min(N))
    }
}

/// A thread's own elements of its block's chunk or its warp's run; see [`DisjointChunks::iter_mut`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use ferrogrid::device::ChunkIter;
///
/// /// Sets what is below `least` to it.
/// fn raise(elements: ChunkIter<f32>, least: f32) {
///     elements.filter(|(_, x)| **x < least).for_each(|(_, x)| *x = least);
/// }
///
/// #[kernel]
/// pub fn not_below(t: Thread<1>, least: f32, mut x: DisjointChunks<f32, 512>) {
///     raise(x.iter_mut(&t), least);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&[0.5, -2.0, 3.0])?;
/// kernels::not_below(&stream, Grid::blocks(1), 1.0, &mut x)?;
/// assert_eq!(stream.download(&x)?, [1.0, 1.0, 3.0]);
/// # Ok(()) }
/// ```
pub struct ChunkIter<'s, T> {
    chunk: *mut T,
    first: usize,
    next: usize,
    end: usize,
    stride: usize,
    borrowed: PhantomData<&'s mut T>,
}

impl<T> ChunkIter<'_, T> {
    /// Of the `inside` elements from number `first` of the slice at `start`, those that belong to thread
    /// `rank` of `threads`.
    ///
    /// # Safety
    /// While it lives, other threads reach these elements only by another rank among the `threads`.
    #[inline(always)]
    pub(super) unsafe fn over(
        start: *mut T,
        first: usize,
        inside: usize,
        rank: usize,
        threads: usize,
    ) -> Self {
        // Not dereferenced if nothing is inside.
        let chunk = start.wrapping_add(first);
        ChunkIter { chunk, first, next: rank, end: inside, stride: threads, borrowed: PhantomData }
    }
}

impl<'s, T> Iterator for ChunkIter<'s, T> {
    type Item = (usize, &'s mut T);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let number = self.next;
        if number >= self.end {
            return None;
        }
        self.next += self.stride;
        // SAFETY: inside of the chunk, which no other block (or tile) has, as no other has this index in a grid of rank 1;
        // numbers that are equal modulo the number of threads belong to this thread alone, each is given out once, and
        // the slice is borrowed for as long.
        Some((self.first + number, unsafe { &mut *self.chunk.add(number) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Block;

    /// What `blocks` blocks of `threads` threads write to the first `len` of 40 elements, by chunks of 16.
    fn filled(blocks: u32, threads: u32, len: usize, by_iterator: bool) -> [usize; 40] {
        let mut elements = [0; 40];
        let start = elements.as_mut_ptr();
        for x in 0..blocks {
            let block = Block::new([x, 0, 0], [threads, 1, 1], [blocks, 1, 1]);
            // SAFETY: each block of a launch of rank 1 runs once; the array has at least `len` elements.
            unsafe {
                block.for_each_thread::<1>(|t| {
                    let mut chunks = DisjointChunks::<usize, 16>::from_raw_parts(start, [len]);
                    if by_iterator {
                        chunks.iter_mut(&t).for_each(|(place, x)| *x += 1 + place);
                    } else {
                        chunks.fill_with(&t, |place| 1 + place);
                    }
                });
            }
        }
        elements
    }

    #[test]
    fn a_slice_is_filled_by_chunks_of_any_blocks() {
        for len in [0, 1, 15, 16, 17, 32, 39, 40] {
            for threads in [1, 5, 16, 32] {
                // The last chunks are outside.
                let expected = core::array::from_fn(|place| if place < len { 1 + place } else { 0 });
                assert_eq!(filled(4, threads, len, false), expected, "{len}, {threads}");
                assert_eq!(filled(4, threads, len, true), expected, "{len}, {threads}");
            }
        }
    }

    #[test]
    fn fewer_blocks_leave_chunks_as_they_are() {
        let expected = core::array::from_fn(|place| if place < 16 { 1 + place } else { 0 });
        assert_eq!(filled(1, 7, 40, false), expected);
    }
}
