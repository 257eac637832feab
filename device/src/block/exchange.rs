//! Rearranges a block's items (CUB's `BlockExchange`): between the blocked arrangement, in which thread `t`
//! has `N` neighbours, and the striped one, in which item `i` of thread `t` is element `i * threads + t`; and
//! to positions that ranks name.
//!
//! Each operation writes all items to shared memory, waits, reads them, and waits: two barriers. Where a
//! thread's items would fall into one bank, one column stays free after each 128 bytes.
//!
//! ```
//! use ferrogrid_device::prelude::*;
//!
//! /// Four neighbouring elements of `x` for each thread, loaded by neighbouring threads from neighbouring places.
//! fn neighbours<const ID: usize>(
//!     t: &Thread<1>,
//!     scratch: &mut Shared<ExchangeScratch<f32, 256, 4>, ID>,
//!     x: &[f32],
//! ) -> [f32; 4] {
//!     let first = t.block_idx()[0] as usize * 1024 + t.thread_rank() as usize;
//!     let striped = core::array::from_fn(|k| x.get(first + 256 * k).copied().unwrap_or(0.0));
//!     t.block_striped_to_blocked(scratch, striped)
//! }
//! ```

#![expect(
    clippy::needless_range_loop,
    reason = "LLVM unrolls a loop over indices and keeps items in registers, but not a loop over an array's iterator"
)]

use crate::shared::{Shared, SharedElement, without_elements};
use crate::thread::Thread;

/// Shared memory for an exchange of `N` items per thread among `B` threads (the `TempStorage` of CUB's
/// `BlockExchange`): room for `N + 1` items per thread. No thread owns any of it, so nothing else can write
/// there.
///
/// `B` is the number of threads of the block, a multiple of 32; `N` is 1 to 32. Other values are a compile
/// error at the point of use.
///
/// ```
/// use ferrogrid_device::ExchangeScratch;
///
/// /// The shared memory that it takes of a block, in bytes.
/// const BYTES: usize = size_of::<ExchangeScratch<f32, 256, 4>>();
/// assert_eq!(BYTES, 256 * 5 * 4);
/// ```
#[repr(C)]
pub struct ExchangeScratch<T, const B: usize, const N: usize> {
    items: [[T; N]; B],
    columns: [T; B],
}

without_elements!([T: SharedElement, const B: usize, const N: usize] ExchangeScratch<T, B, N>, T);

/// The slots of `B * N` items in an [`ExchangeScratch`], as one thread of the block uses them.
#[derive(Clone, Copy)]
pub(crate) struct Places<T, const B: usize, const N: usize> {
    start: *mut T,
    /// The thread's rank.
    rank: u32,
}

impl<T: Copy, const B: usize, const N: usize> Places<T, B, N> {
    /// The number of items of the block.
    pub(crate) const ITEMS: u32 = {
        assert!(
            B.is_multiple_of(32) && 0 < B && B <= 1024,
            "a block that exchanges has a multiple of 32 threads"
        );
        assert!(0 < N && N <= 32, "a thread has 1 to 32 items to exchange");
        (B * N) as u32
    };

    /// Log2 of the number of items between two columns that stay free: 128 bytes of items, and at least those
    /// of a thread. With an odd number of items per thread no free columns are needed: they fall into
    /// different banks.
    const SHIFT: Option<u32> = {
        let line = match size_of::<T>() {
            0..=4 => 5,
            5..=8 => 4,
            _ => 3,
        };
        match N {
            1 => None,
            _ if !N.is_power_of_two() => None,
            _ if N.ilog2() > line => Some(N.ilog2()),
            _ => Some(line),
        }
    };

    /// # Safety
    /// `start` points to an `ExchangeScratch<T, B, N>` in the shared memory of the thread's block, which has
    /// `B` threads.
    #[inline(always)]
    pub(crate) unsafe fn new<const R: usize>(start: *mut T, thread: &Thread<'_, R>) -> Self {
        // Evaluates the assertions about `B` and `N` in any case.
        const { assert!(Self::ITEMS > 0) };
        Places { start, rank: thread.thread_rank() }
    }

    /// The slot of item `number` of the block.
    #[inline(always)]
    fn at(self, number: u32) -> *mut T {
        let free = Self::SHIFT.map_or(0, |shift| number >> shift);
        // SAFETY: numbers are below `B * N`, and columns below `B`: there is room for both.
        unsafe { self.start.add((number + free) as usize) }
    }

    /// The slot of the thread's first item in the blocked arrangement. The others follow it directly, because
    /// no free column lies between them.
    #[inline(always)]
    fn first(self) -> *mut T {
        self.at(self.rank * N as u32)
    }

    /// # Safety
    /// No other thread reads or writes between the barriers before and after it, but in this arrangement.
    #[inline(always)]
    pub(crate) unsafe fn write_blocked(self, items: [T; N]) {
        for k in 0..N {
            // SAFETY: within the memory, and this thread's alone, as the caller vouches.
            unsafe { self.first().add(k).write(items[k]) };
        }
    }

    /// # Safety
    /// As for `write_blocked`.
    #[inline(always)]
    pub(crate) unsafe fn write_striped(self, items: [T; N]) {
        for k in 0..N {
            // SAFETY: within the memory, and this thread's alone, as the caller vouches.
            unsafe { self.at(k as u32 * B as u32 + self.rank).write(items[k]) };
        }
    }

    /// Several threads may write to one slot.
    ///
    /// # Safety
    /// Between the barriers before and after it, other threads read or write only in this way.
    #[inline(always)]
    pub(crate) unsafe fn scatter(self, items: [T; N], ranks: [u32; N]) {
        for k in 0..N {
            let rank = ranks[k];
            assert!(rank < Self::ITEMS, "an item's rank is {rank}, but the block has {} items", Self::ITEMS);
            // SAFETY: within the memory; no thread reads, as the caller vouches. Volatile stores of several threads to
            // one slot are no data race in PTX (relaxed); on the CPU device the threads of a block take turns.
            unsafe { self.at(rank).write_volatile(items[k]) };
        }
    }

    /// [`Places::scatter`] to slots that are known to be different.
    ///
    /// # Safety
    /// As for `scatter`, and no two ranks of the block are the same, and all are below `B * N`.
    #[inline(always)]
    pub(crate) unsafe fn scatter_unchecked(self, items: [T; N], ranks: [u32; N]) {
        for k in 0..N {
            // SAFETY: within the memory, and this thread's alone, as the caller vouches.
            unsafe { self.at(ranks[k]).write(items[k]) };
        }
    }

    /// Item `number` in thread order.
    ///
    /// # Safety
    /// It is below `B * N`, and no thread writes.
    #[inline(always)]
    pub(crate) unsafe fn read(self, number: u32) -> T {
        // SAFETY: within the memory, and not written now, as the caller vouches.
        unsafe { self.at(number).read() }
    }

    /// # Safety
    /// All items were written before a barrier, and none is written before the next; or `T` takes any bits.
    #[inline(always)]
    pub(crate) unsafe fn read_blocked(self) -> [T; N] {
        // SAFETY: within the memory, and not written now, as the caller vouches.
        core::array::from_fn(|k| unsafe { self.first().add(k).read() })
    }

    /// # Safety
    /// As for `read_blocked`.
    #[inline(always)]
    pub(crate) unsafe fn read_striped(self) -> [T; N] {
        // SAFETY: within the memory, and not written now, as the caller vouches.
        core::array::from_fn(|k| unsafe { self.at(k as u32 * B as u32 + self.rank).read() })
    }
}

/// Panics, in all threads, unless the block has `B` threads.
#[track_caller]
#[inline(always)]
pub(crate) fn expect_threads<const R: usize, const B: usize>(thread: &Thread<'_, R>) {
    let threads = thread.block_threads();
    assert!(
        threads == B as u32,
        "the scratch memory is for blocks of {B} threads, but this block has {threads}"
    );
}

/// Exchanges of a block's items. They contain barriers, so all threads must reach them together, which the
/// build step proves. They panic if the number of threads is not that of the scratch memory.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Running sums within each 4 elements: neighbouring threads load and store neighbouring elements, but each adds
/// /// up four that are next to each other.
/// #[kernel(block = 64)]
/// pub fn sums_of_four(
///     t: Thread<1>, x: &[u32], mut y: DisjointRows<u32>, mut scratch: Shared<ExchangeScratch<u32, 64, 4>>,
/// ) {
///     let rank = t.thread_rank() as usize;
///     let striped = core::array::from_fn(|k| x[64 * k + rank]);
///     let mut items = t.block_striped_to_blocked(&mut scratch, striped);
///     for k in 1..4 {
///         items[k] += items[k - 1];
///     }
///     let striped = t.block_blocked_to_striped(&mut scratch, items);
///     y.fill_with(&t, |column| striped[column / 64]);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..256).collect::<Vec<u32>>())?;
/// let mut y = stream.zeros(256)?;
/// kernels::sums_of_four(&stream, Grid::new(1, 64), &x, y.view_2d_mut(256, 1)?)?;
/// assert_eq!(stream.download(&y)?[4..12], [4, 9, 15, 22, 8, 17, 27, 38]);
/// # Ok(()) }
/// ```
impl<const R: usize> Thread<'_, R> {
    /// From the blocked to the striped arrangement: thread `i` passes items `i * N` to `i * N + N - 1` of the
    /// block and gets items `i`, `i + B`, `i + 2 * B`, and so on (CUB's `BlockExchange::BlockedToStriped`).
    /// So results for neighbouring items are stored by neighbouring threads.
    #[track_caller]
    #[inline(always)]
    pub fn block_blocked_to_striped<T, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, ExchangeScratch<T, B, N>, ID>,
        items: [T; N],
    ) -> [T; N]
    where
        T: SharedElement + Copy,
    {
        // SAFETY: all threads come here together, with one region. Before the first barrier each writes only
        // its own slots and no thread reads: the last exchange ended with a barrier. Before the second no
        // thread writes.
        unsafe {
            let places = self.exchange_places(scratch);
            places.write_blocked(items);
            self.sync_threads();
            let items = places.read_striped();
            self.sync_threads();
            items
        }
    }

    /// From the striped to the blocked arrangement, the inverse of [`Thread::block_blocked_to_striped`]
    /// (CUB's `BlockExchange::StripedToBlocked`). What neighbouring threads loaded from neighbouring elements
    /// becomes runs of consecutive items, as scans and sorts take them.
    #[track_caller]
    #[inline(always)]
    pub fn block_striped_to_blocked<T, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, ExchangeScratch<T, B, N>, ID>,
        items: [T; N],
    ) -> [T; N]
    where
        T: SharedElement + Copy,
    {
        // SAFETY: as in `block_blocked_to_striped`.
        unsafe {
            let places = self.exchange_places(scratch);
            places.write_striped(items);
            self.sync_threads();
            let items = places.read_blocked();
            self.sync_threads();
            items
        }
    }

    /// Moves each item to the position that its rank names, of `B * N` in the block; thread `i` gets those at
    /// positions `i * N` to `i * N + N - 1` (CUB's `BlockExchange::ScatterToBlocked`).
    ///
    /// A rank that is not below `B * N` panics. If several items have one rank, one of them arrives (of items
    /// with more than 8 bytes, possibly parts of several). A position that no rank names gets arbitrary bits,
    /// like uninitialised shared memory.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The sums of four neighbours each, after each element has gone to the place with its number's bits reversed.
    /// #[kernel(block = 64)]
    /// pub fn sums(
    ///     t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>, mut scratch: Shared<ExchangeScratch<u32, 64, 4>>,
    /// ) {
    ///     let rank = t.thread_rank();
    ///     let items = core::array::from_fn(|k| x[64 * k + rank as usize]);
    ///     let places = core::array::from_fn(|k| (64 * k as u32 + rank).reverse_bits() >> 24);
    ///     let neighbours = t.block_scatter_to_blocked(&mut scratch, items, places);
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = neighbours.iter().sum();
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..256).collect::<Vec<u32>>())?;
    /// let mut y = stream.zeros(64)?;
    /// kernels::sums(&stream, Grid::new(1, 64), &x, &mut y)?;
    /// assert_eq!(stream.download(&y)?[..2], [0 + 128 + 64 + 192, 32 + 160 + 96 + 224]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn block_scatter_to_blocked<T, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, ExchangeScratch<T, B, N>, ID>,
        items: [T; N],
        ranks: [u32; N],
    ) -> [T; N]
    where
        T: SharedElement + Copy,
    {
        // SAFETY: as in `block_blocked_to_striped`, and `T` takes any bits.
        unsafe {
            let places = self.exchange_places(scratch);
            places.scatter(items, ranks);
            self.sync_threads();
            let items = places.read_blocked();
            self.sync_threads();
            items
        }
    }

    /// Moves each item to the position that its rank names, of `B * N` in the block; thread `i` gets those at
    /// positions `i`, `i + B`, `i + 2 * B`, and so on (CUB's `BlockExchange::ScatterToStriped`). Ranks are as
    /// for [`Thread::block_scatter_to_blocked`].
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Turns 256 elements around: neighbouring threads load and store neighbouring ones.
    /// #[kernel(block = 64)]
    /// pub fn reverse(
    ///     t: Thread<1>, x: &[u32], mut y: DisjointRows<u32>, mut scratch: Shared<ExchangeScratch<u32, 64, 4>>,
    /// ) {
    ///     let rank = t.thread_rank();
    ///     let items = core::array::from_fn(|k| x[64 * k + rank as usize]);
    ///     let places = core::array::from_fn(|k| 255 - (64 * k as u32 + rank));
    ///     let striped = t.block_scatter_to_striped(&mut scratch, items, places);
    ///     y.fill_with(&t, |column| striped[column / 64]);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..256).collect::<Vec<u32>>())?;
    /// let mut y = stream.zeros(256)?;
    /// kernels::reverse(&stream, Grid::new(1, 64), &x, y.view_2d_mut(256, 1)?)?;
    /// assert_eq!(stream.download(&y)?, (0..256).rev().collect::<Vec<u32>>());
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn block_scatter_to_striped<T, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, ExchangeScratch<T, B, N>, ID>,
        items: [T; N],
        ranks: [u32; N],
    ) -> [T; N]
    where
        T: SharedElement + Copy,
    {
        // SAFETY: as in `block_scatter_to_blocked`.
        unsafe {
            let places = self.exchange_places(scratch);
            places.scatter(items, ranks);
            self.sync_threads();
            let items = places.read_striped();
            self.sync_threads();
            items
        }
    }

    #[track_caller]
    #[inline(always)]
    fn exchange_places<T, const ID: usize, const B: usize, const N: usize>(
        &self,
        scratch: &mut Shared<'_, ExchangeScratch<T, B, N>, ID>,
    ) -> Places<T, B, N>
    where
        T: SharedElement + Copy,
    {
        expect_threads::<R, B>(self);
        self.agree_on(scratch);
        // SAFETY: that is what the region is, and the block has `B` threads.
        unsafe { Places::new(scratch.as_mut_ptr().cast(), self) }
    }
}
