//! Executors that are idle, kept with their stacks and shared memory for the next launch. It must not know
//! what they execute.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::block::BlockExecutor;

/// The most stacks that idle executors of cooperative launches keep, those used last.
const MAX_KEPT_STACKS: usize = 16_384;

/// The idle executors of a device.
#[derive(Default)]
pub(super) struct Executors {
    /// One for each worker that was busy at the same time, for blocks of any size.
    workers: Mutex<Vec<BlockExecutor>>,
    /// One for each block that was resident at the same time, for blocks of one size each.
    resident: Mutex<Resident>,
}

#[derive(Default)]
struct Resident {
    idle: VecDeque<BlockExecutor>,
    stacks: usize,
}

impl Executors {
    pub(super) fn take(&self) -> Option<BlockExecutor> {
        lock(&self.workers).pop()
    }

    pub(super) fn keep(&self, executor: BlockExecutor) {
        lock(&self.workers).push(executor);
    }

    /// One that was made for blocks of `threads` threads.
    pub(super) fn take_resident(&self, threads: u32) -> Option<BlockExecutor> {
        let resident = &mut *lock(&self.resident);
        let fits = resident.idle.iter().rposition(|executor| executor.max_threads() == threads)?;
        let executor = resident.idle.remove(fits)?;
        resident.stacks -= executor.stacks();
        Some(executor)
    }

    pub(super) fn keep_resident(&self, executor: BlockExecutor) {
        let resident = &mut *lock(&self.resident);
        resident.stacks += executor.stacks();
        resident.idle.push_back(executor);
        while resident.stacks > MAX_KEPT_STACKS
            && let Some(oldest) = resident.idle.pop_front()
        {
            resident.stacks -= oldest.stacks();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
