//! Native execution: runs one block of a launch on a CPU thread, for the CPU device and the code that the
//! macros generate.
//!
//! `executor` is the trait by which the CPU device schedules threads that wait, `wait` has the operations at
//! which they wait, and `loan` what a launch lends to a kernel's body.

mod executor;
mod loan;
mod wait;

use core::cell::Cell;
use core::mem;

use crate::thread::{self as place, Coordinates, Thread};

pub use executor::{Executor, Turn};
pub use loan::{Lent, Loan};

/// One block of a launch that runs natively.
///
/// ```
/// use ferrogrid_device::native::Block;
///
/// // The second of two blocks of three threads each.
/// let block = Block::new([1, 0, 0], [3, 1, 1], [2, 1, 1]);
/// let mut places = vec![];
/// // SAFETY: no slices are reached; the block is of a launch of rank 1.
/// unsafe { block.for_each_thread::<1>(|t| places.push(t.index().get())) };
/// assert_eq!((places, block.block_idx()), (vec![3, 4, 5], [1, 0, 0]));
///
/// // It lies inside of what has six elements, so `x[i]` is checked once for all of its threads.
/// let (x, mut sum) = ([10, 20, 30, 40, 50, 60], 0);
/// // SAFETY: as above.
/// unsafe { block.for_each_thread_inside::<1>(|[end]| end <= x.len(), |t| sum += x[t.index().get()]) };
/// assert_eq!(sum, 40 + 50 + 60);
///
/// // Which thread has panicked, and where a block is in its cluster.
/// let block = block.in_clusters_of([2, 1, 1]);
/// let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
///     // SAFETY: as above.
///     unsafe { block.for_each_thread::<1>(|t| assert!(t.cluster_rank() == 1 && t.thread_rank() < 2)) };
/// }));
/// assert!(result.is_err() && block.last_thread() == [2, 0, 0]);
/// ```
pub struct Block<'a> {
    block_idx: [u32; 3],
    block_dim: [u32; 3],
    grid_dim: [u32; 3],
    /// Blocks in a cluster along each axis.
    pub(crate) cluster_dim: [u32; 3],
    unwound: Cell<[u32; 3]>,
    /// Lets threads wait, and owns the shared memory; `None` outside a device.
    executor: Option<&'a dyn Executor>,
    /// Whether the threads that run now may wait.
    waiting: Cell<bool>,
    /// The value that the first thread broadcasts.
    pub(crate) first: Cell<[u32; 4]>,
}

/// Records the running thread when its kernel unwinds; costs nothing otherwise.
struct NoteOnUnwind<'a> {
    block: &'a Block<'a>,
    thread_idx: [u32; 3],
}

impl Drop for NoteOnUnwind<'_> {
    fn drop(&mut self) {
        self.block.unwound.set(self.thread_idx);
    }
}

impl<'a> Block<'a> {
    /// The block at `block_idx` in a grid of `grid_dim` blocks of `block_dim` threads, x first. Its threads
    /// cannot wait for each other, and it has no shared memory; see [`Block::with_executor`].
    pub fn new(block_idx: [u32; 3], block_dim: [u32; 3], grid_dim: [u32; 3]) -> Self {
        Block {
            block_idx,
            block_dim,
            grid_dim,
            cluster_dim: [1; 3],
            unwound: Cell::new([0; 3]),
            executor: None,
            waiting: Cell::new(false),
            first: Cell::new([0; 4]),
        }
    }

    /// The same, with threads that wait and share memory through `executor`; [`Executor`] has an example.
    pub fn with_executor(
        block_idx: [u32; 3],
        block_dim: [u32; 3],
        grid_dim: [u32; 3],
        executor: &'a dyn Executor,
    ) -> Self {
        Block { executor: Some(executor), ..Self::new(block_idx, block_dim, grid_dim) }
    }

    /// The same in a launch whose blocks form clusters of this shape, x first.
    #[must_use]
    pub fn in_clusters_of(self, cluster_dim: [u32; 3]) -> Self {
        Block { cluster_dim, ..self }
    }

    /// Runs `body` once for each thread of the block, one after the other, x fastest. For bodies that never
    /// wait: a barrier or warp operation panics.
    ///
    /// # Safety
    /// A [`Thread`] guarantees that its index is unique in its launch. So this block must belong to a launch
    /// of rank `R` (dimensions above `R` have size 1; fewer than 2^32 threads along each axis) and run once
    /// in it. Every [`DisjointSlice`](crate::DisjointSlice) that `body` reaches must belong to that launch.
    #[inline(always)]
    pub unsafe fn for_each_thread<const R: usize>(&self, mut body: impl FnMut(Thread<'_, R>)) {
        self.each::<R, false>(self.coordinates([0; 3]), &mut body);
    }

    /// [`Block::for_each_thread`] with a separate loop for blocks all of whose threads are in bounds.
    /// `inside` is called with the end of the block along each axis (one more than the largest index of its
    /// threads). In that loop the compiler knows such indices to be in bounds, and can vectorise over
    /// threads.
    ///
    /// # Safety
    /// As for [`Block::for_each_thread`].
    #[inline(always)]
    pub unsafe fn for_each_thread_inside<const R: usize>(
        &self,
        inside: impl FnOnce([usize; R]) -> bool,
        mut body: impl FnMut(Thread<'_, R>),
    ) {
        let first = self.coordinates([0; 3]);
        if inside(place::first(first.ends)) {
            self.each::<R, true>(first, &mut body);
        } else {
            self.each::<R, false>(first, &mut body);
        }
    }

    /// Runs `body` for each thread. `first` is a copy, because the compiler must assume that the kernel may
    /// write to this block, and would reload it for each thread. `INSIDE` makes two functions, which the
    /// compiler would otherwise merge into one.
    #[inline(always)]
    fn each<const R: usize, const INSIDE: bool>(
        &self,
        first: Coordinates,
        body: &mut impl FnMut(Thread<'_, R>),
    ) {
        let [width, height, depth] = first.block_dim;
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    let thread_idx = [x, y, z];
                    self.begins(thread_idx);
                    let note = NoteOnUnwind { block: self, thread_idx };
                    body(Thread::at(self, Coordinates { thread_idx, ..first }));
                    mem::forget(note);
                }
            }
        }
    }

    /// Runs `body` once for each thread of the block, where threads may wait for each other at barriers and
    /// in warp operations. Threads take turns on this CPU thread, and give up their turn only where they
    /// wait.
    ///
    /// If a thread fails, or threads wait for something that cannot happen, the others are unwound and this
    /// returns; the executor records the reason.
    ///
    /// # Safety
    /// As for [`Block::for_each_thread`].
    #[inline]
    pub unsafe fn for_each_waiting_thread<const R: usize>(&self, body: impl Fn(Thread<'_, R>)) {
        let Some(executor) = self.executor else {
            // SAFETY: passed on.
            return unsafe { self.for_each_thread(body) };
        };
        let [width, height, depth] = self.block_dim;
        self.waiting.set(true);
        executor.run_threads(width * height * depth, &|number| {
            let thread_idx = [number % width, number / width % height, number / width / height];
            body(Thread::at(self, self.coordinates(thread_idx)));
        });
        self.waiting.set(false);
    }

    /// Tells the executor which thread runs, in builds where the loop over threads need not be fast.
    #[inline(always)]
    fn begins(&self, thread_idx: [u32; 3]) {
        if cfg!(debug_assertions)
            && let Some(executor) = self.executor
        {
            executor.begins(self.number(thread_idx));
        }
    }

    #[inline(always)]
    fn coordinates(&self, thread_idx: [u32; 3]) -> Coordinates {
        let (block_idx, block_dim, grid_dim) = (self.block_idx, self.block_dim, self.grid_dim);
        // Nothing wraps: these are numbers of threads of the launch, at most.
        let end =
            |axis: usize| block_idx[axis] as usize * block_dim[axis] as usize + block_dim[axis] as usize;
        Coordinates { thread_idx, block_idx, block_dim, grid_dim, ends: core::array::from_fn(end) }
    }

    /// The rank in its block of the thread at `thread_idx`, x fastest. Divided by 32 it is the warp, the
    /// remainder is the lane.
    #[inline(always)]
    fn number(&self, [x, y, z]: [u32; 3]) -> u32 {
        let [width, height, _] = self.block_dim;
        x + width * (y + height * z)
    }

    /// The index in the block of the thread whose kernel unwound; meaningful only after an unwind out of
    /// [`Block::for_each_thread`].
    pub fn last_thread(&self) -> [u32; 3] {
        self.unwound.get()
    }

    /// The block's index in the grid, x first.
    pub fn block_idx(&self) -> [u32; 3] {
        self.block_idx
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_runs_its_threads_in_the_same_order_inside_and_at_edges() {
        let block = Block::new([2, 1, 0], [3, 2, 1], [4, 2, 1]);
        for inside in [true, false] {
            let (mut told, mut count) = ([0; 2], 0);
            let is_inside = |ends| {
                told = ends;
                inside
            };
            let body = |t: Thread<'_, 2>| {
                assert_eq!(t.thread_idx(), [count % 3, count / 3]);
                let index = t.index();
                assert_eq!([index.x(), index.y()], [6 + count as usize % 3, 2 + count as usize / 3]);
                count += 1;
            };
            // SAFETY: no slice is reached; the block is of a launch of rank 2.
            unsafe { block.for_each_thread_inside::<2>(is_inside, body) };
            assert_eq!((told, count), ([9, 4], 6));
        }
    }
}
