//! What a native thread may wait for, by its place in the block: the ground that barriers, warp
//! operations and shared memory are built on. It must not know how threads are switched.

use core::panic::Location;
use core::ptr;

use super::{Block, Executor};

/// The alignment of shared memory in bytes.
const SHARED_ALIGNMENT: usize = 128;

impl Block<'_> {
    /// Waits for all threads of the block; returns how many brought `true`
    /// (PTX `barrier.sync`, `barrier.red.popc`).
    #[track_caller]
    #[inline]
    #[doc(hidden)]
    pub fn barrier(&self, thread_idx: [u32; 3], vote: bool) -> u32 {
        self.waiting().barrier(self.number(thread_idx), vote, Location::caller())
    }

    /// Waits until all lanes that `mask` names are here with the same mask; `read` sees what each lane
    /// brought, and 0 for lanes outside the mask. Lanes are bits of `mask` and places of the array; `mask`
    /// must contain the caller's.
    #[track_caller]
    #[inline]
    #[doc(hidden)]
    pub fn warp_exchange<R>(
        &self,
        thread_idx: [u32; 3],
        mask: u32,
        value: u128,
        read: impl FnOnce(&[u128; 32]) -> R,
    ) -> R {
        let (mut read, mut result) = (Some(read), None);
        let mut once = |values: &[u128; 32]| result = read.take().map(|read| read(values));
        self.waiting().warp_exchange(self.number(thread_idx), mask, value, Location::caller(), &mut once);
        result.expect("an executor calls `read` before it returns")
    }

    /// The lanes of the thread's warp that are here together (PTX `activemask`): not those that have exited
    /// or wait elsewhere. It waits until all lanes have got as far as they can.
    #[track_caller]
    #[inline]
    #[doc(hidden)]
    pub fn active_mask(&self, thread_idx: [u32; 3]) -> u32 {
        self.waiting().active_mask(self.number(thread_idx), Location::caller())
    }

    /// Waits for all threads of the grid; the launch must be cooperative.
    #[track_caller]
    #[inline]
    #[doc(hidden)]
    pub fn grid_barrier(&self, thread_idx: [u32; 3]) {
        self.waiting().grid_barrier(self.number(thread_idx), Location::caller());
    }

    /// Waits for all threads of the cluster (PTX `barrier.cluster`).
    #[track_caller]
    #[inline]
    #[doc(hidden)]
    pub fn cluster_barrier(&self, thread_idx: [u32; 3]) {
        self.waiting().cluster_barrier(self.number(thread_idx), Location::caller());
    }

    /// The shared memory of the block with number `rank` in the cluster.
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
    #[inline]
    fn waiting(&self) -> &dyn Executor {
        match self.executor {
            Some(executor) if self.waiting.get() => executor,
            Some(_) => panic!("this kernel waits for other threads, but is run as one that never waits"),
            None => panic!("threads can wait for each other only in a launch on a device"),
        }
    }
}
