//! The items of a block in order, by the digits of their keys. It must not know how items change places.
//!
//! A pass sorts by four bits and is stable: each thread counts its own digits in registers; the counts, two in a word,
//! lie in shared memory digit by digit, and within a digit thread by thread, so that the sum of all before one is where
//! the thread's items with that digit go. Threads sum up nine words in a row each, a number that keeps them in different
//! banks, and warps and the block sum up these. Counts and items lie in the same memory, in turn: six barriers a pass.
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
    reason = "LLVM unrolls a loop over numbers, and then keeps items in registers; that over an array's iterator it does not"
)]

mod key;
mod merge;

use core::mem::ManuallyDrop;
use core::ops::Range;

use crate::exchange::{ExchangeScratch, Places, expect_threads};
use crate::shared::{Shared, SharedElement, without_elements};
use crate::thread::Thread;

pub use key::RadixKey;
use key::sealed::Bits;
pub use merge::MergeSortScratch;

/// Digits have so many bits.
const DIGIT: u32 = 4;

/// Words of counts that a thread has: two digits in each.
const WORDS: usize = 8;

/// The words that a thread sums up: an odd number. The last of all are 0.
const SEGMENT: usize = WORDS + 1;

/// What a sort of `N` items of each of `B` threads needs of shared memory (the `TempStorage` of CUB's `BlockRadixSort`),
/// for keys `K` and, where there are any, values `V`: nine words of each thread, or `N + 1` items if that is more. No
/// thread owns any of it, so nothing else can write there.
///
/// `B` is the number of threads of the block, a multiple of 32; `N` is 1 to 32. Others are a compile error where they are
/// used:
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
    /// Of the warps.
    totals: [u32; 32],
}

/// What lies in the same memory in turn.
#[repr(C)]
union Turns<K, const B: usize, const N: usize, V> {
    counts: [[u32; SEGMENT]; B],
    keys: ManuallyDrop<ExchangeScratch<K, B, N>>,
    values: ManuallyDrop<ExchangeScratch<V, B, N>>,
}

without_elements!([K: SharedElement, V: SharedElement, const B: usize, const N: usize] SortScratch<K, B, N, V>, K);

/// In which order a sort puts items, and by which bits of their keys: [`Ascending`], [`Descending`], or one of them
/// [`of_bits`](Ascending::of_bits). A type, since threads that disagreed would wait for each other at different barriers.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use sort::{RadixKey, RadixOrder};
///
/// /// The first of the keys of a block, in any order.
/// fn first<K: RadixKey, O: RadixOrder, const ID: usize>(
///     t: &Thread<1>, scratch: &mut Shared<SortScratch<K, 32, 1>, ID>, key: K, order: O,
/// ) -> Option<K> {
///     let [key] = t.block_radix_sort(scratch, [key], order);
///     (t.thread_rank() == 0).then_some(key)
/// }
///
/// #[kernel(block = 32)]
/// pub fn least_and_greatest(
///     t: Thread<1>, x: &[i64], y: &[DeviceAtomic<i64>], mut scratch: Shared<SortScratch<i64, 32, 1>>,
/// ) {
///     let mine = x[t.index().get()];
///     let least = first(&t, &mut scratch, mine, sort::Ascending);
///     let greatest = first(&t, &mut scratch, mine, sort::Descending);
///     for (y, found) in y.iter().zip([least, greatest]) {
///         found.map(|found| y.store(found, atomic::Ordering::Relaxed));
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..32).map(|i| i * 5 % 32 - 9).collect::<Vec<i64>>())?;
/// let mut y = stream.zeros(2)?;
/// kernels::least_and_greatest(&stream, Grid::cover(32), &x, y.as_atomic())?;
/// assert_eq!(stream.download(&y)?, [-9, 22]);
/// # Ok(()) }
/// ```
pub trait RadixOrder: Copy + sealed::Order {}

mod sealed {
    /// What a sort needs to know.
    pub trait Order {
        const DESCENDING: bool;
        /// The first bit and the one behind the last; all bits of the key unless told.
        const BITS: Option<(u32, u32)>;
    }
}

/// The least key first; items with one key stay in order (CUB's `Sort`).
#[derive(Clone, Copy, Debug)]
pub struct Ascending;

/// The greatest key first; items with one key stay in order (CUB's `SortDescending`).
#[derive(Clone, Copy, Debug)]
pub struct Descending;

/// By bits `BEGIN` to `END - 1` of the keys alone; see [`Ascending::of_bits`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use sort::{Ascending, OfBits};
///
/// /// By the exponents of numbers that are not negative.
/// const BY_MAGNITUDE: OfBits<Ascending, 23, 31> = Ascending.of_bits();
///
/// /// Brings a block's numbers into the order of their magnitudes; those of one magnitude stay in order.
/// #[kernel(block = 32)]
/// pub fn by_magnitude(t: Thread<1>, mut x: DisjointSlice<f32>, mut scratch: Shared<SortScratch<f32, 32, 1>>) {
///     let mine = x.get_mut(t.index()).map_or(0.0, |x| *x);
///     let [sorted] = t.block_radix_sort(&mut scratch, [mine], BY_MAGNITUDE);
///     if let Some(x) = x.get_mut(t.index()) {
///         *x = sorted;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&(1..=32).rev().map(|x| x as f32).collect::<Vec<_>>())?;
/// kernels::by_magnitude(&stream, Grid::cover(32), &mut x)?;
/// assert_eq!(stream.download(&x)?[..8], [1.0, 3.0, 2.0, 7.0, 6.0, 5.0, 4.0, 15.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OfBits<O, const BEGIN: u32, const END: u32>(O);

macro_rules! order {
    ($name:ident, $descending:literal) => {
        impl $name {
            /// By bits `BEGIN` to `END - 1` of the keys alone, bit 0 the lowest (CUB's `begin_bit` and `end_bit`): a pass
            /// for each four of them. For numbers with a sign bits are those of the key's place in the order: 0 for the
            /// least, all bits set for the greatest. That `END` is beyond the key's bits, or not above `BEGIN`, is a
            /// compile error. [`OfBits`] has an example.
            #[inline(always)]
            pub const fn of_bits<const BEGIN: u32, const END: u32>(self) -> OfBits<Self, BEGIN, END> {
                OfBits(self)
            }
        }

        impl RadixOrder for $name {}
        impl sealed::Order for $name {
            const DESCENDING: bool = $descending;
            const BITS: Option<(u32, u32)> = None;
        }
    };
}

order!(Ascending, false);
order!(Descending, true);

impl<O: RadixOrder, const BEGIN: u32, const END: u32> RadixOrder for OfBits<O, BEGIN, END> {}
impl<O: RadixOrder, const BEGIN: u32, const END: u32> sealed::Order for OfBits<O, BEGIN, END> {
    const DESCENDING: bool = O::DESCENDING;
    const BITS: Option<(u32, u32)> = Some((BEGIN, END));
}

/// Sorts of a block's items. Like barriers, which they contain, all threads come to them together: the build step proves it. A block
/// that has not the number of threads that the scratch memory is for panics.
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
    /// The keys of all threads of the block in order: thread `i` gets those at places `i * N` to `i * N + N - 1` (CUB's
    /// `BlockRadixSort::Sort`, `SortDescending`). Keys whose bits are the same where the order looks stay in the order of
    /// threads, and within a thread of items.
    ///
    /// `scratch` is a region for it alone, `mut scratch: Shared<SortScratch<u32, 256, 8>>`, which may be used again and
    /// again.
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

    /// As [`Thread::block_radix_sort`], but thread `i` gets the keys at places `i`, `i + B`, `i + 2 * B`, and so on (CUB's
    /// `SortBlockedToStriped`): neighbouring threads store neighbouring keys.
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

    /// The keys of all threads of the block in order, as [`Thread::block_radix_sort`] gives them, each with the value that
    /// came with it (CUB's `BlockRadixSort::Sort` of keys and values). `scratch` has the type of both:
    /// `mut scratch: Shared<SortScratch<u32, 256, 8, f32>>`.
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
        // The last pass apart where it ends in another arrangement: chosen in the loop, all addresses of both would be
        // kept in registers.
        let blocked =
            if STRIPED { (bits.end - 1 - bits.start) / DIGIT * DIGIT + bits.start } else { bits.end };
        let mut begin = bits.start;
        // SAFETY: all threads come here together, with one region and the same bits, which are in a type. The memory is as said
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

    /// Puts keys, and values if there are `PAIRS`, in the order of the keys' digits.
    ///
    /// # Safety
    /// `memory` is of the block's own, and of a sort of `B` threads with `N`
    /// items each; nobody has used it since the last barrier.
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

    /// Where each of the thread's items goes, in the order of their digits.
    ///
    /// # Safety
    /// `counts` and `totals` are memory of the block's own, which nobody has used since the last barrier, and the block has `B`
    /// threads.
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
            // Digits of the upper halves come behind all of the lower ones.
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

/// The memory of a sort, as one of the block's threads uses it: all but the totals in turn.
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

/// The bits of a key of `all` that an order looks at.
const fn bits<O: RadixOrder>(all: u32) -> Range<u32> {
    match O::BITS {
        None => 0..all,
        Some((begin, end)) => {
            assert!(begin < end, "a sort by bits `BEGIN` to `END - 1` of its keys needs one at least");
            assert!(end <= all, "a sort looks at bits that its keys have");
            begin..end
        }
    }
}

#[inline(always)]
fn flipped_if<T: Bits>(descending: bool, bits: T) -> T {
    if descending { bits.flipped() } else { bits }
}

/// How often a thread has each digit, two in a word, `d` and `d + 8`; and for each of its items how many before it have the
/// same. In registers: 4 bits suffice for a digit if there are no more than 15 items, else 8.
#[inline(always)]
fn own_counts<const N: usize>(digits: [u32; N]) -> ([u32; WORDS], [u32; N]) {
    let mut before = [0; N];
    if N < 16 {
        let mut counts = 0_u64;
        for k in 0..N {
            let shift = 4 * digits[k];
            before[k] = (counts >> shift) as u32 & 15;
            counts += 1 << shift;
        }
        let (low, high) = (counts as u32, (counts >> 32) as u32);
        return (core::array::from_fn(|d| low >> (4 * d) & 15 | (high >> (4 * d) & 15) << 16), before);
    }
    let (mut low, mut high) = (0_u64, 0_u64);
    for k in 0..N {
        let (shift, is_low) = (8 * (digits[k] % 8), digits[k] < 8);
        before[k] = (if is_low { low } else { high } >> shift) as u32 & 255;
        let one = 1 << shift;
        (low, high) = if is_low { (low + one, high) } else { (low, high + one) };
    }
    let word = |d: usize| (low >> (8 * d)) as u32 & 255 | ((high >> (8 * d)) as u32 & 255) << 16;
    (core::array::from_fn(word), before)
}

/// The block's counts in shared memory: a row for each word of a thread, with a column for each thread.
#[derive(Clone, Copy)]
struct Counts<const B: usize> {
    start: *mut u32,
    /// The thread's rank.
    rank: u32,
}

impl<const B: usize> Counts<B> {
    /// Of memory with `SEGMENT * B` words.
    #[inline(always)]
    fn new<const R: usize>(start: *mut u32, thread: &Thread<'_, R>) -> Self {
        Counts { start, rank: thread.thread_rank() }
    }

    /// Writes the thread's own words, and 0 into the row behind them.
    ///
    /// # Safety
    /// Nobody else reads or writes but this thread's columns.
    #[inline(always)]
    unsafe fn write_columns(self, words: [u32; WORDS]) {
        let column = self.start.wrapping_add(self.rank as usize);
        for row in 0..WORDS {
            // SAFETY: within the memory, and this thread's alone, as the caller vouches.
            unsafe { column.add(row * B).write(words[row]) };
        }
        // SAFETY: as above.
        unsafe { column.add(WORDS * B).write(0) };
    }

    /// The words that the thread sums up, neighbours in the order of rows.
    ///
    /// # Safety
    /// Nobody writes.
    #[inline(always)]
    unsafe fn read_segment(self) -> [u32; SEGMENT] {
        let first = self.start.wrapping_add(self.rank as usize * SEGMENT);
        // SAFETY: within the memory, and not written now, as the caller vouches.
        core::array::from_fn(|at| unsafe { first.add(at).read() })
    }

    /// Replaces those words by the sums of what is before them: `first`, and the words.
    ///
    /// # Safety
    /// Nobody else reads or writes but such words of its own.
    #[inline(always)]
    unsafe fn write_segment(self, words: [u32; SEGMENT], first: u32) {
        let place = self.start.wrapping_add(self.rank as usize * SEGMENT);
        let mut sum = first;
        for at in 0..SEGMENT {
            // SAFETY: within the memory, and this thread's alone, as the caller vouches.
            unsafe { place.add(at).write(sum) };
            sum += words[at];
        }
    }

    /// What stands for one of the thread's digits.
    ///
    /// # Safety
    /// Nobody writes.
    #[inline(always)]
    unsafe fn read(self, digit: u32) -> u32 {
        let word = (digit % 8) * B as u32 + self.rank;
        // SAFETY: within the memory, half a word, and not written now, as the caller vouches.
        u32::from(unsafe { self.start.cast::<u16>().add((2 * word + digit / 8) as usize).read() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted<const N: usize>(digit: u32) {
        let (words, before) = own_counts([digit; N]);
        assert_eq!(before, core::array::from_fn(|k| k as u32), "{N} items with digit {digit}");
        let count = |d: u32| words[d as usize % WORDS] >> (16 * (d / WORDS as u32)) & 0xffff;
        for other in 0..16 {
            assert_eq!(count(other), if other == digit { N as u32 } else { 0 }, "{N} items, digit {other}");
        }
    }

    #[test]
    fn equal_digits_are_counted_up_to_the_last_item() {
        for digit in 0..16 {
            counted::<1>(digit);
            counted::<15>(digit);
            counted::<16>(digit);
            counted::<17>(digit);
        }
    }
}
