//! Warp operations on the CPU device. All are made of one exchange among the lanes of a mask, at which the
//! lanes wait for each other. It is inlined all the way, as `native::Turn` requires.

use super::reduce::{Redux, Word32};
use super::shuffle::{Four, Source, Words};
use super::{Members, Tile};
use crate::native::Block;
use crate::thread::Thread;

/// A thread as a lane of its warp.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'t> {
    block: &'t Block<'t>,
    place: [u32; 3],
    lane: u32,
    /// The number of lanes of the warp: the last of a block may have fewer than 32.
    count: u32,
    block_threads: u32,
}

impl<'t> Lanes<'t> {
    pub(super) fn of<const R: usize>(thread: &'t Thread<'_, R>) -> Self {
        let (rank, threads) = (thread.thread_rank(), thread.block_threads());
        let lane = rank % 32;
        let count = (threads - (rank - lane)).min(32);
        Lanes { block: thread.block, place: thread.place(), lane, count, block_threads: threads }
    }

    fn existing(self) -> u32 {
        u32::MAX >> (32 - self.count)
    }
}

/// The values of the group's lanes, seen by each of them.
#[track_caller]
#[inline(always)]
fn exchange<R>(group: &impl Members, value: u128, read: impl FnOnce(&[u128; 32]) -> R) -> R {
    let lanes = group.lanes();
    lanes.block.warp_exchange(lanes.place, members(group), value, read)
}

pub(super) fn lane<const N: usize>(tile: &Tile<'_, N>) -> u32 {
    tile.lanes.lane
}

/// The lanes of the group that exist.
pub(super) fn members(group: &impl Members) -> u32 {
    group.mask() & group.lanes().existing()
}

/// The lanes that the warp has.
pub(super) fn existing<const N: usize>(tile: &Tile<'_, N>) -> u32 {
    tile.lanes.existing()
}

#[track_caller]
#[inline(always)]
pub(super) fn active_mask<const N: usize>(tile: &Tile<'_, N>) -> u32 {
    tile.lanes.block.active_mask(tile.lanes.place)
}

#[track_caller]
#[inline(always)]
pub(super) fn sync(group: &impl Members) {
    exchange(group, 0, |_| ());
}

#[track_caller]
#[inline(always)]
pub(super) fn ballot(group: &impl Members, predicate: bool) -> u32 {
    let members = members(group);
    exchange(group, predicate.into(), |all| {
        let bit = |lane: u32| (all[lane as usize] as u32 & members >> lane & 1) << lane;
        (0..32).map(bit).sum()
    })
}

#[track_caller]
#[inline(always)]
pub(super) fn all(group: &impl Members, predicate: bool) -> bool {
    ballot(group, predicate) == members(group)
}

#[track_caller]
#[inline(always)]
pub(super) fn any(group: &impl Members, predicate: bool) -> bool {
    ballot(group, predicate) != 0
}

#[track_caller]
#[inline(always)]
pub(super) fn match_any(group: &impl Members, (words, _): Words) -> u32 {
    let (value, members) = (joined(words), members(group));
    exchange(group, value, |all| {
        let bit = |lane: u32| u32::from(members >> lane & 1 == 1 && all[lane as usize] == value) << lane;
        (0..32).map(bit).sum()
    })
}

#[track_caller]
#[inline(always)]
pub(super) fn match_bits<const BITS: u32>(group: &impl Members, value: u32) -> u32 {
    let lowest = value & u32::MAX.unbounded_shr(32 - BITS);
    match_any(group, ([lowest, 0, 0, 0], 1))
}

#[track_caller]
#[inline(always)]
pub(super) fn shuffle<const N: usize>(tile: &Tile<'_, N>, words: Four, _: usize, from: Source) -> Four {
    let (lane, size, members) = (tile.lanes.lane, N as u32, members(tile));
    let (first, rank) = (lane & !(size - 1), lane & (size - 1));
    let rank = match from {
        Source::Rank(rank) => Some(rank & (size - 1)),
        Source::Below(delta) => rank.checked_sub(delta),
        Source::Above(delta) => rank.checked_add(delta).filter(|&rank| rank < size),
        Source::Xor(bits) => Some(rank ^ bits & 31).filter(|&rank| rank < size),
    };
    let from = rank.map(|rank| first + rank).filter(|&lane| members >> lane & 1 == 1).unwrap_or(lane);
    exchange(tile, joined(words), |all| apart(all[from as usize]))
}

/// The value of `lane`, which is one of the group's.
#[track_caller]
#[inline(always)]
pub(super) fn shuffle_lane(group: &impl Members, words: Four, _: usize, lane: u32) -> Four {
    exchange(group, joined(words), |all| apart(all[lane as usize]))
}

pub(super) fn block_threads<const N: usize>(tile: &Tile<'_, N>) -> u32 {
    tile.lanes.block_threads
}

#[track_caller]
#[inline(always)]
pub(super) fn redux<T: Word32>(group: &impl Members, operation: Redux, value: T) -> T {
    group.combined(value, |a, b| operation.apply(a, b))
}

fn joined(words: Four) -> u128 {
    words.iter().rev().fold(0, |joined, &word| joined << 32 | u128::from(word))
}

fn apart(joined: u128) -> Four {
    core::array::from_fn(|at| (joined >> (32 * at)) as u32)
}
