//! Native execution: one block of a launch, run on a CPU thread. Used by the CPU device and by the
//! code that the macros generate. It must not know how blocks are scheduled.

use core::cell::Cell;
use core::mem;

use crate::thread::{Coordinates, Thread};

/// One block of a launch that runs natively.
pub struct Block {
    block_idx: [u32; 3],
    block_dim: [u32; 3],
    grid_dim: [u32; 3],
    unwound: Cell<[u32; 3]>,
}

/// Notes the running thread when its kernel unwinds; costs nothing when it does not.
struct NoteOnUnwind<'a> {
    block: &'a Block,
    thread_idx: [u32; 3],
}

impl Drop for NoteOnUnwind<'_> {
    fn drop(&mut self) {
        self.block.unwound.set(self.thread_idx);
    }
}

impl Block {
    /// The block at `block_idx` in a grid of `grid_dim` blocks of `block_dim` threads, x first.
    pub fn new(block_idx: [u32; 3], block_dim: [u32; 3], grid_dim: [u32; 3]) -> Self {
        Block { block_idx, block_dim, grid_dim, unwound: Cell::new([0; 3]) }
    }

    /// Runs `body` once for each thread of the block, one after the other, x fastest.
    ///
    /// # Safety
    /// A [`Thread`] vouches that its index is unique in its launch. So this block must be one of a
    /// launch of rank `R` (dimensions above `R` have size 1), run once in it, and every
    /// [`DisjointSlice`](crate::DisjointSlice) that `body` reaches must belong to that launch.
    #[inline(always)]
    pub unsafe fn for_each_thread<const R: usize>(&self, mut body: impl FnMut(Thread<R>)) {
        let [width, height, depth] = self.block_dim;
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    let thread_idx = [x, y, z];
                    let note = NoteOnUnwind { block: self, thread_idx };
                    body(Thread::at(Coordinates {
                        thread_idx,
                        block_idx: self.block_idx,
                        block_dim: self.block_dim,
                        grid_dim: self.grid_dim,
                    }));
                    mem::forget(note);
                }
            }
        }
    }

    /// The place in the block of the thread whose kernel unwound; meaningful only after an unwind
    /// out of [`Block::for_each_thread`].
    pub fn last_thread(&self) -> [u32; 3] {
        self.unwound.get()
    }

    /// The block's place in the grid, x first.
    pub fn block_idx(&self) -> [u32; 3] {
        self.block_idx
    }
}
