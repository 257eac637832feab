//! A pass of a radix sort: moves the elements to the order of one digit, in one pass over memory (onesweep).

/// The kernels.
///
/// A block ranks its tile: a warp finds the equal digits of a row, and counts them in shared memory. Thread `d` publishes the
/// count of digit `d`, and looks back for those of earlier blocks. The elements go through shared memory, so that those with
/// one digit are stored side by side.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::prelude::*;

    use super::super::digits::kernels::{
        Bits, DIGIT, DIGITS, Digit, Flips, GROUP, ROWS, Rows, THREADS, TILE, digit_of, each, each_group, last,
    };

    /// The warps of a block.
    pub const WARPS: usize = THREADS / 32;
    /// The elements of a warp.
    pub const RUN: usize = 32 * ROWS;

    /// Counts of each warp and digit.
    type Counts = [DeviceAtomic<u32, atomic::Block>; 2048];

    /// The thread's elements of its warp's run, one of each row of 32; `none` beyond the end.
    #[inline(always)]
    fn load<T: Copy>(t: &Thread<'_, 1>, x: &[T], none: T) -> Rows<T> {
        let (warp, lane) = (t.thread_rank() as usize / 32, t.thread_rank() as usize % 32);
        let first = t.block_idx()[0] as usize * TILE + warp * RUN;
        match x.get(first..).and_then(|rest| rest.first_chunk::<RUN>()) {
            Some(run) => each(|row| run[row * 32 + lane]),
            None => each(|row| x.get(first + row * 32 + lane).copied().unwrap_or(none)),
        }
    }

    /// How many items of the warp before each one of a group have its digit, and in the low 8 bits the digit. `counts` has how
    /// many items of the warp had each digit before; those of the group are added.
    #[inline(always)]
    fn rank_in_warp(
        warp: &Warp,
        counts: &[DeviceAtomic<u32, atomic::Block>; DIGITS],
        digits: [u32; GROUP],
    ) -> [u32; GROUP] {
        let equal = digits.map(|digit| warp.match_any(digit));
        let lower = (1_u32 << warp.lane()) - 1;
        let mut before = digits;
        for k in 0..GROUP {
            if equal[k] & lower == 0 {
                let count = counts[digits[k] as usize % DIGITS].fetch_add(equal[k].count_ones(), Relaxed);
                before[k] |= count << DIGIT;
            }
            // An earlier item of another lane counts first.
            warp.sync();
        }
        core::array::from_fn(|k| {
            warp.shuffle(before[k], equal[k].trailing_zeros()) + ((equal[k] & lower).count_ones() << DIGIT)
        })
    }

    /// The position of each item in the tile, in the order of digits. `offsets[d]` becomes what takes a position of digit `d` to
    /// its place in the output, where the digit begins at `starts[d]`.
    #[inline(always)]
    fn rank<const COUNTS: usize, const OFFSETS: usize, const SCAN: usize>(
        t: &Thread<'_, 1>,
        digit: impl Fn(usize) -> u32,
        starts: &[u32],
        order: BlockOrder<EachThread<u32, THREADS>>,
        mut counts: Shared<'_, Counts, COUNTS>,
        offsets: &mut Shared<'_, [u32; DIGITS], OFFSETS>,
        scan: &mut Shared<'_, Scratch<u32>, SCAN>,
    ) -> Rows<u32> {
        counts.fill_with(t, |_| DeviceAtomic::new(0));
        let counts = t.publish(counts);
        let (of_warps, _) = counts.as_chunks::<DIGITS>();
        let thread = t.thread_rank() as usize % THREADS;
        let own = &of_warps[thread / 32];
        // A rank and its digit are one number, which needs half of the registers.
        let ranks = each_group(|group| {
            let first = group * GROUP;
            let digits = [digit(first), digit(first + 1), digit(first + 2), digit(first + 3)];
            rank_in_warp(&t.warp(), own, digits)
        });
        t.sync_threads();
        // From here on the thread is that of a digit.
        let (mut before_warp, mut count) = ([0; WARPS], 0_u32);
        for number in 0..WARPS {
            before_warp[number] = count;
            count += of_warps[number][thread].load(Relaxed);
        }
        let earlier = order.publish_each(t, count);
        let first = t.block_exclusive_scan(scan, count, 0, |a, b| a + b);
        for number in 0..WARPS {
            of_warps[number][thread].store(first + before_warp[number], Relaxed);
        }
        let before = earlier.exclusive_each(t, count, u32::wrapping_add).unwrap_or(0);
        let start = starts.get(thread).copied().unwrap_or(0);
        let offset = start.wrapping_add(before).wrapping_sub(first);
        offsets.fill_with(t, |_| offset);
        t.sync_threads();
        each(|row| {
            let rank = *item(&ranks, row);
            (rank >> DIGIT) + own[rank as usize % DIGITS].load(Relaxed)
        })
    }

    /// The items that come first, second and so on, with neighbours in neighbouring threads.
    #[inline(always)]
    fn scatter<T: Bits>(
        t: &Thread<'_, 1>,
        tile: &[DeviceAtomic<T, atomic::Block>; TILE],
        ranks: Rows<u32>,
        value: impl Fn(usize) -> T,
    ) -> Rows<T> {
        each(|row| {
            if let Some(place) = tile.get(*item(&ranks, row) as usize) {
                place.store(value(row), Relaxed);
            }
        });
        t.sync_threads();
        let thread = t.thread_rank() as usize % THREADS;
        each(|k| tile[k * THREADS + thread].load(Relaxed))
    }

    /// Item number `k`.
    #[inline(always)]
    fn item<T>(items: &Rows<T>, k: usize) -> &T {
        &items[k / GROUP][k % GROUP]
    }

    /// Calls `store` with the number of each item of the sorted tile, and its place in the output.
    #[inline(always)]
    fn places<K: Bits>(
        t: &Thread<'_, 1>,
        (keys, flips, digit): (&Rows<K>, Flips<K>, Digit),
        offsets: &[u32; DIGITS],
        len: usize,
        store: impl Fn(usize, usize),
    ) {
        let thread = t.thread_rank() as usize % THREADS;
        // What is beyond the end is last.
        let len = len - t.block_idx()[0] as usize * TILE;
        each(|k| {
            let position = k * THREADS + thread;
            if position < len {
                let offset = offsets[digit_of(*item(keys, k), flips, digit) as usize];
                store(k, offset.wrapping_add(position as u32) as usize);
            }
        });
    }

    /// out[i] <- the elements of `x` in the order of one digit; equal digits stay in order.
    #[kernel(block = THREADS, min_blocks = 4, same_shape(x, out), K = [u8, u16, u32, u64], native = super::super::native::move_keys)]
    pub fn move_keys<K: Bits>(
        t: Thread<1>,
        flips: Flips<K>,
        digit: Digit,
        starts: &[u32],
        x: &[K],
        out: &[DeviceAtomic<K>],
        order: BlockOrder<EachThread<u32, 256>>,
        counts: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        mut offsets: Shared<[u32; 256]>,
        mut scan: Shared<Scratch<u32>>,
        tile: Shared<[DeviceAtomic<K, atomic::Block>; 4096]>,
    ) {
        let items = load(&t, x, last(flips));
        let digits = |row| digit_of(*item(&items, row), flips, digit);
        let ranks = rank(&t, digits, starts, order, counts, &mut offsets, &mut scan);
        let tile = t.publish(tile);
        let items = scatter(&t, &tile, ranks, |row| *item(&items, row));
        let offsets = t.publish(offsets);
        places(&t, (&items, flips, digit), &offsets, x.len(), |k, place| {
            if let Some(out) = out.get(place) {
                out.store(*item(&items, k), Relaxed);
            }
        });
    }

    /// As [`move_keys`], of keys and the values that belong to them.
    #[kernel(
        block = THREADS,
        min_blocks = 3,
        same_shape(x, values, out, values_out),
        K = [u8, u16, u32, u64],
        V = [u32, u64],
        native = super::super::native::pairs
    )]
    pub fn pairs<K: Bits, V: Bits>(
        t: Thread<1>,
        flips: Flips<K>,
        digit: Digit,
        starts: &[u32],
        x: &[K],
        values: &[V],
        out: &[DeviceAtomic<K>],
        values_out: &[DeviceAtomic<V>],
        order: BlockOrder<EachThread<u32, 256>>,
        counts: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        mut offsets: Shared<[u32; 256]>,
        mut scan: Shared<Scratch<u32>>,
        tile: Shared<[DeviceAtomic<u64, atomic::Block>; 4096]>,
    ) {
        let items = load(&t, x, last(flips));
        let digits = |row| digit_of(*item(&items, row), flips, digit);
        let ranks = rank(&t, digits, starts, order, counts, &mut offsets, &mut scan);
        let values = load(&t, values, V::narrow(0));
        let tile = t.publish(tile);
        let (key, value) = (|row| item(&items, row).widen(), |row| item(&values, row).widen());
        let (items, values): (Rows<K>, Rows<V>) = if size_of::<K>() + size_of::<V>() <= 8 {
            // Both at once.
            let both = scatter(&t, &tile, ranks, |row| key(row) << 32 | value(row));
            (each(|k| K::narrow(item(&both, k) >> 32)), each(|k| V::narrow(*item(&both, k))))
        } else {
            let items = scatter(&t, &tile, ranks, key);
            t.sync_threads();
            let values = scatter(&t, &tile, ranks, value);
            (each(|k| K::narrow(*item(&items, k))), each(|k| V::narrow(*item(&values, k))))
        };
        let offsets = t.publish(offsets);
        places(&t, (&items, flips, digit), &offsets, x.len(), |k, place| {
            if let (Some(out), Some(value_out)) = (out.get(place), values_out.get(place)) {
                out.store(*item(&items, k), Relaxed);
                value_out.store(*item(&values, k), Relaxed);
            }
        });
    }
}
