//! A sort of few elements: one block, in shared memory.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::prelude::*;

    use super::super::digits::kernels::{
        Bits, DIGIT, DIGITS, Digit, Flips, THREADS, digit_of, each, ordered, restored,
    };
    use super::super::ranking::kernels::{begin, count, of_warp, place, zeroed};

    /// The most elements of a thread.
    const ROWS: usize = 12;
    /// The most elements.
    pub const FEW: usize = THREADS * ROWS;

    /// y <- the elements of `x` in the order of the bits from `first` to `end`, and origins[i] <- where y[i] was; equal ones stay
    /// in order.
    #[inline(always)]
    #[kernel(
        block = THREADS,
        same_shape(x, y),
        K = [u8, u16, u32, u64],
        native = super::super::native::sort_few
    )]
    pub fn sort_few<K: Bits>(
        t: Thread<1>,
        flips: Flips<K>,
        first: u32,
        end: u32,
        x: &[K],
        y: &[DeviceAtomic<K>],
        origins: &[DeviceAtomic<u32>],
        counts: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        lanes: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
        mut scan: Shared<Scratch<u32>>,
        tile: Shared<[DeviceAtomic<K, atomic::Block>; 3072]>,
        numbers: Shared<[DeviceAtomic<u32, atomic::Block>; 3072]>,
    ) {
        // A warp has neighbouring rows, as many as are needed.
        let rows = x.len().div_ceil(THREADS).min(ROWS);
        let has_origins = !origins.is_empty();
        let (thread, lane) = (t.thread_rank() as usize % THREADS, t.thread_rank() as usize % 32);
        let own_place = |row: usize| (thread / 32 * rows + row) * 32 + lane;
        // What is beyond the end comes last, and stays there.
        let after_all = restored(K::ONES, flips);
        let mut keys: [K; ROWS] =
            each(|row| ordered(x.get(own_place(row)).copied().unwrap_or(after_all), flips));
        let mut from: [u32; ROWS] = each(|row| own_place(row) as u32);
        let (counts, lanes) = zeroed(&t, counts, lanes);
        let (tile, numbers) = t.publish((tile, numbers));
        let (warp, own) = (t.warp(), of_warp(&t, &counts, &lanes));
        let mut bit = first;
        while bit < end {
            let digit = Digit { first: bit, mask: (1 << (end - bit).min(DIGIT)) - 1 };
            each::<(), ROWS>(|row| {
                if row < rows {
                    own.counts[digit_of(keys[row], digit)].fetch_add(1, Relaxed);
                }
            });
            t.sync_threads();
            let before = t.block_exclusive_scan(&mut scan, count(&t, &counts), 0, |a, b| a + b);
            begin(&t, &counts, before);
            t.sync_threads();
            each::<(), ROWS>(|row| {
                if row < rows {
                    let place = place(&warp, own, row, digit_of(keys[row], digit)) as usize % FEW;
                    tile[place].store(keys[row], Relaxed);
                    if has_origins {
                        numbers[place].store(from[row], Relaxed);
                    }
                }
            });
            t.sync_threads();
            each::<(), ROWS>(|row| {
                let place = own_place(row) % FEW;
                if row < rows {
                    keys[row] = tile[place].load(Relaxed);
                    if has_origins {
                        from[row] = numbers[place].load(Relaxed);
                    }
                }
            });
            for of_warp in counts.as_chunks::<DIGITS>().0 {
                of_warp[thread].store(0, Relaxed);
            }
            t.sync_threads();
            bit += DIGIT;
        }
        each::<(), ROWS>(|row| {
            if row < rows
                && let Some(y) = y.get(own_place(row))
            {
                y.store(restored(keys[row], flips), Relaxed);
                if let Some(origin) = origins.get(own_place(row)) {
                    origin.store(from[row], Relaxed);
                }
            }
        });
    }

    /// values_out[i] <- values[origins[i]]
    #[kernel(same_shape(origins, values, values_out), V = [u32, u64])]
    pub fn move_few<V: Bits>(t: Thread<1>, origins: &[u32], values: &[V], mut values_out: DisjointSlice<V>) {
        let i = t.index();
        if let Some(out) = values_out.get_mut(i) {
            *out = values[origins[i.get()] as usize];
        }
    }
}
