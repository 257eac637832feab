//! What lets the threads of a native block wait for each other: a trait that the CPU device implements,
//! so that coroutines and their stacks are its business alone. It must not know how.

use core::panic::Location;

/// Runs the threads of one block at a time, and switches between them where they wait.
///
/// Threads are numbered in their block from 0, x fastest; 32 in a row are a warp.
///
/// # Safety
/// An implementation promises, for each call of [`run_threads`](Executor::run_threads):
/// - all calls of `body` are made on the calling CPU thread, at most one for each number; when
///   `run_threads` returns, each has returned, was unwound, or will never go on;
/// - [`barrier`](Executor::barrier) returns only when all threads of the block have called it,
///   [`cluster_barrier`](Executor::cluster_barrier) only when all threads of the cluster have, and
///   [`grid_barrier`](Executor::grid_barrier) only when all threads of the grid have, with all that they
///   did before visible;
/// - [`warp_exchange`](Executor::warp_exchange) calls `read` once, when all lanes in `mask` have called it
///   with this mask, with what they brought;
/// - where that cannot be, these do not return: the thread is unwound or never goes on;
/// - [`shared`](Executor::shared) names initialised memory, aligned to 128 bytes, that belongs to the block
///   from its first thread to the end of its last and to nothing else;
/// - [`cluster_shared`](Executor::cluster_shared) names what `shared` does in another block of the cluster,
///   and that stays until all blocks of the cluster have ended.
pub unsafe trait Executor {
    /// Calls `body` with each number below `threads`. After a failure, which the implementation keeps, some
    /// calls may be missing or cut short.
    fn run_threads(&self, threads: u32, body: &dyn Fn(u32));

    /// Waits for all threads of the block; returns how many brought `true`.
    fn barrier(&self, thread: u32, vote: bool, site: &'static Location<'static>) -> u32;

    /// Waits for all lanes of the thread's warp that `mask` names, which must contain its own; then
    /// `read` sees what each lane brought, and 0 for lanes outside the mask.
    fn warp_exchange(
        &self,
        thread: u32,
        mask: u32,
        value: u128,
        site: &'static Location<'static>,
        read: &mut dyn FnMut(&[u128; 32]),
    );

    /// The lanes of the thread's warp that are at `site` together, once all others have got as far as they
    /// can: to a wait elsewhere, or to their exit.
    fn active_mask(&self, thread: u32, site: &'static Location<'static>) -> u32;

    /// Waits for all threads of the grid, in a cooperative launch.
    fn grid_barrier(&self, thread: u32, site: &'static Location<'static>);

    /// Waits for all threads of the cluster; of the block, in a launch without clusters.
    fn cluster_barrier(&self, thread: u32, site: &'static Location<'static>);

    /// The shared memory of the block with number `rank` in the cluster, once all its blocks have met at a
    /// barrier; in a launch without clusters the block's own.
    fn cluster_shared(&self, rank: u32) -> *mut u8;

    /// The block's shared memory and its size in bytes.
    fn shared(&self) -> (*mut u8, usize);
}
