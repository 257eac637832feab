//! Kernels with faults that a GPU does not detect: it would hang, or compute nonsense. Only the CPU device
//! runs them.

/// Each kernel breaks a rule in block 1, and only there. For a GPU those at barriers would not compile.
#[ferrogrid::module(host_only)]
pub mod faults {
    use ferrogrid::device::prelude::*;

    fn in_block_1(t: &Thread<1>) -> bool {
        t.block_idx()[0] == 1
    }

    /// Only threads with even ranks reach the barrier.
    #[kernel]
    pub fn barrier_for_some(t: Thread<1>) {
        if !in_block_1(&t) || t.thread_rank().is_multiple_of(2) {
            t.sync_threads(); // barrier_for_some
        }
    }

    /// Threads with even and odd ranks reach different barriers.
    #[kernel]
    pub fn two_barriers(t: Thread<1>) {
        if !in_block_1(&t) || t.thread_rank().is_multiple_of(2) {
            t.sync_threads(); // two_barriers, even
        } else {
            t.sync_threads(); // two_barriers, odd
        }
    }

    /// Threads from number 40 on return before the barrier.
    #[kernel]
    pub fn early_return(t: Thread<1>) {
        if in_block_1(&t) && t.thread_rank() >= 40 {
            return;
        }
        t.sync_threads(); // early_return
    }

    /// Block 1 ends before the barrier of the grid.
    #[kernel(cooperative)]
    pub fn missing_block(t: Thread<1>) {
        if in_block_1(&t) {
            return;
        }
        t.sync_grid(); // missing_block
    }

    /// Lane 5 exits before the others shuffle with it.
    #[kernel]
    pub fn exited_lane(t: Thread<1>, mut y: DisjointSlice<u32>) {
        if in_block_1(&t) && t.warp().lane() == 5 {
            return;
        }
        let mut seen = 0;
        seen += t.warp().shuffle_xor(t.thread_rank(), 1); // exited_lane
        if let Some(y) = y.get_mut(t.index()) {
            *y = seen;
        }
    }

    /// Lanes from 16 on vote while those below shuffle.
    #[kernel]
    pub fn other_operation(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let mut seen = 0;
        if !in_block_1(&t) || t.warp().lane() < 16 {
            seen += t.warp().shuffle_xor(t.thread_rank(), 1); // other_operation, low
        } else {
            seen += t.warp().ballot(true); // other_operation, high
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = seen;
        }
    }

    /// Tiles of 8 shuffle while lane 3 does so with its whole warp.
    #[kernel]
    pub fn other_mask(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let mut seen = 0;
        if in_block_1(&t) && t.warp().lane() == 3 {
            seen += t.warp().shuffle_xor(t.thread_rank(), 1); // other_mask, warp
        } else {
            seen += t.warp().tile::<8>().shuffle_xor(t.thread_rank(), 1); // other_mask, tile
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = seen;
        }
    }

    /// Lane 3 waits at a barrier, the others wait for it in a vote.
    #[kernel]
    pub fn lane_at_a_barrier(t: Thread<1>) {
        if in_block_1(&t) && t.thread_rank() == 3 {
            t.sync_threads(); // lane_at_a_barrier, barrier
        } else {
            t.warp().sync(); // lane_at_a_barrier, warp
        }
    }

    /// Thread 21 of block 1 reads behind the end of `x`.
    #[kernel]
    pub fn out_of_bounds(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        let far = in_block_1(&t) && t.thread_rank() == 21;
        if let Some(y) = y.get_mut(t.index()) {
            *y = x[if far { x.len() } else { 0 }]; // out_of_bounds
        }
    }

    /// Thread 21 of block 1 adds one to the greatest number.
    #[kernel]
    pub fn overflow(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        let far = in_block_1(&t) && t.thread_rank() == 21;
        let value = if far { u32::MAX } else { x[0] };
        if let Some(y) = y.get_mut(t.index()) {
            *y = value + x[0]; // overflow
        }
    }

    /// Calls itself `x[0]` times.
    fn deep(x: &[u32], depth: u32) -> u32 {
        if depth == x[0] {
            return depth;
        }
        // Not a tail call: each call has work left after the recursion.
        deep(x, depth + 1).wrapping_mul(3) ^ x[depth as usize % x.len()]
    }

    /// Thread 21 of block 1 uses up its stack between two barriers.
    #[kernel]
    pub fn deep_between_barriers(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        let far = in_block_1(&t) && t.thread_rank() == 21;
        let odd = t.sync_threads_count(t.thread_rank() % 2 == 1);
        let value = if far { deep(x, 0) } else { odd };
        let all = t.sync_threads_count(true);
        if let Some(y) = y.get_mut(t.index()) {
            *y = value + all;
        }
    }

    /// The threads of block 1 from 21 on use up their stack; none of them ever waits.
    #[kernel]
    pub fn deep_alone(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = if i.get() >= 64 + 21 { deep(x, 0) } else { x[0] };
        }
    }

    /// Thread 21 of block 1 panics between two barriers, with the others at the second.
    #[kernel]
    pub fn panic_between_barriers(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        let far = in_block_1(&t) && t.thread_rank() == 21;
        let odd = t.sync_threads_count(t.thread_rank() % 2 == 1);
        assert!(!far, "{odd} of {} are odd", x[0]); // panic_between_barriers
        let all = t.sync_threads_count(true);
        if let Some(y) = y.get_mut(t.index()) {
            *y = all;
        }
    }

    /// How many threads each block has, by a barrier.
    #[kernel]
    pub fn sound(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let count = t.sync_threads_count(true) + t.warp().shuffle_xor(1, 1);
        if let Some(y) = y.get_mut(t.index()) {
            *y = count;
        }
    }
}
