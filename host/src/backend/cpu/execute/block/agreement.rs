//! What all threads of a block must say alike: values that they take to be the same in all of them, and the
//! regions that they bring to a barrier.

use std::cell::RefCell;
use std::panic::Location;

use super::BlockExecutor;
use super::failure::Failure;

type Site = &'static Location<'static>;

/// What was said since the last barrier by the thread that has said most.
#[derive(Default)]
pub(super) struct Agreements(RefCell<Vec<(u64, Site)>>);

/// Notes what `thread` says; fails if another has said something else in the same place among its words.
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

/// Fails if some threads have said more than others; forgets all when they have met at a barrier.
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

/// Forgets what was said: a new round begins.
pub(super) fn forget(block: &BlockExecutor) {
    let mut said = block.agreements.0.borrow_mut();
    if !said.is_empty() {
        said.clear();
        block.states.iter().for_each(|state| state.agreements.set(0));
    }
}
