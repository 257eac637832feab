//! A launch on the CPU whose blocks may wait for blocks that started before them: a worker that starts a block takes the
//! next number.
//!
//! A block with a number runs until it has ended, and waits for lower numbers only. So the lowest that has not ended waits for
//! no block. Nor does it wait for resources: its stacks and shared memory exist before it gets its number. A number that was
//! taken is run, even if another block has failed meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

use super::block::BlockExecutor;
use super::first_failure::FirstFailure;
use super::{OwnedLaunch, share};
use crate::backend::cpu::device::CpuDevice;
use crate::backend::device::BackendDevice;
use crate::error::{Error, Result};

/// The numbers of a launch.
struct Numbers {
    next: AtomicU64,
    blocks: u64,
    failure: FirstFailure<Error>,
}

/// Runs all blocks of `launch`.
///
/// # Safety
/// As for [`OwnedLaunch::run`].
pub(crate) unsafe fn run(launch: &OwnedLaunch, device: &CpuDevice) -> Result<()> {
    let blocks = launch.blocks();
    let numbers = Numbers { next: AtomicU64::new(0), blocks, failure: FirstFailure::new() };
    match device.pool().filter(|_| blocks > 1) {
        Some(pool) => {
            let threads = pool.current_num_threads() as u64;
            share(&pool, launch.tasks(threads, true).min(blocks).min(threads), |_| {
                // SAFETY: passed on.
                unsafe { run_blocks(launch, device, &numbers) };
            });
        }
        // SAFETY: passed on.
        None => unsafe { run_blocks(launch, device, &numbers) },
    }
    numbers.failure.into_result()
}

/// Runs blocks one after the other until there are no more, or one has failed.
///
/// # Safety
/// As for [`OwnedLaunch::run`]; all calls for a launch have the same `numbers`.
unsafe fn run_blocks(launch: &OwnedLaunch, device: &CpuDevice, numbers: &Numbers) {
    let executor = device.executor();
    let _running = launch.enter(device);
    while let Some(number) = numbers.take(launch, device, &executor) {
        // SAFETY: passed on; a number is taken once.
        if let Err(error) = unsafe { launch.run_block(number, device, &executor) } {
            numbers.failure.note(number, || error);
        }
        if executor.is_spoiled() {
            break;
        }
    }
    device.keep(executor);
}

impl Numbers {
    /// The next number, for a block that `executor` is ready to run; `None` where there are no more, and after a failure.
    fn take(&self, launch: &OwnedLaunch, device: &CpuDevice, executor: &BlockExecutor) -> Option<u64> {
        let next = self.next.load(Ordering::Relaxed);
        if next >= self.blocks || self.failure.before(u64::MAX) {
            return None;
        }
        if let Err(error) = ready(launch, device, executor, next) {
            self.failure.note(next, || error);
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.blocks).then_some(number)
    }
}

/// Sees to it that `executor` has all that a block of `launch` takes.
fn ready(launch: &OwnedLaunch, device: &CpuDevice, executor: &BlockExecutor, number: u64) -> Result<()> {
    let shape = &launch.shape;
    if !executor.begin(shape.shared_bytes) {
        return Err(device.out_of_memory(shape.shared_bytes));
    }
    executor
        .reserve(shape.block.iter().product())
        .map_err(|failure| failure.into_error(launch.kernel, launch.block_idx(number), shape.block))
}
