//! The kernel that finds runs of equal keys.

/// The kernel.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::scan::Rows;

    use crate::order::numbers::Order;
    use crate::select::placing::placing::{
        Kept, THREADS, WIDE_GROUP as GROUP, WIDE_RUN as RUN, first, for_each_of_lane, load, of_warp, pass_on,
        place_of, put, put_count,
    };
    use crate::sort::digits::kernels::Bits;

    /// The warp's elements, from `first` on, whose key differs from the one before it.
    #[inline(always)]
    fn heads<K: Bits>(
        t: &Thread<'_, 1>,
        numbers: Order<K>,
        (keys, first): (&[K], usize),
        items: &Rows<K, GROUP>,
    ) -> Kept<GROUP> {
        let warp = t.warp();
        let lane = warp.lane();
        let own = first + place_of::<GROUP>(t, 0);
        // How many there are from the lane's first one on.
        let left = keys.len().saturating_sub(own).min(RUN) as u32;
        // Lane 31 has the key before each row.
        let mut last = numbers.place(keys.get(first.wrapping_sub(1)).copied().unwrap_or(K::narrow(0)));
        let mut before = last;
        Kept::of(&warp, |row, k| {
            if k == 0 {
                let own_last = numbers.place(items[row][GROUP - 1]);
                before = warp.shuffle(if lane == 31 { last } else { own_last }, (lane + 31) % 32);
                last = own_last;
            }
            let place = numbers.place(items[row][k]);
            let differs = place.widen() != before.widen();
            before = place;
            let is_first = row == 0 && k == 0 && own == 0;
            ((row * 32 * GROUP + k) as u32) < left && (is_first || differs)
        })
    }

    /// Marks the first element of each run of equal keys: a lane has a word of `marks`, of which [`Kept::bits`] are its elements.
    /// Writes the number of runs to results[0], the first key of each to `first_keys`, and how many begin before the elements of
    /// each warp to `places`.
    #[kernel(block = THREADS, min_blocks = 4, K = [u8, u16, u32, u64])]
    pub fn mark_runs<K: Bits>(
        t: Thread<1>,
        numbers: Order<K>,
        keys: &[K],
        first_keys: &[DeviceAtomic<K>],
        mut marks: DisjointWarps<u32, 32>,
        mut places: DisjointWarps<u32>,
        results: &[DeviceAtomic<u64>],
        order: BlockOrder<u32>,
        scratch: Shared<Scratch<u32>>,
        tile: Shared<[DeviceAtomic<K, atomic::Block>; 4096]>,
    ) {
        let tile = t.publish(tile);
        let own = of_warp::<_, RUN>(&t, &*tile);
        let items = load::<K, GROUP, RUN>(&t, keys, K::narrow(0));
        let heads = heads(&t, numbers, (keys, first::<RUN>(&t)), &items);
        let earlier = order.publish_of_warps(&t, scratch, heads.total, |a, b| a + b);
        marks.fill_with(&t, |_| heads.bits);
        heads.for_each(|row, k, is_head, rank| {
            if is_head {
                put(own, rank.into(), items[row][k]);
            }
        });
        let start = earlier.exclusive(&t, |a, b| a + b).unwrap_or(0);
        places.fill_with(&t, |_| start);
        for_each_of_lane(&t.warp(), 0..heads.total, |number| {
            pass_on(own, number, first_keys, (start + number).into());
        });
        put_count(&t, results, (start + heads.total).into());
    }
}
