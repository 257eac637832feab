//! Scans in one pass over memory, by decoupled look-back.

/// The kernels.
#[expect(
    clippy::needless_range_loop,
    reason = "LLVM unrolls a loop over indices and keeps items in registers, but not a loop over an array's iterator"
)]
#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::group;
    use ferrogrid::device::prelude::*;

    use crate::number::numbers::Element;

    /// The threads of a block.
    pub const THREADS: usize = 256;
    /// The neighbours that a lane adds up alone: 16 bytes of `f32`, so that a row needs few loads and shuffles.
    pub const GROUP: usize = 4;
    /// The rows of 32 groups that a warp scans.
    pub const ROWS: usize = 4;
    /// The consecutive elements of a warp.
    pub const RUN: usize = 32 * ROWS * GROUP;
    /// The elements of a block.
    pub const TILE: usize = THREADS * ROWS * GROUP;

    /// A thread's elements, a group of each row.
    pub type Rows<T> = [[T; GROUP]; ROWS];

    /// The thread's elements of its warp's run; `none` beyond the end.
    #[inline(always)]
    pub fn load<T: Copy>(t: &Thread<'_, 1>, x: &[T], first: usize, none: T) -> Rows<T> {
        let lane = t.thread_rank() as usize % 32;
        let run = x.get(first..).and_then(|rest| rest.first_chunk::<RUN>());
        match run.and_then(|run| group::inputs(run)) {
            Some(groups) => core::array::from_fn(|row| groups.load(row * 32 + lane)),
            None => core::array::from_fn(|row| {
                let first = first + (row * 32 + lane) * GROUP;
                core::array::from_fn(|k| x.get(first + k).copied().unwrap_or(none))
            }),
        }
    }

    /// A thread's elements as running sums of their groups, and what comes before each group.
    pub struct Sums<T> {
        groups: Rows<T>,
        before: [T; ROWS],
        /// The sum of the warp's run.
        pub total: T,
    }

    /// The running sums of the warp's run.
    #[inline(always)]
    pub fn scan_rows<T: Element>(warp: &Warp, mut groups: Rows<T>) -> Sums<T> {
        for row in 0..ROWS {
            for k in 1..GROUP {
                groups[row][k] = groups[row][k - 1].add(groups[row][k]);
            }
        }
        // The rows advance together, so that they don't wait for each other's shuffles.
        let mut up_to: [T; ROWS] = core::array::from_fn(|row| groups[row][GROUP - 1]);
        let mut distance = 1;
        while distance < 32 {
            for row in 0..ROWS {
                let earlier = warp.shuffle_up(up_to[row], distance);
                if warp.lane() >= distance {
                    up_to[row] = earlier.add(up_to[row]);
                }
            }
            distance *= 2;
        }
        let (mut before, mut total) = (up_to, T::ZERO);
        for row in 0..ROWS {
            let earlier = warp.shuffle_up(up_to[row], 1);
            before[row] = if warp.lane() == 0 { total } else { total.add(earlier) };
            total = total.add(warp.shuffle(up_to[row], 31));
        }
        Sums { groups, before, total }
    }

    impl<T: Element> Sums<T> {
        /// The sum of each element and all before it, where `start` comes before the warp's run.
        #[inline(always)]
        pub fn inclusive(&self, start: T) -> Rows<T> {
            let mut sums = self.groups;
            for row in 0..ROWS {
                let before = start.add(self.before[row]);
                for k in 0..GROUP {
                    sums[row][k] = before.add(sums[row][k]);
                }
            }
            sums
        }

        /// The sum of all before each element, where `start` comes before the warp's run.
        #[inline(always)]
        pub fn exclusive(&self, start: T) -> Rows<T> {
            let mut sums = self.groups;
            for row in 0..ROWS {
                let before = start.add(self.before[row]);
                sums[row][0] = before;
                for k in 1..GROUP {
                    sums[row][k] = before.add(self.groups[row][k - 1]);
                }
            }
            sums
        }
    }

    /// y[i] <- x[0] + ... + x[i]
    #[kernel(block = THREADS, same_shape(x, y), wide, T = [u8, u16, u32, u64, f32, f64])]
    pub fn inclusive<T: Element>(
        t: Thread<1>,
        x: &[T],
        mut y: DisjointWarps<T, RUN, 32, GROUP>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let sums = scan_rows(&t.warp(), load(&t, x, y.first(&t), T::ZERO));
        let start = order.exclusive_of_warps(&t, scratch, sums.total, T::add).unwrap_or(T::ZERO);
        y.fill_grouped(&t, sums.inclusive(start));
    }

    /// y[i] <- first + x[0] + ... + x[i - 1]
    #[kernel(block = THREADS, same_shape(x, y), wide, T = [u8, u16, u32, u64, f32, f64])]
    pub fn exclusive<T: Element>(
        t: Thread<1>,
        x: &[T],
        first: T,
        mut y: DisjointWarps<T, RUN, 32, GROUP>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let sums = scan_rows(&t.warp(), load(&t, x, y.first(&t), T::ZERO));
        let start = order.exclusive_of_warps(&t, scratch, sums.total, T::add).unwrap_or(T::ZERO);
        y.fill_grouped(&t, sums.exclusive(first.add(start)));
    }
}
