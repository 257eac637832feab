//! Scans in one pass over memory, by decoupled look-back.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::group;
    use ferrogrid::device::prelude::*;
    pub use ferrogrid::device::scan::THREADS;
    use ferrogrid::device::scan::{ROWS, Rows, scan_rows};

    use crate::number::numbers::Element;

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
        let sums = scan_rows(&t.warp(), rows, T::ZERO, T::add);
        let start = order.exclusive_of_warps(&t, scratch, sums.total, T::add).unwrap_or(T::ZERO);
        y.fill_grouped(&t, sums.inclusive(start, T::add));
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
        let sums = scan_rows(&t.warp(), rows, T::ZERO, T::add);
        let start = order.exclusive_of_warps(&t, scratch, sums.total, T::add).unwrap_or(T::ZERO);
        y.fill_grouped(&t, sums.exclusive(first.add(start), T::add));
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
        let sums = scan_rows(&t.warp(), rows, T::ZERO, T::add);
        let start = order.exclusive_of_warps(&t, scratch, sums.total, T::add).unwrap_or(T::ZERO);
        y.fill_grouped(&t, sums.inclusive(start, T::add));
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
        let sums = scan_rows(&t.warp(), rows, T::ZERO, T::add);
        let start = order.exclusive_of_warps(&t, scratch, sums.total, T::add).unwrap_or(T::ZERO);
        y.fill_grouped(&t, sums.exclusive(first.add(start), T::add));
    }
}
