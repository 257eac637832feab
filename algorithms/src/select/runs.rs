//! Kernels for runs of equal elements, in one pass over memory by decoupled look-back.

/// The kernels.
#[expect(
    clippy::needless_range_loop,
    reason = "LLVM unrolls a loop over indices and keeps items in registers, but not a loop over an array's iterator"
)]
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::scan::scan_rows;

    use super::super::placing::placing::{
        HALF, ROWS, RUN, THREADS, count, first, is_last, lanes_before, load, part, put, put_count, put_kept,
    };
    use crate::number::numbers::Element;
    use crate::scan::running::kernels::{self as scan, THREADS as SCAN_THREADS, WIDE_GROUP, WIDE_RUN};

    /// The warp's elements that differ from the one before them, a bit each.
    #[inline(always)]
    fn heads<T: Element>(t: &Thread<'_, 1>, x: &[T], items: &[T; ROWS]) -> [u32; ROWS] {
        let first = first(t);
        let before = x.get(first.wrapping_sub(1)).copied().unwrap_or(T::ZERO);
        let low = heads_of_half(t, x.len(), first, part(items, 0), before);
        let high = heads_of_half(t, x.len(), first + 32 * HALF, part(items, HALF), items[HALF - 1]);
        core::array::from_fn(|row| if row < HALF { low[row] } else { high[row - HALF] })
    }

    /// The element before these rows is `last` in the last lane.
    #[inline(always)]
    fn heads_of_half<T: Element>(
        t: &Thread<'_, 1>,
        len: usize,
        first: usize,
        items: [T; HALF],
        mut last: T,
    ) -> [u32; HALF] {
        let warp = t.warp();
        let mut heads = [0; HALF];
        for row in 0..HALF {
            // The last lane of a row has the element before the next row.
            let passed = if warp.lane() == 31 { last } else { items[row] };
            let before = warp.shuffle(passed, (warp.lane() + 31) % 32);
            let index = first + row * 32 + warp.lane() as usize;
            heads[row] = warp.ballot(index < len && (index == 0 || !items[row].is_same(before)));
            last = items[row];
        }
        heads
    }

    /// The index of the last of these lanes of a row; there is one.
    #[inline(always)]
    fn last_of(lanes: u32, first_of_row: u32) -> u32 {
        first_of_row + (31 - lanes.leading_zeros())
    }

    /// y[k] <- the first element of the k-th run of equal elements of x, for each k below results[0], the number of runs.
    #[kernel(block = THREADS, T = [u8, u16, u32, u64, f32, f64])]
    pub fn unique<T: Element + atomic::AtomicLoadStore>(
        t: Thread<1>,
        x: &[T],
        y: &[DeviceAtomic<T>],
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<u32>,
        scratch: Shared<Scratch<u32>>,
    ) {
        let (warp, items) = (t.warp(), load(&t, x, T::ZERO));
        let heads = heads(&t, x, &items);
        let start = order.exclusive_of_warps(&t, scratch, count(&heads), |a, b| a + b);
        let end = put_kept(&warp, y, &heads, &items, start.unwrap_or(0));
        put_count(&t, results, end);
    }

    /// The rows of which `encode` writes the runs at a time: a loop over more is not unrolled.
    const PART: usize = ROWS / 4;

    /// Writes the first elements of runs from `place` on, and the length of each run that such an element ends; `last` is
    /// where the run before begins. Returns both for what follows.
    #[inline(always)]
    fn put_runs<T: Element + atomic::AtomicLoadStore>(
        warp: &Warp,
        (values, lengths): (&[DeviceAtomic<T>], &[DeviceAtomic<u32>]),
        heads: [u32; PART],
        items: [T; PART],
        first: u32,
        (mut place, mut last): (u32, u32),
    ) -> (u32, u32) {
        for row in 0..PART {
            let first_of_row = first + row as u32 * 32;
            if heads[row] >> warp.lane() & 1 != 0 {
                let earlier = heads[row] & lanes_before(warp);
                let place = place + earlier.count_ones();
                put(values, place, items[row]);
                if place > 0 {
                    let begin = if earlier == 0 { last } else { last_of(earlier, first_of_row) };
                    put(lengths, place - 1, first_of_row + warp.lane() - begin);
                }
            }
            if heads[row] != 0 {
                last = last_of(heads[row], first_of_row);
            }
            place += heads[row].count_ones();
        }
        (place, last)
    }

    /// As `unique`; and lengths[k] <- the number of elements of the k-th run.
    #[kernel(block = THREADS, T = [u8, u16, u32, u64, f32, f64])]
    pub fn encode<T: Element + atomic::AtomicLoadStore>(
        t: Thread<1>,
        x: &[T],
        values: &[DeviceAtomic<T>],
        lengths: &[DeviceAtomic<u32>],
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<(u32, u32)>,
        scratch: Shared<Scratch<(u32, u32)>>,
    ) {
        let (warp, items, first) = (t.warp(), load(&t, x, T::ZERO), first(&t) as u32);
        let heads = heads(&t, x, &items);
        // The number of runs that begin in the warp's elements, and where the last of them begins.
        let mut last = 0;
        for row in 0..ROWS {
            if heads[row] != 0 {
                last = last_of(heads[row], first + row as u32 * 32);
            }
        }
        let combine = |a: (u32, u32), b: (u32, u32)| (a.0 + b.0, if b.0 == 0 { a.1 } else { b.1 });
        let start = order.exclusive_of_warps(&t, scratch, (count(&heads), last), combine);
        let start = start.unwrap_or((0, 0));
        let out = (values, lengths);
        let put_part = |row: usize, start| {
            put_runs(&warp, out, part(&heads, row), part(&items, row), first + 32 * row as u32, start)
        };
        let (place, last) = put_part(3 * PART, put_part(2 * PART, put_part(PART, put_part(0, start))));
        if is_last(&t) && place > 0 {
            put(lengths, place - 1, x.len() as u32 - last);
        }
        put_count(&t, results, place);
    }

    /// ends[i] <- lengths[0] + ... + lengths[i], and results[0] <- the last of them.
    #[kernel(block = SCAN_THREADS, same_shape(lengths, ends))]
    pub fn run_ends(
        t: Thread<1>,
        lengths: &[u32],
        mut ends: DisjointWarps<u64, WIDE_RUN, 32, WIDE_GROUP>,
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<u64>,
        scratch: Shared<Scratch<u64>>,
    ) {
        let lengths = scan::load::<u32, WIDE_GROUP, WIDE_RUN>(&t, lengths, ends.first(&t), 0);
        let rows = lengths.map(|group| group.map(u64::from));
        let sums = scan_rows(&t.warp(), rows, 0, |a, b| a + b);
        let start = order.exclusive_of_warps(&t, scratch, sums.total, |a, b| a + b).unwrap_or(0);
        ends.fill_grouped(&t, sums.inclusive(start, |a, b| a + b));
        if is_last(&t) {
            results[0].store(start + sums.total, Ordering::Relaxed);
        }
    }

    /// How many of the ends `from..to` are at most `index`, and `from`.
    #[inline(always)]
    fn run_of(ends: &[u64], mut from: usize, mut to: usize, index: usize) -> usize {
        while from < to {
            let middle = from + (to - from) / 2;
            if ends[middle] <= index as u64 {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    /// y[i] <- the value of the first run that ends after i, if there is one.
    #[kernel(block = THREADS, same_shape(values, ends), T = [u8, u16, u32, u64])]
    pub fn decode<T: DeviceCopy>(t: Thread<1>, values: &[T], ends: &[u64], mut y: DisjointWarps<T, RUN>) {
        let first = y.first(&t);
        let from = run_of(ends, 0, ends.len(), first);
        let to = run_of(ends, from, ends.len(), first + RUN);
        for (index, y) in y.iter_mut(&t) {
            if let Some(value) = values.get(run_of(ends, from, to, index)) {
                *y = *value;
            }
        }
    }
}
