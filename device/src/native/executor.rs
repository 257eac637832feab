//! The trait by which the CPU device lets threads of a block wait for each other, and the turn that a thread
//! gives up meanwhile.
//!
//! A wait has three steps: the thread tells the executor, gives up its turn, and asks for the outcome. The
//! second step is inlined into the kernel, so that no call is open across it. A processor predicts returns
//! from the calls that it has seen: after a switch of stacks inside a call, each return out of it would cost
//! as much as ten switches.

use core::marker::PhantomData;
use core::panic::Location;
use core::ptr::NonNull;

use corosensei::Yielder;

/// The turn of a thread that is about to wait: other threads run from when it is given up until the wait is
/// over.
#[must_use = "a thread waits by giving up its turn"]
pub struct Turn<'a> {
    yielder: NonNull<Yielder<(), ()>>,
    executor: PhantomData<&'a ()>,
}

impl Turn<'_> {
    /// The turn of the coroutine to which `yielder` belongs.
    ///
    /// # Safety
    /// Until the turn is given up or dropped, this coroutine is the one that runs on this CPU thread. It is
    /// not resumed before its wait is over, except to unwind it.
    #[inline(always)]
    pub unsafe fn new(yielder: NonNull<Yielder<(), ()>>) -> Self {
        Turn { yielder, executor: PhantomData }
    }

    /// Lets others run until the wait is over.
    #[inline(always)]
    pub(super) fn give_up(self) {
        // SAFETY: the yielder is that of the coroutine that runs, on whose stack it lies, as `new` demands.
        unsafe { self.yielder.as_ref() }.suspend(());
    }
}

/// Runs the threads of one block at a time, and switches between them where they wait.
///
/// Threads are numbered in their block from 0, x fastest; 32 consecutive ones form a warp. A function that
/// returns a [`Turn`] records that `thread`, which runs, waits; the caller gives the turn up at once. It
/// returns `None` where there is nothing to wait for.
///
/// In a block with one thread, that thread never waits for another. So this example executes everything that such a
/// block may do, except waiting for other blocks:
///
/// ```
/// use core::cell::{Cell, UnsafeCell};
/// use core::panic::Location;
/// use ferrogrid_device::native::{Block, Executor, Turn};
///
/// #[repr(align(128))]
/// struct Memory(UnsafeCell<[u8; 1024]>);
///
/// struct Alone {
///     vote: Cell<bool>,
///     value: Cell<u128>,
///     memory: Memory,
/// }
///
/// type Site = &'static Location<'static>;
///
/// // SAFETY: every wait is over at once; the memory is initialised, aligned, and used by nothing else.
/// unsafe impl Executor for Alone {
///     fn run_threads(&self, threads: u32, body: &dyn Fn(u32)) {
///         assert_eq!(threads, 1, "a thread would wait for others");
///         body(0);
///     }
///     fn begins(&self, _thread: u32) {}
///     fn wait_for_block(&self, _thread: u32, vote: bool, _site: Site) -> Option<Turn<'_>> {
///         self.vote.set(vote);
///         None
///     }
///     fn agree(&self, _thread: u32, _word: u64, _site: Site) {}
///     fn votes(&self) -> u32 {
///         u32::from(self.vote.get())
///     }
///     fn bring(&self, _thread: u32, mask: u32, value: u128, site: Site) -> Option<Turn<'_>> {
///         assert_eq!(mask, 1, "{site}: the warp has no other lanes");
///         self.value.set(value);
///         None
///     }
///     fn brought(&self, _thread: u32, read: &mut dyn FnMut(&[u128; 32])) {
///         let mut values = [0; 32];
///         values[0] = self.value.get();
///         read(&values);
///     }
///     fn wait_for_warp(&self, _thread: u32, _site: Site) -> Option<Turn<'_>> {
///         None
///     }
///     fn active_mask(&self, _thread: u32) -> u32 {
///         1
///     }
///     fn wait_for_grid(&self, _thread: u32, site: Site) -> Option<Turn<'_>> {
///         panic!("{site}: the grid may have other blocks")
///     }
///     fn wait_for_cluster(&self, _thread: u32, site: Site) -> Option<Turn<'_>> {
///         panic!("{site}: the cluster may have other blocks")
///     }
///     fn cluster_shared(&self, _rank: u32) -> *mut u8 {
///         self.shared().0
///     }
///     fn shared(&self) -> (*mut u8, usize) {
///         (self.memory.0.get().cast(), 1024)
///     }
/// }
///
/// let (memory, found) = (Memory(UnsafeCell::new([0; 1024])), Cell::new((0, 0)));
/// let alone = Alone { vote: Cell::new(false), value: Cell::new(0), memory };
/// let block = Block::with_executor([4, 0, 0], [1, 1, 1], [5, 1, 1], &alone);
/// // SAFETY: no slices are reached, and the block is of a launch of rank 1.
/// unsafe {
///     block.for_each_waiting_thread::<1>(|t| {
///         let sum = t.warp().reduce(t.index().get() as u32, |a, b| a + b);
///         found.set((sum, t.sync_threads_count(sum == 4)));
///     });
/// }
/// assert_eq!(found.get(), (4, 1));
/// ```
///
/// # Safety
/// An implementation promises, for each call of [`run_threads`](Executor::run_threads):
/// - all calls of `body` are made on the calling CPU thread, at most one for each number; when `run_threads`
///   returns, each has returned, was unwound, or will never continue;
/// - a thread that gave up the turn of [`wait_for_block`](Executor::wait_for_block) continues only when all
///   threads of the block have called it; for [`wait_for_cluster`](Executor::wait_for_cluster) all threads of
///   the cluster, for [`wait_for_grid`](Executor::wait_for_grid) all threads of the grid. Everything that
///   they did before is then visible;
/// - for [`bring`](Executor::bring) it continues only when all lanes in `mask` have called it with this mask;
///   [`brought`](Executor::brought) then calls `read` once, with what they brought;
/// - where that is impossible, the thread is unwound or never continues;
/// - [`shared`](Executor::shared) names initialised memory, aligned to 128 bytes, that belongs to the block
///   from its first thread to the end of its last and to nothing else;
/// - [`cluster_shared`](Executor::cluster_shared) names what `shared` does in another block of the cluster,
///   and that stays until all blocks of the cluster have ended.
pub unsafe trait Executor {
    /// Calls `body` with each number below `threads`. After a failure, which the implementation records, some
    /// calls may be missing or cut short.
    fn run_threads(&self, threads: u32, body: &dyn Fn(u32));

    /// Records that `thread` of a block whose threads never wait is about to run. It is called for all such
    /// threads in builds with debug assertions, and for none in others.
    fn begins(&self, thread: u32);

    /// Waits for all threads of the block; `thread` passes `vote`.
    fn wait_for_block(&self, thread: u32, vote: bool, site: &'static Location<'static>) -> Option<Turn<'_>>;

    /// Fails unless all threads of the block pass the same word, at the same position among their calls
    /// between two barriers.
    fn agree(&self, thread: u32, word: u64, site: &'static Location<'static>);

    /// The number of threads that passed `true` to the block's barrier that has just ended.
    fn votes(&self) -> u32;

    /// Waits for all lanes of the thread's warp that `mask` names, which must include its own; it passes
    /// `value`.
    fn bring(
        &self,
        thread: u32,
        mask: u32,
        value: u128,
        site: &'static Location<'static>,
    ) -> Option<Turn<'_>>;

    /// Calls `read` with the value of each lane, and 0 for lanes outside the mask, when the thread's wait at
    /// [`bring`](Executor::bring) is over.
    fn brought(&self, thread: u32, read: &mut dyn FnMut(&[u128; 32]));

    /// Waits until no lane of the thread's warp can proceed: each waits or has exited.
    fn wait_for_warp(&self, thread: u32, site: &'static Location<'static>) -> Option<Turn<'_>>;

    /// The lanes of the thread's warp that waited with it at one `site`, when
    /// [`wait_for_warp`](Executor::wait_for_warp) is over.
    fn active_mask(&self, thread: u32) -> u32;

    /// Waits for all threads of the grid, in a cooperative launch.
    fn wait_for_grid(&self, thread: u32, site: &'static Location<'static>) -> Option<Turn<'_>>;

    /// Lets other OS threads run, while a thread of the block waits for the value of another block, which
    /// runs on one of them. It has polled `turns` times.
    fn pause(&self, turns: u32) {
        let _ = turns;
        core::hint::spin_loop();
    }

    /// Waits for all threads of the cluster; in a launch without clusters, of the block.
    fn wait_for_cluster(&self, thread: u32, site: &'static Location<'static>) -> Option<Turn<'_>>;

    /// The shared memory of the block with this rank in the cluster, once all its blocks have met at a
    /// barrier; in a launch without clusters the block's own.
    fn cluster_shared(&self, rank: u32) -> *mut u8;

    /// The block's shared memory and its size in bytes.
    fn shared(&self) -> (*mut u8, usize);
}
