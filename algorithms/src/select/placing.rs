//! Where the kept elements of a warp go.

/// Device code that selections and runs share.
#[expect(
    clippy::needless_range_loop,
    reason = "LLVM unrolls a loop over indices and keeps items in registers, but not a loop over an array's iterator"
)]
#[ferrogrid::module]
pub mod placing {
    use ferrogrid::device::prelude::*;

    /// The threads of a block.
    pub const THREADS: usize = 256;
    /// The rows of 32 elements of a warp.
    pub const ROWS: usize = 16;
    /// The consecutive elements of a warp.
    pub const RUN: usize = 32 * ROWS;
    /// The elements of a block.
    pub const TILE: usize = THREADS * ROWS;

    /// The index of the first element of the thread's warp.
    #[inline(always)]
    pub fn first(t: &Thread<'_, 1>) -> usize {
        let [block] = t.block_idx();
        block as usize * TILE + t.thread_rank() as usize / 32 * RUN
    }

    /// The thread's elements of its warp's, one of each row; `none` beyond the end.
    #[inline(always)]
    pub fn load<T: Copy>(t: &Thread<'_, 1>, x: &[T], none: T) -> [T; ROWS] {
        let (first, lane) = (first(t), t.thread_rank() as usize % 32);
        match x.get(first..).and_then(|rest| rest.first_chunk::<RUN>()) {
            Some(run) => core::array::from_fn(|row| run[row * 32 + lane]),
            None => core::array::from_fn(|row| x.get(first + row * 32 + lane).copied().unwrap_or(none)),
        }
    }

    /// The number of kept elements of a warp, of which `kept` has a bit each.
    #[inline(always)]
    pub fn count(kept: &[u32; ROWS]) -> u32 {
        let mut count = 0;
        for row in 0..ROWS {
            count += kept[row].count_ones();
        }
        count
    }

    /// The lanes before the thread's, a bit for each.
    #[inline(always)]
    pub fn lanes_before(warp: &Warp) -> u32 {
        (1 << warp.lane()) - 1
    }

    /// Half of the rows: a loop over them is short enough to be unrolled, so that the items stay in registers.
    pub const HALF: usize = ROWS / 2;

    /// The `N` rows from `first` on.
    #[inline(always)]
    pub fn part<T: Copy, const N: usize>(rows: &[T; ROWS], first: usize) -> [T; N] {
        core::array::from_fn(|row| rows[first + row])
    }

    /// Writes the kept elements of a warp to `place` and what follows. Returns the place after them.
    #[inline(always)]
    pub fn put_kept<T: atomic::AtomicLoadStore>(
        warp: &Warp,
        y: &[DeviceAtomic<T>],
        kept: &[u32; ROWS],
        items: &[T; ROWS],
        place: u32,
    ) -> u32 {
        let middle = put_half(warp, y, part(kept, 0), part(items, 0), place);
        put_half(warp, y, part(kept, HALF), part(items, HALF), middle)
    }

    #[inline(always)]
    fn put_half<T: atomic::AtomicLoadStore>(
        warp: &Warp,
        y: &[DeviceAtomic<T>],
        kept: [u32; HALF],
        items: [T; HALF],
        mut place: u32,
    ) -> u32 {
        for row in 0..HALF {
            if kept[row] >> warp.lane() & 1 != 0 {
                put(y, place + (kept[row] & lanes_before(warp)).count_ones(), items[row]);
            }
            place += kept[row].count_ones();
        }
        place
    }

    /// Writes `value` to the element at `place`, if there is one: an output may be too short for a result.
    #[inline(always)]
    pub fn put<T: atomic::AtomicLoadStore>(y: &[DeviceAtomic<T>], place: u32, value: T) {
        if let Some(y) = y.get(place as usize) {
            y.store(value, Ordering::Relaxed);
        }
    }

    /// Writes the number of results, which the last warp of the last block knows.
    #[inline(always)]
    pub fn put_count(t: &Thread<'_, 1>, count: &[DeviceAtomic<u64>], results: u32) {
        if is_last(t) {
            count[0].store(results.into(), Ordering::Relaxed);
        }
    }

    /// Whether this is the last thread of the last block.
    #[inline(always)]
    pub fn is_last(t: &Thread<'_, 1>) -> bool {
        let ([block], [blocks]) = (t.block_idx(), t.grid_dim());
        block + 1 == blocks && t.thread_rank() as usize == THREADS - 1
    }
}
