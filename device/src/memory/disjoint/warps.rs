//! [`DisjointWarps`]: an output with one element, or several neighbours, for each warp or smaller tile of
//! threads.

use core::marker::PhantomData;

use super::ChunkIter;
use crate::element::group;
use crate::thread::Thread;

/// A mutable slice of device memory, cut into runs of `RUN` consecutive elements: one run for each warp, or
/// for each tile of `N` threads (1, 2, 4, 8, 16 or 32), of a grid of rank 1. The first warp of the first
/// block owns the first run, and so on.
///
/// At the launch it is a buffer or a view, as for `DisjointSlice<T>`. Elements beyond the end of the slice
/// are skipped; elements that no warp owns stay unchanged. Within a run, element `k` belongs to the thread
/// with rank `k % N` of its tile. So with runs of one element a single thread writes: what CUDA C++ writes as
/// `if (lane == 0) y[warp] = sum;`. The last tile of a block may have fewer threads; each block begins with a
/// tile of its own. With a fourth number, `GROUP`, a thread owns so many neighbours at a time: element `k` belongs to rank
/// `k / GROUP % N`, and [`fill_grouped`](Self::fill_grouped) writes them.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The dot product of each row of 100 elements with `x`, by a warp for each.
/// #[kernel(block = 128)]
/// pub fn dots(t: Thread<1>, a: Plane<f32>, x: &[f32], mut y: DisjointWarps<f32>) {
///     let (warp, row) = (t.warp(), y.first(&t));
///     let mut sum = 0.0;
///     if row < a.height() {
///         sum = (warp.lane() as usize..x.len()).step_by(32).map(|i| a[row][i] * x[i]).sum();
///     }
///     let sum = warp.reduce(sum, |a, b| a + b);
///     y.fill_with(&t, |_| sum);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let (a, x) = (stream.fill(0.5, 6 * 100)?, stream.fill(2.0, 100)?);
/// let mut y = stream.zeros(6)?;
/// kernels::dots(&stream, Grid::blocks(2), a.view_2d(100, 6)?, &x, &mut y)?; // eight warps
/// assert_eq!(stream.download(&y)?, [100.0; 6]);
/// # Ok(()) }
/// ```
///
/// Tiles of eight threads with two results each:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The least and the greatest of each eight elements.
/// #[kernel]
/// pub fn ranges(t: Thread<1>, x: &[i32], mut y: DisjointWarps<i32, 2, 8>) {
///     let (tile, mine) = (t.warp().tile::<8>(), x[t.index().get()]);
///     let (least, greatest) = (tile.reduce(mine, i32::min), tile.reduce(mine, i32::max));
///     for (place, y) in y.iter_mut(&t) {
///         *y = if place % 2 == 0 { least } else { greatest };
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..16).collect::<Vec<i32>>())?;
/// let mut y = stream.zeros(4)?;
/// kernels::ranges(&stream, Grid::new(1, 16), &x, &mut y)?;
/// assert_eq!(stream.download(&y)?, [0, 7, 8, 15]);
/// # Ok(()) }
/// ```
pub struct DisjointWarps<'a, T, const RUN: usize = 1, const N: usize = 32, const GROUP: usize = 1> {
    start: *mut T,
    len: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

impl<'a, T, const RUN: usize, const N: usize, const GROUP: usize> DisjointWarps<'a, T, RUN, N, GROUP> {
    /// The slice of `len` elements from `start` on.
    ///
    /// # Safety
    /// As for `DisjointSlice::from_raw_parts`, with `DisjointWarps` of the same `RUN`, `N` and `GROUP` in all threads.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw_parts(start: *mut T, [len]: [usize; 1]) -> Self {
        const {
            assert!(RUN > 0 && RUN <= 1 << 16, "a warp has 1 to 65536 elements");
            assert!(N.is_power_of_two() && N <= 32, "a tile has 1, 2, 4, 8, 16 or 32 threads");
            assert!(GROUP > 0, "a group has at least one element");
        };
        DisjointWarps { start, len, borrowed: PhantomData }
    }

    /// The number of elements of all warps.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The index in the slice of the first element of the thread's warp; with runs of one element this is the
    /// warp's number in the grid. It may be beyond the end.
    #[inline(always)]
    pub fn first(&self, thread: &Thread<'_, 1>) -> usize {
        let ([block], tiles) = (thread.block_idx(), thread.block_threads().div_ceil(N as u32));
        // Fewer than 2^32 blocks of at most 1024 tiles with at most 2^16 elements each do not wrap.
        (block as usize * tiles as usize + thread.thread_rank() as usize / N) * RUN
    }

    /// Writes `items` to the warp's run, in groups of neighbours: `items[k][j]` of the thread with rank `r` in its tile to element
    /// `(k * N + r) * GROUP + j`, by accesses of 16 bytes where its place allows them (CUB's `WarpStore` with
    /// `WARP_STORE_VECTORIZE`). `RUN` is `K * N * GROUP`, else it does not compile; the block's threads are whole tiles.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Running sums within each four neighbours.
    /// #[kernel(block = 32)]
    /// pub fn sums_of_4(t: Thread<1>, x: &[u32], mut y: DisjointWarps<u32, 128, 32, 4>) {
    ///     let first = y.first(&t) + 4 * t.thread_rank() as usize;
    ///     let x: [u32; 4] = core::array::from_fn(|k| x.get(first + k).copied().unwrap_or(0));
    ///     y.fill_grouped(&t, [[x[0], x[0] + x[1], x[0] + x[1] + x[2], x.iter().sum()]]);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (x, mut y) = (stream.fill(1, 130)?, stream.zeros(130)?);
    /// kernels::sums_of_4(&stream, Grid::blocks(2), &x, &mut y)?;
    /// let y = stream.download(&y)?;
    /// assert_eq!((&y[..5], &y[128..]), (&[1, 2, 3, 4, 1][..], &[1, 2][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If the block ends with a part of a tile.
    #[track_caller]
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "LLVM unrolls a loop over indices and keeps items in registers, but not a loop over an array's iterator"
    )]
    pub fn fill_grouped<const K: usize>(&mut self, thread: &Thread<'_, 1>, items: [[T; GROUP]; K])
    where
        T: Copy,
    {
        const {
            assert!(
                K * N * GROUP == RUN,
                "the threads of a tile have as many items together as its run has elements"
            )
        };
        assert!(
            thread.block_threads().is_multiple_of(N as u32),
            "the last tile of the block has fewer threads"
        );
        let (first, rank) = (self.first(thread), thread.thread_rank() as usize % N);
        if first + RUN <= self.len {
            // SAFETY: in bounds. No other tile of the grid has this run, and no other thread of the tile these groups.
            let groups = unsafe { self.start.add(first).cast::<[T; GROUP]>().add(rank) };
            if group::is_aligned(groups) {
                for k in 0..K {
                    // SAFETY: as above. A run is a multiple of a group, so that all groups are aligned as this one.
                    unsafe { group::store(items[k], groups.add(k * N)) };
                }
                return;
            }
        }
        for k in 0..K {
            for j in 0..GROUP {
                let place = first + (k * N + rank) * GROUP + j;
                if place < self.len {
                    // SAFETY: in bounds, and this thread's own, as above.
                    unsafe { *self.start.add(place) = items[k][j] };
                }
            }
        }
    }
}

impl<T, const RUN: usize, const N: usize> DisjointWarps<'_, T, RUN, N> {
    /// The thread's own elements, each with its index in the slice.
    #[inline(always)]
    pub fn iter_mut(&mut self, thread: &Thread<'_, 1>) -> ChunkIter<'_, T> {
        let (first, rank) = (self.first(thread), thread.thread_rank() as usize % N);
        let present = (thread.block_threads() - (thread.thread_rank() - rank as u32)).min(N as u32);
        // SAFETY: no other tile of the grid has this run, and the threads of the tile agree on how many they are.
        unsafe {
            ChunkIter::over(
                self.start,
                first,
                self.len.saturating_sub(first).min(RUN),
                rank,
                present as usize,
            )
        }
    }

    /// Writes `value(index)` to every element of the warp's run, each by the thread that owns it; `index` is
    /// the index in the slice.
    #[inline(always)]
    pub fn fill_with(&mut self, thread: &Thread<'_, 1>, mut value: impl FnMut(usize) -> T) {
        for (place, element) in self.iter_mut(thread) {
            *element = value(place);
        }
    }

    /// Writes `items` to the warp's run in the striped arrangement: `items[k]` of the thread with rank `r` in its tile to
    /// element `k * N + r` (CUB's `WarpStore` with `WARP_STORE_STRIPED`). `RUN` is `K * N`, else it does not
    /// compile; the block's threads are whole tiles.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Running sums within each 64 elements.
    /// #[kernel(block = 32)]
    /// pub fn sums_of_64(t: Thread<1>, x: &[u32], mut y: DisjointWarps<u32, 64>) {
    ///     let (warp, first) = (t.warp(), y.first(&t) + t.warp().lane() as usize);
    ///     let low = warp.inclusive_scan(x[first], |a, b| a + b);
    ///     let high = warp.shuffle(low, 31) + warp.inclusive_scan(x[first + 32], |a, b| a + b);
    ///     y.fill_striped(&t, [low, high]);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let (x, mut y) = (stream.fill(1, 128)?, stream.zeros(128)?);
    /// kernels::sums_of_64(&stream, Grid::blocks(2), &x, &mut y)?;
    /// let y = stream.download(&y)?;
    /// assert_eq!((y[0], y[31], y[32], y[63], y[64]), (1, 32, 33, 64, 1));
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If the block ends with a part of a tile.
    #[track_caller]
    #[inline(always)]
    pub fn fill_striped<const K: usize>(&mut self, thread: &Thread<'_, 1>, items: [T; K])
    where
        T: Copy,
    {
        self.fill_grouped(thread, items.map(|item| [item]));
    }
}

impl<T, const RUN: usize> DisjointWarps<'_, T, RUN, 1> {
    /// The thread's run, if all of its elements are in the slice.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Sorts each three neighbours; the elements that are left at the end stay as they are.
    /// #[kernel]
    /// pub fn sort_by_three(t: Thread<1>, mut x: DisjointWarps<u32, 3, 1>) {
    ///     if let Some(three) = x.run_mut(&t) {
    ///         three.sort_unstable();
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.upload(&[3, 1, 2, 9, 8, 7, 5, 4])?;
    /// kernels::sort_by_three(&stream, Grid::cover(3), &mut x)?;
    /// assert_eq!(stream.download(&x)?, [1, 2, 3, 7, 8, 9, 5, 4]);
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn run_mut(&mut self, thread: &Thread<'_, 1>) -> Option<&mut [T; RUN]> {
        let first = self.first(thread);
        // SAFETY: in bounds. No other thread of the grid has this run, and this thread's access is exclusive by
        // `&mut self`, whose borrow the result keeps.
        (first + RUN <= self.len).then(|| unsafe { &mut *self.start.add(first).cast() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Block;

    /// Which thread of the grid writes each of `len` elements, from 1 on, and how many write it.
    fn owners<const RUN: usize, const N: usize>(blocks: u32, threads: u32, len: usize) -> [[usize; 2]; 64] {
        let mut elements = [[0; 2]; 64];
        let start = elements.as_mut_ptr();
        for x in 0..blocks {
            let block = Block::new([x, 0, 0], [threads, 1, 1], [blocks, 1, 1]);
            // SAFETY: each block of a launch of rank 1 runs once; the array has at least `len` elements.
            unsafe {
                block.for_each_thread::<1>(|t| {
                    let mut warps = DisjointWarps::<[usize; 2], RUN, N>::from_raw_parts(start, [len]);
                    let thread = t.index().get() + 1;
                    warps.iter_mut(&t).for_each(|(_, it)| *it = [thread, it[1] + 1]);
                });
            }
        }
        elements
    }

    /// The thread that owns each element, with `tiles` for each block of `threads`.
    fn expected(run: usize, n: usize, blocks: usize, threads: usize, len: usize) -> [[usize; 2]; 64] {
        let tiles = threads.div_ceil(n);
        core::array::from_fn(|place| {
            let (tile, k) = (place / run, place % run);
            if place >= len || tile >= blocks * tiles {
                return [0; 2];
            }
            let first = tile % tiles * n;
            [tile / tiles * threads + first + k % n.min(threads - first) + 1, 1]
        })
    }

    #[test]
    fn each_element_belongs_to_one_thread_of_its_tile() {
        for len in [0, 1, 7, 64] {
            for (blocks, threads) in [(1, 1), (2, 32), (3, 40), (2, 64), (5, 7)] {
                let [b, t] = [blocks as usize, threads as usize];
                assert_eq!(owners::<1, 32>(blocks, threads, len), expected(1, 32, b, t, len));
                assert_eq!(owners::<5, 32>(blocks, threads, len), expected(5, 32, b, t, len));
                assert_eq!(owners::<3, 8>(blocks, threads, len), expected(3, 8, b, t, len));
                assert_eq!(owners::<10, 4>(blocks, threads, len), expected(10, 4, b, t, len));
                assert_eq!(owners::<2, 1>(blocks, threads, len), expected(2, 1, b, t, len));
            }
        }
    }

    #[test]
    fn striped_items_fill_the_runs_of_whole_tiles() {
        for len in [0, 1, 31, 47, 48, 64] {
            let mut elements = [0; 64];
            let start = elements.as_mut_ptr();
            for x in 0..2 {
                let block = Block::new([x, 0, 0], [16, 1, 1], [2, 1, 1]);
                // SAFETY: each block of a launch of rank 1 runs once; the array has at least `len` elements.
                unsafe {
                    block.for_each_thread::<1>(|t| {
                        let mut warps = DisjointWarps::<usize, 16, 8>::from_raw_parts(start, [len]);
                        let first = warps.first(&t) + t.thread_rank() as usize % 8;
                        warps.fill_striped(&t, [first + 1, first + 9]);
                    });
                }
            }
            assert_eq!(elements, core::array::from_fn(|i| if i < len { i + 1 } else { 0 }), "{len}");
        }
    }

    #[test]
    fn grouped_items_fill_the_runs_of_whole_tiles() {
        for len in [0, 1, 31, 32, 47, 63, 64] {
            let mut elements = [0; 64];
            let start = elements.as_mut_ptr();
            for x in 0..2 {
                let block = Block::new([x, 0, 0], [8, 1, 1], [2, 1, 1]);
                // SAFETY: as above.
                unsafe {
                    block.for_each_thread::<1>(|t| {
                        let mut warps = DisjointWarps::<usize, 32, 8, 2>::from_raw_parts(start, [len]);
                        let first = warps.first(&t) + 2 * t.thread_rank() as usize;
                        warps.fill_grouped(&t, [[first + 1, first + 2], [first + 17, first + 18]]);
                    });
                }
            }
            assert_eq!(elements, core::array::from_fn(|i| if i < len { i + 1 } else { 0 }), "{len}");
        }
    }

    #[test]
    #[should_panic = "the last tile of the block has fewer threads"]
    fn striped_items_are_refused_where_a_tile_is_not_whole() {
        let mut elements = [0; 16];
        let block = Block::new([0, 0, 0], [12, 1, 1], [1, 1, 1]);
        let start: *mut i32 = elements.as_mut_ptr();
        // SAFETY: as above.
        unsafe {
            block.for_each_thread::<1>(|t| {
                DisjointWarps::<i32, 16, 8>::from_raw_parts(start, [16]).fill_striped(&t, [0, 0]);
            });
        }
    }
}
