//! One block whose threads wait for each other: each waiting thread is a coroutine, and they take turns on
//! the worker's own thread.
//!
//! `ready` queues threads that can continue; `barrier` and `warp` are what they wait at. `agreement` checks what must be the
//! same in all threads, `failure` explains why a block is stuck, `stacks` keeps the stacks.
//!
//! A coroutine draws thread numbers in a loop, so one reused stack serves while nothing waits. When a thread waits, its
//! coroutine is suspended with it, and the next one continues to draw. Ready threads are resumed before further ones are
//! started, in the order in which they became ready. A barrier makes all ready in ascending order. So the order depends on
//! the kernel alone.

mod agreement;
mod barrier;
mod failure;
mod ready;
pub(crate) mod stacks;
mod warp;

use std::cell::{Cell, RefCell};
use std::mem;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr::NonNull;

use corosensei::{Coroutine, CoroutineResult, Yielder};
use ferrogrid_device::native::{Executor, Turn};

use super::guarded::{self, UsedUp};
use super::overflow;
use super::panic::catch;
use super::shared::SharedMemory;
use super::spin;
use super::stack::ThreadStack;
use agreement::Agreements;
use barrier::BlockBarrier;
pub(crate) use failure::Failure;
use ready::ReadyQueue;
use stacks::{Grant, Stacks};
use warp::{Rounds, Warp};

use crate::error::divergence::BarrierReach;

/// The most threads of a block, here and on every GPU so far.
const MAX_THREADS: usize = 1024;

type ThreadCoroutine = Coroutine<(), (), (), ThreadStack>;

/// What a thread of a running block last waited for.
#[derive(Clone, Copy, Default)]
enum Wait {
    #[default]
    Nothing,
    Barrier(&'static Location<'static>),
    Exchange {
        mask: u32,
        site: &'static Location<'static>,
    },
    /// For other blocks: of the grid, or of the cluster.
    OtherBlocks(&'static Location<'static>),
    /// For the other lanes to get as far as they can: then it is known which are here, too.
    ActiveMask(&'static Location<'static>),
    /// For nothing more: it has exited.
    Exited,
}

/// What is known of one thread, and of the coroutine that was started for it.
#[derive(Default)]
struct ThreadState {
    waits: Cell<Wait>,
    /// The coroutine that carries it while it waits.
    coroutine: Cell<u16>,
    /// The way out of the coroutine.
    yielder: Cell<Option<NonNull<Yielder<(), ()>>>>,
    /// The number of its values since the last barrier, which must be the same in all threads.
    agreements: Cell<u32>,
}

/// Runs the threads of one block at a time; kept with its stacks and tables for the next. The default has no room for
/// threads.
#[derive(Default)]
pub(crate) struct BlockExecutor {
    may_wait: Cell<bool>,
    /// How many threads the block has, how many were started, how many have exited.
    threads: Cell<u32>,
    started: Cell<u32>,
    exited: Cell<u32>,
    /// The thread that runs, the coroutine that carries it, and that coroutine's way out. Of a block whose threads
    /// never wait `running` is known only if `begun`.
    running: Cell<u32>,
    begun: Cell<bool>,
    coroutine: Cell<u16>,
    yielder: Cell<Option<NonNull<Yielder<(), ()>>>>,
    states: Box<[ThreadState]>,
    ready: ReadyQueue,
    barrier: BlockBarrier,
    agreements: Agreements,
    warps: Box<[Warp]>,
    rounds: Rounds,
    at_outer_barrier: Cell<u32>,
    at_active_mask: Cell<u32>,
    /// Gives the turn to the other blocks of a cooperative launch, or of the cluster; `None` in others.
    pause: Cell<Option<NonNull<Yielder<(), ()>>>>,
    /// The executors of the blocks of the cluster, by their rank; `None` in a launch without clusters.
    cluster: Cell<Option<NonNull<[BlockExecutor]>>>,
    failed: Cell<bool>,
    /// Whether a thread was left in the middle of what it did.
    spoiled: Cell<bool>,
    failure: RefCell<Option<Failure>>,
    /// A coroutine's place is the number of the thread that it was started for. Empty between blocks.
    coroutines: RefCell<Vec<Option<ThreadCoroutine>>>,
    stacks: Stacks,
    shared: RefCell<SharedMemory>,
}

// SAFETY: it is moved to another CPU thread only between blocks. Then no coroutine is alive, whose
// stack might hold what must stay on its thread, and the yielders and the cluster are `None`.
unsafe impl Send for BlockExecutor {}

/// What the scheduler does next.
enum Step {
    /// The thread whose wait is over.
    GoOn(u32),
    Start,
    Finished,
    Stuck,
}

impl BlockExecutor {
    /// An executor for blocks of at most `threads` threads, each with a stack of `stack_size` bytes.
    pub(crate) fn new(threads: u32, stack_size: usize) -> Self {
        BlockExecutor {
            states: (0..threads).map(|_| ThreadState::default()).collect(),
            warps: (0..threads.div_ceil(32)).map(|_| Warp::default()).collect(),
            stacks: Stacks::new(stack_size),
            ..BlockExecutor::default()
        }
    }

    /// The most threads that a block can have here.
    pub(crate) fn max_threads(&self) -> u32 {
        self.states.len() as u32
    }

    /// How many stacks it may have.
    pub(crate) fn stacks(&self) -> usize {
        self.stacks.permitted()
    }

    /// Lets it have more stacks.
    pub(crate) fn grant_stacks(&self, more: Grant) {
        self.stacks.grant(more);
    }

    /// Gives up its stacks; no block runs.
    pub(crate) fn release_stacks(&self) {
        self.stacks.release();
    }

    /// Makes it ready for a block with `shared_bytes` of shared memory; `false` if there is not so much memory.
    #[must_use]
    pub(crate) fn begin(&self, shared_bytes: usize) -> bool {
        self.may_wait.set(false);
        self.begun.set(false);
        self.shared.borrow_mut().prepare(shared_bytes)
    }

    /// Makes it ready for blocks of `threads` threads that wait, so that none of them waits for what others have: stacks.
    pub(crate) fn reserve(&self, threads: u32) -> Result<(), Failure> {
        self.stacks.reserve(threads as usize)
    }

    /// Whether it must not be used for another block.
    pub(crate) fn is_spoiled(&self) -> bool {
        self.spoiled.get()
    }

    /// Whether the threads of the last block were run so that they could wait.
    pub(crate) fn may_wait(&self) -> bool {
        self.may_wait.get()
    }

    /// What went wrong in the block, if anything did.
    #[inline]
    pub(crate) fn take_failure(&self) -> Option<Failure> {
        if !self.failed.get() {
            return None;
        }
        self.failed.set(false);
        self.failure.borrow_mut().take()
    }

    /// Makes the block give its turn to others by `pause` while it waits for them. `None` ends that.
    pub(crate) fn set_pause(&self, pause: Option<NonNull<Yielder<(), ()>>>) {
        self.pause.set(pause);
    }

    /// Makes the block one of a cluster, whose blocks these executors run, this one among them. `None` ends
    /// that.
    ///
    /// # Safety
    /// The executors stay where they are, and on this CPU thread, until that ends.
    pub(crate) unsafe fn set_cluster(&self, cluster: Option<NonNull<[BlockExecutor]>>) {
        self.cluster.set(cluster);
    }

    /// What a barrier beyond the block waits for here.
    fn beyond_block(&self) -> BarrierReach {
        if self.cluster.get().is_some() { BarrierReach::Cluster } else { BarrierReach::Grid }
    }

    /// Ends the block at its barrier with others, without adding a failure.
    pub(crate) fn abandon(&self) {
        self.failed.set(true);
    }

    /// Where the threads wait for other blocks: the place of the first in the source.
    pub(crate) fn outer_barrier_site(&self) -> Option<&'static Location<'static>> {
        self.states[..self.threads.get() as usize].iter().find_map(|state| match state.waits.get() {
            Wait::OtherBlocks(site) => Some(site),
            _ => None,
        })
    }

    fn reset(&self, threads: u32) {
        assert!(threads as usize <= self.states.len(), "a block of {threads} threads was let through");
        self.threads.set(threads);
        self.started.set(0);
        self.exited.set(0);
        self.at_outer_barrier.set(0);
        self.at_active_mask.set(0);
        self.ready.clear();
        self.barrier.reset();
        agreement::forget(self);
        self.rounds.reset();
        let warps = (threads as usize).div_ceil(32);
        self.warps[..warps].iter().enumerate().for_each(|(number, warp)| {
            warp.reset((threads - 32 * number as u32).min(32));
        });
        self.states[..threads as usize].iter().for_each(|state| state.waits.set(Wait::Nothing));
    }

    fn next_step(&self) -> Step {
        if self.failed.get() {
            return Step::Finished;
        }
        if let Some(thread) = self.ready.pop() {
            return Step::GoOn(thread.into());
        }
        if self.started.get() < self.threads.get() {
            return Step::Start;
        }
        if self.exited.get() == self.threads.get() { Step::Finished } else { Step::Stuck }
    }

    /// Runs threads until all have exited or one has failed.
    fn schedule(&self, coroutines: &mut [Option<ThreadCoroutine>], body: &dyn Fn(u32)) {
        loop {
            let place = match self.next_step() {
                Step::GoOn(thread) => self.turn_to(thread),
                Step::Start => {
                    let place = self.started.get() as usize;
                    match self.start(place as u16, body) {
                        Ok(coroutine) => coroutines[place] = Some(coroutine),
                        Err(failure) => return self.fail(failure),
                    }
                    place
                }
                Step::Finished => return,
                Step::Stuck => {
                    if !warp::wake_active(self) && !self.wait_for_blocks() {
                        return;
                    }
                    continue;
                }
            };
            let Some(coroutine) = &mut coroutines[place] else { continue };
            overflow::go_on(coroutine.trap_handler());
            if let CoroutineResult::Return(()) = coroutine.resume(()) {
                if overflow::happened() {
                    self.fail_by_overflow();
                }
                self.end(&mut coroutines[place]);
            }
        }
    }

    /// A coroutine that draws threads, the next one first.
    fn start(&self, place: u16, body: &dyn Fn(u32)) -> Result<ThreadCoroutine, Failure> {
        let stack = self.stacks.take()?;
        let draw = move |yielder: &Yielder<(), ()>, ()| {
            self.enter(place, NonNull::from(yielder));
            while let Some(thread) = self.draw() {
                body(thread);
                self.exit(thread);
            }
        };
        // SAFETY: what `draw` borrows is alive until `run_threads` returns, and by then every coroutine
        // has ended or, where it cannot be unwound, is never resumed.
        Ok(unsafe { Coroutine::with_stack_unchecked(stack, draw) })
    }

    /// Runs `work`, which runs blocks, on a separate stack, so that a kernel that never waits is guarded too.
    pub(crate) fn run_guarded(&self, work: impl FnOnce()) -> Result<(), Failure> {
        let stack = self.stacks.take_large()?;
        let bytes = self.stacks.large_bytes();
        let (stack, result) = guarded::run(stack, work);
        self.stacks.keep_large(stack);
        result.map_err(|UsedUp| self.spoil(bytes))
    }

    /// Notes that a stack of `bytes` on which blocks were run was used up by a kernel that never waits.
    #[cold]
    pub(crate) fn spoil(&self, bytes: usize) -> Failure {
        self.spoiled.set(true);
        let thread = self.begun.get().then(|| self.running.get());
        Failure::Overflow { thread, bytes }
    }

    /// A separate stack for work other than its threads.
    pub(crate) fn take_stack(&self) -> Result<ThreadStack, Failure> {
        self.stacks.take()
    }

    pub(crate) fn keep_stack(&self, stack: ThreadStack) {
        self.stacks.keep(stack);
    }

    fn end(&self, coroutine: &mut Option<ThreadCoroutine>) {
        if let Some(done) = coroutine.take() {
            self.stacks.keep(done.into_stack());
        }
    }

    /// The next thread to start on the running coroutine; `None` while others are ready.
    #[inline]
    fn draw(&self) -> Option<u32> {
        let thread = self.started.get();
        if thread == self.threads.get() || !self.ready.is_empty() || self.failed.get() {
            return None;
        }
        self.started.set(thread + 1);
        self.running.set(thread);
        Some(thread)
    }

    #[inline]
    fn exit(&self, thread: u32) {
        self.exited.set(self.exited.get() + 1);
        self.state(thread).waits.set(Wait::Exited);
        self.warp(thread).exit(thread % 32);
    }

    /// Notes that the coroutine `place`, whose way out is `yielder`, has begun to run.
    #[inline]
    fn enter(&self, place: u16, yielder: NonNull<Yielder<(), ()>>) {
        self.states[usize::from(place)].yielder.set(Some(yielder));
        self.coroutine.set(place);
        self.yielder.set(Some(yielder));
    }

    /// Notes that `thread` is about to continue; returns the place of its coroutine.
    #[inline]
    fn turn_to(&self, thread: u32) -> usize {
        let coroutine = self.state(thread).coroutine.get();
        self.running.set(thread);
        self.coroutine.set(coroutine);
        self.yielder.set(self.states[usize::from(coroutine)].yielder.get());
        coroutine.into()
    }

    /// Notes what the running thread is about to wait for.
    #[inline]
    fn note(&self, thread: u32, wait: Wait) {
        assert_eq!(thread, self.running.get(), "a thread waits in its own name");
        let state = self.state(thread);
        state.waits.set(wait);
        state.coroutine.set(self.coroutine.get());
    }

    /// The turn of the running thread, of which is noted what it waits for.
    #[inline]
    fn turn(&self) -> Turn<'_> {
        let yielder = self.yielder.get().expect("a thread waits while it runs");
        // SAFETY: the yielder is that of the coroutine that runs this very code. It is set when a coroutine begins and
        // before one is resumed, and it is none between blocks. `schedule` resumes the coroutine when its thread has been
        // woken, and threads are woken when what they wait for has come; `unwind` does it to unwind it.
        unsafe { Turn::new(yielder) }
    }

    /// Makes a waiting thread ready.
    #[inline]
    fn wake(&self, thread: u32) {
        self.ready.push(thread as u16);
    }

    /// Records why the block cannot continue. The running thread must not continue either.
    #[cold]
    fn fail(&self, failure: Failure) {
        self.failed.set(true);
        self.failure.borrow_mut().get_or_insert(failure);
    }

    /// Fails because a thread has used up its stack. It was left in the middle of anything, so this executor
    /// must not be used again.
    #[cold]
    fn fail_by_overflow(&self) {
        self.spoiled.set(true);
        let (thread, bytes) = (Some(self.running.get()), self.stacks.bytes());
        self.fail(Failure::Overflow { thread, bytes });
    }

    /// Fails and gives up the turn of the running thread permanently.
    #[cold]
    fn fail_here(&self, failure: Failure) -> ! {
        self.fail(failure);
        if let Some(yielder) = self.yielder.get() {
            // SAFETY: this is the yielder of the coroutine that runs this very code, as in `turn`.
            unsafe { yielder.as_ref() }.suspend(());
        }
        unreachable!("a failed block resumes no thread but to unwind it")
    }

    /// Waits for threads of other blocks.
    #[inline]
    fn wait_outside(&self, thread: u32, site: &'static Location<'static>) -> Option<Turn<'_>> {
        self.note(thread, Wait::OtherBlocks(site));
        self.at_outer_barrier.set(self.at_outer_barrier.get() + 1);
        Some(self.turn())
    }

    /// Called when no thread of this block can continue: lets the other blocks run, if all threads wait for those.
    /// `false` if the block is stuck.
    #[cold]
    fn wait_for_blocks(&self) -> bool {
        let all_wait = self.at_outer_barrier.get() == self.threads.get();
        let Some(pause) = self.pause.get().filter(|_| all_wait) else {
            self.fail(failure::of_stuck_block(self));
            return false;
        };
        // SAFETY: the yielder is that of the coroutine that runs this block in a cooperative launch. It is set before the
        // block begins and unset after its end.
        unsafe { pause.as_ref() }.suspend(());
        if self.failed.get() {
            return false;
        }
        self.at_outer_barrier.set(0);
        (0..self.threads.get()).for_each(|thread| self.wake(thread));
        true
    }

    /// Unwinds all threads that still wait, so that what is on their stacks is dropped.
    #[cold]
    fn unwind(&self, coroutines: &mut [Option<ThreadCoroutine>]) {
        for slot in coroutines {
            let Some(coroutine) = slot else { continue };
            overflow::go_on(coroutine.trap_handler());
            if cfg!(not(panic = "unwind")) && !coroutine.done() {
                // It cannot be unwound, and what lies on its stack may be pointed at: give both up.
                mem::forget(slot.take());
                continue;
            }
            // A destructor may panic too; the first failure is reported.
            let _ = catch_unwind(AssertUnwindSafe(|| coroutine.force_unwind()));
            self.end(slot);
        }
    }

    #[inline]
    fn state(&self, thread: u32) -> &ThreadState {
        &self.states[thread as usize]
    }

    #[inline]
    fn warp(&self, thread: u32) -> &Warp {
        &self.warps[thread as usize / 32]
    }
}

// SAFETY: `run_threads` resumes coroutines only on the calling CPU thread and draws each number once; at its end all
// coroutines have ended, or are leaked. A thread that waits for the block, the cluster or the grid is woken when all threads
// have arrived. One that waits for lanes is woken when all of these have. After a failure a suspended thread is only
// unwound. The shared memory is this block's alone; that of the cluster's blocks belongs to executors that stay as
// `set_cluster` requires.
unsafe impl Executor for BlockExecutor {
    fn run_threads(&self, threads: u32, body: &dyn Fn(u32)) {
        self.may_wait.set(true);
        if let Err(failure) = self.stacks.reserve(threads as usize) {
            return self.fail(failure);
        }
        self.reset(threads);
        let mut coroutines = self.coroutines.take();
        coroutines.resize_with(self.states.len(), || None);
        let own = overflow::running_on(None);
        if let Err(caught) = catch(|| self.schedule(&mut coroutines, body)) {
            self.fail(Failure::Panic { thread: self.running.get(), caught });
        }
        if self.failed.get() {
            self.unwind(&mut coroutines);
        }
        overflow::running_on(own);
        self.yielder.set(None);
        self.coroutines.replace(coroutines);
    }

    fn begins(&self, thread: u32) {
        self.begun.set(true);
        self.running.set(thread);
    }

    fn wait_for_block(&self, thread: u32, vote: bool, site: &'static Location<'static>) -> Option<Turn<'_>> {
        barrier::arrive(self, thread, vote, site)
    }

    fn agree(&self, thread: u32, word: u64, site: &'static Location<'static>) {
        agreement::say(self, thread, word, site);
    }

    fn votes(&self) -> u32 {
        self.barrier.votes()
    }

    fn bring(
        &self,
        thread: u32,
        mask: u32,
        value: u128,
        site: &'static Location<'static>,
    ) -> Option<Turn<'_>> {
        warp::bring(self, thread, mask, value, site)
    }

    fn brought(&self, thread: u32, read: &mut dyn FnMut(&[u128; 32])) {
        warp::brought(self, thread, read);
    }

    fn wait_for_warp(&self, thread: u32, site: &'static Location<'static>) -> Option<Turn<'_>> {
        warp::wait_for_all(self, thread, site)
    }

    fn active_mask(&self, thread: u32) -> u32 {
        warp::active_mask(self, thread)
    }

    fn wait_for_grid(&self, thread: u32, site: &'static Location<'static>) -> Option<Turn<'_>> {
        if self.cluster.get().is_some() {
            self.fail_here(Failure::NotCooperative { site });
        }
        self.wait_outside(thread, site)
    }

    fn pause(&self, turns: u32) {
        spin::pause(turns);
    }

    fn wait_for_cluster(&self, thread: u32, site: &'static Location<'static>) -> Option<Turn<'_>> {
        match self.cluster.get() {
            Some(_) => self.wait_outside(thread, site),
            None => barrier::arrive(self, thread, false, site),
        }
    }

    fn cluster_shared(&self, rank: u32) -> *mut u8 {
        let Some(cluster) = self.cluster.get() else { return self.shared().0 };
        // SAFETY: the executors are alive and on this CPU thread by `set_cluster`.
        let executors = unsafe { cluster.as_ref() };
        executors[rank as usize].shared().0
    }

    fn shared(&self) -> (*mut u8, usize) {
        self.shared.borrow().get()
    }
}
