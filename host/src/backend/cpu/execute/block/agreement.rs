//! Checks that all threads of a block agree: on values that they assume to be uniform, and on regions that they pass to a
//! barrier.

use std::cell::RefCell;
use std::panic::Location;

use super::BlockExecutor;
use super::failure::Failure;

type Site = &'static Location<'static>;

/// The values since the last barrier, of the thread with the most.
#[derive(Default)]
pub(super) struct Agreements(RefCell<Vec<(u64, Site)>>);

/// Records a value of `thread`; fails if another thread had a different one at the same position.
pub(super) fn say(block: &BlockExecutor, thread: u32, word: u64, site: Site) {
    if block.threads.get() == 1 {
        return;
    }
    let count = &block.state(thread).agreements;
    let number = count.replace(count.get() + 1) as usize;
    let mut said = block.agreements.0.borrow_mut();
    let Some(first) = said.get(number) else { return said.push((word, site)) };
    if first.0 != word {
        drop(said);
        block.fail_here(Failure::Disagreement { thread, site });
    }
}

/// Fails if threads have different numbers of values; clears them when all are at a barrier.
pub(super) fn compare(block: &BlockExecutor) {
    let last = block.agreements.0.borrow().last().copied();
    let Some((_, site)) = last else { return };
    let most = block.agreements.0.borrow().len() as u32;
    let silent = (0..block.threads.get()).find(|&thread| block.state(thread).agreements.get() < most);
    if let Some(thread) = silent {
        block.fail_here(Failure::Disagreement { thread, site });
    }
    forget(block);
}

/// Clears the values for a new round.
pub(super) fn forget(block: &BlockExecutor) {
    let mut said = block.agreements.0.borrow_mut();
    if !said.is_empty() {
        said.clear();
        block.states.iter().for_each(|state| state.agreements.set(0));
    }
}
