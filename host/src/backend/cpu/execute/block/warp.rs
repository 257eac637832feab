//! The exchange between lanes of a warp: each lane contributes a value and sees those of all lanes of its mask. Shuffles,
//! votes, matches and reductions are made of it.

use std::cell::{Cell, RefCell};
use std::panic::Location;

use ferrogrid_device::native::Turn;

use super::barrier::same;
use super::failure::of_lane;
use super::{BlockExecutor, Wait};

/// The lanes of one warp and the exchanges between them.
#[derive(Default)]
pub(super) struct Warp {
    /// The lanes that the block has, and those that have exited.
    existing: Cell<u32>,
    exited: Cell<u32>,
    /// The lanes that wait in an exchange; for these, mask and value.
    waiting: Cell<u32>,
    masks: [Cell<u32>; 32],
    values: [Cell<u128>; 32],
    /// The round that a lane was woken to read.
    rounds: [Cell<u16>; 32],
}

/// Complete exchanges of a block that lanes have yet to read. A lane may reach its next exchange before another has read
/// this one.
#[derive(Default)]
pub(super) struct Rounds(RefCell<Vec<Round>>);

/// What was brought to one exchange, and how many lanes have yet to read it.
struct Round {
    values: [u128; 32],
    readers: u32,
}

impl Rounds {
    pub(super) fn reset(&self) {
        self.0.borrow_mut().iter_mut().for_each(|round| round.readers = 0);
    }

    /// Keeps `values` until `readers` lanes have read them.
    fn keep(&self, values: [u128; 32], readers: u32) -> u16 {
        let mut rounds = self.0.borrow_mut();
        let round = Round { values, readers };
        // Each round has a lane that has yet to read it, and no lane has two. So there are at most as many as threads.
        match rounds.iter().position(|round| round.readers == 0) {
            Some(free) => {
                rounds[free] = round;
                free as u16
            }
            None => {
                rounds.push(round);
                (rounds.len() - 1) as u16
            }
        }
    }

    fn read(&self, number: u16, read: &mut dyn FnMut(&[u128; 32])) {
        let round = &mut self.0.borrow_mut()[usize::from(number)];
        read(&round.values);
        round.readers -= 1;
    }
}

impl Warp {
    pub(super) fn reset(&self, lanes: u32) {
        self.existing.set(u32::MAX >> (32 - lanes));
        self.exited.set(0);
        self.waiting.set(0);
    }

    #[inline]
    pub(super) fn exit(&self, lane: u32) {
        self.exited.set(self.exited.get() | 1 << lane);
    }

    pub(super) fn existing(&self) -> u32 {
        self.existing.get()
    }

    #[inline]
    pub(super) fn active(&self) -> u32 {
        self.existing.get() & !self.exited.get()
    }

    /// Whether all lanes in `mask` wait with this mask.
    fn is_complete(&self, mask: u32) -> bool {
        self.waiting.get() & mask == mask && lanes(mask).all(|lane| self.masks[lane].get() == mask)
    }

    /// Takes what the lanes in `mask` brought into a round of theirs.
    fn complete(&self, mask: u32, rounds: &Rounds) {
        let brought = |lane: usize| if mask & 1 << lane == 0 { 0 } else { self.values[lane].get() };
        let number = rounds.keep(std::array::from_fn(brought), mask.count_ones());
        lanes(mask).for_each(|lane| self.rounds[lane].set(number));
        self.waiting.set(self.waiting.get() & !mask);
    }
}

/// Notes that `thread` has come with its value, to wait for all lanes in `mask`; `None` if it is the only one.
pub(super) fn bring<'a>(
    block: &'a BlockExecutor,
    thread: u32,
    mask: u32,
    value: u128,
    site: &'static Location<'static>,
) -> Option<Turn<'a>> {
    let (warp, lane) = (block.warp(thread), thread as usize % 32);
    block.note(thread, Wait::Exchange { mask, site });
    if mask & 1 << lane == 0 || mask & !warp.active() != 0 {
        block.fail_here(of_lane(block, thread, mask, site));
    }
    warp.masks[lane].set(mask);
    warp.values[lane].set(value);
    warp.waiting.set(warp.waiting.get() | 1 << lane);
    if mask == 1 << lane {
        warp.complete(mask, &block.rounds);
        return None;
    }
    if warp.is_complete(mask) {
        let first = thread - lane as u32;
        if sites_differ(block, first, mask, site) {
            block.fail_here(of_lane(block, thread, mask, site));
        }
        warp.complete(mask, &block.rounds);
        lanes(mask).for_each(|lane| block.wake(first + lane as u32));
    }
    Some(block.turn())
}

/// Lets `read` see what the lanes brought to the exchange that `thread` was woken from.
pub(super) fn brought(block: &BlockExecutor, thread: u32, read: &mut dyn FnMut(&[u128; 32])) {
    block.rounds.read(block.warp(thread).rounds[thread as usize % 32].get(), read);
}

/// Notes that `thread` waits until all lanes of its warp have got as far as they can.
pub(super) fn wait_for_all<'a>(
    block: &'a BlockExecutor,
    thread: u32,
    site: &'static Location<'static>,
) -> Option<Turn<'a>> {
    block.note(thread, Wait::ActiveMask(site));
    block.at_active_mask.set(block.at_active_mask.get() + 1);
    Some(block.turn())
}

/// The lanes that were at one place with `thread` when its wait for all of them was over.
pub(super) fn active_mask(block: &BlockExecutor, thread: u32) -> u32 {
    block.warp(thread).masks[thread as usize % 32].get()
}

/// Lets go on the threads that wait for the active mask, now that no thread of the block can run; `false` if
/// there is none.
#[cold]
pub(super) fn wake_active(block: &BlockExecutor) -> bool {
    if block.at_active_mask.replace(0) == 0 {
        return false;
    }
    let site_of = |thread: u32| match block.state(thread).waits.get() {
        Wait::ActiveMask(site) => Some(site),
        _ => None,
    };
    let threads = block.threads.get();
    for thread in 0..threads {
        let Some(site) = site_of(thread) else { continue };
        let first = thread / 32 * 32;
        let here = (first..threads.min(first + 32))
            .filter(|&other| site_of(other).is_some_and(|other| same(site, other)));
        let mask = here.fold(0, |mask, other| mask | 1 << (other - first));
        block.warp(thread).masks[(thread - first) as usize].set(mask);
        block.wake(thread);
    }
    true
}

/// Whether lanes in `mask` wait at another place in the source than `site`: then they mean different
/// operations, and must not read each other's values.
fn sites_differ(block: &BlockExecutor, first: u32, mask: u32, site: &'static Location<'static>) -> bool {
    lanes(mask).any(|lane| match block.state(first + lane as u32).waits.get() {
        Wait::Exchange { site: other, .. } => !same(site, other),
        _ => true,
    })
}

/// The lanes that `mask` names, ascending.
fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}
