//! Scans in one pass over memory, by decoupled look-back.

/// The kernels.
#[expect(
    clippy::needless_range_loop,
    reason = "LLVM unrolls a loop over indices and keeps items in registers, but not a loop over an array's iterator"
)]
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::group;
    use ferrogrid::device::prelude::*;

    use crate::number::numbers::Element;

    /// The threads of a block.
    pub const THREADS: usize = 256;
    /// The rows of 32 groups that a warp scans.
    pub const ROWS: usize = 8;
    /// The neighbours that a lane adds up alone, of at most 4 bytes each: few loads and shuffles for many elements.
    pub const GROUP: usize = 4;
    /// The same, of 8 bytes each.
    pub const WIDE_GROUP: usize = 2;
    /// The consecutive elements of a warp.
    pub const RUN: usize = 32 * ROWS * GROUP;
    /// The same, of 8 bytes each.
    pub const WIDE_RUN: usize = 32 * ROWS * WIDE_GROUP;

    /// The elements of a block that are as large as a `T`.
    pub const fn tile<T>() -> usize {
        THREADS * ROWS * if size_of::<T>() < 8 { GROUP } else { WIDE_GROUP }
    }

    /// A thread's elements, a group of each row.
    pub type Rows<T, const G: usize> = [[T; G]; ROWS];

    /// The thread's elements of its warp's run, of `N` elements; `none` beyond the end.
    #[inline(always)]
    pub fn load<T: Copy, const G: usize, const N: usize>(
        t: &Thread<'_, 1>,
        x: &[T],
        first: usize,
        none: T,
    ) -> Rows<T, G> {
        const { assert!(N == 32 * ROWS * G) };
        let lane = t.thread_rank() as usize % 32;
        let run = x.get(first..).and_then(|rest| rest.first_chunk::<N>());
        match run.and_then(|run| group::inputs(run)) {
            Some(groups) => core::array::from_fn(|row| groups.load(row * 32 + lane)),
            None => core::array::from_fn(|row| {
                let first = first + (row * 32 + lane) * G;
                core::array::from_fn(|k| x.get(first + k).copied().unwrap_or(none))
            }),
        }
    }

    /// A thread's elements as running sums of their groups, and what comes before each group.
    pub struct Sums<T, const G: usize> {
        groups: Rows<T, G>,
        before: [T; ROWS],
        /// The sum of the warp's run.
        pub total: T,
    }

    /// The running sums of the warp's run.
    #[inline(always)]
    pub fn scan_rows<T: Element, const G: usize>(warp: &Warp, mut groups: Rows<T, G>) -> Sums<T, G> {
        for row in 0..ROWS {
            for k in 1..G {
                groups[row][k] = groups[row][k - 1].add(groups[row][k]);
            }
        }
        // The rows advance together, so that they don't wait for each other's shuffles.
        let mut up_to: [T; ROWS] = core::array::from_fn(|row| groups[row][G - 1]);
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

    impl<T: Element, const G: usize> Sums<T, G> {
        /// The sum of each element and all before it, where `start` comes before the warp's run.
        #[inline(always)]
        pub fn inclusive(&self, start: T) -> Rows<T, G> {
            let mut sums = self.groups;
            for row in 0..ROWS {
                let before = start.add(self.before[row]);
                for k in 0..G {
                    sums[row][k] = before.add(sums[row][k]);
                }
            }
            sums
        }

        /// The sum of all before each element, where `start` comes before the warp's run.
        #[inline(always)]
        pub fn exclusive(&self, start: T) -> Rows<T, G> {
            let mut sums = self.groups;
            for row in 0..ROWS {
                let before = start.add(self.before[row]);
                sums[row][0] = before;
                for k in 1..G {
                    sums[row][k] = before.add(self.groups[row][k - 1]);
                }
            }
            sums
        }
    }

    /// y[i] <- x[0] + ... + x[i]
    #[kernel(block = THREADS, min_blocks = 4, same_shape(x, y), wide, T = [u8, u16, u32, f32], native = super::super::native::inclusive_sums)]
    pub fn inclusive_sums<T: Element>(
        t: Thread<1>,
        x: &[T],
        mut y: DisjointWarps<T, RUN, 32, GROUP>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let rows = load::<T, GROUP, RUN>(&t, x, y.first(&t), T::ZERO);
        let sums = scan_rows(&t.warp(), rows);
        let start = order.exclusive_of_warps(&t, scratch, sums.total, T::add).unwrap_or(T::ZERO);
        y.fill_grouped(&t, sums.inclusive(start));
    }

    /// y[i] <- first + x[0] + ... + x[i - 1]
    #[kernel(block = THREADS, min_blocks = 4, same_shape(x, y), wide, T = [u8, u16, u32, f32], native = super::super::native::exclusive_sums)]
    pub fn exclusive_sums<T: Element>(
        t: Thread<1>,
        x: &[T],
        first: T,
        mut y: DisjointWarps<T, RUN, 32, GROUP>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let rows = load::<T, GROUP, RUN>(&t, x, y.first(&t), T::ZERO);
        let sums = scan_rows(&t.warp(), rows);
        let start = order.exclusive_of_warps(&t, scratch, sums.total, T::add).unwrap_or(T::ZERO);
        y.fill_grouped(&t, sums.exclusive(first.add(start)));
    }

    /// As `inclusive_sums`, of elements of 8 bytes.
    #[kernel(block = THREADS, min_blocks = 3, same_shape(x, y), wide, T = [u64, f64], native = super::super::native::inclusive_sums_wide)]
    pub fn inclusive_sums_wide<T: Element>(
        t: Thread<1>,
        x: &[T],
        mut y: DisjointWarps<T, WIDE_RUN, 32, WIDE_GROUP>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let rows = load::<T, WIDE_GROUP, WIDE_RUN>(&t, x, y.first(&t), T::ZERO);
        let sums = scan_rows(&t.warp(), rows);
        let start = order.exclusive_of_warps(&t, scratch, sums.total, T::add).unwrap_or(T::ZERO);
        y.fill_grouped(&t, sums.inclusive(start));
    }

    /// As `exclusive_sums`, of elements of 8 bytes.
    #[kernel(block = THREADS, min_blocks = 3, same_shape(x, y), wide, T = [u64, f64], native = super::super::native::exclusive_sums_wide)]
    pub fn exclusive_sums_wide<T: Element>(
        t: Thread<1>,
        x: &[T],
        first: T,
        mut y: DisjointWarps<T, WIDE_RUN, 32, WIDE_GROUP>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let rows = load::<T, WIDE_GROUP, WIDE_RUN>(&t, x, y.first(&t), T::ZERO);
        let sums = scan_rows(&t.warp(), rows);
        let start = order.exclusive_of_warps(&t, scratch, sums.total, T::add).unwrap_or(T::ZERO);
        y.fill_grouped(&t, sums.exclusive(first.add(start)));
    }
}
