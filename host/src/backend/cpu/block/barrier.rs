//! The barrier of a block: counts arrivals and votes, and wakes all when the last has come. It must not
//! know what happens to threads that wait in vain.

use std::cell::Cell;
use std::panic::Location;

use super::failure::of_stuck_block;
use super::{BlockExecutor, Wait};

#[derive(Default)]
pub(super) struct BlockBarrier {
    arrived: Cell<u32>,
    votes: Cell<u32>,
    /// The votes of the last round. It stays until all have read it: the next round cannot end before
    /// each of them has arrived again.
    result: Cell<u32>,
    /// Where the first of this round waits, and whether one waits elsewhere.
    site: Cell<Option<&'static Location<'static>>>,
    sites_differ: Cell<bool>,
}

impl BlockBarrier {
    pub(super) fn reset(&self) {
        self.arrived.set(0);
        self.votes.set(0);
        self.site.set(None);
        self.sites_differ.set(false);
    }
}

/// Waits for all threads of the block; returns how many brought `true`.
#[inline]
pub(super) fn wait(block: &BlockExecutor, thread: u32, vote: bool, site: &'static Location<'static>) -> u32 {
    let (barrier, threads) = (&block.barrier, block.threads.get());
    if threads == 1 {
        return u32::from(vote);
    }
    block.note(thread, Wait::Barrier(site));
    match barrier.site.get() {
        None => barrier.site.set(Some(site)),
        Some(first) if !same(first, site) => barrier.sites_differ.set(true),
        Some(_) => {}
    }
    barrier.votes.set(barrier.votes.get() + u32::from(vote));
    barrier.arrived.set(barrier.arrived.get() + 1);
    if barrier.arrived.get() == threads {
        if barrier.sites_differ.get() {
            block.fail_here(thread, of_stuck_block(block));
        }
        barrier.result.set(barrier.votes.get());
        barrier.reset();
        (0..threads).for_each(|thread| block.wake(thread));
    }
    block.suspend(thread);
    barrier.result.get()
}

/// Whether two places are the same in the source. One place may have several addresses.
#[inline]
pub(super) fn same(a: &'static Location<'static>, b: &'static Location<'static>) -> bool {
    std::ptr::eq(a, b) || a == b
}
