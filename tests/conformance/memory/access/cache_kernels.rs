//! Kernels whose loads and stores have cache hints.

#[ferrogrid::module]
pub mod caching {
    use ferrogrid::device::prelude::*;

    /// The number of load and store operators.
    pub const LOADS: u32 = 7;
    pub const STORES: u32 = 7;

    #[inline(always)]
    fn load<T: DeviceCopy>(how: u32, place: &T) -> T {
        match how {
            0 => cache::ldca(place),
            1 => cache::ldcg(place),
            2 => cache::ldcs(place),
            3 => cache::ldlu(place),
            4 => cache::load_no_allocate(place),
            5 => cache::load_evict_first(place),
            _ => cache::load_evict_last(place),
        }
    }

    #[inline(always)]
    fn store<T: DeviceCopy>(how: u32, place: &mut T, value: T) {
        match how {
            0 => cache::stwb(place, value),
            1 => cache::stcg(place, value),
            2 => cache::stcs(place, value),
            3 => cache::stwt(place, value),
            4 => cache::store_no_allocate(place, value),
            5 => cache::store_evict_first(place, value),
            _ => cache::store_evict_last(place, value),
        }
    }

    /// y <- x backwards.
    #[kernel(T = [u8, i16, f32, f64, u128, Aligned16<[f32; 4]>])]
    pub fn reverse<T: DeviceCopy>(t: Thread<1>, loaded: u32, stored: u32, x: &[T], mut y: DisjointSlice<T>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            store(stored, y, load(loaded, &x[x.len() - 1 - i.get()]));
        }
    }

    /// y <- x backwards, with policies for L2.
    #[kernel(T = [u8, i16, f32, f64, u128, Aligned16<[f32; 4]>])]
    pub fn reverse_by_policy<T: DeviceCopy>(
        t: Thread<1>,
        fraction: f32,
        first: usize,
        x: &[T],
        mut y: DisjointSlice<T>,
    ) {
        use cache::{L2Policy, PrimaryPriority::*, SecondaryPriority::EvictUnchanged};
        let i = t.index();
        let kept = L2Policy::range(EvictLast, x, first, cache::SecondaryPriority::EvictFirst);
        let leaving = L2Policy::fractional(EvictFirst, fraction, EvictUnchanged);
        if let Some(y) = y.get_mut(i) {
            let nothing = L2Policy::range(EvictNormal, &x[..0], first, EvictUnchanged);
            let value = cache::load_cache_hint(&x[x.len() - 1 - i.get()], kept);
            cache::store_cache_hint(y, value, leaving);
            // The thread's own writes, and memory outside global memory.
            let mut own = [cache::load_cache_hint(y, nothing); 2];
            cache::store_cache_hint(&mut own[i.get() % 2], value, kept);
            *y = cache::load_cache_hint(&own[(i.get() + 1) % 2], leaving);
        }
    }

    /// Prefetches `ahead` elements ahead, possibly beyond the end, and copies.
    #[kernel]
    pub fn copy_ahead(t: Thread<1>, ahead: usize, x: &[u64], mut y: DisjointSlice<u64>) {
        for i in t.grid_stride(x.len()) {
            let next = i.get().saturating_add(ahead);
            cache::prefetch_l1(x, next);
            cache::prefetch_l2(x, next);
            if let Some(y) = y.get_mut(i) {
                *y = x[i.get()];
            }
        }
    }

    /// Memory that the thread itself wrote: an element of the output, a local array, and shared memory.
    #[kernel(block = 64)]
    pub fn own(t: Thread<1>, at: usize, mut y: DisjointSlice<[u32; 4]>, mut tile: Shared<[u32; 64]>) {
        let rank = t.thread_rank();
        let mut array = [rank; 8];
        cache::stcs(&mut array[at % 8], rank + 1);
        if let Some(place) = tile.get_mut(&t) {
            cache::stcg(place, rank + 2);
        }
        let tile = t.publish(tile);
        if let Some(y) = y.get_mut(t.index()) {
            cache::stwt(&mut y[0], rank);
            let first = cache::ldcs(&y[0]);
            *y = [
                first,
                cache::ldcs(&array[at % 8]),
                cache::ldcg(&array[(at + 1) % 8]),
                cache::load_no_allocate(&tile[63 - rank as usize]),
            ];
            cache::prefetch_l1(&array, at % 8);
        }
    }

    /// One past the end.
    #[kernel]
    pub fn beyond(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = cache::ldcs(&x[x.len()]);
        }
    }
}
