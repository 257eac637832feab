//! [`EachThread`]: each thread of a block publishes a value of its own, and combines those of the same thread in
//! earlier blocks.

use core::marker::PhantomData;

use super::slots::{HEAD, OWN, OrderValue, Slots, TOTAL, sealed};
use super::{BlockOrder, EarlierBlocks};
use crate::atomic::Ordering;
use crate::thread::Thread;
use crate::warp::{Exchange, value_of, words_of};

/// Stands for a value of each thread of a block, in `BlockOrder<EachThread<T, N>>`: `N` threads, and a `T` of up to 4 bytes.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The running sums of each of 32 columns, 4 rows to a block.
/// #[kernel(block = 32)]
/// pub fn down(
///     t: Thread<1>, x: &[u32], mut sums: DisjointChunks<u32, 128>, order: BlockOrder<EachThread<u32, 32>>,
/// ) {
///     let first = 128 * t.block_idx()[0] as usize + t.thread_rank() as usize;
///     let own: [u32; 4] = core::array::from_fn(|row| x[first + 32 * row]);
///     let earlier = order.publish_each(&t, own.iter().sum());
///     let before = earlier.exclusive_each(&t, own.iter().sum(), |a, b| a + b).unwrap_or(0);
///     sums.fill_with(&t, |place| before + own[..=place % 128 / 32].iter().sum::<u32>());
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..384).map(|i| i % 32).collect::<Vec<u32>>())?; // row 0 to 11: 0, 1, ..., 31
/// let mut sums = stream.zeros(384)?;
/// kernels::down(&stream, Grid::blocks(3), &x, &mut sums)?;
/// let sums = stream.download(&sums)?;
/// assert_eq!((sums[5], sums[7 * 32 + 5], sums[383]), (5, 8 * 5, 12 * 31));
/// # Ok(()) }
/// ```
pub struct EachThread<T, const N: usize>(PhantomData<T>);

impl<T: Exchange, const N: usize> sealed::OrderValue for EachThread<T, N> {}

impl<T: Exchange, const N: usize> OrderValue for EachThread<T, N> {
    /// The state of the block in the first word, and one word for each thread. Blocks begin 128 bytes apart, or a multiple.
    const STRIDE: usize = {
        assert!(T::BYTES <= 4, "each thread publishes a value of at most 4 bytes");
        N.next_multiple_of(16) + 16
    };
}

impl<'a, T: Exchange, const N: usize> BlockOrder<'a, EachThread<T, N>> {
    /// Publishes a value of each thread. It waits for all threads of the block, and for no other block.
    ///
    /// [`EachThread`] has an example.
    ///
    /// # Panics
    /// If the block does not have `N` threads.
    #[track_caller]
    #[inline(always)]
    pub fn publish_each(self, thread: &Thread<'_, 1>, value: T) -> EarlierBlocks<'a, EachThread<T, N>> {
        let threads = thread.block_threads() as usize;
        assert!(threads == N, "the order is for blocks of {N} threads, but this block has {threads}");
        self.slots.set_column(thread.thread_rank(), OWN, value);
        // Each thread has published when thread 0 says so. If one cannot, thread 0 ends without saying so.
        thread.sync_threads();
        if thread.thread_rank() == 0 {
            self.slots.set_published();
        }
        EarlierBlocks { slots: self.slots }
    }
}

impl<T: Exchange, const N: usize> EarlierBlocks<'_, EachThread<T, N>> {
    /// The values of this thread's rank in all earlier blocks, combined from the first to the last; `None` in block 0. Then
    /// publishes the total up to this block. `value` is what the thread published before. Any thread may call it, independently
    /// of the others.
    ///
    /// This is decoupled look-back for each thread, as in CUB's `DeviceRadixSort`: back to the nearest block whose thread has
    /// published a total. `combine` must be associative, but need not be commutative.
    ///
    /// # Panics
    /// If an earlier block ended without values.
    #[track_caller]
    #[inline(always)]
    pub fn exclusive_each(self, thread: &Thread<'_, 1>, value: T, combine: impl Fn(T, T) -> T) -> Option<T> {
        let rank = thread.thread_rank();
        let (mut end, mut before) = (self.slots.block, None);
        // Whether the thread has looked far enough.
        let mut ends_at = |end: u32, word: u64| {
            if end == 0 {
                return true;
            }
            let word = if self.slots.is_empty(word) { self.slots.filled_column(end - 1, rank) } else { word };
            let found = value_of([word as u32, 0, 0, 0]);
            before = Some(before.map_or(found, |later| combine(found, later)));
            self.slots.is(word, TOTAL)
        };
        loop {
            // Two at a time: their loads don't wait for each other. Block 0 stands for those that are not there. LLVM would not
            // unroll a loop over them, nor put a kernel with more of them in line.
            let after = |distance| end.saturating_sub(distance);
            let word = |distance| self.slots.column(after(distance), rank);
            let (first, second) = (word(1), word(2));
            if ends_at(end, first) || ends_at(after(1), second) {
                break;
            }
            end = after(2);
        }
        let total = before.map_or(value, |before| combine(before, value));
        self.slots.set_column(rank, TOTAL, total);
        before
    }
}

impl<T: Exchange, const N: usize> Slots<'_, EachThread<T, N>> {
    /// Sets the word of the thread with this rank in the block's own slot. State and value are one word, which orders nothing
    /// else.
    #[inline(always)]
    fn set_column(&self, rank: u32, state: u32, value: T) {
        let ([low, ..], _) = words_of(value);
        self.word(self.block, Self::place(rank)).store(self.filled(state, low), Ordering::Relaxed);
    }

    /// The word of that thread in the slot of block `earlier`.
    #[inline(always)]
    fn column(&self, earlier: u32, rank: u32) -> u64 {
        self.word(earlier, Self::place(rank)).load(Ordering::Relaxed)
    }

    /// The same, once it has a value.
    #[track_caller]
    #[inline(always)]
    fn filled_column(&self, earlier: u32, rank: u32) -> u64 {
        self.wait_for(earlier, Self::place(rank), Ordering::Relaxed)
    }

    #[inline(always)]
    fn place(rank: u32) -> usize {
        // `publish_each` panics in larger blocks, so no such thread comes here.
        HEAD + rank as usize % N
    }
}
