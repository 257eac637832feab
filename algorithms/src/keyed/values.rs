//! The kernel that combines the elements of runs, by decoupled look-back.

/// The kernel.
///
/// A thread has consecutive elements, and combines them one after the other. Runs that go on beyond a thread are continued from
/// what the threads, warps and blocks before it have since the last mark.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use super::super::keys::kernels::{ITEMS, RUN, THREADS, TILE, each};
    use crate::accumulate::accumulations::{Accumulation, Least, SumFloats, SumIntegers};

    /// The thread's elements of a tile, each as many threads after the one before; where there is none, the last element.
    #[inline(always)]
    fn load<T: Copy>(t: &Thread<'_, 1>, x: &[T]) -> [T; ITEMS] {
        let rank = t.thread_rank() as usize % THREADS;
        let first = t.block_idx()[0] as usize * TILE;
        match x.get(first..).and_then(|rest| rest.first_chunk::<TILE>()) {
            Some(tile) => each(|k| tile[k * THREADS + rank]),
            None => each(|k| x[(first + k * THREADS + rank).min(x.len() - 1)]),
        }
    }

    /// A thread's part of a tile.
    struct Part {
        /// The index of its first element.
        first: usize,
        /// A bit for each element that begins a run.
        heads: u32,
    }

    impl Part {
        #[inline(always)]
        fn of(t: &Thread<'_, 1>, marks: &[u32]) -> Self {
            let (rank, tile) = (t.thread_rank() as usize % THREADS, t.block_idx()[0] as usize * TILE);
            let first = tile + rank * ITEMS;
            let word = marks.get(first / 32).copied().unwrap_or(0);
            Part { first, heads: word >> (first % 32) & 0xFF }
        }

        #[inline(always)]
        fn is_head(&self, k: usize) -> bool {
            self.heads >> k & 1 != 0
        }
    }

    /// The sums of the thread's items; the identity beyond the end.
    #[inline(always)]
    fn sums<A: Accumulation>(a: A, part: &Part, items: [A::Item; ITEMS], len: usize) -> [A::Sum; ITEMS] {
        let count = len.saturating_sub(part.first);
        each(|k| if k < count { a.sum(items[k]) } else { a.identity() })
    }

    /// What is combined before the thread's elements, from the last mark on.
    #[inline(always)]
    fn carry<A: Accumulation, const ID: usize>(
        t: &Thread<'_, 1>,
        a: A,
        part: &Part,
        sums: &[A::Sum; ITEMS],
        order: BlockOrder<(u32, A::Sum)>,
        scratch: Shared<'_, Scratch<(u32, A::Sum)>, ID>,
    ) -> A::Sum {
        let warp = t.warp();
        let lane = warp.lane();
        let mut own = a.identity();
        each(|k| own = if part.is_head(k) { sums[k] } else { a.combine(own, sums[k]) });
        // Lanes combine from the last one with a mark on.
        let marked = warp.ballot(part.heads != 0);
        let up_to = marked & (u32::MAX >> (31 - lane));
        let start = if up_to == 0 { 0 } else { 31 - up_to.leading_zeros() };
        let mut distance = 1;
        while distance < 32 {
            let before = warp.shuffle_up(own, distance);
            if lane >= start + distance {
                own = a.combine(before, own);
            }
            distance *= 2;
        }
        let (total, before) = (warp.shuffle(own, 31), warp.shuffle_up(own, 1));
        let combine = |x: (u32, A::Sum), y: (u32, A::Sum)| {
            (x.0 | y.0, if y.0 != 0 { y.1 } else { a.combine(x.1, y.1) })
        };
        let of_warps = order.exclusive_of_warps(t, scratch, (marked, total), combine);
        let of_warps = of_warps.map_or(a.identity(), |(_, sum)| sum);
        match (lane, marked & !(u32::MAX << lane)) {
            (0, _) => of_warps,
            (_, 0) => a.combine(of_warps, before),
            _ => before,
        }
    }

    /// Combines the elements of runs, which begin where `marks` has a bit. Without marks, all elements are one run.
    ///
    /// combined[r] <- all elements of run `r`; the runs that begin before the elements of each warp are in `places`.
    /// y[i] <- those of the run of `i` up to it; or, if `is_exclusive`, `start` and those before it.
    #[kernel(
        block = THREADS,
        wide,
        A = [
            SumIntegers<u8>, SumIntegers<u16>, SumIntegers<u32>, SumIntegers<u64>, SumFloats<f32>, SumFloats<f64>,
            #[cfg(feature = "half")] SumFloats<f16>, #[cfg(feature = "half")] SumFloats<bf16>,
            Least<u8>, Least<u16>, Least<u32>, Least<u64>
        ]
    )]
    pub fn combine_runs<A: Accumulation>(
        t: Thread<1>,
        a: A,
        is_exclusive: bool,
        start: <A as Accumulation>::Item,
        x: &[<A as Accumulation>::Item],
        marks: &[u32],
        places: &[u32],
        combined: &[DeviceAtomic<<A as Accumulation>::Total>],
        y: &[DeviceAtomic<<A as Accumulation>::Item>],
        order: BlockOrder<(u32, <A as Accumulation>::Sum)>,
        scratch: Shared<Scratch<(u32, <A as Accumulation>::Sum)>>,
        mut exchange: Shared<ExchangeScratch<<A as Accumulation>::Item, 256, 8>>,
    ) {
        let part = Part::of(&t, marks);
        let items = t.block_striped_to_blocked(&mut exchange, load(&t, x));
        let sums = sums(a, &part, items, x.len());
        let mut sum = carry(&t, a, &part, &sums, order, scratch);
        if !y.is_empty() {
            let start = a.sum(start);
            let results = each(|k| {
                let before = if part.is_head(k) { start } else { a.combine(start, sum) };
                sum = if part.is_head(k) { sums[k] } else { a.combine(sum, sums[k]) };
                a.item(if is_exclusive { before } else { sum })
            });
            let results = t.block_blocked_to_striped(&mut exchange, results);
            let first = t.block_idx()[0] as usize * TILE + t.thread_rank() as usize;
            each(|k| {
                if let Some(y) = y.get(first + k * THREADS) {
                    y.store(results[k], Ordering::Relaxed);
                }
            });
            return;
        }
        // How many runs begin before the thread's elements.
        let own = part.heads.count_ones();
        let of_warp = t.warp().inclusive_scan(own, |a, b| a + b) - own;
        let mut place = places.get(part.first / RUN).copied().unwrap_or(0) + of_warp;
        let put = |run: u32, sum: A::Sum| {
            if let Some(total) = combined.get(run as usize) {
                total.store(a.total(sum), Ordering::Relaxed);
            }
        };
        each(|k| {
            if part.is_head(k) {
                if place > 0 {
                    put(place - 1, sum);
                }
                place += 1;
                sum = sums[k];
            } else {
                sum = a.combine(sum, sums[k]);
            }
        });
        if part.first < x.len() && x.len() <= part.first + ITEMS {
            put(place.wrapping_sub(1), sum);
        }
    }
}
