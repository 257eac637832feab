//! Scans in one pass over memory, by decoupled look-back.

/// The kernels.
#[expect(
    clippy::needless_range_loop,
    reason = "LLVM unrolls a loop over indices and keeps items in registers, but not a loop over an array's iterator"
)]
#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    use crate::number::numbers::Element;

    /// The threads of a block.
    pub const THREADS: usize = 256;
    /// The rows of 32 elements that a warp scans.
    pub const ROWS: usize = 16;
    /// The consecutive elements of a warp.
    pub const RUN: usize = 32 * ROWS;
    /// The elements of a block.
    pub const TILE: usize = THREADS * ROWS;

    /// The thread's elements of its warp's run, one of each row; `none` beyond the end.
    #[inline(always)]
    pub fn load<T: Copy>(t: &Thread<'_, 1>, x: &[T], first: usize, none: T) -> [T; ROWS] {
        let lane = t.thread_rank() as usize % 32;
        match x.get(first..).and_then(|rest| rest.first_chunk::<RUN>()) {
            Some(run) => core::array::from_fn(|row| run[row * 32 + lane]),
            None => core::array::from_fn(|row| x.get(first + row * 32 + lane).copied().unwrap_or(none)),
        }
    }

    /// The running sums of each row.
    #[inline(always)]
    pub fn scan_rows<T: Element>(warp: &Warp, items: [T; ROWS]) -> [T; ROWS] {
        const HALF: usize = ROWS / 2;
        let half = |first: usize| scan_half::<T, HALF>(warp, core::array::from_fn(|row| items[first + row]));
        let (low, high) = (half(0), half(HALF));
        core::array::from_fn(|row| if row < HALF { low[row] } else { high[row - HALF] })
    }

    /// Rows advance together, and only half of them, because a short loop is unrolled, so that the items stay in registers.
    #[inline(always)]
    fn scan_half<T: Element, const N: usize>(warp: &Warp, mut items: [T; N]) -> [T; N] {
        let mut distance = 1;
        while distance < 32 {
            for item in 0..N {
                let before = warp.shuffle_up(items[item], distance);
                if warp.lane() >= distance {
                    items[item] = before.add(items[item]);
                }
            }
            distance *= 2;
        }
        items
    }

    /// The sum of all rows before each one, and that of all rows, of rows of running sums.
    #[inline(always)]
    pub fn sums_before<T: Element>(warp: &Warp, rows: &[T; ROWS]) -> ([T; ROWS], T) {
        let (mut before, mut total) = ([T::ZERO; ROWS], T::ZERO);
        for row in 0..ROWS {
            before[row] = total;
            total = total.add(warp.shuffle(rows[row], 31));
        }
        (before, total)
    }

    /// The items, each with what comes before its row: the rows before it, and `start`.
    #[inline(always)]
    pub fn continued<T: Element>(mut items: [T; ROWS], before: &[T; ROWS], start: T) -> [T; ROWS] {
        for row in 0..ROWS {
            items[row] = start.add(before[row]).add(items[row]);
        }
        items
    }

    /// y[i] <- x[0] + ... + x[i]
    #[kernel(block = THREADS, same_shape(x, y), wide, T = [u8, u16, u32, u64, f32, f64])]
    pub fn inclusive<T: Element>(
        t: Thread<1>,
        x: &[T],
        mut y: DisjointWarps<T, RUN>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let warp = t.warp();
        let items = scan_rows(&warp, load(&t, x, y.first(&t), T::ZERO));
        let (before, total) = sums_before(&warp, &items);
        let start = order.exclusive_of_warps(&t, scratch, total, T::add).unwrap_or(T::ZERO);
        y.fill_striped(&t, continued(items, &before, start));
    }

    /// y[i] <- first + x[0] + ... + x[i - 1]
    #[kernel(block = THREADS, same_shape(x, y), wide, T = [u8, u16, u32, u64, f32, f64])]
    pub fn exclusive<T: Element>(
        t: Thread<1>,
        x: &[T],
        first: T,
        mut y: DisjointWarps<T, RUN>,
        order: BlockOrder<T>,
        scratch: Shared<Scratch<T>>,
    ) {
        let warp = t.warp();
        let mut items = scan_rows(&warp, load(&t, x, y.first(&t), T::ZERO));
        let (before, total) = sums_before(&warp, &items);
        for row in 0..ROWS {
            let up_to_previous = warp.shuffle_up(items[row], 1);
            items[row] = if warp.lane() == 0 { T::ZERO } else { up_to_previous };
        }
        let start = first.add(order.exclusive_of_warps(&t, scratch, total, T::add).unwrap_or(T::ZERO));
        y.fill_striped(&t, continued(items, &before, start));
    }
}
