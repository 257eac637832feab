//! Errors that the CPU device detects in running kernels.

use super::LaunchSites;
use super::display::{coordinates, known_thread};
use super::divergence::{BarrierReach, LaneFault, SourcePlace, WaitingThreads, stuck_block};

/// A fault of a kernel that the CPU device has found. The stream remains usable. On a GPU such a kernel hangs, traps or computes
/// nonsense.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// Most threads do not reach the barrier. For a GPU it does not build.
/// #[kernel]
/// pub fn some_wait(t: Thread<1>) {
///     if t.thread_rank() < 3 {
///         t.sync_threads();
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::KernelError;
///
/// kernels::some_wait(&stream, Grid::new(1, 64))?;
/// let error = stream.synchronize().unwrap_err();
/// assert!(matches!(error, Error::Kernel(KernelError::BarrierDivergence { .. })), "{error}");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// A kernel called a function of other device code, which has no native counterpart (CPU device). The stream remains usable.
    #[error(
        "kernel `{kernel}`{launched} calls `{function}`, which is code for GPUs: name a function that the CPU device calls in its place at the declaration, `#[native(path)]`"
    )]
    NoNativeFunction {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The function's name in the code that is linked.
        function: &'static str,
    },
    /// A thread of a kernel has used up its stack, by calling too deep or by variables that are too large (CPU
    /// device; on a GPU that is [`Error::LaunchFailed`] or wrong values).
    ///
    /// The thread was left where it was: its variables are leaked, not dropped. The device remains usable, and what the
    /// launch was to write holds any values. (Other systems than x86-64 Linux end the process, with a message.)
    #[error(
        "kernel `{kernel}`{launched} at {file}:{line} has used up the stack of {} KiB of {} in block {}; FERROGRID_CPU_STACK sets another size (in KiB)",
        bytes / 1024,
        known_thread(thread),
        coordinates(block)
    )]
    KernelStackOverflow {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The kernel's source file.
        file: &'static str,
        /// The line of the kernel, from 1.
        line: u32,
        /// The block's index in the grid, x first.
        block: [u32; 3],
        /// The thread's index in the block, x first; `None` for a kernel that never waits in a build without debug
        /// assertions, where its threads run as one fast loop that keeps no account of them.
        thread: Option<[u32; 3]>,
        /// The size of the stack in bytes.
        bytes: usize,
    },
    /// Some threads of a block wait at a barrier that others never reach, because these have exited or wait
    /// at another place (CPU device; on a GPU such a kernel hangs or computes nonsense).
    #[error(
        "kernel `{kernel}`{launched}, block {}: its threads do not all reach the same barrier: {}",
        coordinates(block),
        stuck_block(waiting, exited)
    )]
    BarrierDivergence {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The block's index in the grid, x first.
        block: [u32; 3],
        /// Which threads wait, and where.
        waiting: Vec<WaitingThreads>,
        /// The places in the block of the threads that have exited, x first.
        exited: Vec<[u32; 3]>,
    },
    /// Some blocks wait at a barrier of the grid, in a cooperative launch, or of their cluster, after others have ended (CPU
    /// device; on a GPU such a kernel hangs or computes nonsense).
    #[error(
        "kernel `{kernel}`{launched}: {waiting_blocks} blocks, the first {}, wait at the {reach} at {place}, but {ended_blocks} blocks, the first {}, have ended",
        coordinates(waiting),
        coordinates(ended)
    )]
    BlockDivergence {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The threads that the barrier waits for.
        reach: BarrierReach,
        /// Where the first block waits.
        place: SourcePlace,
        /// The first block that waits, x first.
        waiting: [u32; 3],
        /// How many wait.
        waiting_blocks: u32,
        /// The first block that has ended, x first.
        ended: [u32; 3],
        /// How many have ended.
        ended_blocks: u32,
    },
    /// Threads of a block bring different values to `Thread::assume_uniform`, or different regions of shared memory to one
    /// barrier (CPU device; on a GPU such a kernel hangs or computes nonsense).
    #[error(
        "kernel `{kernel}`{launched}, block {}, thread {}: it passes something else to {place} than other threads of the block: `assume_uniform` requires the same value of all threads, a barrier the same regions of shared memory",
        coordinates(block),
        coordinates(thread)
    )]
    Disagreement {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The block's index in the grid, x first.
        block: [u32; 3],
        /// The place in the block of a thread that brings something else, or nothing, x first.
        thread: [u32; 3],
        /// The call.
        place: SourcePlace,
    },
    /// Lanes of a warp do not come together to the warp operation that names them in its mask (CPU device;
    /// on a GPU that is an [`Error::KernelPanic`]).
    #[error(
        "kernel `{kernel}`{launched}, block {}, thread {}: the warp operation at {place} with mask {mask:#010x} needs lane {lane}, {fault}",
        coordinates(block),
        coordinates(thread)
    )]
    WarpDivergence {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The block's index in the grid, x first.
        block: [u32; 3],
        /// The place in the block of a waiting thread, x first.
        thread: [u32; 3],
        /// Its mask.
        mask: u32,
        /// Where it waits.
        place: SourcePlace,
        /// The lane of its warp that is missing.
        lane: u32,
        /// Why it is missing.
        fault: LaneFault,
    },
    /// A kernel waits for the whole grid, but its launch was not cooperative.
    #[error(
        "kernel `{kernel}`{launched} waits for the whole grid at {place}, but was not launched as a cooperative kernel"
    )]
    NotCooperative {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// Where.
        place: SourcePlace,
    },
    /// The CPU device got no memory for the stacks of a block's threads.
    #[error(
        "kernel `{kernel}`{launched}: no memory for the stack of another thread beside {stacks} others: {reason}; lower FERROGRID_CPU_STACK or FERROGRID_CPU_THREADS, or raise the system's limits (on Linux: vm.max_map_count)"
    )]
    ThreadStacks {
        /// The kernel's name.
        kernel: &'static str,
        /// Where in the source it was launched.
        launched: LaunchSites,
        /// The stacks that this worker has.
        stacks: usize,
        /// The system's message.
        reason: Box<str>,
    },
}

impl KernelError {
    /// Where the kernel was launched.
    pub(super) fn launched(&mut self) -> &mut LaunchSites {
        match self {
            KernelError::BarrierDivergence { launched, .. }
            | KernelError::BlockDivergence { launched, .. }
            | KernelError::Disagreement { launched, .. }
            | KernelError::WarpDivergence { launched, .. }
            | KernelError::NotCooperative { launched, .. }
            | KernelError::ThreadStacks { launched, .. }
            | KernelError::KernelStackOverflow { launched, .. }
            | KernelError::NoNativeFunction { launched, .. } => launched,
        }
    }
}
