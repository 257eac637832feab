//! Merge sort of a block's items (CUB's `BlockMergeSort`): each thread sorts its own items, then runs are
//! merged pairwise. Each thread finds by binary search where its part of a merged run begins in both inputs
//! (merge path).

use core::mem::ManuallyDrop;

use crate::block::exchange::{ExchangeScratch, Places, expect_threads};
use crate::shared::{Shared, SharedElement, without_elements};
use crate::thread::Thread;

/// Shared memory for a merge sort of `N` items per thread among `B` threads (the `TempStorage` of CUB's
/// `BlockMergeSort`), for keys `K` and values `V`, if any: `N + 1` items of the larger type per thread. No
/// thread owns any of it, so nothing else can write there.
///
/// `B` is the number of threads of the block, a multiple of 32; `N` is 1 to 32. Other values are a compile
/// error at the point of use:
///
/// ```compile_fail
/// use ferrogrid_device::prelude::*;
///
/// fn sorted(t: &Thread<1>, mut scratch: Shared<MergeSortScratch<u32, 32, 33>>) -> [u32; 33] {
///     t.block_merge_sort(&mut scratch, [t.thread_rank(); 33], |a, b| a < b)
/// }
/// let used: fn(&Thread<1>, Shared<MergeSortScratch<u32, 32, 33>>) -> [u32; 33] = sorted;
/// # assert!(used as usize != 0);
/// ```
#[repr(C)]
pub union MergeSortScratch<K, const B: usize, const N: usize, V = K> {
    keys: ManuallyDrop<ExchangeScratch<K, B, N>>,
    values: ManuallyDrop<ExchangeScratch<V, B, N>>,
}

without_elements!([K: SharedElement, V: SharedElement, const B: usize, const N: usize] MergeSortScratch<K, B, N, V>, K);

/// Stable sorts by comparison, of elements of any type that shared memory takes. Each doubling of the sorted
/// runs takes two barriers, or four with values. Numbers are sorted faster by their digits
/// ([`Thread::block_radix_sort`]). All threads of the block must make these calls together, which the build
/// step proves. They panic if the number of threads is not that of the scratch memory.
///
/// If the comparison is not an order, or differs between threads, the items come in any order; some may
/// appear twice and others not at all.
impl<const R: usize> Thread<'_, R> {
    /// Sorts the keys of all threads of the block: thread `i` gets those at positions `i * N` to `i * N + N -
    /// 1` (CUB's `BlockMergeSort::StableSort`). `is_less` returns whether its first argument comes before its
    /// second. Equal keys stay in the order of threads, and of items within a thread.
    ///
    /// `scratch` is a region of its own, `mut scratch: Shared<MergeSortScratch<u32, 256, 4>>`, and can be
    /// reused.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The points of each block by their distance to the origin, four of them for each thread.
    /// #[kernel(block = 32)]
    /// pub fn by_distance(
    ///     t: Thread<1>, mut x: DisjointSlice<[[f32; 2]; 4]>,
    ///     mut scratch: Shared<MergeSortScratch<Aligned16<[f32; 4]>, 32, 4>>,
    /// ) {
    ///     let i = t.index();
    ///     let points = x.get_mut(i).map_or([[0.0; 2]; 4], |x| *x);
    ///     let keyed = points.map(|[x, y]| Aligned16::new([x, y, x * x + y * y, 0.0]));
    ///     let sorted = t.block_merge_sort(&mut scratch, keyed, |a, b| a[2] < b[2]);
    ///     if let Some(x) = x.get_mut(i) {
    ///         *x = sorted.map(|point| [point[0], point[1]]);
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let points: Vec<[[f32; 2]; 4]> = (0..32).map(|i| [0.0, 1.0, 2.0, 3.0].map(|k| [31.0 - i as f32, k])).collect();
    /// let mut x = stream.upload(&points)?;
    /// kernels::by_distance(&stream, Grid::cover(32), &mut x)?;
    /// let x = stream.download(&x)?;
    /// assert_eq!(x[0], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn block_merge_sort<K, V, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, MergeSortScratch<K, B, N, V>, ID>,
        keys: [K; N],
        is_less: impl Fn(&K, &K) -> bool,
    ) -> [K; N]
    where
        K: SharedElement + Copy,
        V: SharedElement + Copy,
    {
        self.merge_sorted(scratch, keys, None, u32::MAX, is_less).0
    }

    /// As [`Thread::block_merge_sort`], for the first `valid` keys of the block in thread order (CUB's
    /// `valid_items`); the others keep their positions and are not compared. All threads pass the same
    /// `valid`; a number above the block's keys means all of them.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Sorts each 32 elements, of which the last block has fewer, the greatest first.
    /// #[kernel(block = 32)]
    /// pub fn sort(t: Thread<1>, mut x: DisjointSlice<f32>, mut scratch: Shared<MergeSortScratch<f32, 32, 1>>) {
    ///     let i = t.index();
    ///     let valid = x.len() as u32 - 32 * t.block_idx()[0];
    ///     let mine = x.get_mut(i).map_or(0.0, |x| *x);
    ///     let [sorted] = t.block_merge_sort_valid(&mut scratch, [mine], valid, |a, b| a > b);
    ///     if let Some(x) = x.get_mut(i) {
    ///         *x = sorted;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut x = stream.upload(&(0..35).map(|x| -x as f32 * 0.5 - 1.0).rev().collect::<Vec<f32>>())?;
    /// kernels::sort(&stream, Grid::cover(35), &mut x)?;
    /// assert_eq!(stream.download(&x)?[31..], [-18.0, -1.0, -1.5, -2.0]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn block_merge_sort_valid<K, V, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, MergeSortScratch<K, B, N, V>, ID>,
        keys: [K; N],
        valid: u32,
        is_less: impl Fn(&K, &K) -> bool,
    ) -> [K; N]
    where
        K: SharedElement + Copy,
        V: SharedElement + Copy,
    {
        self.merge_sorted(scratch, keys, None, valid, is_less).0
    }

    /// Sorts the keys of all threads of the block as [`Thread::block_merge_sort`] does, and each key's value
    /// with it. `scratch` has both types: `mut scratch: Shared<MergeSortScratch<u32, 256, 4, f32>>`.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The places of a block's words in alphabetical order.
    /// #[kernel(block = 32)]
    /// pub fn alphabetical(
    ///     t: Thread<1>, words: &[[u8; 8]], mut y: DisjointSlice<u32>,
    ///     mut scratch: Shared<MergeSortScratch<u64, 32, 1, u32>>,
    /// ) {
    ///     let i = t.index();
    ///     let word = u64::from_ne_bytes(words[i.get()]);
    ///     let before = |a: &u64, b: &u64| a.to_ne_bytes() < b.to_ne_bytes();
    ///     let (_, [place]) = t.block_merge_sort_pairs(&mut scratch, [word], [i.get() as u32], before);
    ///     if let Some(y) = y.get_mut(i) {
    ///         *y = place;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut words = [*b"zzzzzzzz"; 32];
    /// (words[3], words[9]) = (*b"ferrous ", *b"ferric  ");
    /// let words = stream.upload(&words)?;
    /// let mut y = stream.zeros(32)?;
    /// kernels::alphabetical(&stream, Grid::cover(32), &words, &mut y)?;
    /// assert_eq!(stream.download(&y)?[..4], [9, 3, 0, 1]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn block_merge_sort_pairs<K, V, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, MergeSortScratch<K, B, N, V>, ID>,
        keys: [K; N],
        values: [V; N],
        is_less: impl Fn(&K, &K) -> bool,
    ) -> ([K; N], [V; N])
    where
        K: SharedElement + Copy,
        V: SharedElement + Copy,
    {
        let (keys, sorted) = self.merge_sorted(scratch, keys, Some(values), u32::MAX, is_less);
        (keys, sorted.unwrap_or(values))
    }

    /// [`Thread::block_merge_sort_pairs`] for the first `valid` pairs of the block, as
    /// [`Thread::block_merge_sort_valid`].
    #[track_caller]
    #[inline(always)]
    pub fn block_merge_sort_pairs_valid<K, V, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, MergeSortScratch<K, B, N, V>, ID>,
        keys: [K; N],
        values: [V; N],
        valid: u32,
        is_less: impl Fn(&K, &K) -> bool,
    ) -> ([K; N], [V; N])
    where
        K: SharedElement + Copy,
        V: SharedElement + Copy,
    {
        let (keys, sorted) = self.merge_sorted(scratch, keys, Some(values), valid, is_less);
        (keys, sorted.unwrap_or(values))
    }

    #[track_caller]
    #[inline(always)]
    fn merge_sorted<K, V, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, MergeSortScratch<K, B, N, V>, ID>,
        mut keys: [K; N],
        mut values: Option<[V; N]>,
        valid: u32,
        is_less: impl Fn(&K, &K) -> bool,
    ) -> ([K; N], Option<[V; N]>)
    where
        K: SharedElement + Copy,
        V: SharedElement + Copy,
    {
        expect_threads::<R, B>(self);
        self.agree_on(scratch);
        let valid = valid.min(Places::<K, B, N>::ITEMS);
        let first = self.thread_rank() * N as u32;
        sort_own(&mut keys, &mut values, valid.saturating_sub(first), &is_less);
        let start = scratch.as_mut_ptr();
        // SAFETY: that is what the region is in turn, and the block has `B` threads.
        let (all_keys, all_values) = unsafe {
            (Places::<K, B, N>::new(start.cast(), self), Places::<V, B, N>::new(start.cast(), self))
        };
        let mut run = N as u32;
        while run < Places::<K, B, N>::ITEMS {
            // SAFETY: all threads come here together, with one region, as often, which the type says. Each barrier is
            // between a use of the memory as one thing and the next; the last sort ended with one, too. Whatever `is_less`
            // says, the places that are read are below `valid`.
            unsafe {
                all_keys.write_blocked(keys);
                self.sync_threads();
                let read = |number| all_keys.read(number);
                let taken = merge(&mut keys, Runs::around(first, run, valid), read, &is_less);
                self.sync_threads();
                if let Some(values) = &mut values {
                    all_values.write_blocked(*values);
                    self.sync_threads();
                    *values = core::array::from_fn(|k| all_values.read(taken[k]));
                    self.sync_threads();
                }
            }
            run *= 2;
        }
        (keys, values)
    }
}

/// Sorts the first `valid` of a thread's own items by swaps of neighbours, which keep equal ones in order.
#[inline(always)]
fn sort_own<K: Copy, V: Copy, const N: usize>(
    keys: &mut [K; N],
    values: &mut Option<[V; N]>,
    valid: u32,
    is_less: impl Fn(&K, &K) -> bool,
) {
    for round in 0..N {
        let mut k = round % 2;
        while k + 1 < N {
            if k + 1 < valid as usize && is_less(&keys[k + 1], &keys[k]) {
                (keys[k], keys[k + 1]) = (keys[k + 1], keys[k]);
                if let Some(values) = values {
                    (values[k], values[k + 1]) = (values[k + 1], values[k]);
                }
            }
            k += 2;
        }
    }
}

/// Two adjacent sorted runs, and the position of a thread's items in the merged run.
#[derive(Clone, Copy)]
pub(crate) struct Runs {
    /// The start of the first run, the start of the second, and the end; none exceeds the number of valid
    /// items.
    ends: [u32; 3],
    /// The thread's first item.
    first: u32,
}

impl Runs {
    /// The runs with these ends, and a thread whose first item is number `first`.
    #[inline(always)]
    pub(crate) fn new(ends: [u32; 3], first: u32) -> Self {
        Runs { ends, first }
    }

    /// The runs of `run` items each, of `valid` in all, that contain item `first`.
    #[inline(always)]
    fn around(first: u32, run: u32, valid: u32) -> Self {
        let start = first / (2 * run) * (2 * run);
        Runs { ends: [start, start + run, start + 2 * run].map(|end| end.min(valid)), first }
    }

    /// How many items of the first run precede the thread's first item in the merged one. Among equal keys
    /// those of the first run come first.
    #[inline(always)]
    fn taken_of_first<K>(self, read: impl Fn(u32) -> K, is_less: impl Fn(&K, &K) -> bool) -> u32 {
        let [start, middle, end] = self.ends;
        let before = self.first.min(end) - start;
        let (mut low, mut high) = (before.saturating_sub(end - middle), before.min(middle - start));
        while low < high {
            let half = (low + high) / 2;
            if is_less(&read(middle + (before - 1 - half)), &read(start + half)) {
                high = half;
            } else {
                low = half + 1;
            }
        }
        low
    }
}

/// Replaces a thread's `keys` by its part of the merged `runs`, and returns which items those are. It calls
/// `read` only for items of the runs, whatever `is_less` returns; items beyond their end stay unchanged.
#[inline(always)]
pub(crate) fn merge<K: Copy, const N: usize>(
    keys: &mut [K; N],
    runs: Runs,
    read: impl Fn(u32) -> K,
    is_less: impl Fn(&K, &K) -> bool,
) -> [u32; N] {
    let [start, middle, end] = runs.ends;
    let taken = runs.taken_of_first(&read, &is_less);
    let (mut first, mut second) = (start + taken, middle + (runs.first.min(end) - start - taken));
    // Missing items are not compared.
    let at = |place: u32, end: u32, other: K| if place < end { read(place) } else { other };
    let (mut head, mut second_head) = (at(first, middle, keys[0]), at(second, end, keys[0]));
    let mut taken = [0; N];
    let mut k = 0;
    while k < N {
        let number = runs.first + k as u32;
        taken[k] = number;
        if number < end {
            let is_second = second < end && (first >= middle || is_less(&second_head, &head));
            // One load for both.
            let (key, place, its_end) =
                if is_second { (second_head, second, end) } else { (head, first, middle) };
            (keys[k], taken[k]) = (key, place);
            let next = at(place + 1, its_end, key);
            if is_second {
                (second, second_head) = (place + 1, next);
            } else {
                (first, head) = (place + 1, next);
            }
        }
        k += 1;
    }
    taken
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    #[test]
    fn items_of_the_runs_are_read_and_no_others() {
        let items = [1, 4, 4, 9, 2, 3, 7, 8, 5, 6];
        for valid in 0..=10_u32 {
            let run = 4;
            let merged = (0..10).step_by(2).flat_map(|first| {
                let runs = Runs::around(first, run, valid);
                let [start, _, end] = runs.ends;
                let read = |number: u32| {
                    assert!((start..end).contains(&number), "item {number} of {start}..{end}");
                    items[number as usize]
                };
                let mut keys = [0; 2];
                merge(&mut keys, runs, read, |a, b| a < b);
                keys
            });
            let merged: Vec<i32> = merged.take(valid as usize).collect();
            let mut expected = items[..valid as usize].to_vec();
            expected[..valid.min(8) as usize].sort_unstable();
            assert_eq!(merged, expected, "{valid} valid items");
        }
    }
}
