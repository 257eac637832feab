//! Kernels whose blocks wait for earlier ones.

#[ferrogrid::module]
pub mod in_order {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::prelude::*;

    /// `x -> scale * x + offset`, modulo 2^32 and 2^64: such maps are composed, and their order counts.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Affine<T> {
        pub scale: T,
        pub offset: T,
    }

    /// Values that can be combined, in order.
    pub trait Combine: Exchange {
        fn then(self, next: Self) -> Self;
    }

    impl Combine for u32 {
        fn then(self, next: u32) -> u32 {
            self.wrapping_add(next)
        }
    }

    impl Combine for Affine<u32> {
        fn then(self, next: Self) -> Self {
            let offset = next.scale.wrapping_mul(self.offset).wrapping_add(next.offset);
            Affine { scale: self.scale.wrapping_mul(next.scale), offset }
        }
    }

    impl Combine for Affine<u64> {
        fn then(self, next: Self) -> Self {
            let offset = next.scale.wrapping_mul(self.offset).wrapping_add(next.offset);
            Affine { scale: self.scale.wrapping_mul(next.scale), offset }
        }
    }

    /// Each element combined with all before it, in one pass.
    #[kernel(T = [u32, Affine<u32>, Affine<u64>])]
    pub fn scan<T: Combine + DeviceCopy + SharedElement>(
        t: Thread<1>,
        none: T,
        x: &[T],
        mut y: DisjointSlice<T>,
        order: BlockOrder<T>,
        mut scratch: Shared<Scratch<T>>,
    ) {
        let mine = x.get(t.index().get()).copied().unwrap_or(none);
        let within = t.block_inclusive_scan(&mut scratch, mine, T::then);
        let all = t.block_reduce(&mut scratch, mine, T::then);
        let before = order.exclusive(&t, all, T::then);
        if let Some(y) = y.get_mut(t.index()) {
            *y = before.map_or(within, |before| before.then(within));
        }
    }

    /// Each warp's number in the grid, and what all warps before it make together. A thread's value is its warp's.
    #[kernel(max_threads = 1024, T = [u32, Affine<u32>, Affine<u64>])]
    pub fn before_warps<T: Combine + DeviceCopy + SharedElement>(
        t: Thread<1>,
        none: T,
        x: &[T],
        mut y: DisjointWarps<T>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let own = x.get(y.first(&t)).copied().unwrap_or(none);
        let before = order.exclusive_of_warps(&t, scratch, own, T::then).unwrap_or(none);
        y.fill_with(&t, |_| before);
    }

    /// Where each block's part begins, by one thread that looks back; of `lengths.len()` blocks.
    #[kernel]
    pub fn starts(t: Thread<1>, lengths: &[u64], mut starts: DisjointChunks<u64, 1>, order: BlockOrder<u64>) {
        let [block] = t.block_idx();
        let length = lengths[block as usize];
        let earlier = order.publish(&t, length);
        let mut start = 0;
        for other in (0..block).rev() {
            match earlier.look_at(other) {
                Seen::Own(length) => start += length,
                Seen::Total(total) => {
                    start += total;
                    break;
                }
            }
        }
        earlier.publish_total(&t, start + length);
        starts.fill_with(&t, |_| start);
    }

    /// The number of each block, through the last element of a slice whose length the launch gives.
    #[kernel(block = 32)]
    pub fn roomy(
        t: Thread<1>,
        mut y: DisjointChunks<u32, 1>,
        order: BlockOrder<u32>,
        mut room: SharedSlice<u8>,
    ) {
        let [block] = t.block_idx();
        room.fill_with(&t, |_| block as u8);
        let room = t.publish(room);
        let _ = order.publish(&t, 0);
        y.fill_with(&t, |_| u32::from(room[room.len() - 1]));
    }

    /// A value that goes from block to block; each adds the value published by the one before.
    #[kernel]
    pub fn chain(
        t: Thread<1>,
        notes: &[DeviceAtomic<u32>],
        mut y: DisjointSlice<u32>,
        order: BlockOrder<u32>,
    ) {
        let ([block], [threads]) = (t.block_idx(), t.block_dim());
        let rank = t.thread_rank();
        let mut value = 1;
        if block > 0 {
            value = order.wait_for(block - 1);
            // Another thread's note: what was written before the value is visible with it.
            let other = (block - 1) * threads + (rank + 1) % threads;
            value += notes[other as usize].load(Relaxed) & 1;
        }
        notes[(block * threads + rank) as usize].store(2 * block + 1, Relaxed);
        if let Some(y) = y.get_mut(t.index()) {
            *y = value;
        }
        let _ = order.publish(&t, value);
    }

    /// A function that reads its block index.
    #[inline(never)]
    fn place(t: &Thread<1>, salt: u32) -> u32 {
        let mut x = t.block_idx()[0] * t.block_dim()[0] + t.thread_rank();
        for round in 0..salt {
            x = x.rotate_left(1) ^ round;
        }
        x
    }

    /// The same positions by an index and by a function; counts each block number.
    #[kernel]
    pub fn places(
        t: Thread<1>,
        salt: u32,
        seen: &[DeviceAtomic<u32>],
        mut y: DisjointSlice<u32>,
        order: BlockOrder<u32>,
    ) {
        if t.thread_rank() == 0 {
            seen[t.block_idx()[0] as usize].fetch_add(1, Relaxed);
        }
        let found = place(&t, salt);
        if let Some(y) = y.get_mut(t.index()) {
            *y = found;
        }
        let _ = order.publish(&t, found);
    }

    /// The same function in a kernel whose blocks have no order.
    #[kernel]
    pub fn places_of_grid(t: Thread<1>, salt: u32, mut y: DisjointSlice<u32>) {
        let found = place(&t, salt);
        if let Some(y) = y.get_mut(t.index()) {
            *y = found;
        }
    }

    /// Every block waits for the one before; `bad` publishes no value, in one of several ways.
    #[kernel]
    pub fn failing(t: Thread<1>, bad: u32, how: u32, reached: &[DeviceAtomic<u32>], order: BlockOrder<u64>) {
        let [block] = t.block_idx();
        if block == bad {
            match how {
                0 => return,
                1 => {
                    let _kept = core::mem::ManuallyDrop::new(order);
                    return;
                }
                2 => panic!("a thread of every rank"),
                3 => assert!(t.thread_rank() != 0, "the first thread"),
                4 => assert!(t.thread_rank() != 1, "the second thread"),
                5 => {
                    order.wait_for(block);
                }
                _ => {
                    order.wait_for(u32::MAX);
                }
            }
        }
        if block > 0 {
            order.wait_for(block - 1);
        }
        reached[0].fetch_add(1, Relaxed);
        let _ = order.publish(&t, 1);
    }

    fn deep(x: &[u32], depth: u32) -> u32 {
        let mut frame = [depth; 64];
        frame[depth as usize % 64] += x[0];
        core::hint::black_box(&mut frame);
        if depth == u32::MAX { 0 } else { deep(x, depth + 1) + frame[3] }
    }

    /// As `failing`, by a stack overflow, after the others have begun to wait.
    #[kernel]
    pub fn too_deep(t: Thread<1>, bad: u32, x: &[u32], order: BlockOrder<u32>) {
        let [block] = t.block_idx();
        let mut value = 1;
        if block == bad && t.thread_rank() == 1 {
            for round in 0..3_000_000_u32 {
                core::hint::black_box(round);
            }
            value = deep(x, 0);
        }
        if block > 0 {
            order.wait_for(block - 1);
        }
        let _ = order.publish(&t, value);
    }

    /// Blocks with odd numbers end at once, and no block waits for them.
    #[kernel]
    pub fn every_other(t: Thread<1>, mut y: DisjointSlice<u32>, order: BlockOrder<u32>) {
        let [block] = t.block_idx();
        if block % 2 == 1 {
            return;
        }
        let value = if block == 0 { 5 } else { order.wait_for(block - 2) + 1 };
        let _ = order.publish(&t, value);
        if let Some(y) = y.get_mut(t.index()) {
            *y = value;
        }
    }

    /// What comes before each element in its column of 64, by maps that do not commute.
    #[kernel(block = 64)]
    pub fn down_columns(
        t: Thread<1>,
        x: &[u32],
        mut y: DisjointSlice<u32>,
        order: BlockOrder<EachThread<u32, 64>>,
    ) {
        let own = x.get(t.index().get()).copied().unwrap_or(0);
        let earlier = order.publish_each(&t, own);
        // The first of two is kept, unless it is even.
        let before = earlier.exclusive_each(&t, own, |a, b| if a % 2 == 1 { a } else { b });
        if let Some(y) = y.get_mut(t.index()) {
            *y = before.unwrap_or(1000);
        }
    }

    /// Adds up columns, but in block `bad` the threads leave (0), the first one panics (1), or the last one (2).
    #[kernel]
    pub fn columns_failing(
        t: Thread<1>,
        bad: u32,
        how: u32,
        mut y: DisjointSlice<u32>,
        order: BlockOrder<EachThread<u32, 64>>,
    ) {
        if t.block_idx()[0] == bad {
            if how == 0 {
                return;
            }
            assert!(t.thread_rank() != if how == 1 { 0 } else { 63 }, "one thread of block {bad} panics");
        }
        let earlier = order.publish_each(&t, 1);
        let before = earlier.exclusive_each(&t, 1, |a, b| a + b).unwrap_or(0);
        if let Some(y) = y.get_mut(t.index()) {
            *y = before;
        }
    }
}
