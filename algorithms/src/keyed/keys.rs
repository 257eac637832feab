//! The kernel that finds runs of equal keys.

/// The kernel.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    use crate::order::numbers::Order;
    use crate::sort::digits::kernels::Bits;

    /// The threads of a block.
    pub const THREADS: usize = 256;
    /// The elements of a thread.
    pub const ITEMS: usize = 8;
    /// The elements of a warp.
    pub const RUN: usize = 32 * ITEMS;
    /// The elements of a block.
    pub const TILE: usize = THREADS * ITEMS;

    /// The results of `f` for the number of each item. LLVM does not unroll a loop of so much code, and its items would
    /// go to memory.
    #[inline(always)]
    pub fn each<U>(mut f: impl FnMut(usize) -> U) -> [U; ITEMS] {
        [f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)]
    }

    /// Marks the first element of each run of equal keys, by a bit of `marks` for each element. Writes the number of runs to
    /// results[0], the first key of each to `first_keys`, and how many begin before the elements of each warp to `places`.
    #[kernel(block = THREADS, K = [u8, u16, u32, u64])]
    pub fn mark_runs<K: Bits>(
        t: Thread<1>,
        numbers: Order<K>,
        keys: &[K],
        first_keys: &[DeviceAtomic<K>],
        mut marks: DisjointWarps<u32, ITEMS>,
        mut places: DisjointWarps<u32>,
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<u32>,
        scratch: Shared<Scratch<u32>>,
    ) {
        let (warp, first) = (t.warp(), places.first(&t) * RUN);
        let lane = warp.lane();
        let index = |row: usize| first + row * 32 + lane as usize;
        let items = match keys.get(first..).and_then(|rest| rest.first_chunk::<RUN>()) {
            Some(run) => each(|row| run[row * 32 + lane as usize % 32]),
            None => each(|row| keys.get(index(row)).copied().unwrap_or(K::narrow(0))),
        };
        // Lane 31 has the key before each row.
        let mut last = numbers.place(keys.get(first.wrapping_sub(1)).copied().unwrap_or(K::narrow(0)));
        let heads = each(|row| {
            let place = numbers.place(items[row]);
            let before = warp.shuffle(if lane == 31 { last } else { place }, (lane + 31) % 32);
            last = place;
            let is_head = index(row) == 0 || place.widen() != before.widen();
            warp.ballot(index(row) < keys.len() && is_head)
        });
        let (mut count, mut own) = (0, 0);
        each(|row| {
            count += heads[row].count_ones();
            own = if lane as usize == row { heads[row] } else { own };
        });
        marks.fill_with(&t, |_| own);
        let start = order.exclusive_of_warps(&t, scratch, count, |a, b| a + b).unwrap_or(0);
        places.fill_with(&t, |_| start);
        let mut place = start;
        each(|row| {
            let earlier = heads[row] & ((1 << lane) - 1);
            if heads[row] >> lane & 1 != 0
                && let Some(first_keys) = first_keys.get((place + earlier.count_ones()) as usize)
            {
                first_keys.store(items[row], Ordering::Relaxed);
            }
            place += heads[row].count_ones();
        });
        let ([block], [blocks]) = (t.block_idx(), t.grid_dim());
        if block + 1 == blocks && t.thread_rank() as usize == THREADS - 1 {
            results[0].store(place.into(), Ordering::Relaxed);
        }
    }
}
