//! Idle executors, kept with their stacks and shared memory for the next launch.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::Mutex;

use super::block::{BlockExecutor, stacks};
use super::stack::MAX_STACKS;
use crate::sync::lock;

/// The most stacks that idle executors of cooperative launches keep, those used last.
const MAX_KEPT_STACKS: usize = MAX_STACKS / 2;

/// The idle executors of all CPU devices.
static IDLE: Executors = Executors {
    workers: Mutex::new(Vec::new()),
    resident: Mutex::new(Resident { idle: VecDeque::new(), stacks: 0 }),
};

/// Idle executors.
pub(crate) struct Executors {
    /// One for each worker that was busy at the same time, for blocks of any size.
    workers: Mutex<Vec<BlockExecutor>>,
    /// One for each block that was resident at the same time, for blocks of one size each.
    resident: Mutex<Resident>,
}

struct Resident {
    idle: VecDeque<BlockExecutor>,
    stacks: usize,
}

/// The idle executors of all CPU devices.
pub(crate) fn idle() -> &'static Executors {
    &IDLE
}

impl Executors {
    /// Drops all, so that others can have their stacks.
    pub(crate) fn clear(&self) {
        let (workers, resident) = (take(&mut *lock(&self.workers)), take(&mut lock(&self.resident).idle));
        lock(&self.resident).stacks -= resident.iter().map(BlockExecutor::stacks).sum::<usize>();
        drop((workers, resident));
    }

    pub(crate) fn take(&self) -> Option<BlockExecutor> {
        lock(&self.workers).pop()
    }

    pub(crate) fn keep(&self, executor: BlockExecutor) {
        lock(&self.workers).push(executor);
        self.clear_if_wanted();
    }

    /// Another thread may wait for the stacks that were just kept. Checked after keeping, as waiting threads clear
    /// after they have begun to wait: so one of the two sees the other.
    fn clear_if_wanted(&self) {
        if stacks::are_wanted() {
            self.clear();
        }
    }

    /// One that was made for blocks of `threads` threads.
    pub(crate) fn take_resident(&self, threads: u32) -> Option<BlockExecutor> {
        let resident = &mut *lock(&self.resident);
        let fits = resident.idle.iter().rposition(|executor| executor.max_threads() == threads)?;
        let executor = resident.idle.remove(fits)?;
        resident.stacks -= executor.stacks();
        Some(executor)
    }

    pub(crate) fn keep_resident(&self, executor: BlockExecutor) {
        lock(&self.resident).keep(executor);
        self.clear_if_wanted();
    }
}

impl Resident {
    fn keep(&mut self, executor: BlockExecutor) {
        self.stacks += executor.stacks();
        self.idle.push_back(executor);
        while self.stacks > MAX_KEPT_STACKS
            && let Some(oldest) = self.idle.pop_front()
        {
            self.stacks -= oldest.stacks();
        }
    }
}
