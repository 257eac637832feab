//! A cooperative launch on the CPU: all blocks are resident at the same time, so that they can wait for each
//! other.
//!
//! Each block is a coroutine. A worker runs its blocks until each has ended or waits for the grid. Then the workers
//! meet, and decide whether the blocks continue or the launch ends.

use std::cell::Cell;
use std::mem::take;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::{Barrier, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::OwnedLaunch;
use super::block::{BlockExecutor, stacks};
use super::overflow;
use super::panic::{self, catch};
use super::stack::ThreadStack;
use crate::backend::LaunchConfig;
use crate::backend::cpu::device::CpuDevice;
use crate::error::divergence::{BarrierReach, SourcePlace};
use crate::error::{Error, KernelError, LaunchError, LaunchSites, Result};
use crate::kernel::Kernel;
use crate::sync::lock;

/// The most stacks of one launch: one for each thread and one for each block. A stack takes memory and, on Linux, two of
/// the 65530 mappings of a process.
const MAX_STACKS: u64 = 16_384;

/// Checks that all blocks of a cooperative launch can be resident.
pub(crate) fn check(kernel: &Kernel, shape: &LaunchConfig, device: &CpuDevice) -> Result<()> {
    let threads: u32 = shape.block.iter().product();
    let blocks: u64 = shape.grid.iter().copied().map(u64::from).product();
    let limit = MAX_STACKS / (u64::from(threads) + 1);
    if !shape.attributes().cooperative || blocks <= limit {
        return Ok(());
    }
    let (kernel, device) = (kernel.name(), device.to_string().into());
    Err(Error::Launch(LaunchError::TooManyResidentBlocks { kernel, device, blocks, threads, limit }))
}

/// Runs all blocks of `launch`.
///
/// # Safety
/// As for [`OwnedLaunch::run`].
pub(crate) unsafe fn run(launch: &OwnedLaunch, device: &CpuDevice) -> Result<()> {
    let wanted = device.workers().min(launch.blocks() as usize);
    let meeting = OnceLock::new();
    let executors = executors_for(launch, device, launch.blocks())?;
    let executors: Executors = executors.into_iter().map(|executor| Mutex::new(Some(executor))).collect();
    thread::scope(|scope| {
        let (meeting, executors) = (&meeting, &executors);
        let spawn = |worker: usize| {
            let work = move || {
                let meeting: &Meeting = meeting.wait();
                // SAFETY: passed on; the blocks of different workers are different.
                unsafe { run_worker(launch, device, executors, worker, meeting) };
            };
            thread::Builder::new().name(format!("ferrogrid-grid-{worker}")).spawn_scoped(scope, work).is_ok()
        };
        // With fewer threads than wanted each takes more blocks.
        let workers = (1..wanted).take_while(|&worker| spawn(worker)).count() + 1;
        let meeting = meeting.get_or_init(|| Meeting::new(workers, BarrierReach::Grid));
        // SAFETY: passed on; the blocks of different workers are different.
        unsafe { run_worker(launch, device, executors, 0, meeting) };
    });
    executors.into_iter().filter_map(take_out).for_each(|executor| device.keep_resident(executor));
    meeting.into_inner().map_or(Ok(()), Meeting::into_result)
}

/// One for each block, until its worker takes it, and after that worker's end.
type Executors = Vec<Mutex<Option<BlockExecutor>>>;

/// Executors for `blocks` blocks of `launch`, each with permits for all stacks of its block. All are requested at once,
/// since no block ends before all have begun.
pub(crate) fn executors_for(
    launch: &OwnedLaunch,
    device: &CpuDevice,
    blocks: u64,
) -> Result<Vec<BlockExecutor>> {
    let threads: u32 = launch.shape.block.iter().product();
    let executors: Vec<_> = (0..blocks).map(|_| device.resident_executor(threads)).collect();
    // One more for the block itself.
    let needed = threads as usize + 1;
    let missing = |executor: &BlockExecutor| needed.saturating_sub(executor.stacks());
    let mut granted = stacks::try_more(executors.iter().map(missing).sum()).map_or_else(
        || {
            executors.iter().for_each(BlockExecutor::release_stacks);
            stacks::wait_for(executors.len() * needed)
                .map_err(|failure| failure.into_error(launch.kernel, [0; 3], launch.shape.block))
        },
        Ok,
    )?;
    executors.iter().for_each(|executor| executor.grant_stacks(granted.split(missing(executor))));
    Ok(executors)
}

fn take_out(executor: Mutex<Option<BlockExecutor>>) -> Option<BlockExecutor> {
    executor.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Where the workers meet after each phase, between two barriers of the grid or of a cluster.
pub(crate) struct Meeting {
    workers: usize,
    reach: BarrierReach,
    barrier: Barrier,
    phase: Mutex<Phase>,
}

/// What happened so far, and what is next.
#[derive(Default)]
struct Phase {
    /// The failure of the lowest block that failed.
    failure: Option<(u64, Error)>,
    /// The blocks that wait for the grid now: how many, the lowest, and where that waits.
    waiting: u32,
    first_waiting: Option<(u64, SourcePlace)>,
    /// The blocks that have ended: how many, and the lowest.
    ended: u32,
    first_ended: Option<u64>,
    go_on: bool,
}

impl Meeting {
    pub(crate) fn new(workers: usize, reach: BarrierReach) -> Self {
        Meeting { workers, reach, barrier: Barrier::new(workers), phase: Mutex::default() }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        lock(&self.phase)
    }

    /// Waits until all workers have reported their blocks; returns whether these continue.
    fn decide(&self, launch: &OwnedLaunch) -> bool {
        if self.barrier.wait().is_leader() {
            self.phase().decide(launch, self.reach);
        }
        self.barrier.wait();
        self.phase().go_on
    }

    fn into_result(self) -> Result<()> {
        self.into_failure().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// The failure of the lowest block that failed, and that block's number.
    pub(crate) fn into_failure(self) -> Option<(u64, Error)> {
        self.phase.into_inner().unwrap_or_else(PoisonError::into_inner).failure
    }
}

impl Phase {
    fn note_waiting(&mut self, block: u64, place: Option<SourcePlace>) {
        self.waiting += 1;
        if let Some(place) = place
            && self.first_waiting.is_none_or(|(first, _)| block < first)
        {
            self.first_waiting = Some((block, place));
        }
    }

    fn note_ended(&mut self, block: u64, result: Result<()>) {
        self.ended += 1;
        self.first_ended = Some(self.first_ended.map_or(block, |first| first.min(block)));
        if let Err(error) = result
            && self.failure.as_ref().is_none_or(|(first, _)| block < *first)
        {
            self.failure = Some((block, error));
        }
    }

    /// All blocks wait or have ended. If all wait, all continue.
    fn decide(&mut self, launch: &OwnedLaunch, reach: BarrierReach) {
        let (waiting, first_waiting) = (take(&mut self.waiting), self.first_waiting.take());
        self.go_on = waiting > 0 && self.ended == 0;
        if let (None, Some((block, place)), Some(ended)) = (&self.failure, first_waiting, self.first_ended) {
            let error = KernelError::BlockDivergence {
                kernel: launch.kernel.name(),
                launched: LaunchSites::default(),
                reach,
                place,
                waiting: launch.block_idx(block),
                waiting_blocks: waiting,
                ended: launch.block_idx(ended),
                ended_blocks: self.ended,
            };
            self.failure = Some((block, error.into()));
        }
    }
}

/// A block of the launch, until it has ended.
struct Resident<'a> {
    number: u64,
    executor: &'a BlockExecutor,
    /// `None` when it has ended.
    coroutine: Option<BlockCoroutine>,
    stack: overflow::Stack,
    launch: &'a OwnedLaunch,
    stack_bytes: usize,
    result: Rc<Cell<Result<()>>>,
}

type BlockCoroutine = Coroutine<(), (), (), ThreadStack>;

/// Runs every `workers`-th block from `worker` on.
///
/// # Safety
/// As for [`OwnedLaunch::run`]; and no two workers have the same number.
unsafe fn run_worker(
    launch: &OwnedLaunch,
    device: &CpuDevice,
    all: &Executors,
    worker: usize,
    meeting: &Meeting,
) {
    let numbers: Vec<u64> = (worker as u64..launch.blocks()).step_by(meeting.workers).collect();
    let place = |number: u64| lock(&all[number as usize]);
    // No block has two workers.
    let executors: Vec<_> = numbers.iter().filter_map(|&number| place(number).take()).collect();
    // SAFETY: passed on; each block is one worker's, once.
    unsafe { run_resident(launch, device, &numbers, &executors, meeting) };
    numbers.iter().zip(executors).for_each(|(&number, executor)| *place(number) = Some(executor));
}

/// Runs the blocks `numbers`, one on each of `executors`, until all have ended; those that wait for others take
/// turns on this CPU thread.
///
/// # Safety
/// As for [`OwnedLaunch::run`]; and no other call has one of these blocks.
pub(crate) unsafe fn run_resident(
    launch: &OwnedLaunch,
    device: &CpuDevice,
    numbers: &[u64],
    executors: &[BlockExecutor],
    meeting: &Meeting,
) {
    let _running = launch.enter(device);
    let mut residents = Vec::new();
    for (&number, executor) in numbers.iter().zip(executors) {
        // SAFETY: passed on.
        match unsafe { admit(launch, device, number, executor) } {
            Ok(resident) => residents.push(resident),
            Err(error) => meeting.phase().note_ended(number, Err(error)),
        }
    }
    // The blocks take turns inside of one `catch`: what it notes of this CPU thread must not depend on
    // which of them ends first.
    let turns = catch(|| {
        loop {
            residents.retain_mut(|resident| resident.run(meeting));
            if !meeting.decide(launch) {
                return residents.iter_mut().for_each(Resident::abandon);
            }
        }
    });
    debug_assert!(turns.is_ok(), "a block keeps its failures to itself");
}

/// Makes block `number` ready to run on a separate stack.
///
/// # Safety
/// As for [`OwnedLaunch::run_block`]; and what is borrowed outlives the coroutine.
unsafe fn admit<'a>(
    launch: &'a OwnedLaunch,
    device: &'a CpuDevice,
    number: u64,
    executor: &'a BlockExecutor,
) -> Result<Resident<'a>> {
    let stack = executor
        .take_stack()
        .map_err(|failure| failure.into_error(launch.kernel, launch.block_idx(number), launch.shape.block))?;
    let result = Rc::new(Cell::new(Ok(())));
    let kept = result.clone();
    let run = move |yielder: &Yielder<(), ()>, ()| {
        executor.set_pause(Some(NonNull::from(yielder)));
        // SAFETY: passed on.
        kept.set(unsafe { launch.run_block(number, device, executor) });
        executor.set_pause(None);
    };
    // SAFETY: what `run` borrows outlives `'a`, and the coroutine with it.
    let coroutine = unsafe { BlockCoroutine::with_stack_unchecked(stack, run) };
    let (stack, stack_bytes) = (coroutine.trap_handler(), device.stack_size());
    Ok(Resident { number, executor, coroutine: Some(coroutine), stack, launch, stack_bytes, result })
}

impl Resident<'_> {
    /// Lets the block run until it has ended or waits for others; whether it waits.
    fn run(&mut self, meeting: &Meeting) -> bool {
        match self.resume() {
            None => {
                let place = self.executor.outer_barrier_site().map(SourcePlace::from);
                meeting.phase().note_waiting(self.number, place);
                true
            }
            Some(result) => {
                meeting.phase().note_ended(self.number, result);
                false
            }
        }
    }

    /// Ends the block, which waits for others that will never come.
    fn abandon(&mut self) {
        self.executor.abandon();
        self.resume();
    }

    /// Gives the block its turn; its result if it has ended.
    fn resume(&mut self) -> Option<Result<()>> {
        let coroutine = self.coroutine.as_mut()?;
        let in_kernel = panic::in_kernel();
        overflow::running_on(Some(self.stack));
        let turn = coroutine.resume(());
        overflow::running_on(None);
        let CoroutineResult::Return(()) = turn else { return None };
        if let Some(ended) = self.coroutine.take() {
            self.executor.keep_stack(ended.into_stack());
        }
        if overflow::happened() {
            panic::restore(in_kernel);
            let (block, shape) = (self.launch.block_idx(self.number), self.launch.shape.block);
            let fault = self.executor.spoil(self.stack_bytes);
            return Some(Err(fault.into_error(self.launch.kernel, block, shape)));
        }
        Some(self.result.replace(Ok(())))
    }
}
