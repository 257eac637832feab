//! The memory of a launch in which its blocks publish their values, and the waits for them.

use core::marker::PhantomData;

use super::Seen;
use crate::atomic::{DeviceAtomic, Ordering};
#[cfg(not(target_arch = "nvptx64"))]
use crate::native::Block;
use crate::thread::Thread;
use crate::warp::{Exchange, value_of, words_of};

/// Nothing is published: the state at the launch.
pub(super) const EMPTY: u32 = 0;
/// The block's own value is published.
pub(super) const OWN: u32 = 1;
/// The total of all blocks up to this one is published, too.
pub(super) const TOTAL: u32 = 2;
/// The block ended without a value.
const MISSING: u32 = 3;

/// Where the slots begin: 128 bytes after the word that counts blocks, so that a slot of 32 bytes is one sector.
const FIRST: usize = 16;

/// The number of 64-bit words that a launch of this many blocks needs: those before the slots, and a slot for each block.
#[doc(hidden)]
pub const fn words_for<T: OrderValue>(blocks: usize) -> Option<usize> {
    match blocks.checked_mul(T::STRIDE) {
        Some(words) => words.checked_add(FIRST),
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
    const STRIDE: usize = 2 * tagged_words::<T>();
}

/// The words of a value, each with the value's state in its upper half, so that none has to be ordered after another.
const fn tagged_words<T: Exchange>() -> usize {
    if T::BYTES == 0 { 1 } else { T::BYTES.div_ceil(4) }
}

/// The first word of a thread in a slot with one for each: aligned to 128 bytes, as the words of all blocks are.
pub(super) const HEAD: usize = FIRST;

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

/// The values of the blocks of a launch. A block's slot has its own value, and then the total up to it, in words whose
/// lower half is 4 bytes of the value, and whose upper half is [`OWN`] or [`TOTAL`] when it is there.
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
            first: state.wrapping_add(FIRST).cast(),
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
    const WORDS: usize = tagged_words::<T>();

    /// Publishes the block's own value or the total. With `Release`, who sees it by `Acquire` also sees what the thread wrote
    /// before.
    #[inline(always)]
    pub(super) fn publish(&self, status: u32, value: T, order: Ordering) {
        let (words, _) = words_of(value);
        let first = if status == OWN { 0 } else { Self::WORDS };
        for at in (0..Self::WORDS).rev() {
            let word = u64::from(status) << 32 | u64::from(words[at]);
            let order = if at == 0 { order } else { Ordering::Relaxed };
            self.word(self.block, first + at).store(word, order);
        }
    }

    /// The own value of `earlier`, once it is there.
    #[track_caller]
    #[inline(always)]
    pub(super) fn own(&self, earlier: u32, order: Ordering) -> T {
        let word = |at| self.filled(earlier, at, if at == 0 { order } else { Ordering::Relaxed }) as u32;
        value_of(core::array::from_fn(|at| if at < Self::WORDS { word(at) } else { 0 }))
    }

    /// The total up to `earlier` if that is there, else its own value, once that is there.
    #[track_caller]
    #[inline(always)]
    pub(super) fn seen(&self, earlier: u32, order: Ordering) -> Seen<T> {
        // All loads at once, but for values so large that a thread would need many registers.
        let words = |first: usize| {
            core::array::from_fn::<_, 4, _>(|at| {
                let order = if at == 0 { order } else { Ordering::Relaxed };
                if at < Self::WORDS { self.word(earlier, first + at).load(order) } else { 0 }
            })
        };
        let total = words(Self::WORDS);
        let own = if Self::WORDS <= 2 { words(0) } else { [0; 4] };
        let has = |words: &[u64; 4], state| words[..Self::WORDS].iter().all(|&word| status(word) == state);
        if has(&total, TOTAL) {
            Seen::Total(value_of(total.map(|word| word as u32)))
        } else if has(&own, OWN) {
            Seen::Own(value_of(own.map(|word| word as u32)))
        } else {
            Seen::Own(self.own(earlier, order))
        }
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
        EndOfBlock(Slots {
            first: state.wrapping_add(FIRST).cast(),
            block,
            native: None,
            values: PhantomData,
        })
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: OrderValue> Drop for EndOfBlock<'_, T> {
    fn drop(&mut self) {
        self.0.end();
    }
}
