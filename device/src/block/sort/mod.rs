//! Radix sort of a block's items (CUB's `BlockRadixSort`); `merge` has the sort by comparison.
//!
//! A pass sorts by four bits and is stable. Each thread counts its digits in registers (`counts`), as `key` and `order` say. The
//! counts, two to a word, lie in shared memory by digit and then by thread, so the sum of all counts before
//! one is the position of the thread's items with that digit. Each thread sums nine consecutive words, a
//! number that avoids bank conflicts; warps and then the block scan these sums. Counts and items take turns
//! in the same memory: six barriers a pass.
//!
//! ```
//! use ferrogrid_device::prelude::*;
//!
//! /// The 2048 keys of a block in order.
//! fn sorted<const ID: usize>(
//!     t: &Thread<1>,
//!     scratch: &mut Shared<SortScratch<u32, 256, 8>, ID>,
//!     keys: [u32; 8],
//! ) -> [u32; 8] {
//!     t.block_radix_sort(scratch, keys, sort::Ascending)
//! }
//! ```
//!
//! By some of the bits:
//!
//! ```
//! # use ferrogrid::prelude::*;
//! # #[ferrogrid::module(host_only)]
//! # mod kernels {
//! # use ferrogrid::device::prelude::*;
//! /// A block's elements by their lowest four bits, the greatest first; those that are the same there stay in order.
//! #[kernel(block = 32)]
//! pub fn by_low_bits(t: Thread<1>, mut x: DisjointSlice<u32>, mut scratch: Shared<SortScratch<u32, 32, 1>>) {
//!     let mine = x.get_mut(t.index()).map_or(0, |x| *x);
//!     let [sorted] = t.block_radix_sort(&mut scratch, [mine], sort::Descending.of_bits::<0, 4>());
//!     if let Some(x) = x.get_mut(t.index()) {
//!         *x = sorted;
//!     }
//! }
//! # }
//! # fn main() -> ferrogrid::Result<()> {
//! # let stream = Device::cpu().new_stream()?;
//! let mut x = stream.upload(&(0..32).collect::<Vec<u32>>())?;
//! kernels::by_low_bits(&stream, Grid::cover(32), &mut x)?;
//! assert_eq!(stream.download(&x)?[..6], [15, 31, 14, 30, 13, 29]);
//! # Ok(()) }
//! ```

#![expect(
    clippy::needless_range_loop,
    reason = "LLVM unrolls a loop over indices and keeps items in registers, but not a loop over an array's iterator"
)]

mod counts;
mod key;
pub(crate) mod merge;
mod order;

use core::mem::ManuallyDrop;

use crate::block::exchange::{ExchangeScratch, Places, expect_threads};
use crate::shared::{Shared, SharedElement, without_elements};
use crate::thread::Thread;

use counts::{Counts, SEGMENT, own_counts};
pub use key::RadixKey;
use key::sealed::Bits;
pub use merge::MergeSortScratch;
use order::bits;
pub use order::{Ascending, Descending, OfBits, RadixOrder};

/// Bits of a digit.
const DIGIT: u32 = 4;

/// Shared memory for a radix sort of `N` items per thread among `B` threads (the `TempStorage` of CUB's
/// `BlockRadixSort`), for keys `K` and values `V`, if any: nine words per thread, or `N + 1` items if that is
/// more. No thread owns any of it, so nothing else can write there.
///
/// `B` is the number of threads of the block, a multiple of 32; `N` is 1 to 32. Other values are a compile
/// error at the point of use:
///
/// ```compile_fail
/// use ferrogrid_device::prelude::*;
///
/// fn sorted(t: &Thread<1>, mut scratch: Shared<SortScratch<u32, 33, 1>>) -> [u32; 1] {
///     t.block_radix_sort(&mut scratch, [t.thread_rank()], sort::Ascending)
/// }
/// let used: fn(&Thread<1>, Shared<SortScratch<u32, 33, 1>>) -> [u32; 1] = sorted;
/// # assert!(used as usize != 0);
/// ```
#[repr(C)]
pub struct SortScratch<K, const B: usize, const N: usize, V = K> {
    turns: Turns<K, B, N, V>,
    /// The sums of the warps.
    totals: [u32; 32],
}

/// Data that takes turns in the same memory.
#[repr(C)]
union Turns<K, const B: usize, const N: usize, V> {
    counts: [[u32; SEGMENT]; B],
    keys: ManuallyDrop<ExchangeScratch<K, B, N>>,
    values: ManuallyDrop<ExchangeScratch<V, B, N>>,
}

without_elements!([K: SharedElement, V: SharedElement, const B: usize, const N: usize] SortScratch<K, B, N, V>, K);

/// Sorts of a block's items. They contain barriers, so all threads must reach them together, which the build
/// step proves. They panic if the number of threads is not that of the scratch memory.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The keys of a block in order, and where each was: the greatest first, and neighbouring threads store neighbours.
/// #[kernel(block = 64)]
/// pub fn ranks(
///     t: Thread<1>, x: &[f32], mut sorted: DisjointRows<f32>, mut places: DisjointRows<u32>,
///     mut scratch: Shared<SortScratch<f32, 64, 2, u32>>,
/// ) {
///     let first = 2 * t.thread_rank();
///     let (keys, numbers) = ([x[first as usize], x[first as usize + 1]], [first, first + 1]);
///     let (keys, numbers) = t.block_radix_sort_pairs_to_striped(&mut scratch, keys, numbers, sort::Descending);
///     sorted.fill_with(&t, |column| keys[column / 64]);
///     places.fill_with(&t, |column| numbers[column / 64]);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..128).map(|i| (i * 51 % 128) as f32 - 64.0).collect::<Vec<_>>())?;
/// let (mut sorted, mut places) = (stream.zeros(128)?, stream.zeros(128)?);
/// kernels::ranks(&stream, Grid::new(1, 64), &x, sorted.view_2d_mut(128, 1)?, places.view_2d_mut(128, 1)?)?;
/// let (x, sorted, places) = (stream.download(&x)?, stream.download(&sorted)?, stream.download(&places)?);
/// assert_eq!((sorted[0], sorted[127]), (63.0, -64.0));
/// assert!(sorted.is_sorted_by(|a, b| a > b));
/// assert!(sorted.iter().zip(places).all(|(&key, place)| x[place as usize] == key));
/// # Ok(()) }
/// ```
impl<const R: usize> Thread<'_, R> {
    /// Sorts the keys of all threads of the block: thread `i` gets those at positions `i * N` to `i * N + N -
    /// 1` (CUB's `BlockRadixSort::Sort`, `SortDescending`). The sort is stable: keys that are equal in the
    /// compared bits stay in the order of threads, and of items within a thread.
    ///
    /// `scratch` is a region of its own, `mut scratch: Shared<SortScratch<u32, 256, 8>>`, and can be reused.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Of each thread's four neighbours in the order of the block's 128 elements, the first.
    /// #[kernel(block = 32)]
    /// pub fn every_fourth(
    ///     t: Thread<1>, x: &[i32], mut y: DisjointSlice<i32>, mut scratch: Shared<SortScratch<i32, 32, 4>>,
    /// ) {
    ///     let first = 4 * t.thread_rank() as usize;
    ///     let keys = core::array::from_fn(|k| x[first + k]);
    ///     let sorted: [i32; 4] = t.block_radix_sort(&mut scratch, keys, sort::Ascending);
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = sorted[0];
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..128).map(|i| i * 77 % 128 - 100).collect::<Vec<i32>>())?;
    /// let mut y = stream.zeros(32)?;
    /// kernels::every_fourth(&stream, Grid::cover(32), &x, &mut y)?;
    /// assert_eq!(stream.download(&y)?, (0..32).map(|i| 4 * i - 100).collect::<Vec<i32>>());
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn block_radix_sort<K, V, O, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, SortScratch<K, B, N, V>, ID>,
        keys: [K; N],
        _order: O,
    ) -> [K; N]
    where
        K: RadixKey,
        V: SharedElement + Copy,
        O: RadixOrder,
    {
        self.sorted::<K, V, O, false, false, ID, B, N>(scratch, keys, None).0
    }

    /// As [`Thread::block_radix_sort`], but thread `i` gets the keys at positions `i`, `i + B`, `i + 2 * B`,
    /// and so on (CUB's `SortBlockedToStriped`), so that neighbouring threads store neighbouring keys.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The 128 elements of a block in order.
    /// #[kernel(block = 32)]
    /// pub fn sort_row(
    ///     t: Thread<1>, x: &[u64], mut y: DisjointRows<u64>, mut scratch: Shared<SortScratch<u64, 32, 4>>,
    /// ) {
    ///     let first = 4 * t.thread_rank() as usize;
    ///     let keys: [u64; 4] = core::array::from_fn(|k| x[first + k]);
    ///     let sorted = t.block_radix_sort_to_striped(&mut scratch, keys, sort::Ascending.of_bits::<0, 7>());
    ///     y.fill_with(&t, |column| sorted[column / 32]);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..128).map(|i| i * 77 % 128).collect::<Vec<u64>>())?; // seven bits each
    /// let mut y = stream.zeros(128)?;
    /// kernels::sort_row(&stream, Grid::new(1, 32), &x, y.view_2d_mut(128, 1)?)?;
    /// assert_eq!(stream.download(&y)?, (0..128).collect::<Vec<u64>>());
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn block_radix_sort_to_striped<K, V, O, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, SortScratch<K, B, N, V>, ID>,
        keys: [K; N],
        _order: O,
    ) -> [K; N]
    where
        K: RadixKey,
        V: SharedElement + Copy,
        O: RadixOrder,
    {
        self.sorted::<K, V, O, false, true, ID, B, N>(scratch, keys, None).0
    }

    /// Sorts the keys of all threads of the block as [`Thread::block_radix_sort`] does, and each key's value
    /// with it (CUB's `BlockRadixSort::Sort` of keys and values). `scratch` has both types: `mut scratch:
    /// Shared<SortScratch<u32, 256, 8, f32>>`.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The values of a block in the order of their keys.
    /// #[kernel(block = 32)]
    /// pub fn by_key(
    ///     t: Thread<1>, keys: &[u8], mut values: DisjointSlice<f64>, mut scratch: Shared<SortScratch<u8, 32, 1, f64>>,
    /// ) {
    ///     let i = t.index();
    ///     let value = values.get_mut(i).map_or(0.0, |value| *value);
    ///     let (_, [value]) = t.block_radix_sort_pairs(&mut scratch, [keys[i.get()]], [value], sort::Ascending);
    ///     if let Some(place) = values.get_mut(i) {
    ///         *place = value;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let keys = stream.upload(&(0..32).map(|i| 1 - i % 2).collect::<Vec<u8>>())?; // odd places first
    /// let mut values = stream.upload(&(0..32).map(f64::from).collect::<Vec<_>>())?;
    /// kernels::by_key(&stream, Grid::cover(32), &keys, &mut values)?;
    /// let values = stream.download(&values)?;
    /// assert_eq!((&values[..3], &values[16..19]), (&[1.0, 3.0, 5.0][..], &[0.0, 2.0, 4.0][..]));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn block_radix_sort_pairs<K, V, O, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, SortScratch<K, B, N, V>, ID>,
        keys: [K; N],
        values: [V; N],
        _order: O,
    ) -> ([K; N], [V; N])
    where
        K: RadixKey,
        V: SharedElement + Copy,
        O: RadixOrder,
    {
        let (keys, sorted) = self.sorted::<K, V, O, true, false, ID, B, N>(scratch, keys, Some(values));
        (keys, sorted.unwrap_or(values))
    }

    /// [`Thread::block_radix_sort_pairs`] in the arrangement of [`Thread::block_radix_sort_to_striped`] (CUB's
    /// `SortBlockedToStriped` of keys and values).
    #[track_caller]
    #[inline(always)]
    pub fn block_radix_sort_pairs_to_striped<K, V, O, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, SortScratch<K, B, N, V>, ID>,
        keys: [K; N],
        values: [V; N],
        _order: O,
    ) -> ([K; N], [V; N])
    where
        K: RadixKey,
        V: SharedElement + Copy,
        O: RadixOrder,
    {
        let (keys, sorted) = self.sorted::<K, V, O, true, true, ID, B, N>(scratch, keys, Some(values));
        (keys, sorted.unwrap_or(values))
    }

    #[track_caller]
    #[inline(always)]
    fn sorted<
        K,
        V,
        O,
        const PAIRS: bool,
        const STRIPED: bool,
        const ID: usize,
        const B: usize,
        const N: usize,
    >(
        &self,
        scratch: &mut Shared<'_, SortScratch<K, B, N, V>, ID>,
        keys: [K; N],
        mut values: Option<[V; N]>,
    ) -> ([K; N], Option<[V; N]>)
    where
        K: RadixKey,
        V: SharedElement + Copy,
        O: RadixOrder,
    {
        let bits = const { bits::<O>(<K::Bits as Bits>::BITS) };
        expect_threads::<R, B>(self);
        self.agree_on(scratch);
        let start = scratch.as_mut_ptr();
        // SAFETY: within the region; nothing is read or written here. That is what the memory is in turn, `K::Bits` is as
        // large as `K`, and the block has `B` threads.
        let memory = unsafe {
            let turns = &raw mut (*start).turns;
            Memory::<K::Bits, V, B, N> {
                counts: Counts::new(turns.cast(), self),
                totals: (&raw mut (*start).totals).cast(),
                keys: Places::new(turns.cast(), self),
                values: Places::new(turns.cast(), self),
            }
        };
        let mut keys = keys.map(|key| flipped_if::<K::Bits>(O::DESCENDING, key.into_bits()));
        // The last pass is separate if it ends in another arrangement: with the choice in the loop, the
        // addresses of both would stay in registers.
        let blocked =
            if STRIPED { (bits.end - 1 - bits.start) / DIGIT * DIGIT + bits.start } else { bits.end };
        let mut begin = bits.start;
        // SAFETY: all threads come here together, with one region and the same bits, which are in a type. The memory is as described
        // above, and the last sort ended with a barrier.
        unsafe {
            while begin < blocked {
                let mask = (1 << (bits.end - begin).min(DIGIT)) - 1;
                let digits = keys.map(|key| key.digit(begin, mask));
                self.pass::<_, V, PAIRS, false, B, N>(memory, digits, &mut keys, &mut values);
                begin += DIGIT;
            }
            if STRIPED {
                let mask = (1 << (bits.end - begin)) - 1;
                let digits = keys.map(|key| key.digit(begin, mask));
                self.pass::<_, V, PAIRS, true, B, N>(memory, digits, &mut keys, &mut values);
            }
        }
        (keys.map(|key| K::of(flipped_if::<K::Bits>(O::DESCENDING, key))), values)
    }

    /// Sorts keys, and values if there are `PAIRS`, by the keys' digits.
    ///
    /// # Safety
    /// `memory` is the block's own, and that of a sort of `B` threads with `N` items each. No thread has used
    /// it since the last barrier.
    #[track_caller]
    #[inline(always)]
    unsafe fn pass<K, V, const PAIRS: bool, const STRIPED: bool, const B: usize, const N: usize>(
        &self,
        memory: Memory<K, V, B, N>,
        digits: [u32; N],
        keys: &mut [K; N],
        values: &mut Option<[V; N]>,
    ) where
        K: Copy,
        V: Copy,
    {
        // SAFETY: each barrier is between a use of the memory as one thing and the next; and one is the last here. Ranks
        // are those of all items of the block, in order, so they are different and below `B * N`.
        unsafe {
            let ranks = self.ranks::<B, N>(memory.counts, memory.totals, digits);
            self.sync_threads();
            memory.keys.scatter_unchecked(*keys, ranks);
            self.sync_threads();
            *keys = if STRIPED { memory.keys.read_striped() } else { memory.keys.read_blocked() };
            self.sync_threads();
            if PAIRS && let Some(values) = values {
                memory.values.scatter_unchecked(*values, ranks);
                self.sync_threads();
                *values = if STRIPED { memory.values.read_striped() } else { memory.values.read_blocked() };
                self.sync_threads();
            }
        }
    }

    /// The new position of each of the thread's items, by digit.
    ///
    /// # Safety
    /// `counts` and `totals` are memory of the block that no thread has used since the last barrier, and
    /// the block has `B` threads.
    #[track_caller]
    #[inline(always)]
    unsafe fn ranks<const B: usize, const N: usize>(
        &self,
        counts: Counts<B>,
        totals: *mut u32,
        digits: [u32; N],
    ) -> [u32; N] {
        let (own, before) = own_counts(digits);
        // SAFETY: each thread writes its own words, in columns, in rows, and in `totals`; a barrier is between them, and
        // before what it reads of others.
        unsafe {
            counts.write_columns(own);
            self.sync_threads();
            let segment = counts.read_segment();
            let mut sum = 0;
            for at in 0..SEGMENT {
                sum += segment[at];
            }
            let warp = self.warp();
            let inclusive = warp.inclusive_scan(sum, |a, b| a + b);
            let number = self.thread_rank() / 32;
            if warp.lane() == 31 {
                totals.add(number as usize).write(inclusive);
            }
            self.sync_threads();
            let (mut first, mut all) = (inclusive - sum, 0);
            for other in 0..(B / 32) as u32 {
                let total = totals.add(other as usize).read();
                first += if other < number { total } else { 0 };
                all += total;
            }
            // Digits in the upper halves follow all in the lower ones.
            counts.write_segment(segment, first + (all << 16));
            self.sync_threads();
            let mut ranks = before;
            for k in 0..N {
                ranks[k] += counts.read(digits[k]);
            }
            ranks
        }
    }
}

/// The memory of a sort, as one thread of the block uses it; all but the totals take turns.
struct Memory<K, V, const B: usize, const N: usize> {
    counts: Counts<B>,
    totals: *mut u32,
    keys: Places<K, B, N>,
    values: Places<V, B, N>,
}

impl<K: Copy, V: Copy, const B: usize, const N: usize> Clone for Memory<K, V, B, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Copy, V: Copy, const B: usize, const N: usize> Copy for Memory<K, V, B, N> {}

#[inline(always)]
fn flipped_if<T: Bits>(descending: bool, bits: T) -> T {
    if descending { bits.flipped() } else { bits }
}
