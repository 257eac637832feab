//! The places of a tile's items in the order of one digit: what passes and sorts of one block share.

/// Device code of a block of [`THREADS`](kernels::THREADS).
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::Published;

    use super::super::digits::kernels::{DIGIT, DIGITS, THREADS};

    /// The warps of a block.
    pub const WARPS: usize = THREADS / 32;

    /// A word in shared memory.
    pub type Word = DeviceAtomic<u32, atomic::Block>;

    /// Words of each warp, one for each digit.
    pub type OfWarps = [Word; WARPS * DIGITS];

    /// A warp's words in shared memory, one for each digit.
    #[derive(Clone, Copy)]
    pub struct OfWarp<'a> {
        /// How many of its items have the digit; later where the next one goes.
        pub counts: &'a [Word; DIGITS],
        /// Lanes whose items have the digit; 0 between two rows.
        pub lanes: &'a [Word; DIGITS],
    }

    /// Those of the thread's warp.
    #[inline(always)]
    pub fn of_warp<'a>(t: &Thread<'_, 1>, counts: &'a OfWarps, lanes: &'a OfWarps) -> OfWarp<'a> {
        let warp = t.thread_rank() as usize / 32 % WARPS;
        OfWarp { counts: &counts.as_chunks::<DIGITS>().0[warp], lanes: &lanes.as_chunks::<DIGITS>().0[warp] }
    }

    /// Both with zeros, for all threads.
    #[inline(always)]
    pub fn zeroed<'b, const C: usize, const L: usize>(
        t: &Thread<'b, 1>,
        mut counts: Shared<'b, OfWarps, C>,
        mut lanes: Shared<'b, OfWarps, L>,
    ) -> (Published<'b, OfWarps, C>, Published<'b, OfWarps, L>) {
        counts.fill_with(t, |_| DeviceAtomic::new(0));
        lanes.fill_with(t, |_| DeviceAtomic::new(0));
        t.publish((counts, lanes))
    }

    /// How many items of the block have the digit of this thread.
    #[inline(always)]
    pub fn count(t: &Thread<'_, 1>, counts: &OfWarps) -> u32 {
        let thread = t.thread_rank() as usize % DIGITS;
        counts.as_chunks::<DIGITS>().0.iter().map(|of_warp| of_warp[thread].load(Relaxed)).sum()
    }

    /// Makes counts places: each warp's items with the thread's digit begin after those of earlier warps, those of the block
    /// at `first`.
    #[inline(always)]
    pub fn begin(t: &Thread<'_, 1>, counts: &OfWarps, first: u32) {
        let thread = t.thread_rank() as usize % DIGITS;
        let mut next = first;
        for of_warp in counts.as_chunks::<DIGITS>().0 {
            let count = of_warp[thread].load(Relaxed);
            of_warp[thread].store(next, Relaxed);
            next += count;
        }
    }

    /// The place of each lane's item of a row, whose digits are `digit`: rows come in their order, as lanes do. Half of the rows
    /// find equal digits by votes, which take arithmetic, the others in shared memory: both together are faster than either.
    #[inline(always)]
    pub fn place(warp: &Warp, own: OfWarp, row: usize, digit: usize) -> u32 {
        let by_votes = row.is_multiple_of(2);
        let equal = if by_votes {
            warp.match_bits::<DIGIT>(digit as u32)
        } else {
            own.lanes[digit].fetch_or(1 << warp.lane(), Relaxed);
            warp.sync();
            own.lanes[digit].load(Relaxed)
        };
        let next = own.counts[digit].load(Relaxed);
        // All lanes have read what the first of each digit now changes.
        warp.sync();
        let lower = equal & ((1 << warp.lane()) - 1);
        if lower == 0 {
            own.counts[digit].store(next + equal.count_ones(), Relaxed);
            if !by_votes {
                own.lanes[digit].store(0, Relaxed);
            }
        }
        warp.sync();
        next + lower.count_ones()
    }
}
