//! Which elements of a warp's run are kept, and where they go.

/// Device code that selections and runs share.
///
/// A lane has a few neighbours of each row. The kept elements of a warp go side by side in shared memory first, so that neighbouring
/// lanes write neighbouring elements of the output.
#[ferrogrid::module]
pub mod placing {
    use core::ops::Range;

    use atomic::{AtomicLoadStore, Ordering::Relaxed, Scope};
    use ferrogrid::device::prelude::*;
    pub use ferrogrid::device::scan::THREADS;
    use ferrogrid::device::scan::{ROWS, Rows};

    use crate::scan::running::kernels::load as load_run;
    pub use crate::scan::running::kernels::{GROUP, RUN, WIDE_GROUP, WIDE_RUN};
    use crate::sort::digits::kernels::each;

    /// An element in the shared memory of a block.
    pub type InShared<T> = DeviceAtomic<T, atomic::Block>;

    /// The elements of a block that are as large as a `T`.
    pub const fn tile<T>() -> usize {
        THREADS / 32 * if size_of::<T>() < 8 { RUN } else { WIDE_RUN }
    }

    /// The index of the first element of the thread's warp, which has runs of `R`.
    #[inline(always)]
    pub fn first<const R: usize>(t: &Thread<'_, 1>) -> usize {
        let [block] = t.block_idx();
        (block as usize * (THREADS / 32) + t.thread_rank() as usize / 32) * R
    }

    /// The thread's elements of its warp's run; `none` beyond the end.
    #[inline(always)]
    pub fn load<T: Copy, const G: usize, const R: usize>(t: &Thread<'_, 1>, x: &[T], none: T) -> Rows<T, G> {
        load_run::<T, G, R, _>(t, x, first::<R>(t), none)
    }

    /// The place in the warp's run of the thread's first element of a row.
    #[inline(always)]
    pub fn place_of<const G: usize>(t: &Thread<'_, 1>, row: usize) -> usize {
        (row * 32 + t.thread_rank() as usize % 32) * G
    }

    /// Which elements of a warp's run are kept, of which a lane has `G` neighbours in each row.
    pub struct Kept<const G: usize> {
        /// A bit for each element of the thread, `G` for each row.
        pub bits: u32,
        /// How many of the warp's are kept before the thread's of each row.
        before: [u32; ROWS],
        /// How many are kept of the warp's run.
        pub total: u32,
    }

    impl<const G: usize> Kept<G> {
        /// Those for which `is_kept` is true, which gets the row and the number in it.
        #[inline(always)]
        pub fn of(warp: &Warp, mut is_kept: impl FnMut(usize, usize) -> bool) -> Self {
            let mut bits = 0;
            each::<(), ROWS>(|row| {
                each::<(), G>(|k| bits |= u32::from(is_kept(row, k)) << (row * G + k));
            });
            Kept::with_bits(warp, bits)
        }

        /// Those whose bits are set.
        #[inline(always)]
        pub fn with_bits(warp: &Warp, bits: u32) -> Self {
            const { assert!(ROWS * G <= 32) };
            // Counts of four rows are one word, as each is at most 128.
            let own: [u32; ROWS / 4] = each(|word| {
                let counts: [u32; 4] = each(|row| {
                    let of_row = bits >> ((word * 4 + row) * G) & ((1 << G) - 1);
                    of_row.count_ones() << (8 * row)
                });
                counts[0] | counts[1] | counts[2] | counts[3]
            });
            let up_to = own.map(|counts| warp.inclusive_scan(counts, |a, b| a + b));
            let of_rows = up_to.map(|counts| warp.shuffle(counts, 31));
            let mut total = 0;
            let before = each(|row| {
                let of_row = |words: &[u32; ROWS / 4]| words[row / 4] >> (8 * (row % 4)) & 0xFF;
                let before = total + of_row(&up_to) - of_row(&own);
                total += of_row(&of_rows);
                before
            });
            Kept { bits, before, total }
        }

        /// The place in the warp's run of the thread's last kept element; 0 if it has none.
        #[inline(always)]
        pub fn last(&self, t: &Thread<'_, 1>) -> u32 {
            let last = self.bits.checked_ilog2().map(|number| number as usize);
            last.map_or(0, |number| (place_of::<G>(t, number / G) + number % G) as u32)
        }

        /// Calls `f` with the row and the number of each of the thread's elements, whether it is kept, and how many kept ones of the
        /// warp are before it.
        #[inline(always)]
        pub fn for_each(&self, mut f: impl FnMut(usize, usize, bool, u32)) {
            each::<(), ROWS>(|row| {
                let bits = self.bits >> (row * G);
                each::<(), G>(|k| {
                    let earlier = bits & ((1 << k) - 1);
                    f(row, k, bits >> k & 1 != 0, self.before[row] + earlier.count_ones());
                });
            });
        }
    }

    /// The part of the thread's warp of what the block shares: a run of `R` for each warp.
    #[inline(always)]
    pub fn of_warp<'a, T, const R: usize>(t: &Thread<'_, 1>, tile: &'a [T]) -> &'a [T; R] {
        &tile.as_chunks().0[t.thread_rank() as usize / 32 % (THREADS / 32)]
    }

    /// Calls `f` with the numbers of a range that are the lane's, when all lanes have written what they share. Neighbouring lanes
    /// have neighbouring numbers.
    #[inline(always)]
    pub fn for_each_of_lane(warp: &Warp, numbers: Range<u32>, mut f: impl FnMut(u32)) {
        warp.sync();
        let mut number = numbers.start + warp.lane();
        while number < numbers.end {
            f(number);
            number += 32;
        }
    }

    /// y[place] <- x[number], if there are both.
    #[inline(always)]
    pub fn pass_on<T: AtomicLoadStore, S: Scope>(
        x: &[DeviceAtomic<T, S>],
        number: u32,
        y: &[DeviceAtomic<T>],
        place: u64,
    ) {
        if let Some(x) = x.get(number as usize) {
            put(y, place, x.load(Relaxed));
        }
    }

    /// Writes `value` to the element at `place`, if there is one: an output may be too short for a result.
    #[inline(always)]
    pub fn put<T: AtomicLoadStore, S: Scope>(y: &[DeviceAtomic<T, S>], place: u64, value: T) {
        if let Some(y) = y.get(place as usize) {
            y.store(value, Relaxed);
        }
    }

    /// Writes the number of results, which the last warp of the last block knows.
    #[inline(always)]
    pub fn put_count(t: &Thread<'_, 1>, count: &[DeviceAtomic<u64>], results: u64) {
        if is_last(t) {
            count[0].store(results, Relaxed);
        }
    }

    /// Whether this is the last thread of the last block.
    #[inline(always)]
    pub fn is_last(t: &Thread<'_, 1>) -> bool {
        let ([block], [blocks]) = (t.block_idx(), t.grid_dim());
        block + 1 == blocks && t.thread_rank() as usize == THREADS - 1
    }
}
