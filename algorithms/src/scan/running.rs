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
    pub const THREADS: usize = 512;
    /// The rows of 32 elements that a warp scans.
    pub const ROWS: usize = 8;
    /// The consecutive elements of a warp.
    pub const RUN: usize = 32 * ROWS;
    /// The elements of a block.
    pub const TILE: usize = THREADS * ROWS;

    /// The thread's elements of its warp's run, one of each row; `none` beyond the end.
    #[inline(always)]
    fn load<T: Copy>(t: &Thread<'_, 1>, x: &[T], first: usize, none: T) -> [T; ROWS] {
        let lane = t.thread_rank() as usize % 32;
        match x.get(first..).and_then(|rest| rest.first_chunk::<RUN>()) {
            Some(run) => core::array::from_fn(|row| run[row * 32 + lane]),
            None => core::array::from_fn(|row| x.get(first + row * 32 + lane).copied().unwrap_or(none)),
        }
    }

    /// The running sums of each row. Rows advance together, because a short loop is unrolled, so that the items stay in
    /// registers.
    #[inline(always)]
    fn scan_rows<T: Element>(warp: &Warp, mut items: [T; ROWS]) -> [T; ROWS] {
        let mut distance = 1;
        while distance < 32 {
            for item in 0..ROWS {
                let before = warp.shuffle_up(items[item], distance);
                if warp.lane() >= distance {
                    items[item] = before.add(items[item]);
                }
            }
            distance *= 2;
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
        let mut items = scan_rows(&warp, load(&t, x, y.first(&t), T::ZERO));
        let mut total = warp.shuffle(items[0], 31);
        for row in 1..ROWS {
            let of_row = warp.shuffle(items[row], 31);
            items[row] = total.add(items[row]);
            total = total.add(of_row);
        }
        if let Some(before) = order.exclusive_of_warps(&t, scratch, total, T::add) {
            for row in 0..ROWS {
                items[row] = before.add(items[row]);
            }
        }
        y.fill_striped(&t, items);
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
        let mut total = T::ZERO;
        for row in 0..ROWS {
            let (before, of_row) = (warp.shuffle_up(items[row], 1), warp.shuffle(items[row], 31));
            items[row] = if warp.lane() == 0 { total } else { total.add(before) };
            total = total.add(of_row);
        }
        let before = order.exclusive_of_warps(&t, scratch, total, T::add);
        let before = before.map_or(first, |before| first.add(before));
        for row in 0..ROWS {
            items[row] = before.add(items[row]);
        }
        y.fill_striped(&t, items);
    }
}
