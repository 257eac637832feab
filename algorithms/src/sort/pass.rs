//! A pass of a radix sort: moves the elements to the order of one digit, in one pass over memory (onesweep).

/// The kernels.
///
/// A block ranks its tile: a warp finds the equal digits of a row, and counts them in shared memory. Thread `d` publishes the
/// count of digit `d`, and looks back for those of earlier blocks. The elements go through shared memory, so that those with
/// one digit are stored side by side.
#[ferrogrid::module]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::prelude::*;

    use super::super::digits::kernels::{
        Bits, DIGITS, Digit, Flips, ROWS, THREADS, TILE, digit_of, each, last,
    };

    /// The warps of a block.
    pub const WARPS: usize = THREADS / 32;
    /// The elements of a warp.
    pub const RUN: usize = 32 * ROWS;

    /// Counts of each warp and digit.
    type Counts = [DeviceAtomic<u32, atomic::Block>; 2048];

    /// The thread's elements of its warp's run, one of each row of 32; `none` beyond the end.
    #[inline(always)]
    fn load<T: Copy>(t: &Thread<'_, 1>, x: &[T], none: T) -> [T; ROWS] {
        let (warp, lane) = (t.thread_rank() as usize / 32, t.thread_rank() as usize % 32);
        let first = t.block_idx()[0] as usize * TILE + warp * RUN;
        match x.get(first..).and_then(|rest| rest.first_chunk::<RUN>()) {
            Some(run) => core::array::from_fn(|row| run[row * 32 + lane]),
            None => core::array::from_fn(|row| x.get(first + row * 32 + lane).copied().unwrap_or(none)),
        }
    }

    /// The position of each item in the tile, in the order of digits. `offsets[d]` becomes what takes a position of digit `d` to
    /// its place in the output, where the digit begins at `starts[d]`.
    #[inline(always)]
    fn rank<const COUNTS: usize, const OFFSETS: usize, const SCAN: usize>(
        t: &Thread<'_, 1>,
        digits: [u32; ROWS],
        starts: &[u32],
        order: BlockOrder<EachThread<u32, THREADS>>,
        mut counts: Shared<'_, Counts, COUNTS>,
        offsets: &mut Shared<'_, [u32; DIGITS], OFFSETS>,
        scan: &mut Shared<'_, Scratch<u32>, SCAN>,
    ) -> [u32; ROWS] {
        counts.fill_with(t, |_| DeviceAtomic::new(0));
        let counts = t.publish(counts);
        let warp = t.warp();
        let thread = t.thread_rank() as usize % THREADS;
        let own = thread / 32 * DIGITS;
        let lower = (1_u32 << warp.lane()) - 1;
        let within = each(|row| {
            let digit = digits[row];
            let equal = warp.match_any(digit);
            let first = equal.trailing_zeros();
            let mut before = 0;
            if warp.lane() == first {
                before = counts[own + digit as usize % DIGITS].fetch_add(equal.count_ones(), Relaxed);
            }
            warp.shuffle(before, first) + (equal & lower).count_ones()
        });
        t.sync_threads();
        // From here on the thread is that of a digit.
        let (mut before_warp, mut count) = ([0; WARPS], 0_u32);
        for number in 0..WARPS {
            before_warp[number] = count;
            count += counts[number * DIGITS + thread].load(Relaxed);
        }
        let earlier = order.publish_each(t, count);
        let first = t.block_exclusive_scan(scan, count, 0, |a, b| a + b);
        for number in 0..WARPS {
            counts[number * DIGITS + thread].store(first + before_warp[number], Relaxed);
        }
        let before = earlier.exclusive_each(t, count, u32::wrapping_add).unwrap_or(0);
        let start = starts.get(thread).copied().unwrap_or(0);
        let offset = start.wrapping_add(before).wrapping_sub(first);
        offsets.fill_with(t, |_| offset);
        t.sync_threads();
        each(|row| within[row] + counts[own + digits[row] as usize % DIGITS].load(Relaxed))
    }

    /// The items that come first, second and so on, with neighbours in neighbouring threads.
    #[inline(always)]
    fn scatter<T: Bits>(
        t: &Thread<'_, 1>,
        tile: &[DeviceAtomic<T, atomic::Block>; TILE],
        ranks: [u32; ROWS],
        item: impl Fn(usize) -> T,
    ) -> [T; ROWS] {
        each(|row| tile[ranks[row] as usize % TILE].store(item(row), Relaxed));
        t.sync_threads();
        let thread = t.thread_rank() as usize % THREADS;
        each(|k| tile[k * THREADS + thread].load(Relaxed))
    }

    /// Calls `store` with the number of each item of the sorted tile, and its place in the output.
    #[inline(always)]
    fn places<K: Bits>(
        t: &Thread<'_, 1>,
        (keys, flips, digit): ([K; ROWS], Flips<K>, Digit),
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
                let offset = offsets[digit_of(keys[k], flips, digit) as usize];
                store(k, offset.wrapping_add(position as u32) as usize);
            }
        });
    }

    /// out[i] <- the elements of `x` in the order of one digit; equal digits stay in order.
    #[kernel(block = THREADS, same_shape(x, out), K = [u8, u16, u32, u64])]
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
        let digits = each(|row| digit_of(items[row], flips, digit));
        let ranks = rank(&t, digits, starts, order, counts, &mut offsets, &mut scan);
        let tile = t.publish(tile);
        let items = scatter(&t, &tile, ranks, |row| items[row]);
        let offsets = t.publish(offsets);
        places(&t, (items, flips, digit), &offsets, x.len(), |k, place| {
            if let Some(out) = out.get(place) {
                out.store(items[k], Relaxed);
            }
        });
    }

    /// As [`move_keys`], of keys and the values that belong to them.
    #[kernel(block = THREADS, same_shape(x, values, out, values_out), K = [u8, u16, u32, u64], V = [u32, u64])]
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
        let digits = each(|row| digit_of(items[row], flips, digit));
        let ranks = rank(&t, digits, starts, order, counts, &mut offsets, &mut scan);
        let values = load(&t, values, V::narrow(0));
        let tile = t.publish(tile);
        let (items, values): ([K; ROWS], [V; ROWS]) = if size_of::<K>() + size_of::<V>() <= 8 {
            // Both at once.
            let both = scatter(&t, &tile, ranks, |row| items[row].widen() << 32 | values[row].widen());
            (each(|k| K::narrow(both[k] >> 32)), each(|k| V::narrow(both[k])))
        } else {
            let items = scatter(&t, &tile, ranks, |row| items[row].widen());
            t.sync_threads();
            let values = scatter(&t, &tile, ranks, |row| values[row].widen());
            (each(|k| K::narrow(items[k])), each(|k| V::narrow(values[k])))
        };
        let offsets = t.publish(offsets);
        places(&t, (items, flips, digit), &offsets, x.len(), |k, place| {
            if let (Some(out), Some(value_out)) = (out.get(place), values_out.get(place)) {
                out.store(items[k], Relaxed);
                value_out.store(values[k], Relaxed);
            }
        });
    }
}
