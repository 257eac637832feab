//! Kernels with exchanges and sorts of blocks and warps, all without `unsafe`.

/// A thread's items are one element of a slice.
#[ferrogrid::module]
pub mod sorting {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::sort::RadixKey;
    use ferrogrid::device::warp::Exchange;

    #[kernel(max_threads = 1024, B = [32, 96, 128, 256, 1024], N = [1, 4, 8])]
    pub fn keys<const B: usize, const N: usize>(
        t: Thread<1>,
        x: &[[u32; N]],
        mut y: DisjointSlice<[u32; N]>,
        mut scratch: Shared<SortScratch<u32, B, N>>,
    ) {
        let sorted = t.block_radix_sort(&mut scratch, x[t.index().get()], sort::Ascending);
        if let Some(y) = y.get_mut(t.index()) {
            *y = sorted;
        }
    }

    #[kernel(K = [u8, u16, u64, i8, i16, i32, i64, f32, f64])]
    pub fn both_ways<K: RadixKey + DeviceCopy>(
        t: Thread<1>,
        descending: bool,
        x: &[[K; 5]],
        mut y: DisjointSlice<[K; 5]>,
        mut scratch: Shared<SortScratch<K, 64, 5>>,
    ) {
        let mut sorted = x[t.index().get()];
        if descending {
            sorted = t.block_radix_sort(&mut scratch, sorted, sort::Descending);
        } else {
            sorted = t.block_radix_sort(&mut scratch, sorted, sort::Ascending);
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = sorted;
        }
    }

    #[kernel(K = [u8, f64], V = [u32, u128], N = [2, 17])]
    pub fn pairs<K: RadixKey + DeviceCopy, V: SharedElement + DeviceCopy, const N: usize>(
        t: Thread<1>,
        x: &[[K; N]],
        v: &[[V; N]],
        mut y: DisjointSlice<[K; N]>,
        mut w: DisjointSlice<[V; N]>,
        mut scratch: Shared<SortScratch<K, 128, N, V>>,
    ) {
        let i = t.index().get();
        let (keys, values) = t.block_radix_sort_pairs(&mut scratch, x[i], v[i], sort::Descending);
        if let (Some(y), Some(w)) = (y.get_mut(t.index()), w.get_mut(t.index())) {
            (*y, *w) = (keys, values);
        }
    }

    /// By bits 4 to 14 alone, up and down, one behind the other.
    #[kernel]
    pub fn by_some_bits(
        t: Thread<1>,
        x: &[[u32; 3]],
        mut y: DisjointSlice<[u32; 6]>,
        mut scratch: Shared<SortScratch<u32, 96, 3>>,
    ) {
        let own = x[t.index().get()];
        let [a, b, c] = t.block_radix_sort(&mut scratch, own, sort::Ascending.of_bits::<4, 15>());
        let [d, e, f] = t.block_radix_sort(&mut scratch, own, sort::Descending.of_bits::<4, 15>());
        if let Some(y) = y.get_mut(t.index()) {
            *y = [a, b, c, d, e, f];
        }
    }

    /// Rows of 1024, in place, with the number of the place that each came from.
    #[kernel(block = 128)]
    pub fn rows(
        t: Thread<1>,
        mut x: DisjointRows<f32>,
        mut from: DisjointRows<u32>,
        mut scratch: Shared<SortScratch<f32, 128, 8, u32>>,
        mut exchange: Shared<ExchangeScratch<f32, 128, 8>>,
    ) {
        let (mut keys, mut places) = ([0.0; 8], [0; 8]);
        for (k, (column, value)) in x.iter_mut(&t).enumerate() {
            if k < 8 {
                (keys[k], places[k]) = (*value, 8 * (column as u32 % 128) + column as u32 / 128);
            }
        }
        // Equal keys stay in the order of columns only if a thread has neighbours.
        let keys = t.block_striped_to_blocked(&mut exchange, keys);
        let numbers = core::array::from_fn(|k| 8 * t.thread_rank() + k as u32);
        let (keys, places) =
            t.block_radix_sort_pairs_to_striped(&mut scratch, keys, numbers, sort::Ascending);
        for ((_, value), key) in x.iter_mut(&t).zip(keys) {
            *value = key;
        }
        for ((_, from), place) in from.iter_mut(&t).zip(places) {
            *from = place;
        }
    }

    /// Striped, blocked again, and where ranks say, in both arrangements.
    #[kernel(T = [u8, u32, u128], N = [1, 3, 8])]
    pub fn exchanges<T: SharedElement + DeviceCopy, const N: usize>(
        t: Thread<1>,
        x: &[[T; N]],
        ranks: &[[u32; N]],
        mut y: DisjointSlice<[[T; N]; 4]>,
        mut scratch: Shared<ExchangeScratch<T, 96, N>>,
    ) {
        let i = t.index().get();
        let striped = t.block_blocked_to_striped(&mut scratch, x[i]);
        let blocked = t.block_striped_to_blocked(&mut scratch, striped);
        let there = t.block_scatter_to_blocked(&mut scratch, x[i], ranks[i]);
        let there_striped = t.block_scatter_to_striped(&mut scratch, x[i], ranks[i]);
        if let Some(y) = y.get_mut(t.index()) {
            *y = [striped, blocked, there, there_striped];
        }
    }

    #[kernel(M = [4, 32], N = [1, 4, 16])]
    pub fn warps<const M: usize, const N: usize>(
        t: Thread<1>,
        x: &[[f32; N]],
        mut y: DisjointSlice<[f32; N]>,
    ) {
        let sorted = t.warp().tile::<M>().bitonic_sort(x[t.index().get()], |a, b| a.total_cmp(&b).is_lt());
        if let Some(y) = y.get_mut(t.index()) {
            *y = sorted;
        }
    }

    #[kernel(T = [u8, [u32; 3]], M = [8, 32], N = [1, 2, 8])]
    pub fn warp_exchanges<T: Exchange + DeviceCopy, const M: usize, const N: usize>(
        t: Thread<1>,
        x: &[[T; N]],
        mut y: DisjointSlice<[[T; N]; 2]>,
    ) {
        let tile = t.warp().tile::<M>();
        let striped = tile.blocked_to_striped(x[t.index().get()]);
        if let Some(y) = y.get_mut(t.index()) {
            *y = [striped, tile.striped_to_blocked(striped)];
        }
    }
}
