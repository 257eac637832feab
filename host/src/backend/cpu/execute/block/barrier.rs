//! The barrier of a block: counts arrivals and votes, and wakes all when the last has come.

use std::cell::Cell;
use std::panic::Location;

use ferrogrid_device::native::Turn;

use super::failure::of_stuck_block;
use super::{BlockExecutor, Wait, agreement};

#[derive(Default)]
pub(super) struct BlockBarrier {
    arrived: Cell<u32>,
    votes: Cell<u32>,
    /// The votes of the last round. It stays until all have read it: the next round cannot end before
    /// each of them has arrived again.
    result: Cell<u32>,
    /// Where the first of this round waits, and whether one waits at another place.
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

    /// How many brought `true` to the last round.
    #[inline]
    pub(super) fn votes(&self) -> u32 {
        self.result.get()
    }
}

/// Notes that `thread` has arrived with its vote; `None` if it is the last.
#[inline]
pub(super) fn arrive<'a>(
    block: &'a BlockExecutor,
    thread: u32,
    vote: bool,
    site: &'static Location<'static>,
) -> Option<Turn<'a>> {
    let (barrier, threads) = (&block.barrier, block.threads.get());
    if threads == 1 {
        barrier.result.set(vote.into());
        return None;
    }
    block.note(thread, Wait::Barrier(site));
    match barrier.site.get() {
        None => barrier.site.set(Some(site)),
        Some(first) if !same(first, site) => barrier.sites_differ.set(true),
        Some(_) => {}
    }
    barrier.votes.set(barrier.votes.get() + u32::from(vote));
    let arrived = barrier.arrived.get() + 1;
    barrier.arrived.set(arrived);
    if arrived == threads {
        complete(block);
    }
    Some(block.turn())
}

/// Wakes all, as the last has come.
#[inline(never)]
fn complete(block: &BlockExecutor) {
    let barrier = &block.barrier;
    if barrier.sites_differ.get() {
        block.fail_here(of_stuck_block(block));
    }
    agreement::compare(block);
    barrier.result.set(barrier.votes.get());
    barrier.reset();
    (0..block.threads.get()).for_each(|thread| block.wake(thread));
}

/// Whether two places are the same in the source. One place may have several addresses.
#[inline]
pub(super) fn same(a: &'static Location<'static>, b: &'static Location<'static>) -> bool {
    std::ptr::eq(a, b) || a == b
}
