//! Items of a block change places: between arrangements in which each thread has items next to each other (blocked) or
//! every so-manieth (striped), and to places that ranks name. It must not know why they change places.
//!
//! Each of these writes all items into shared memory, waits, reads them, and waits: two barriers. A column is left free
//! after each 128 bytes where items of a thread would else lie in one bank.
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
    reason = "LLVM unrolls a loop over numbers, and then keeps items in registers; that over an array's iterator it does not"
)]

use crate::shared::{Shared, SharedElement, without_elements};
use crate::thread::Thread;

/// What an exchange of `N` items of each of `B` threads needs of shared memory (the `TempStorage` of CUB's
/// `BlockExchange`): room for `N + 1` items of each thread. No thread owns any of it, so nothing else can write there.
///
/// `B` is the number of threads of the block, a multiple of 32; `N` is 1 to 32. Others are a compile error where they are
/// used.
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

/// The places of `B * N` items in shared memory that is an [`ExchangeScratch`], as one of the block's threads uses them.
#[derive(Clone, Copy)]
pub(crate) struct Places<T, const B: usize, const N: usize> {
    start: *mut T,
    /// The thread's rank.
    rank: u32,
}

impl<T: Copy, const B: usize, const N: usize> Places<T, B, N> {
    /// How many items the block has.
    pub(crate) const ITEMS: u32 = {
        assert!(
            B.is_multiple_of(32) && 0 < B && B <= 1024,
            "a block that exchanges has a multiple of 32 threads"
        );
        assert!(0 < N && N <= 32, "a thread has 1 to 32 items to exchange");
        (B * N) as u32
    };

    /// How many items as a power of two lie between two columns that are left free: those of 128 bytes, and those of a
    /// thread at least. Items of an odd number for each thread lie in different banks as they are.
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
    /// `start` is that of an `ExchangeScratch<T, B, N>` in the shared memory of the thread's block, which has `B`
    /// threads.
    #[inline(always)]
    pub(crate) unsafe fn new<const R: usize>(start: *mut T, thread: &Thread<'_, R>) -> Self {
        // What else is said of `B` and `N`, whoever uses the places.
        const { assert!(Self::ITEMS > 0) };
        Places { start, rank: thread.thread_rank() }
    }

    /// Where item `number` of the block lies.
    #[inline(always)]
    fn at(self, number: u32) -> *mut T {
        let free = Self::SHIFT.map_or(0, |shift| number >> shift);
        // SAFETY: numbers are below `B * N`, and columns below `B`: there is room for both.
        unsafe { self.start.add((number + free) as usize) }
    }

    /// Where the first item of the thread lies in the blocked arrangement; the others lie behind it, as no column is left
    /// free between them.
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

    /// Several threads may write to one place.
    ///
    /// # Safety
    /// No other thread reads or writes between the barriers before and after it, but in this way.
    #[inline(always)]
    pub(crate) unsafe fn scatter(self, items: [T; N], ranks: [u32; N]) {
        for k in 0..N {
            let rank = ranks[k];
            assert!(rank < Self::ITEMS, "an item's rank is {rank}, but the block has {} items", Self::ITEMS);
            // Volatile stores of several threads to one place are no data race in PTX (relaxed); on the CPU device the
            // threads of a block take turns.
            // SAFETY: within the memory; nobody reads, as the caller vouches.
            unsafe { self.at(rank).write_volatile(items[k]) };
        }
    }

    /// [`Places::scatter`] to places that are known to be different.
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

    /// Item `number`, in the order of threads.
    ///
    /// # Safety
    /// It is below `B * N`, and nobody writes.
    #[inline(always)]
    pub(crate) unsafe fn read(self, number: u32) -> T {
        // SAFETY: within the memory, and not written now, as the caller vouches.
        unsafe { self.at(number).read() }
    }

    /// # Safety
    /// All items have been written before a barrier, and none is before the next; or `T` takes any bits.
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

/// Exchanges of a block's items. Like barriers, which they contain, all threads come to them together: the build step proves it. A
/// block that has not the number of threads that the scratch memory is for panics.
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
    /// From items next to each other to striped ones: thread `i` brings items `i * N` to `i * N + N - 1` of the block,
    /// and gets items `i`, `i + B`, `i + 2 * B`, and so on (CUB's `BlockExchange::BlockedToStriped`). So what threads
    /// computed on neighbouring items is stored by neighbouring threads in neighbouring places.
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
        // SAFETY: all threads come here together, with one region. Before the first barrier each writes in its own places and
        // nobody reads: the last exchange ended with a barrier. Before the second nobody writes.
        unsafe {
            let places = self.exchange_places(scratch);
            places.write_blocked(items);
            self.sync_threads();
            let items = places.read_striped();
            self.sync_threads();
            items
        }
    }

    /// From striped items to items next to each other, the opposite of [`Thread::block_blocked_to_striped`] (CUB's
    /// `BlockExchange::StripedToBlocked`): what neighbouring threads loaded from neighbouring places becomes runs of
    /// neighbouring items, as scans and sorts take them.
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

    /// Each item to the place in the block that its rank says, of `B * N`; thread `i` gets those at places `i * N` to
    /// `i * N + N - 1` (CUB's `BlockExchange::ScatterToBlocked`).
    ///
    /// A rank that is not below `B * N` panics. If several items have one rank, one of them arrives (of items with
    /// more than 8 bytes, perhaps parts of several). What arrives at a place that no rank names is not defined: any bits,
    /// as in shared memory that nobody has written.
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

    /// Each item to the place in the block that its rank says, of `B * N`; thread `i` gets those at places `i`, `i + B`,
    /// `i + 2 * B`, and so on (CUB's `BlockExchange::ScatterToStriped`). Ranks are as for
    /// [`Thread::block_scatter_to_blocked`].
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
