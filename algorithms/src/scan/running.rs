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
    /// The rows that are treated together: a short loop is unrolled, so that the items stay in registers.
    pub const GROUP: usize = 8;
    /// The consecutive elements of a warp.
    pub const RUN: usize = 32 * ROWS;
    /// The elements of a block.
    pub const TILE: usize = THREADS * ROWS;

    /// A thread's elements, one of each row, in groups.
    pub type Rows<T> = [[T; GROUP]; ROWS / GROUP];

    /// The thread's elements of its warp's run; `none` beyond the end.
    #[inline(always)]
    pub fn load<T: Copy>(t: &Thread<'_, 1>, x: &[T], first: usize, none: T) -> Rows<T> {
        let lane = t.thread_rank() as usize % 32;
        match x.get(first..).and_then(|rest| rest.first_chunk::<RUN>()) {
            Some(run) => rows(|row| run[row * 32 + lane]),
            None => rows(|row| x.get(first + row * 32 + lane).copied().unwrap_or(none)),
        }
    }

    #[inline(always)]
    fn rows<T>(item: impl Fn(usize) -> T) -> Rows<T> {
        core::array::from_fn(|group| core::array::from_fn(|row| item(group * GROUP + row)))
    }

    /// The running sums of each row. The rows of a group advance together.
    #[inline(always)]
    pub fn scan_rows<T: Element>(warp: &Warp, [low, high]: Rows<T>) -> Rows<T> {
        [scan_group(warp, low), scan_group(warp, high)]
    }

    #[inline(always)]
    fn scan_group<T: Element>(warp: &Warp, mut group: [T; GROUP]) -> [T; GROUP] {
        let mut distance = 1;
        while distance < 32 {
            for row in 0..GROUP {
                let before = warp.shuffle_up(group[row], distance);
                if warp.lane() >= distance {
                    group[row] = before.add(group[row]);
                }
            }
            distance *= 2;
        }
        group
    }

    /// Lets each row of running sums continue from the row before it; also returns the sum of all. Each sum goes through a
    /// shuffle at once: what LLVM can delay until after the look-back needs twice the registers, and with fewer of these more
    /// blocks have loads on their way.
    #[inline(always)]
    pub fn chain_rows<T: Element>(warp: &Warp, [low, high]: Rows<T>) -> (Rows<T>, T) {
        let (low, total) = chain_group(warp, low, T::ZERO);
        let (high, total) = chain_group(warp, high, total);
        ([low, high], total)
    }

    #[inline(always)]
    fn chain_group<T: Element>(warp: &Warp, mut group: [T; GROUP], mut total: T) -> ([T; GROUP], T) {
        for row in 0..GROUP {
            group[row] = total.add(group[row]);
            total = warp.shuffle(group[row], 31);
        }
        (group, total)
    }

    /// Moves all elements to the next place; zero is the first.
    #[inline(always)]
    fn shift_rows<T: Element>(warp: &Warp, [low, high]: Rows<T>) -> Rows<T> {
        let (low, last) = shift_group(warp, low, T::ZERO);
        [low, shift_group(warp, high, last).0]
    }

    /// Also returns the group's last element, in lane 0.
    #[inline(always)]
    fn shift_group<T: Element>(warp: &Warp, mut group: [T; GROUP], mut before: T) -> ([T; GROUP], T) {
        let (lane, previous) = (warp.lane(), (warp.lane() + 31) % 32);
        for row in 0..GROUP {
            let turned = warp.shuffle(group[row], previous);
            group[row] = if lane == 0 { before } else { turned };
            before = turned;
        }
        (group, before)
    }

    /// The rows where they continue from `start`.
    #[inline(always)]
    pub fn continued<T: Element>(rows: Rows<T>, start: T) -> [T; ROWS] {
        core::array::from_fn(|row| start.add(rows[row / GROUP][row % GROUP]))
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
        let rows = scan_rows(&warp, load(&t, x, y.first(&t), T::ZERO));
        let (rows, total) = chain_rows(&warp, rows);
        let start = order.exclusive_of_warps(&t, scratch, total, T::add).unwrap_or(T::ZERO);
        y.fill_striped(&t, continued(rows, start));
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
        let rows = scan_rows(&warp, load(&t, x, y.first(&t), T::ZERO));
        let (rows, total) = chain_rows(&warp, rows);
        let start = first.add(order.exclusive_of_warps(&t, scratch, total, T::add).unwrap_or(T::ZERO));
        y.fill_striped(&t, continued(shift_rows(&warp, rows), start));
    }
}
