//! The memory of a launch in which its blocks publish their values, and the waits for them.

use core::marker::PhantomData;

use super::Seen;
use crate::atomic::{DeviceAtomic, Ordering};
#[cfg(not(target_arch = "nvptx64"))]
use crate::native::Block;
use crate::thread::Thread;
use crate::warp::{Exchange, value_of, words_of};

/// The block's own value is published.
pub(super) const OWN: u32 = 1;
/// The total of all blocks up to this one is published, too.
pub(super) const TOTAL: u32 = 2;
/// The block ended without a value.
const MISSING: u32 = 3;

/// How many bits of a word's upper half have the state of its value; those above them have the number of the launch, so that
/// what earlier launches left in the same memory counts as empty.
const STATE_BITS: u32 = 2;

/// The launches that may use the same memory, one after the other, since it was zeroed.
pub const MOST_LAUNCHES: u32 = 1 << (32 - STATE_BITS);

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
/// lower half is 4 bytes of the value, and whose upper half is [`OWN`] or [`TOTAL`] with the number of the launch when it is there.
pub(super) struct Slots<'a, T> {
    first: *const DeviceAtomic<u64>,
    /// The number of the launch, above [`STATE_BITS`].
    launch: u32,
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
            launch: launch_number() << STATE_BITS,
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

    /// A word of this launch with that state and value.
    #[inline(always)]
    pub(super) fn filled(&self, state: u32, value: u32) -> u64 {
        u64::from(self.launch | state) << 32 | u64::from(value)
    }

    /// Whether it has that state.
    #[inline(always)]
    pub(super) fn is(&self, word: u64, state: u32) -> bool {
        (word >> 32) as u32 == self.launch | state
    }

    /// Whether nothing has been published there since the launch.
    #[inline(always)]
    pub(super) fn is_empty(&self, word: u64) -> bool {
        is_empty(word, self.launch)
    }

    /// Says that the block has a value for each thread.
    #[inline(always)]
    pub(super) fn set_published(&self) {
        self.word(self.block, 0).store(self.filled(OWN, 0), Ordering::Relaxed);
    }

    /// Word `place` of the slot of `earlier`, once it is filled.
    #[track_caller]
    #[inline(always)]
    pub(super) fn wait_for(&self, earlier: u32, place: usize, order: Ordering) -> u64 {
        assert!(earlier < self.block, "a block can wait only for those that have started before it");
        let (word, block) = (self.word(earlier, place), self.word(earlier, 0));
        let mut found = word.load(order);
        if self.is_empty(found) {
            #[cfg(target_arch = "nvptx64")]
            wait(word, block, self.launch);
            #[cfg(not(target_arch = "nvptx64"))]
            self.pause(word, block);
            found = word.load(order);
        }
        // It is empty only if the block has ended.
        assert!(
            !self.is_empty(found) && !self.is(found, MISSING),
            "a block waits for the value of a block that ended without publishing one"
        );
        found
    }

    /// Marks the own block as ended without a value, unless it has one.
    #[inline(always)]
    fn end(&self) {
        let word = self.word(self.block, 0);
        if self.is_empty(word.load(Ordering::Relaxed)) {
            word.store(self.filled(MISSING, 0), Ordering::Relaxed);
        }
    }

    /// Waits until a word is not empty, or its block has ended without a value. On the CPU device the other block runs on
    /// another OS thread, and the first word of its slot is filled however it ends.
    #[cfg(not(target_arch = "nvptx64"))]
    #[cold]
    fn pause(&self, word: &DeviceAtomic<u64>, block: &DeviceAtomic<u64>) {
        let mut turns = 0_u32;
        while is_awaited(word, block, self.launch) {
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
    pub(super) fn publish(&self, state: u32, value: T, order: Ordering) {
        let (words, _) = words_of(value);
        let first = if state == OWN { 0 } else { Self::WORDS };
        for at in (0..Self::WORDS).rev() {
            let word = self.filled(state, words[at]);
            let order = if at == 0 { order } else { Ordering::Relaxed };
            self.word(self.block, first + at).store(word, order);
        }
    }

    /// Publishes the own value by the thread with rank 0, and orders nothing else.
    #[inline(always)]
    pub(super) fn publish_own(&self, thread: &Thread<'_, 1>, value: T) {
        if thread.thread_rank() == 0 {
            self.publish(OWN, value, Ordering::Relaxed);
        }
    }

    /// The own value of `earlier`, once it is there.
    #[track_caller]
    #[inline(always)]
    pub(super) fn own(&self, earlier: u32, order: Ordering) -> T {
        let word = |at| self.wait_for(earlier, at, if at == 0 { order } else { Ordering::Relaxed }) as u32;
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
        let has = |words: &[u64; 4], state| words[..Self::WORDS].iter().all(|&word| self.is(word, state));
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
fn wait(word: &DeviceAtomic<u64>, block: &DeviceAtomic<u64>, launch: u32) {
    let mut turns = 0_u32;
    while is_awaited(word, block, launch) {
        turns = turns.wrapping_add(1);
        // Polling is slow: the record is in the host's memory.
        if turns % 1024 == 0 && crate::feedback::panic::is_reported() {
            crate::feedback::panic::give_up();
        }
    }
}

/// Whether a word of the slot with the first word `block` will still be filled.
#[inline(always)]
fn is_awaited(word: &DeviceAtomic<u64>, block: &DeviceAtomic<u64>, launch: u32) -> bool {
    let [word, block] = [word, block].map(|word| word.load(Ordering::Relaxed));
    is_empty(word, launch) && (block >> 32) as u32 != launch | MISSING
}

/// Whether a word has no state of that launch.
#[inline(always)]
fn is_empty(word: u64, launch: u32) -> bool {
    const { assert!(OWN == 1 && TOTAL == 2 && MISSING == 3) };
    ((word >> 32) as u32).wrapping_sub(launch | OWN) > MISSING - OWN
}

/// How many launches have used the memory before this one. The block has read it with its number, from the upper half of the
/// word that counts blocks.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn launch_number() -> u32 {
    let number: u32;
    // SAFETY: the build step declares these two words in a module with an order, and writes them once, before a barrier with
    // which such a kernel begins; only those kernels come here.
    unsafe {
        core::arch::asm!("ld.shared.b32 {0}, [ferrogrid_block+4];", out(reg32) number, options(pure, nomem, nostack));
    }
    number
}

/// The CPU device has zeroed memory for each launch.
#[cfg(not(target_arch = "nvptx64"))]
fn launch_number() -> u32 {
    0
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
            launch: launch_number() << STATE_BITS,
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
