//! Scans in one pass over memory, by decoupled look-back.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::group;
    use ferrogrid::device::prelude::*;
    pub use ferrogrid::device::scan::THREADS;
    use ferrogrid::device::scan::{ROWS, Rows, Totals, each_row, scan_rows, total_of_rows};

    use crate::number::numbers::Element;

    /// The neighbours that a lane adds up alone, of at most 4 bytes each: few loads and shuffles for many elements.
    pub const GROUP: usize = 4;
    /// The same, of 8 bytes each.
    pub const WIDE_GROUP: usize = 2;
    /// The rows of a warp's run of 8-byte elements: with longer runs, fewer blocks look back.
    pub const LONG_ROWS: usize = 12;
    /// The consecutive elements of a warp, in a scan or a selection.
    pub const RUN: usize = 32 * ROWS * GROUP;
    /// The same in a selection, of 8 bytes each.
    pub const WIDE_RUN: usize = 32 * ROWS * WIDE_GROUP;
    /// The same in a scan, of 8 bytes each.
    pub const LONG_RUN: usize = 32 * LONG_ROWS * WIDE_GROUP;

    /// The elements of a block that are as large as a `T`.
    pub const fn tile<T>() -> usize {
        THREADS / 32 * if size_of::<T>() < 8 { RUN } else { LONG_RUN }
    }

    /// The thread's elements of its warp's run, of `N` elements; `none` beyond the end.
    #[inline(always)]
    pub fn load<T: Copy, const G: usize, const N: usize, const R: usize>(
        t: &Thread<'_, 1>,
        x: &[T],
        first: usize,
        none: T,
    ) -> Rows<T, G, R> {
        const { assert!(N == 32 * R * G) };
        let lane = t.thread_rank() as usize % 32;
        let run = x.get(first..).and_then(|rest| rest.first_chunk::<N>());
        match run.and_then(|run| group::inputs(run)) {
            Some(groups) => each_row(|row| groups.load(row * 32 + lane)),
            None => each_row(|row| {
                let first = first + (row * 32 + lane) * G;
                core::array::from_fn(|k| x.get(first + k).copied().unwrap_or(none))
            }),
        }
    }

    /// The sum of all before the warp's run, and the running sums of that. The run's own sum comes first, so that the blocks that
    /// wait for it need not wait for the others.
    #[inline(always)]
    fn scan_run<T: Element, const G: usize, const R: usize, const S: usize>(
        t: &Thread<'_, 1>,
        rows: Rows<T, G, R>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>, S>,
    ) -> (T, Totals<T, G, R>) {
        let warp = t.warp();
        let total = total_of_rows(&warp, &rows, T::ZERO, T::add);
        let earlier = order.publish_of_warps(t, scratch, total, T::add);
        let sums = scan_rows(&warp, rows, T::ZERO, T::add);
        (earlier.exclusive(t, T::add).unwrap_or(T::ZERO), sums)
    }

    /// y[i] <- x[0] + ... + x[i]
    #[kernel(
        block = THREADS,
        min_blocks = 3,
        same_shape(x, y),
        wide,
        T = [u8, u16, u32, f32],
        native = super::super::native::inclusive_sums
    )]
    pub fn inclusive_sums<T: Element>(
        t: Thread<1>,
        x: &[T],
        mut y: DisjointWarps<T, RUN, 32, GROUP>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let rows = load::<T, GROUP, RUN, ROWS>(&t, x, y.first(&t), T::ZERO);
        let (start, sums) = scan_run(&t, rows, order, scratch);
        y.fill_grouped(&t, sums.inclusive(start, T::add));
    }

    /// y[i] <- first + x[0] + ... + x[i - 1]
    #[kernel(
        block = THREADS,
        min_blocks = 3,
        same_shape(x, y),
        wide,
        T = [u8, u16, u32, f32],
        native = super::super::native::exclusive_sums
    )]
    pub fn exclusive_sums<T: Element>(
        t: Thread<1>,
        x: &[T],
        first: T,
        mut y: DisjointWarps<T, RUN, 32, GROUP>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let rows = load::<T, GROUP, RUN, ROWS>(&t, x, y.first(&t), T::ZERO);
        let (start, sums) = scan_run(&t, rows, order, scratch);
        y.fill_grouped(&t, sums.exclusive(first.add(start), T::add));
    }

    /// As `inclusive_sums`, of elements of 8 bytes.
    #[kernel(
        block = THREADS,
        min_blocks = 2,
        same_shape(x, y),
        wide,
        T = [u64, f64],
        native = super::super::native::inclusive_sums_wide
    )]
    pub fn inclusive_sums_wide<T: Element>(
        t: Thread<1>,
        x: &[T],
        mut y: DisjointWarps<T, LONG_RUN, 32, WIDE_GROUP>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let rows = load::<T, WIDE_GROUP, LONG_RUN, LONG_ROWS>(&t, x, y.first(&t), T::ZERO);
        let (start, sums) = scan_run(&t, rows, order, scratch);
        y.fill_grouped(&t, sums.inclusive(start, T::add));
    }

    /// As `exclusive_sums`, of elements of 8 bytes.
    #[kernel(
        block = THREADS,
        min_blocks = 2,
        same_shape(x, y),
        wide,
        T = [u64, f64],
        native = super::super::native::exclusive_sums_wide
    )]
    pub fn exclusive_sums_wide<T: Element>(
        t: Thread<1>,
        x: &[T],
        first: T,
        mut y: DisjointWarps<T, LONG_RUN, 32, WIDE_GROUP>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let rows = load::<T, WIDE_GROUP, LONG_RUN, LONG_ROWS>(&t, x, y.first(&t), T::ZERO);
        let (start, sums) = scan_run(&t, rows, order, scratch);
        y.fill_grouped(&t, sums.exclusive(first.add(start), T::add));
    }
}
