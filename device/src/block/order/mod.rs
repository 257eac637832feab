//! Blocks numbered in the order in which they start, so that a block may wait for results of earlier ones
//! whatever the scheduler does (decoupled look-back). `slots` is the memory in which blocks publish their values; `each` is for a value of each thread.

mod each;
mod slots;

use crate::atomic::Ordering;
use crate::shared::{Scratch, Shared, SharedElement};
use crate::thread::Thread;
use crate::warp::Exchange;
pub use each::EachThread;
#[cfg(not(target_arch = "nvptx64"))]
pub use slots::EndOfBlock;
pub use slots::{MOST_LAUNCHES, OrderValue, assert_published, end_block, words_for};
use slots::{OWN, Slots, TOTAL};

/// Numbers the blocks of a kernel in the order in which they start, and lets each wait for values that
/// earlier ones publish.
///
/// In a kernel with this parameter `t.block_idx()` and `t.index()` follow that order: block 0 is the one that
/// started first. (In CUDA C++ the block takes a ticket, `atomicAdd(&next, 1)` by one thread and
/// `__syncthreads()`, and uses it instead of `blockIdx.x`.) So a block that waits for a lower number waits
/// for a block that already runs or has ended. A block publishes its value by [`BlockOrder::publish`] or
/// [`BlockOrder::exclusive`]. Waits that could never end are refused:
///
/// | what would wait forever | what happens |
/// |---|---|
/// | for the block itself or a later one | a panic in the thread that waits |
/// | for a block that has ended without a value | a panic in the thread that waits |
/// | for a block that has panicked | the wait ends, and the launch fails with that panic |
/// | two orders, waited for crosswise | a kernel has at most one `BlockOrder`: a compile error |
/// | at a barrier of the grid or a cluster | not in `cooperative` kernels and those with clusters: a compile error |
/// | for a value that is published twice, or under another block's number | `publish` takes the `BlockOrder` |
///
/// The launch passes nothing for it. The memory is the stream's, which keeps up to 1 MiB of it for later launches. In a graph
/// the memory belongs to the graph, and each launch zeroes it. The grid has rank 1, and 16 bytes of each
/// block's shared memory are taken. Values are [`Exchange`] of up to 16 bytes: numbers, tuples, derived structs; or one for
/// each thread, [`EachThread`].
///
/// A single-pass scan by decoupled look-back (CUB's `DeviceScan`):
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// The sum of each element and all before it. Every element is read once and written once.
/// #[kernel(block = 128)]
/// pub fn running_sums(
///     t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>, order: BlockOrder<u32>, mut scratch: Shared<Scratch<u32>>,
/// ) {
///     let mine = x.get(t.index().get()).copied().unwrap_or(0);
///     let within = t.block_inclusive_scan(&mut scratch, mine, |a, b| a + b);
///     let sum = t.block_reduce(&mut scratch, mine, |a, b| a + b);
///     let before = order.exclusive(&t, sum, |a, b| a + b).unwrap_or(0);
///     if let Some(y) = y.get_mut(t.index()) {
///         *y = before + within;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..1000).collect::<Vec<u32>>())?;
/// let mut y = stream.zeros(1000)?;
/// kernels::running_sums(&stream, Grid::cover(1000), &x, &mut y)?;
/// assert_eq!(stream.download(&y)?, (0..1000).map(|i| i * (i + 1) / 2).collect::<Vec<u32>>());
/// # Ok(()) }
/// ```
#[must_use = "later blocks wait for this block's value: publish it"]
pub struct BlockOrder<'a, T: OrderValue> {
    slots: Slots<'a, T>,
}

/// The blocks before one that has published its own value; returned by [`BlockOrder::publish`].
pub struct EarlierBlocks<'a, T: OrderValue> {
    slots: Slots<'a, T>,
}

/// The warps before one whose block has published its own value; returned by [`BlockOrder::publish_of_warps`].
pub struct EarlierWarps<'a, 'b, T: Exchange + SharedElement, const ID: usize> {
    slots: Slots<'a, T>,
    scratch: Shared<'b, Scratch<T>, ID>,
    /// In the first warp: the block's value, and what the block's warps before number `lane` have together.
    total: T,
    before: T,
}

/// What an earlier block has published: see [`EarlierBlocks::look_at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen<T> {
    /// The block's own value.
    Own(T),
    /// The combined value of all blocks up to this one, by [`EarlierBlocks::publish_total`].
    Total(T),
}

impl<'a, T: OrderValue> BlockOrder<'a, T> {
    /// The order of a launch whose state is at `state`.
    ///
    /// # Safety
    /// For `'a`, `state` must be valid for as many words as [`words_for`] returns for the launch. They were zeroed
    /// before it (on a GPU, at most [`MOST_LAUNCHES`] launches before), and since then nothing reached them except orders of
    /// launches that have ended, and such orders of the same type in threads of that launch. The
    /// launch has rank 1 and numbers its blocks in the order in which they start: what a block with a lower
    /// number waits for never depends on `thread`.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn from_raw(state: *const u64, thread: &Thread<'a, 1>) -> Self {
        BlockOrder { slots: Slots::of(state, thread) }
    }
}

impl<'a, T: Exchange> BlockOrder<'a, T> {
    /// The value of block `earlier`; waits until it is published. Any thread may call it, independently of
    /// the others.
    ///
    /// A block may wait before it publishes its own value, in a chain (`StreamScan`):
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Compounds the rates of all blocks, one after the other.
    /// #[kernel(block = 32)]
    /// pub fn compound(t: Thread<1>, rates: &[f64], mut worth: DisjointChunks<f64, 1>, order: BlockOrder<f64>) {
    ///     let [block] = t.block_idx();
    ///     let before = if block == 0 { 100.0 } else { order.wait_for(block - 1) };
    ///     let after = before * (1.0 + rates[block as usize]);
    ///     let _ = order.publish(&t, after);
    ///     worth.fill_with(&t, |_| after);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let rates = stream.upload(&[0.5, 1.0, -0.5])?;
    /// let mut worth = stream.zeros(3)?;
    /// kernels::compound(&stream, Grid::blocks(3), &rates, &mut worth)?;
    /// assert_eq!(stream.download(&worth)?, [150.0, 300.0, 150.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If `earlier` is not less than the number of the thread's own block, or if that block ended without a
    /// value.
    #[track_caller]
    #[inline(always)]
    pub fn wait_for(&self, earlier: u32) -> T {
        self.slots.own(earlier, Ordering::Acquire)
    }

    /// Publishes the value of the thread with rank 0 as the block's value. It waits for all threads of the
    /// block, and for no other block. A thread that sees the value also sees what the block's threads wrote
    /// before (PTX `bar.sync`, then `st.release.gpu`; the reader uses `ld.acquire.gpu`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The difference of each block's sum and that of the block before it.
    /// #[kernel(block = 64)]
    /// pub fn steps(
    ///     t: Thread<1>, x: &[i32], mut y: DisjointChunks<i32, 1>, order: BlockOrder<i32>, mut scratch: Shared<Scratch<i32>>,
    /// ) {
    ///     let sum = t.block_reduce(&mut scratch, x[t.index().get()], |a, b| a + b);
    ///     let earlier = order.publish(&t, sum);
    ///     let [block] = t.block_idx();
    ///     y.fill_with(&t, |_| if block == 0 { sum } else { sum - earlier.wait_for(block - 1) });
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..192).map(|i| i / 64 + 1).collect::<Vec<i32>>())?;
    /// let mut y = stream.zeros(3)?;
    /// kernels::steps(&stream, Grid::cover(192), &x, &mut y)?;
    /// assert_eq!(stream.download(&y)?, [64, 64, 64]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn publish(self, thread: &Thread<'_, 1>, value: T) -> EarlierBlocks<'a, T> {
        thread.sync_threads();
        if thread.thread_rank() == 0 {
            self.slots.publish(OWN, value, Ordering::Release);
        }
        EarlierBlocks { slots: self.slots }
    }

    /// The values of all earlier blocks, combined from the first to the last; `None` in block 0. `value` is
    /// the block's own; that of the thread with rank 0 counts. All threads of the block call it together, and
    /// all get the result.
    ///
    /// This is decoupled look-back, as in CUB's `DeviceScan`: the first warp looks at 32 earlier blocks at a
    /// time, back to the nearest one that has published a total. `combine` must be associative, but need not
    /// be commutative: operands stay in block order. How they are grouped depends on the progress of other
    /// blocks, so sums of floats may differ from run to run in their last bits. [`BlockOrder`] has an
    /// example.
    ///
    /// # Panics
    /// If an earlier block ended without a value.
    #[track_caller]
    #[inline(always)]
    #[must_use]
    pub fn exclusive(self, thread: &Thread<'_, 1>, value: T, combine: impl Fn(T, T) -> T) -> Option<T> {
        let slots = self.slots;
        let is_first = slots.block == 0;
        thread.sync_threads();
        let mut before = value;
        if thread.thread_rank() < 32 {
            slots.publish_own(thread, value);
            before = EarlierBlocks { slots }.pass_on(thread, value, &combine);
        }
        (!is_first).then(|| thread.broadcast(before))
    }

    /// The values of all earlier warps, combined from the first to the last: those of earlier blocks, then those
    /// before this warp in its own block; `None` in the first warp of block 0. `value` is the warp's own; that
    /// of the thread with lane 0 counts. All threads of the block call it together.
    ///
    /// It is [`BlockOrder::exclusive`] and the scan of the block's warps in one, with two barriers for both
    /// (CUB's `BlockScan` with a prefix callback). What is said there about `combine` holds here.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The sum of each element and all before it: each warp scans its own 32 elements.
    /// #[kernel(block = 128)]
    /// pub fn running_sums(
    ///     t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>, order: BlockOrder<u32>, scratch: Shared<Scratch<u32>>,
    /// ) {
    ///     let (warp, mine) = (t.warp(), x.get(t.index().get()).copied().unwrap_or(0));
    ///     let within = warp.inclusive_scan(mine, |a, b| a + b);
    ///     let before = order.exclusive_of_warps(&t, scratch, warp.shuffle(within, 31), |a, b| a + b);
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = before.unwrap_or(0) + within;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..1000).collect::<Vec<u32>>())?;
    /// let mut y = stream.zeros(1000)?;
    /// kernels::running_sums(&stream, Grid::cover(1000), &x, &mut y)?;
    /// assert_eq!(stream.download(&y)?, (0..1000).map(|i| i * (i + 1) / 2).collect::<Vec<u32>>());
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If an earlier block ended without a value.
    #[track_caller]
    #[inline(always)]
    #[must_use]
    pub fn exclusive_of_warps<const ID: usize>(
        self,
        thread: &Thread<'_, 1>,
        scratch: Shared<'_, Scratch<T>, ID>,
        value: T,
        combine: impl Fn(T, T) -> T,
    ) -> Option<T>
    where
        T: SharedElement,
    {
        self.publish_of_warps(thread, scratch, value, &combine).exclusive(thread, &combine)
    }

    /// The first half of [`BlockOrder::exclusive_of_warps`]: publishes the combined values of the block's warps. What the block does
    /// before it calls [`EarlierWarps::exclusive`] keeps no other block waiting. All threads of the block call it together.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The sum of each element and all before it. A warp's sum takes fewer steps than its running ones, so it comes first.
    /// #[kernel(block = 128)]
    /// pub fn running_sums(
    ///     t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>, order: BlockOrder<u32>, scratch: Shared<Scratch<u32>>,
    /// ) {
    ///     let (warp, mine) = (t.warp(), x.get(t.index().get()).copied().unwrap_or(0));
    ///     let earlier = order.publish_of_warps(&t, scratch, warp.reduce(mine, |a, b| a + b), |a, b| a + b);
    ///     let within = warp.inclusive_scan(mine, |a, b| a + b);
    ///     let before = earlier.exclusive(&t, |a, b| a + b).unwrap_or(0);
    ///     if let Some(y) = y.get_mut(t.index()) {
    ///         *y = before + within;
    ///     }
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let x = stream.upload(&(0..1000).collect::<Vec<u32>>())?;
    /// let mut y = stream.zeros(1000)?;
    /// kernels::running_sums(&stream, Grid::cover(1000), &x, &mut y)?;
    /// assert_eq!(stream.download(&y)?, (0..1000).map(|i| i * (i + 1) / 2).collect::<Vec<u32>>());
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn publish_of_warps<'b, const ID: usize>(
        self,
        thread: &Thread<'_, 1>,
        mut scratch: Shared<'b, Scratch<T>, ID>,
        value: T,
        combine: impl Fn(T, T) -> T,
    ) -> EarlierWarps<'a, 'b, T, ID>
    where
        T: SharedElement,
    {
        let warp = thread.warp();
        let (number, lane) = (thread.thread_rank() / 32, warp.lane());
        let (places, warps) = (scratch.as_mut_ptr().cast::<T>(), thread.block_threads().div_ceil(32));
        if lane == 0 {
            // SAFETY: a block has at most 32 warps. Before the barrier only this thread reaches this place: what used the region
            // earlier has ended with a barrier.
            unsafe { places.add(number as usize).write(value) };
        }
        thread.sync_for(&scratch);
        let slots = self.slots;
        let (mut total, mut before) = (value, value);
        if number == 0 {
            // SAFETY: in bounds, written before the barrier, and reached by this thread alone until the next one.
            let own = if lane < warps { unsafe { places.add(lane as usize).read() } } else { value };
            let up_to = warp.inclusive_scan(own, &combine);
            total = warp.shuffle(up_to, warps - 1);
            before = warp.shuffle_up(up_to, 1);
            slots.publish_own(thread, total);
        }
        EarlierWarps { slots, scratch, total, before }
    }
}

impl<T: Exchange> EarlierBlocks<'_, T> {
    /// As [`BlockOrder::wait_for`].
    ///
    /// # Panics
    /// As [`BlockOrder::wait_for`].
    #[track_caller]
    #[inline(always)]
    pub fn wait_for(&self, earlier: u32) -> T {
        self.slots.own(earlier, Ordering::Acquire)
    }

    /// What block `earlier` has published: its own value, or the total of all blocks up to it if that is
    /// there. Waits until one of them is there. Any thread may call it, independently of the others.
    ///
    /// Look-back by one thread; [`BlockOrder::exclusive`] uses a warp:
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// Where each block's part of an output begins, if block `i` has `lengths[i]` elements.
    /// #[kernel(block = 32)]
    /// pub fn starts(t: Thread<1>, lengths: &[u32], mut starts: DisjointChunks<u32, 1>, order: BlockOrder<u32>) {
    ///     let [block] = t.block_idx();
    ///     let length = lengths[block as usize];
    ///     let earlier = order.publish(&t, length);
    ///     let mut start = 0;
    ///     for other in (0..block).rev() {
    ///         match earlier.look_at(other) {
    ///             Seen::Own(length) => start += length,
    ///             Seen::Total(total) => {
    ///                 start += total;
    ///                 break;
    ///             }
    ///         }
    ///     }
    ///     earlier.publish_total(&t, start + length);
    ///     starts.fill_with(&t, |_| start);
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let lengths = stream.upload(&[3, 0, 5, 2])?;
    /// let mut starts = stream.zeros(4)?;
    /// kernels::starts(&stream, Grid::blocks(4), &lengths, &mut starts)?;
    /// assert_eq!(stream.download(&starts)?, [0, 3, 3, 8]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// As [`BlockOrder::wait_for`].
    #[track_caller]
    #[inline(always)]
    pub fn look_at(&self, earlier: u32) -> Seen<T> {
        self.slots.seen(earlier, Ordering::Acquire)
    }

    /// Publishes the combined value of all blocks up to this one, so that later blocks need not look further
    /// back; that of the thread with rank 0 counts. It does not wait.
    #[inline(always)]
    pub fn publish_total(self, thread: &Thread<'_, 1>, total: T) {
        if thread.thread_rank() == 0 {
            self.slots.publish(TOTAL, total, Ordering::Release);
        }
    }

    /// Publishes the total up to the block, whose own value is `own`. Returns the values of all earlier blocks, combined, in the
    /// thread with rank 0, and `own` in block 0. For the threads of the first warp.
    #[track_caller]
    #[inline(always)]
    fn pass_on(self, thread: &Thread<'_, 1>, own: T, combine: &impl Fn(T, T) -> T) -> T {
        let is_first = self.slots.block == 0;
        let before = if is_first { own } else { self.look_back(thread, own, combine) };
        if thread.thread_rank() == 0 {
            let total = if is_first { own } else { combine(before, own) };
            self.slots.publish(TOTAL, total, Ordering::Relaxed);
        }
        before
    }

    /// The total of all earlier blocks, in the thread with lane 0; for the threads of the first warp of a
    /// block above 0.
    #[track_caller]
    #[inline(always)]
    fn look_back(&self, thread: &Thread<'_, 1>, value: T, combine: &impl Fn(T, T) -> T) -> T {
        let warp = thread.warp();
        let (lane, lanes) = (warp.lane(), thread.block_threads().min(32));
        let mut end = self.slots.block;
        let (mut later, mut is_first) = (value, true);
        loop {
            // Lane 0 has the nearest block.
            let (is_total, held) =
                match (lane < end).then(|| self.slots.seen(end - 1 - lane, Ordering::Relaxed)) {
                    None => (false, value),
                    Some(Seen::Own(own)) => (false, own),
                    Some(Seen::Total(total)) => (true, total),
                };
            let totals = warp.ballot(is_total);
            let count = if totals == 0 { lanes.min(end) } else { totals.trailing_zeros() + 1 };
            let mut window = held;
            let mut distance = 1;
            while distance < 32 {
                let further = warp.shuffle_down(window, distance);
                if lane + distance < count {
                    window = combine(further, window);
                }
                distance *= 2;
            }
            if lane == 0 {
                later = if is_first { window } else { combine(window, later) };
            }
            is_first = false;
            if totals != 0 || end <= lanes {
                return later;
            }
            end -= lanes;
        }
    }
}

impl<T: Exchange + SharedElement, const ID: usize> EarlierWarps<'_, '_, T, ID> {
    /// The values of all earlier warps, combined, as [`BlockOrder::exclusive_of_warps`] returns them. All threads of the block
    /// call it together.
    ///
    /// # Panics
    /// If an earlier block ended without a value.
    #[track_caller]
    #[inline(always)]
    #[must_use]
    pub fn exclusive(self, thread: &Thread<'_, 1>, combine: impl Fn(T, T) -> T) -> Option<T> {
        let EarlierWarps { slots, mut scratch, total, before } = self;
        let warp = thread.warp();
        let (number, lane) = (thread.thread_rank() / 32, warp.lane());
        let (places, warps) = (scratch.as_mut_ptr().cast::<T>(), thread.block_threads().div_ceil(32));
        let is_first = slots.block == 0;
        if number == 0 {
            let start = warp.shuffle(EarlierBlocks { slots }.pass_on(thread, total, &combine), 0);
            let before = match (is_first, lane) {
                (true, _) => before,
                (false, 0) => start,
                (false, _) => combine(start, before),
            };
            if lane < warps {
                // SAFETY: in bounds, and reached by this thread alone since the barrier of `publish_of_warps`.
                unsafe { places.add(lane as usize).write(before) };
            }
        }
        thread.sync_threads();
        // SAFETY: in bounds; all writing ended at the barrier, and nothing writes the region after it.
        let before = unsafe { places.add(number as usize).read() };
        (!is_first || number > 0).then_some(before)
    }
}
