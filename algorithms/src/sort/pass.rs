//! A pass of a radix sort: moves the elements to the order of one digit, in one pass over memory (onesweep).

/// The kernels.
///
/// `x` is a portion of the keys, whose digits 32 bits count; `starts` and `out` are of any length. The last block writes where the
/// digits of the next portion begin.
///
/// A block counts the digits of its tile. Thread `d` publishes the count of digit `d`, and looks back for those of earlier blocks
/// after the items have gone to their places in shared memory. From there those with one digit are stored side by side.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::EarlierBlocks;
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::Published;

    use super::super::digits::kernels::{
        Bits, DIGITS, Digit, Flips, THREADS, digit_of, each, ordered, restored,
    };
    use super::super::ranking::kernels::{OfWarps, begin, count, of_warp, place, zeroed};

    /// The thread's elements of its warp's run, one of each row of 32; `none` beyond the end.
    #[inline(always)]
    fn load<T: Copy, const N: usize>(t: &Thread<'_, 1>, x: &[T], none: T) -> [T; N] {
        let (warp, lane) = (t.thread_rank() as usize / 32, t.thread_rank() as usize % 32);
        let first = t.block_idx()[0] as usize * THREADS * N + warp * 32 * N;
        let run = x.get(first..).unwrap_or(&[]);
        match run.as_chunks::<32>().0.first_chunk::<N>() {
            Some(rows) => each(|row| rows[row][lane]),
            None => each(|row| run.get(row * 32 + lane).copied().unwrap_or(none)),
        }
    }

    /// The thread's ordered keys. What is beyond the end has the greatest digit, and goes beyond the end of the output.
    #[inline(always)]
    fn load_keys<K: Bits, const N: usize>(t: &Thread<'_, 1>, x: &[K], flips: Flips<K>) -> [K; N] {
        let keys: [K; N] = load(t, x, restored(K::ONES, flips));
        each(|row| ordered(keys[row], flips))
    }

    /// Where each digit begins, of these keys and of those after them.
    type Starts<'a> = (&'a [u64], &'a [DeviceAtomic<u64>]);

    /// A tile whose digits are counted and published, while its items wait for those of earlier blocks.
    struct Counted<'a> {
        earlier: EarlierBlocks<'a, EachThread<u32, THREADS>>,
        /// How many items have the digit of this thread, and the position of the first.
        count: u32,
        first: u32,
    }

    /// Counts and publishes, and calls `put` with the number of each item and its position in the tile, in the order of digits.
    #[inline(always)]
    fn place_tile<'a, K: Bits, const N: usize, const S: usize>(
        t: &Thread<'_, 1>,
        (keys, digit): (&[K; N], Digit),
        order: BlockOrder<'a, EachThread<u32, THREADS>>,
        (counts, lanes): (&OfWarps, &OfWarps),
        scan: &mut Shared<'_, Scratch<u32>, S>,
        mut put: impl FnMut(usize, u32),
    ) -> Counted<'a> {
        let own = of_warp(t, counts, lanes);
        each::<u32, N>(|row| own.counts[digit_of(keys[row], digit)].fetch_add(1, Relaxed));
        t.sync_threads();
        let count = count(t, counts);
        let earlier = order.publish_each(t, count);
        let first = t.block_exclusive_scan(scan, count, 0, |a, b| a + b);
        begin(t, counts, first);
        t.sync_threads();
        let warp = t.warp();
        each::<(), N>(|row| put(row, place(&warp, own, row, digit_of(keys[row], digit))));
        Counted { earlier, count, first }
    }

    /// What takes a position of each digit to its place in the output, where digit `d` begins at `starts[d]`. The last block
    /// writes to `next` where the digits of later keys begin.
    #[inline(always)]
    fn offsets<'b, const O: usize>(
        t: &Thread<'b, 1>,
        counted: Counted<'_>,
        (starts, next): Starts,
        mut offsets: Shared<'b, [u64; DIGITS], O>,
    ) -> Published<'b, [u64; DIGITS], O> {
        let (rank, [block], [blocks]) = (t.thread_rank() as usize, t.block_idx(), t.grid_dim());
        let before = counted.earlier.exclusive_each(t, counted.count, u32::wrapping_add).unwrap_or(0);
        let start = starts.get(rank).copied().unwrap_or(0) + before.widen();
        if block + 1 == blocks
            && let Some(next) = next.get(rank)
        {
            next.store(start + counted.count.widen(), Relaxed);
        }
        let offset = start.wrapping_sub(counted.first.widen());
        offsets.fill_with(t, |_| offset);
        t.publish(offsets)
    }

    /// The place in the output of the item with this digit at this position of the sorted tile.
    #[inline(always)]
    fn place_of(digit: usize, position: usize, offsets: &[u64; DIGITS]) -> usize {
        offsets[digit % DIGITS].wrapping_add(position as u64) as usize
    }

    #[inline(always)]
    fn put<T: Bits>(tile: &[DeviceAtomic<T, atomic::Block>], position: u32, item: T) {
        if let Some(place) = tile.get(position as usize) {
            place.store(item, Relaxed);
        }
    }

    /// Moves the keys of a tile of `N` rows.
    #[inline(always)]
    fn move_tile<K: Bits, const N: usize, const C: usize, const L: usize, const O: usize, const S: usize>(
        t: &Thread<'_, 1>,
        (flips, digit, starts): (Flips<K>, Digit, Starts),
        (x, out): (&[K], &[DeviceAtomic<K>]),
        order: BlockOrder<EachThread<u32, THREADS>>,
        (counts, lanes): (Shared<'_, OfWarps, C>, Shared<'_, OfWarps, L>),
        (own_offsets, mut scan): (Shared<'_, [u64; DIGITS], O>, Shared<'_, Scratch<u32>, S>),
        tile: &[DeviceAtomic<K, atomic::Block>],
    ) {
        let keys: [K; N] = load_keys(t, x, flips);
        let (counts, lanes) = zeroed(t, counts, lanes);
        let put_key = |row: usize, position| put(tile, position, keys[row]);
        let counted = place_tile(t, (&keys, digit), order, (&counts, &lanes), &mut scan, put_key);
        let offsets = offsets(t, counted, starts, own_offsets);
        each::<(), N>(|k| {
            let position = k * THREADS + t.thread_rank() as usize % THREADS;
            let key = tile[position].load(Relaxed);
            if let Some(out) = out.get(place_of(digit_of(key, digit), position, &offsets)) {
                out.store(restored(key, flips), Relaxed);
            }
        });
    }

    /// out[i] <- the elements of `x` in the order of one digit; equal digits stay in order.
    #[inline(always)]
    #[kernel(
        block = THREADS,
        min_blocks = 3,
        wide,
        K = [u8, u16, u32],
        N = [8, 32],
        native = super::super::native::move_keys
    )]
    pub fn move_keys<K: Bits, const N: usize>(
        t: Thread<1>,
        flips: Flips<K>,
        digit: Digit,
        starts: &[u64],
        next: &[DeviceAtomic<u64>],
        x: &[K],
        out: &[DeviceAtomic<K>],
        order: BlockOrder<EachThread<u32, 256>>,
        counts: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        lanes: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        offsets: Shared<[u64; 256]>,
        scan: Shared<Scratch<u32>>,
        tile: Shared<[DeviceAtomic<K, atomic::Block>; 8192]>,
    ) {
        let (tile, words, sums) = (t.publish(tile), (counts, lanes), (offsets, scan));
        move_tile::<K, N, _, _, _, _>(
            &t,
            (flips, digit, (starts, next)),
            (x, out),
            order,
            words,
            sums,
            &*tile,
        );
    }

    /// As [`move_keys`], of keys of 8 bytes.
    #[inline(always)]
    #[kernel(
        block = THREADS,
        min_blocks = 3,
        wide,
        K = [u64],
        N = [8, 20],
        native = super::super::native::move_keys
    )]
    pub fn move_long_keys<K: Bits, const N: usize>(
        t: Thread<1>,
        flips: Flips<K>,
        digit: Digit,
        starts: &[u64],
        next: &[DeviceAtomic<u64>],
        x: &[K],
        out: &[DeviceAtomic<K>],
        order: BlockOrder<EachThread<u32, 256>>,
        counts: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        lanes: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        offsets: Shared<[u64; 256]>,
        scan: Shared<Scratch<u32>>,
        tile: Shared<[DeviceAtomic<K, atomic::Block>; 5120]>,
    ) {
        let (tile, words, sums) = (t.publish(tile), (counts, lanes), (offsets, scan));
        move_tile::<K, N, _, _, _, _>(
            &t,
            (flips, digit, (starts, next)),
            (x, out),
            order,
            words,
            sums,
            &*tile,
        );
    }

    /// An item of a tile of keys and values, which has words for either.
    #[inline(always)]
    fn word<T: Bits, W: Bits>(item: T) -> W {
        W::narrow(item.widen())
    }

    /// Keys and values.
    type Inputs<'a, K, V> = (&'a [K], &'a [V]);
    /// Where they go.
    type Outputs<'a, K, V> = (&'a [DeviceAtomic<K>], &'a [DeviceAtomic<V>]);

    /// Moves the keys of a tile of `N` rows, and then, by the same shared memory, the values that belong to them.
    #[inline(always)]
    fn move_pairs_of_tile<
        K: Bits,
        V: Bits,
        W: Bits,
        const N: usize,
        const C: usize,
        const L: usize,
        const O: usize,
        const S: usize,
    >(
        t: &Thread<'_, 1>,
        (flips, digit, starts): (Flips<K>, Digit, Starts),
        (from, to): (Inputs<K, V>, Outputs<K, V>),
        order: BlockOrder<EachThread<u32, THREADS>>,
        (counts, lanes): (Shared<'_, OfWarps, C>, Shared<'_, OfWarps, L>),
        (own_offsets, mut scan): (Shared<'_, [u64; DIGITS], O>, Shared<'_, Scratch<u32>, S>),
        tile: &[DeviceAtomic<W, atomic::Block>],
    ) {
        let keys: [K; N] = load_keys(t, from.0, flips);
        let (counts, lanes) = zeroed(t, counts, lanes);
        let mut positions = [0; N];
        let put_key = |row: usize, position| {
            put(tile, position, word(keys[row]));
            positions[row] = position;
        };
        let counted = place_tile(t, (&keys, digit), order, (&counts, &lanes), &mut scan, put_key);
        // They come while the block waits for earlier ones.
        let values: [V; N] = load(t, from.1, V::narrow(0));
        let offsets = offsets(t, counted, starts, own_offsets);
        let sorted = (&positions, &values, tile);
        // Places of 32 bits exceed the output by up to a tile.
        if to.0.len() <= 1 << 31 {
            store_pairs::<K, V, W, N, false>(t, (flips, digit), sorted, &offsets, to);
        } else {
            store_pairs::<K, V, W, N, true>(t, (flips, digit), sorted, &offsets, to);
        }
    }

    /// Stores the sorted keys of a tile, and then, by the same shared memory, the values, whose positions are given.
    #[inline(always)]
    fn store_pairs<K: Bits, V: Bits, W: Bits, const N: usize, const IS_WIDE: bool>(
        t: &Thread<'_, 1>,
        (flips, digit): (Flips<K>, Digit),
        (positions, values, tile): (&[u32; N], &[V; N], &[DeviceAtomic<W, atomic::Block>]),
        offsets: &[u64; DIGITS],
        (keys_out, values_out): Outputs<K, V>,
    ) {
        let position_of = |k: usize| k * THREADS + t.thread_rank() as usize % THREADS;
        // Places, or digits, as places of 64 bits would take twice as many registers.
        let marks: [u32; N] = each(|k| {
            let key = word(tile[position_of(k)].load(Relaxed));
            let place = place_of(digit_of(key, digit), position_of(k), offsets);
            if let Some(out) = keys_out.get(place) {
                out.store(restored(key, flips), Relaxed);
            }
            if IS_WIDE { digit_of(key, digit) as u32 } else { place as u32 }
        });
        t.sync_threads();
        each::<(), N>(|row| put(tile, positions[row], word(values[row])));
        t.sync_threads();
        each::<(), N>(|k| {
            let mark = marks[k] as usize;
            if let Some(out) =
                values_out.get(if IS_WIDE { place_of(mark, position_of(k), offsets) } else { mark })
            {
                out.store(word(tile[position_of(k)].load(Relaxed)), Relaxed);
            }
        });
    }

    /// As [`move_keys`], of keys and the values that belong to them.
    #[inline(always)]
    #[kernel(
        block = THREADS,
        min_blocks = 2,
        wide,
        same_shape(x, values),
        K = [u8, u16, u32],
        V = [u32],
        N = [8, 28],
        native = super::super::native::move_pairs
    )]
    pub fn move_pairs<K: Bits, V: Bits, const N: usize>(
        t: Thread<1>,
        flips: Flips<K>,
        digit: Digit,
        starts: &[u64],
        next: &[DeviceAtomic<u64>],
        x: &[K],
        values: &[V],
        out: &[DeviceAtomic<K>],
        values_out: &[DeviceAtomic<V>],
        order: BlockOrder<EachThread<u32, 256>>,
        counts: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        lanes: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        offsets: Shared<[u64; 256]>,
        scan: Shared<Scratch<u32>>,
        tile: Shared<[DeviceAtomic<u32, atomic::Block>; 7168]>,
    ) {
        let (tile, words, sums) = (t.publish(tile), (counts, lanes), (offsets, scan));
        move_pairs_of_tile::<K, V, u32, N, _, _, _, _>(
            &t,
            (flips, digit, (starts, next)),
            ((x, values), (out, values_out)),
            order,
            words,
            sums,
            &*tile,
        );
    }

    /// As [`move_pairs`], with values of 8 bytes.
    #[inline(always)]
    #[kernel(
        block = THREADS,
        min_blocks = 2,
        wide,
        same_shape(x, values),
        K = [u8, u16, u32],
        V = [u64],
        N = [20],
        native = super::super::native::move_pairs
    )]
    pub fn move_long_values<K: Bits, V: Bits, const N: usize>(
        t: Thread<1>,
        flips: Flips<K>,
        digit: Digit,
        starts: &[u64],
        next: &[DeviceAtomic<u64>],
        x: &[K],
        values: &[V],
        out: &[DeviceAtomic<K>],
        values_out: &[DeviceAtomic<V>],
        order: BlockOrder<EachThread<u32, 256>>,
        counts: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        lanes: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        offsets: Shared<[u64; 256]>,
        scan: Shared<Scratch<u32>>,
        tile: Shared<[DeviceAtomic<u64, atomic::Block>; 5120]>,
    ) {
        let (tile, words, sums) = (t.publish(tile), (counts, lanes), (offsets, scan));
        move_pairs_of_tile::<K, V, u64, N, _, _, _, _>(
            &t,
            (flips, digit, (starts, next)),
            ((x, values), (out, values_out)),
            order,
            words,
            sums,
            &*tile,
        );
    }

    /// As [`move_pairs`], with keys of 8 bytes.
    #[inline(always)]
    #[kernel(
        block = THREADS,
        min_blocks = 2,
        wide,
        same_shape(x, values),
        K = [u64],
        V = [u32, u64],
        N = [20],
        native = super::super::native::move_pairs
    )]
    pub fn move_long_pairs<K: Bits, V: Bits, const N: usize>(
        t: Thread<1>,
        flips: Flips<K>,
        digit: Digit,
        starts: &[u64],
        next: &[DeviceAtomic<u64>],
        x: &[K],
        values: &[V],
        out: &[DeviceAtomic<K>],
        values_out: &[DeviceAtomic<V>],
        order: BlockOrder<EachThread<u32, 256>>,
        counts: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        lanes: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        offsets: Shared<[u64; 256]>,
        scan: Shared<Scratch<u32>>,
        tile: Shared<[DeviceAtomic<u64, atomic::Block>; 5120]>,
    ) {
        let (tile, words, sums) = (t.publish(tile), (counts, lanes), (offsets, scan));
        move_pairs_of_tile::<K, V, u64, N, _, _, _, _>(
            &t,
            (flips, digit, (starts, next)),
            ((x, values), (out, values_out)),
            order,
            words,
            sums,
            &*tile,
        );
    }
}
