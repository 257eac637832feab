//! The items of a block in order by comparison: each thread sorts its own, and then runs are merged, two by two, each
//! thread finding where its part of the merged run begins in both.

use core::mem::ManuallyDrop;

use crate::exchange::{ExchangeScratch, Places, expect_threads};
use crate::shared::{Shared, SharedElement, without_elements};
use crate::thread::Thread;

/// What a sort by comparison of `N` items of each of `B` threads needs of shared memory (the `TempStorage` of CUB's
/// `BlockMergeSort`), for keys `K` and, where there are any, values `V`: `N + 1` of the larger for each thread. No thread
/// owns any of it, so nothing else can write there.
///
/// `B` is the number of threads of the block, a multiple of 32; `N` is 1 to 32. Others are a compile error where they are
/// used:
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

/// Sorts by comparison: stable, of elements of any type that shared memory takes, with two barriers for each doubling of
/// the sorted runs, four with values. Keys that are numbers are sorted faster by their digits
/// ([`Thread::block_radix_sort`]). All threads of the block make these calls together, as is proven of the compiled code. A
/// block that has not the number of threads that the scratch memory is for panics.
///
/// A comparison that is no order, or that differs between threads, gives items in any order, of which some may be there
/// twice and others not at all.
impl<const R: usize> Thread<'_, R> {
    /// The keys of all threads of the block in order: thread `i` gets those at places `i * N` to `i * N + N - 1` (CUB's
    /// `BlockMergeSort::StableSort`). `is_less` says whether its first argument comes before its second; keys of which
    /// neither does stay in the order of threads, and within a thread of items.
    ///
    /// `scratch` is a region for it alone, `mut scratch: Shared<MergeSortScratch<u32, 256, 4>>`, which may be used again and
    /// again.
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

    /// As [`Thread::block_merge_sort`], of the first `valid` keys of the block in the order of threads (CUB's `valid_items`):
    /// the others stay where they are, and are not compared. All threads bring the same `valid`; more than the block has
    /// keys is all of them.
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

    /// The keys of all threads of the block in order, as [`Thread::block_merge_sort`] gives them, each with the value that
    /// came with it. `scratch` has the type of both: `mut scratch: Shared<MergeSortScratch<u32, 256, 4, f32>>`.
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

    /// [`Thread::block_merge_sort_pairs`] of the first `valid` pairs of the block: as [`Thread::block_merge_sort_valid`].
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

/// Sorts the first `valid` of a thread's own items: neighbours change places, so that equal ones stay in order.
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

/// Two sorted runs that lie one behind the other, and where a thread's items will lie among those of both.
#[derive(Clone, Copy)]
struct Runs {
    /// Where the first begins, where the second does, and the end; all of them no greater than the number of valid items.
    ends: [u32; 3],
    /// The thread's first item.
    first: u32,
}

impl Runs {
    /// Those of `run` items each, of `valid` in all, that item `first` is in.
    #[inline(always)]
    fn around(first: u32, run: u32, valid: u32) -> Self {
        let start = first / (2 * run) * (2 * run);
        Runs { ends: [start, start + run, start + 2 * run].map(|end| end.min(valid)), first }
    }

    /// How many items of the first run come before the thread's first item in the merged one: of the two runs' items with
    /// equal keys, those of the first come first.
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

/// Replaces a thread's `keys` by those that belong there when `runs` are merged, and tells which those are. `read` is asked
/// for items of the runs only, whatever `is_less` says; items beyond their end stay.
#[inline(always)]
fn merge<K: Copy, const N: usize>(
    keys: &mut [K; N],
    runs: Runs,
    read: impl Fn(u32) -> K,
    is_less: impl Fn(&K, &K) -> bool,
) -> [u32; N] {
    let [start, middle, end] = runs.ends;
    let taken = runs.taken_of_first(&read, &is_less);
    let (mut first, mut second) = (start + taken, middle + (runs.first.min(end) - start - taken));
    // What is not there is not compared either.
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
