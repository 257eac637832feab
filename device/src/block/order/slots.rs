//! The memory of a launch in which its blocks publish their values, and the waits for them.

use core::marker::PhantomData;

use super::Seen;
use crate::atomic::{DeviceAtomic, Ordering};
#[cfg(not(target_arch = "nvptx64"))]
use crate::native::Block;
use crate::thread::Thread;
use crate::warp::{Exchange, value_of, words_of};

/// Nothing is published: the state at the launch.
const EMPTY: u32 = 0;
/// The block's own value is published.
pub(super) const OWN: u32 = 1;
/// The total of all blocks up to this one is published, too.
pub(super) const TOTAL: u32 = 2;
/// The block ended without a value.
const MISSING: u32 = 3;

/// The number of 64-bit words that a launch of this many blocks needs: one that counts blocks, and a slot for
/// each.
#[doc(hidden)]
pub const fn words_for<T: OrderValue>(blocks: usize) -> Option<usize> {
    match blocks.checked_mul(T::STRIDE) {
        Some(words) => words.checked_add(1),
        None => None,
    }
}

/// Compiles if blocks may publish a `T`; generated code uses it to report errors at the type.
#[doc(hidden)]
pub const fn assert_published<T: OrderValue>() {
    let _ = T::STRIDE;
}

/// What blocks publish: an [`Exchange`], or one for each thread, [`EachThread`](super::EachThread).
pub trait OrderValue: sealed::OrderValue + 'static {
    /// The words of a block's slot. The first has its state.
    #[doc(hidden)]
    const STRIDE: usize;
}

/// The size of the memory depends on these types, so there are no others.
pub(super) mod sealed {
    pub trait OrderValue {}
}

impl<T: Exchange> sealed::OrderValue for T {}

impl<T: Exchange> OrderValue for T {
    const STRIDE: usize = if T::BYTES <= 4 { 1 + T::BYTES.div_ceil(8) } else { 1 + 2 * T::BYTES.div_ceil(8) };
}

/// The first word of a thread in a slot with one for each: aligned to 128 bytes, as the words of all blocks are.
pub(super) const HEAD: usize = 15;

/// Marks the end of a block, however it ended: if it has no value, others stop waiting for one.
///
/// # Safety
/// As for [`BlockOrder::from_raw`](super::BlockOrder::from_raw); and the thread with rank 0 executes nothing more of the kernel.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn end_block<'t, T: OrderValue>(state: *const u64, thread: &Thread<'t, 1>) {
    if thread.thread_rank() == 0 {
        Slots::<'t, T>::of(state, thread).end();
    }
}

/// The values of the blocks of a launch. A block's slot is a word whose upper half is its state, and whose
/// lower half is the latest value if that has at most 4 bytes. Larger values follow: the block's own, and the
/// total.
pub(super) struct Slots<'a, T> {
    first: *const DeviceAtomic<u64>,
    /// The block's own number.
    pub(super) block: u32,
    #[cfg(not(target_arch = "nvptx64"))]
    native: Option<&'a Block<'a>>,
    values: PhantomData<(&'a (), T)>,
}

impl<'a, T: OrderValue> Slots<'a, T> {
    #[inline(always)]
    pub(super) fn of(state: *const u64, thread: &Thread<'a, 1>) -> Self {
        let [block] = thread.block_idx();
        Slots {
            first: state.wrapping_add(1).cast(),
            block,
            #[cfg(not(target_arch = "nvptx64"))]
            native: Some(thread.block),
            values: PhantomData,
        }
    }

    /// Word of the slot of `block`.
    #[inline(always)]
    pub(super) fn word(&self, block: u32, word: usize) -> &DeviceAtomic<u64> {
        // SAFETY: `from_raw` and `end_block` demand a slot for each block of the launch; `block` is one of them, and the slot has
        // that word. It is changed by atomic operations only.
        unsafe { &*self.first.add(block as usize * T::STRIDE + word) }
    }

    /// Says that the block has a value for each thread.
    #[inline(always)]
    pub(super) fn set_published(&self) {
        self.word(self.block, 0).store(u64::from(OWN) << 32, Ordering::Relaxed);
    }

    /// Word `place` of the slot of `earlier`, once it is filled.
    #[track_caller]
    #[inline(always)]
    pub(super) fn filled(&self, earlier: u32, place: usize, order: Ordering) -> u64 {
        assert!(earlier < self.block, "a block can wait only for those that have started before it");
        let (word, block) = (self.word(earlier, place), self.word(earlier, 0));
        let mut state = word.load(order);
        if status(state) == EMPTY {
            #[cfg(target_arch = "nvptx64")]
            wait(word, block);
            #[cfg(not(target_arch = "nvptx64"))]
            self.wait(word, block);
            state = word.load(order);
        }
        // It is empty only if the block has ended.
        assert!(
            !matches!(status(state), EMPTY | MISSING),
            "a block waits for the value of a block that ended without publishing one"
        );
        state
    }

    /// Marks the own block as ended without a value, unless it has one.
    #[inline(always)]
    fn end(&self) {
        let word = self.word(self.block, 0);
        if status(word.load(Ordering::Relaxed)) == EMPTY {
            word.store(u64::from(MISSING) << 32, Ordering::Relaxed);
        }
    }

    /// Waits until a word is not empty, or its block has ended without a value. On the CPU device the other block runs on
    /// another OS thread, and the first word of its slot is filled however it ends.
    #[cfg(not(target_arch = "nvptx64"))]
    #[cold]
    fn wait(&self, word: &DeviceAtomic<u64>, block: &DeviceAtomic<u64>) {
        let mut turns = 0_u32;
        while is_awaited(word, block) {
            turns = turns.saturating_add(1);
            match self.native {
                Some(block) => block.pause(turns),
                None => core::hint::spin_loop(),
            }
        }
    }
}

impl<T: Exchange> Slots<'_, T> {
    const IS_SMALL: bool = T::BYTES <= 4;
    const WORDS: usize = T::BYTES.div_ceil(8);

    /// Sets the state of the block's own slot.
    #[inline(always)]
    pub(super) fn publish(&self, status: u32, value: T) {
        let (words, _) = words_of(value);
        let pair = |at: usize| u64::from(words[2 * at]) | u64::from(words[2 * at + 1]) << 32;
        let place = if status == OWN { 1 } else { 1 + Self::WORDS };
        if status == OWN || !Self::IS_SMALL {
            for at in 0..Self::WORDS {
                self.word(self.block, place + at).store(pair(at), Ordering::Relaxed);
            }
        }
        let low = if Self::IS_SMALL { words[0] } else { 0 };
        self.word(self.block, 0).store(u64::from(status) << 32 | u64::from(low), Ordering::Release);
    }

    /// The value whose words begin with number `first` of the slot of `block`.
    #[inline(always)]
    fn value(&self, block: u32, first: usize) -> T {
        let mut words = [0; 4];
        for at in 0..Self::WORDS {
            let pair = self.word(block, first + at).load(Ordering::Relaxed);
            (words[2 * at], words[2 * at + 1]) = (pair as u32, (pair >> 32) as u32);
        }
        value_of(words)
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn own(&self, earlier: u32) -> T {
        let _ = self.state(earlier);
        self.value(earlier, 1)
    }

    #[track_caller]
    #[inline(always)]
    pub(super) fn seen(&self, earlier: u32) -> Seen<T> {
        let state = self.state(earlier);
        let is_total = (state >> 32) as u32 == TOTAL;
        let value = if Self::IS_SMALL {
            value_of([state as u32, 0, 0, 0])
        } else {
            self.value(earlier, if is_total { 1 + Self::WORDS } else { 1 })
        };
        if is_total { Seen::Total(value) } else { Seen::Own(value) }
    }

    /// The first word of the slot of `earlier`, once it has a value; what was written before is visible then.
    #[track_caller]
    #[inline(always)]
    fn state(&self, earlier: u32) -> u64 {
        self.filled(earlier, 0, Ordering::Acquire)
    }
}

/// Waits until a word is not empty, or its block has ended without a value, or until a thread has panicked, whose block
/// may never publish.
#[cfg(target_arch = "nvptx64")]
#[inline(never)]
fn wait(word: &DeviceAtomic<u64>, block: &DeviceAtomic<u64>) {
    let mut turns = 0_u32;
    while is_awaited(word, block) {
        turns = turns.wrapping_add(1);
        // Polling is slow: the record is in the host's memory.
        if turns % 1024 == 0 && crate::feedback::panic::is_reported() {
            crate::feedback::panic::give_up();
        }
    }
}

/// Whether a word of the slot with the first word `block` will still be filled.
#[inline(always)]
fn is_awaited(word: &DeviceAtomic<u64>, block: &DeviceAtomic<u64>) -> bool {
    status(word.load(Ordering::Relaxed)) == EMPTY && status(block.load(Ordering::Relaxed)) != MISSING
}

/// The state in a word of a slot.
#[inline(always)]
pub(super) fn status(word: u64) -> u32 {
    (word >> 32) as u32
}

/// Marks the end of a native block when it is dropped, also after a panic.
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub struct EndOfBlock<'a, T: OrderValue>(Slots<'a, T>);

#[cfg(not(target_arch = "nvptx64"))]
impl<T: OrderValue> EndOfBlock<'_, T> {
    /// For `block`, whose order has its state at `state`.
    ///
    /// # Safety
    /// As for [`BlockOrder::from_raw`](super::BlockOrder::from_raw); it is dropped when no thread of the block runs any more.
    pub unsafe fn of(state: *const u64, block: &Block<'_>) -> Self {
        let [block, ..] = block.block_idx();
        EndOfBlock(Slots { first: state.wrapping_add(1).cast(), block, native: None, values: PhantomData })
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: OrderValue> Drop for EndOfBlock<'_, T> {
    fn drop(&mut self) {
        self.0.end();
    }
}
