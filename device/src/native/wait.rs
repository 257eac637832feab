//! What a native thread waits for, by its position in the block: the base of barriers, warp operations and
//! shared memory.

use core::panic::Location;
use core::ptr;

use super::{Block, Executor, Turn};

/// The alignment of shared memory in bytes.
const SHARED_ALIGNMENT: usize = 128;

/// Always inlined where they wait, and so are their callers: see [`Turn`].
impl Block<'_> {
    /// Waits for all threads of the block (PTX `barrier.sync`).
    #[track_caller]
    #[inline(always)]
    #[doc(hidden)]
    pub fn barrier(&self, thread_idx: [u32; 3]) {
        wait(self.waiting().wait_for_block(self.number(thread_idx), false, Location::caller()));
    }

    /// Waits for all threads of the block, and returns how many of them passed `true` (PTX
    /// `barrier.red.popc`).
    #[track_caller]
    #[inline(always)]
    #[doc(hidden)]
    pub fn barrier_count(&self, thread_idx: [u32; 3], vote: bool) -> u32 {
        let executor = self.waiting();
        wait(executor.wait_for_block(self.number(thread_idx), vote, Location::caller()));
        executor.votes()
    }

    /// Waits until all lanes that `mask` names have arrived with the same mask, then calls `read` with the
    /// value of each lane, and 0 for lanes outside the mask. Lanes are bits of `mask` and indices of the
    /// array; `mask` must include the caller's.
    #[track_caller]
    #[inline(always)]
    #[doc(hidden)]
    pub fn warp_exchange<R>(
        &self,
        thread_idx: [u32; 3],
        mask: u32,
        value: u128,
        read: impl FnOnce(&[u128; 32]) -> R,
    ) -> R {
        let (executor, thread) = (self.waiting(), self.number(thread_idx));
        wait(executor.bring(thread, mask, value, Location::caller()));
        let (mut read, mut result) = (Some(read), None);
        executor.brought(thread, &mut |values| result = read.take().map(|read| read(values)));
        result.expect("an executor calls `read` before it returns")
    }

    /// The lanes of the thread's warp that make this call together (PTX `activemask`), not those that have
    /// exited or wait elsewhere. It waits until no lane can proceed.
    #[track_caller]
    #[inline(always)]
    #[doc(hidden)]
    pub fn active_mask(&self, thread_idx: [u32; 3]) -> u32 {
        let (executor, thread) = (self.waiting(), self.number(thread_idx));
        wait(executor.wait_for_warp(thread, Location::caller()));
        executor.active_mask(thread)
    }

    /// Checks that `word` is the same in all threads of the block, each of which makes the call equally often
    /// between two barriers. It does not wait.
    #[inline(always)]
    #[doc(hidden)]
    pub fn agree(&self, thread_idx: [u32; 3], word: u64, caller: &'static Location<'static>) {
        self.waiting().agree(self.number(thread_idx), word, caller);
    }

    /// Waits for all threads of the grid; the launch must be cooperative.
    #[track_caller]
    #[inline(always)]
    #[doc(hidden)]
    pub fn grid_barrier(&self, thread_idx: [u32; 3]) {
        wait(self.waiting().wait_for_grid(self.number(thread_idx), Location::caller()));
    }

    /// Waits for all threads of the cluster (PTX `barrier.cluster`).
    #[track_caller]
    #[inline(always)]
    #[doc(hidden)]
    pub fn cluster_barrier(&self, thread_idx: [u32; 3]) {
        wait(self.waiting().wait_for_cluster(self.number(thread_idx), Location::caller()));
    }
}

impl Block<'_> {
    /// Lets others run while a thread waits for another block, which it has polled `turns` times.
    pub(crate) fn pause(&self, turns: u32) {
        match self.executor {
            Some(executor) => executor.pause(turns),
            None => core::hint::spin_loop(),
        }
    }

    /// The shared memory of the block with this rank in the cluster.
    #[inline]
    pub(crate) fn cluster_shared(&self, rank: u32) -> *mut u8 {
        match self.executor {
            Some(executor) => executor.cluster_shared(rank),
            None => self.shared().0,
        }
    }

    /// The block's shared memory, aligned to 128 bytes, and its size in bytes.
    #[inline]
    #[doc(hidden)]
    pub fn shared(&self) -> (*mut u8, usize) {
        match self.executor {
            Some(executor) => executor.shared(),
            None => (ptr::without_provenance_mut(SHARED_ALIGNMENT), 0),
        }
    }

    #[track_caller]
    #[inline(always)]
    fn waiting(&self) -> &dyn Executor {
        match self.executor {
            Some(executor) if self.waiting.get() => executor,
            executor => cannot_wait(executor.is_some()),
        }
    }
}

#[inline(always)]
fn wait(turn: Option<Turn<'_>>) {
    if let Some(turn) = turn {
        turn.give_up();
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn cannot_wait(on_device: bool) -> ! {
    if on_device {
        panic!("this kernel waits for other threads, but is run as one that never waits");
    }
    panic!("threads can wait for each other only in a launch on a device")
}
