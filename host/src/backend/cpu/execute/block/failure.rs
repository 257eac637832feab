//! The reasons why a block cannot continue, and their errors.

use std::panic::Location;

use super::barrier::same;
use super::{BlockExecutor, Wait};
use crate::backend::cpu::execute::panic::Caught;
use crate::error::divergence::{BarrierReach, LaneFault, SourcePlace, WaitingThreads};
use crate::error::{Error, KernelError, LaunchSites};
use crate::kernel::Kernel;

type Site = &'static Location<'static>;

/// The reason why a block cannot continue. Threads are numbers in their block, x fastest.
pub(crate) enum Failure {
    Panic {
        thread: u32,
        caught: Caught,
    },
    /// `thread` is not known of kernels that never wait, in builds without debug assertions.
    Overflow {
        thread: Option<u32>,
        bytes: usize,
    },
    NoStack {
        stacks: usize,
        reason: Box<str>,
    },
    NotCooperative {
        site: Site,
    },
    Barrier {
        waiting: Vec<Waiting>,
        exited: Vec<u32>,
    },
    Disagreement {
        thread: u32,
        site: Site,
    },
    Warp {
        thread: u32,
        mask: u32,
        site: Site,
        lane: u32,
        fault: LaneFault,
    },
}

/// Threads that wait at one barrier.
pub(crate) struct Waiting {
    site: Site,
    reach: BarrierReach,
    threads: Vec<u32>,
}

impl Failure {
    /// The error of `kernel` in the block at `block`, with `block_dim` threads; not with the place of its launch.
    pub(crate) fn into_error(self, failed: &Kernel, block: [u32; 3], block_dim: [u32; 3]) -> Error {
        let [width, height, _] = block_dim;
        let thread_idx = |number: u32| [number % width, number / width % height, number / width / height];
        let thread_indices = |numbers: Vec<u32>| numbers.into_iter().map(thread_idx).collect();
        let (kernel, launched) = (failed.name(), LaunchSites::default());
        Error::Kernel(match self {
            Failure::Panic { thread, caught } => return caught.into_error(failed, block, thread_idx(thread)),
            Failure::Overflow { thread, bytes } => {
                let ((file, line), thread) = (failed.location(), thread.map(thread_idx));
                KernelError::KernelStackOverflow { kernel, launched, file, line, block, thread, bytes }
            }
            Failure::NoStack { stacks, reason } => {
                KernelError::ThreadStacks { kernel, launched, stacks, reason }
            }
            Failure::NotCooperative { site } => {
                KernelError::NotCooperative { kernel, launched, place: site.into() }
            }
            Failure::Barrier { waiting, exited } => {
                let describe =
                    |at: Waiting| WaitingThreads::new(at.site.into(), at.reach, thread_indices(at.threads));
                let (waiting, exited) = (waiting.into_iter().map(describe).collect(), thread_indices(exited));
                KernelError::BarrierDivergence { kernel, launched, block, waiting, exited }
            }
            Failure::Disagreement { thread, site } => {
                let (thread, place) = (thread_idx(thread), site.into());
                KernelError::Disagreement { kernel, launched, block, thread, place }
            }
            Failure::Warp { thread, mask, site, lane, fault } => {
                let (thread, place) = (thread_idx(thread), site.into());
                KernelError::WarpDivergence { kernel, launched, block, thread, mask, place, lane, fault }
            }
        })
    }
}

/// Why no thread of the block can proceed, though some wait. A warp operation without all its lanes is the cause rather
/// than the effect of a barrier without all its threads, so it comes first.
pub(super) fn of_stuck_block(block: &BlockExecutor) -> Failure {
    let in_exchange = (0..block.threads.get()).find_map(|thread| match block.state(thread).waits.get() {
        Wait::Exchange { mask, site } => Some(of_lane(block, thread, mask, site)),
        _ => None,
    });
    in_exchange.unwrap_or_else(|| of_barriers(block))
}

fn of_barriers(block: &BlockExecutor) -> Failure {
    let (mut waiting, mut exited) = (Vec::<Waiting>::new(), Vec::new());
    for thread in 0..block.threads.get() {
        let (site, reach) = match block.state(thread).waits.get() {
            Wait::Barrier(site) => (site, BarrierReach::Block),
            Wait::OtherBlocks(site) => (site, block.beyond_block()),
            Wait::Exited => {
                exited.push(thread);
                continue;
            }
            Wait::Nothing | Wait::Exchange { .. } | Wait::ActiveMask(_) => continue,
        };
        match waiting.iter_mut().find(|group| group.reach == reach && same(group.site, site)) {
            Some(group) => group.threads.push(thread),
            None => waiting.push(Waiting { site, reach, threads: vec![thread] }),
        }
    }
    match &waiting[..] {
        [Waiting { site, reach: BarrierReach::Grid, .. }] if exited.is_empty() => {
            Failure::NotCooperative { site }
        }
        _ => Failure::Barrier { waiting, exited },
    }
}

/// Why `thread` cannot continue after its warp operation: the first missing lane.
pub(super) fn of_lane(block: &BlockExecutor, thread: u32, mask: u32, site: Site) -> Failure {
    let (warp, own) = (block.warp(thread), thread % 32);
    let failure = |lane, fault| Failure::Warp { thread, mask, site, lane, fault };
    if mask & 1 << own == 0 {
        return failure(own, LaneFault::NotInMask);
    }
    let (missing, exited) = (mask & !warp.existing(), mask & warp.existing() & !warp.active());
    if missing != 0 {
        return failure(missing.trailing_zeros(), LaneFault::Missing);
    }
    if exited != 0 {
        return failure(exited.trailing_zeros(), LaneFault::Exited);
    }
    let found = (0..32)
        .filter(|lane| mask & 1 << lane != 0)
        .find_map(|lane| fault_of(block, thread - own + lane, mask, site).map(|fault| failure(lane, fault)));
    // If nothing is wrong with the others, they miss this one.
    found.unwrap_or_else(|| failure(own, LaneFault::OtherOperation { place: site.into() }))
}

/// What keeps the lane of thread `other` from an exchange with `mask` at `site`.
fn fault_of(block: &BlockExecutor, other: u32, mask: u32, site: Site) -> Option<LaneFault> {
    let place = SourcePlace::from;
    match block.state(other).waits.get() {
        Wait::Barrier(at) | Wait::OtherBlocks(at) => Some(LaneFault::AtBarrier { place: place(at) }),
        Wait::Exchange { mask: theirs, site: at } if theirs != mask => {
            Some(LaneFault::OtherMask { mask: theirs, place: place(at) })
        }
        Wait::Exchange { site: at, .. } if !same(at, site) => {
            Some(LaneFault::OtherOperation { place: place(at) })
        }
        Wait::Exchange { .. } | Wait::ActiveMask(_) | Wait::Nothing | Wait::Exited => None,
    }
}
