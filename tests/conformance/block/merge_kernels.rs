//! Kernels that sort the items of a block by comparison.

#[ferrogrid::module]
pub mod merging {
    use ferrogrid::device::prelude::*;

    /// A key of which only a part is compared.
    #[derive(Clone, Copy, DeviceCopy, Debug, PartialEq)]
    #[repr(C)]
    pub struct Record {
        pub key: i16,
        pub rest: [u16; 5],
    }

    #[kernel(max_threads = 1024, B = [32, 96, 256, 1024], N = [1, 3, 8])]
    pub fn keys<const B: usize, const N: usize>(
        t: Thread<1>,
        valid: u32,
        x: &[[u32; N]],
        mut y: DisjointSlice<[u32; N]>,
        mut scratch: Shared<MergeSortScratch<u32, B, N>>,
    ) {
        let keys = x[t.index().get()];
        // By all but the lowest four bits, so that the order of equal keys is visible.
        let sorted = t.block_merge_sort_valid(&mut scratch, keys, valid, |a, b| a >> 4 < b >> 4);
        if let Some(y) = y.get_mut(t.index()) {
            *y = sorted;
        }
    }

    #[kernel(N = [1, 2, 17])]
    pub fn records<const N: usize>(
        t: Thread<1>,
        descending: bool,
        x: &[[Record; N]],
        mut y: DisjointSlice<[Record; N]>,
        mut scratch: Shared<MergeSortScratch<Record, 128, N>>,
    ) {
        let is_less = |a: &Record, b: &Record| if descending { b.key < a.key } else { a.key < b.key };
        let sorted = t.block_merge_sort(&mut scratch, x[t.index().get()], is_less);
        if let Some(y) = y.get_mut(t.index()) {
            *y = sorted;
        }
    }

    #[kernel(K = [u8, f64], V = [u32, u128])]
    pub fn pairs<K: SharedElement + DeviceCopy + PartialOrd, V: SharedElement + DeviceCopy>(
        t: Thread<1>,
        valid: u32,
        x: &[[K; 4]],
        v: &[[V; 4]],
        mut y: DisjointSlice<[K; 4]>,
        mut w: DisjointSlice<[V; 4]>,
        mut scratch: Shared<MergeSortScratch<K, 64, 4, V>>,
    ) {
        let i = t.index().get();
        let (all, _) = t.block_merge_sort_pairs(&mut scratch, x[i], v[i], |a, b| a < b);
        let (keys, values) = t.block_merge_sort_pairs_valid(&mut scratch, x[i], v[i], valid, |a, b| a < b);
        if let (Some(y), Some(w)) = (y.get_mut(t.index()), w.get_mut(t.index())) {
            (*y, *w) = (if valid == u32::MAX { all } else { keys }, values);
        }
    }

    /// A comparison that is not an order: it depends on the thread, and puts each before the other.
    #[kernel]
    pub fn disorder(
        t: Thread<1>,
        x: &[[u32; 5]],
        mut y: DisjointSlice<[u32; 5]>,
        mut scratch: Shared<MergeSortScratch<u32, 64, 5>>,
    ) {
        let i = t.index();
        let rank = t.thread_rank();
        let is_less = |a: &u32, b: &u32| !(a ^ b ^ rank).count_ones().is_multiple_of(3);
        let found = t.block_merge_sort(&mut scratch, x[i.get()], is_less);
        if let Some(y) = y.get_mut(i) {
            *y = found;
        }
    }
}
