//! One launch on the CPU: its blocks over the threads of the pool, or its native body.
//!
//! `block` runs threads that wait for each other; `cluster`, `cooperative` and `in_order` run blocks that do.
//! `stack`, `budget`, `guarded` and `overflow` provide their stacks, `executors` keeps idle ones, `shared` is
//! shared memory. `panic` and `first_failure` collect failures. `mark`, `spin` and `sync` are locks.

pub(crate) mod block;
pub(crate) mod budget;
pub(crate) mod cluster;
pub(crate) mod cooperative;
pub(crate) mod executors;
pub(crate) mod first_failure;
pub(crate) mod guarded;
pub(crate) mod in_order;
pub(crate) mod mark;
pub(crate) mod overflow;
pub(crate) mod panic;
pub(crate) mod shared;
pub(crate) mod spin;
pub(crate) mod stack;
pub(crate) mod sync;

use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};

use ferrogrid_device::native::Block;
use rayon::ThreadPool;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::device::CpuDevice;
use crate::backend::LaunchConfig;
use crate::backend::device::BackendDevice;
use crate::backend::operation::OwnedLaunch;
use crate::error::{Error, LaunchError, Result};
use crate::kernel::{Kernel, NativeEntry};
use crate::memory::constant::Running;
use crate::output::Printing;
use block::BlockExecutor;
use first_failure::FirstFailure;
use panic::{catch, install_hook};
use stack::MAX_STACKS;

/// Work shorter than this is not worth waking the pool for.
const WORTH_SHARING: Duration = Duration::from_micros(20);

/// Tasks per thread of the pool: enough to even out blocks that take unequal time.
const TASKS_PER_THREAD: u64 = 16;

impl OwnedLaunch {
    /// Runs all blocks: the first here, the rest here too or on the pool, by how long that took.
    ///
    /// If threads panic, the failure is that of the first block, in x, y, z order, and of its first thread. So it does not
    /// depend on the number of workers. Blocks after it may have run or not.
    ///
    /// # Safety
    /// As for [`launch`](crate::launch::launch_with), with the memory that the parameters lead to free for
    /// this launch to use.
    pub(super) unsafe fn run(&self, device: &CpuDevice) -> Result<()> {
        // SAFETY: passed on.
        unsafe { self.run_anywhere(device) }.map_err(|error| error.launched_at(self.shape.site))
    }

    /// # Safety
    /// As for `run`.
    unsafe fn run_anywhere(&self, device: &CpuDevice) -> Result<()> {
        install_hook();
        if let Some(native) = self.kernel.native()
            && let Some(pool) = device.native_pool()
        {
            // SAFETY: passed on.
            return unsafe { self.run_native(native, &pool) };
        }
        if self.shape.attributes().cooperative {
            // SAFETY: passed on.
            return unsafe { cooperative::run(self, device) };
        }
        if self.shape.cluster != [1; 3] {
            // SAFETY: passed on.
            return unsafe { cluster::run(self, device) };
        }
        if self.kernel.descriptor().in_order {
            // SAFETY: passed on.
            return unsafe { in_order::run(self, device) };
        }
        let blocks = self.blocks();
        let failure = FirstFailure::new();
        let start = Instant::now();
        // SAFETY: passed on.
        let may_wait = unsafe { self.run_blocks(0..1, device, &failure) };
        let rest = 1..blocks;
        let estimate = start.elapsed().saturating_mul(u32::try_from(blocks - 1).unwrap_or(u32::MAX));
        match if estimate < WORTH_SHARING { None } else { device.pool() } {
            // SAFETY: passed on.
            Some(pool) => unsafe {
                let tasks = self.tasks(pool.current_num_threads() as u64, may_wait);
                self.run_shared(&pool, tasks, rest, device, &failure);
            },
            // SAFETY: passed on.
            None => unsafe {
                self.run_blocks(rest, device, &failure);
            },
        }
        failure.into_result()
    }

    /// Runs the native body, whose loops share the threads of `pool`. A panic is that of the first thread.
    ///
    /// # Safety
    /// As for `run`; `native` is the kernel's.
    unsafe fn run_native(&self, native: NativeEntry, pool: &ThreadPool) -> Result<()> {
        // SAFETY: the caller vouches for the parameters; this is the only run of the launch.
        let run = || unsafe { native(self.shape.grid, self.params.addresses().as_ptr()) };
        let result = pool.install(|| catch(run));
        result.map_err(|caught| caught.into_error(self.kernel, [0; 3], [0; 3]))
    }

    /// Shares `blocks` out among the threads of `pool`, in so many tasks at most.
    ///
    /// # Safety
    /// As for `run`; each block of the launch runs once.
    unsafe fn run_shared(
        &self,
        pool: &ThreadPool,
        tasks: u64,
        blocks: Range<u64>,
        device: &CpuDevice,
        failure: &FirstFailure<Error>,
    ) {
        let count = blocks.end - blocks.start;
        let tasks = count.min(tasks);
        let start =
            |task: u64| blocks.start + (u128::from(count) * u128::from(task) / u128::from(tasks)) as u64;
        share(pool, tasks, |task| {
            // SAFETY: passed on; the tasks' ranges are disjoint, so each block runs once.
            unsafe { self.run_blocks(start(task)..start(task + 1), device, failure) };
        });
    }

    /// Into how many tasks to share the blocks out among `workers`. Where all workers at once would need
    /// more stacks than there can be, there are fewer tasks than workers, so that fewer are busy.
    pub(super) fn tasks(&self, workers: u64, may_wait: bool) -> u64 {
        let [threads, blocks]: [u64; 2] =
            [self.shape.block, self.shape.cluster].map(|shape| shape.map(u64::from).iter().product());
        let stacks_for = (MAX_STACKS as u64 / (threads * blocks)).max(1);
        if may_wait && workers > stacks_for { stacks_for } else { workers * TASKS_PER_THREAD }
    }

    /// Runs blocks one after the other; whether their threads may wait, which holds of all blocks or none.
    ///
    /// # Safety
    /// As for `run`; each block of the launch runs once.
    unsafe fn run_blocks(
        &self,
        blocks: Range<u64>,
        device: &CpuDevice,
        failure: &FirstFailure<Error>,
    ) -> bool {
        let executor = device.executor();
        let _running = self.enter(device);
        let current = Cell::new(blocks.start);
        let work = || {
            for number in blocks {
                if failure.before(number) {
                    break;
                }
                current.set(number);
                // SAFETY: passed on.
                if let Err(error) = unsafe { self.run_block(number, device, &executor) } {
                    failure.note(number, || error);
                    break;
                }
            }
        };
        if let Err(fault) = executor.run_guarded(work) {
            let number = current.get();
            failure.note(number, || fault.into_error(self.kernel, self.block_idx(number), self.shape.block));
        }
        let may_wait = executor.may_wait();
        device.keep(executor);
        may_wait
    }

    /// Tells the overflow handler which kernel runs on this CPU thread. While the result lives, the kernel can read its
    /// constants and print.
    pub(super) fn enter<'a>(&self, device: &'a CpuDevice) -> (Running, Printing<'a>) {
        let descriptor = self.kernel.descriptor();
        overflow::run_kernel(self.kernel.name(), descriptor.cpu as usize);
        (Running::enter(descriptor.constants, device), Printing::to(device.output()))
    }

    /// Runs block `number`.
    ///
    /// # Safety
    /// As for [`OwnedLaunch::run`]; and each block of the launch is run once.
    pub(super) unsafe fn run_block(
        &self,
        number: u64,
        device: &CpuDevice,
        executor: &BlockExecutor,
    ) -> Result<()> {
        let kernel = self.kernel;
        if !executor.begin(self.shape.shared_bytes) {
            return Err(device.out_of_memory(self.shape.shared_bytes));
        }
        let block = Block::with_executor(self.block_idx(number), self.shape.block, self.shape.grid, executor)
            .in_clusters_of(self.shape.cluster);
        let entry = kernel.descriptor().cpu;
        // SAFETY: the caller vouches for the parameters, and that each block of the launch runs once.
        let result = catch(|| unsafe { entry(&block, self.params.addresses().as_ptr()) });
        if let Err(caught) = result {
            return Err(caught.into_error(kernel, block.block_idx(), block.last_thread()));
        }
        match executor.take_failure() {
            None => Ok(()),
            Some(failure) => Err(failure.into_error(kernel, block.block_idx(), self.shape.block)),
        }
    }

    /// How many blocks the launch has.
    pub(super) fn blocks(&self) -> u64 {
        self.shape.grid.iter().copied().map(u64::from).product()
    }

    /// The place in the grid of block `number`, x fastest.
    pub(super) fn block_idx(&self, number: u64) -> [u32; 3] {
        let [width, height, _] = self.shape.grid.map(u64::from);
        [number % width, number / width % height, number / width / height].map(|place| place as u32)
    }
}

/// Runs the tasks `0..tasks` on the threads of `pool`, and waits for them.
pub(super) fn share(pool: &ThreadPool, tasks: u64, run: impl Fn(u64) + Sync) {
    let tasks = 0..tasks as usize;
    pool.install(|| tasks.into_par_iter().with_max_len(1).for_each(|task| run(task as u64)));
}

/// Checks what a launch asks for beyond threads.
pub(crate) fn check_resources(kernel: &Kernel, shape: &LaunchConfig, device: &CpuDevice) -> Result<()> {
    let (bytes, limit) = (shape.shared_bytes, kernel.shared_memory_limit(device.shared_memory_per_block()));
    if bytes > limit {
        let (kernel, device) = (kernel.name(), device.to_string().into());
        return Err(Error::Launch(LaunchError::SharedMemoryTooLarge { kernel, device, bytes, limit }));
    }
    cooperative::check(kernel, shape, device)
}
