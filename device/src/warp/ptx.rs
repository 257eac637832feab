//! Warp operations on a GPU, on 32-bit words: LLVM's intrinsics, which it knows to be convergent.

use core::panic::Location;

use super::reduce::{Redux, Word32};
use super::shuffle::{Four, Source, Words};
use super::{Members, Tile};
use crate::compiler::mark;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
    fn laneid() -> u32;
    #[link_name = "llvm.nvvm.activemask"]
    fn activemask() -> u32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn bar_warp_sync(mask: u32);
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn vote_ballot(mask: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.vote.all.sync"]
    fn vote_all(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.any.sync"]
    fn vote_any(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.match.any.sync.i32"]
    fn match_any_32(mask: u32, value: u32) -> u32;
    #[link_name = "llvm.nvvm.match.any.sync.i64"]
    fn match_any_64(mask: u32, value: u64) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shfl_idx(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
    fn shfl_up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
    fn shfl_down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    fn shfl_bfly(mask: u32, value: u32, bits: u32, clamp: u32) -> u32;
}

// SAFETY of all blocks below: the mask has the calling thread's lane, as it must. That its other lanes come, too, with the same
// mask, is proven for the mark before the operation, or checked there (`builder/src/passes/lanes.rs`).

#[inline(always)]
pub(super) fn lane<const N: usize>(_: &Tile<'_, N>) -> u32 {
    // SAFETY: reading a special register has no precondition.
    let lane = unsafe { laneid() };
    // SAFETY: a warp has 32 lanes.
    unsafe { core::hint::assert_unchecked(lane < 32) };
    lane
}

/// The lanes that take part; those that a partial warp lacks count as exited.
#[track_caller]
#[inline(always)]
pub(super) fn members(group: &impl Members) -> u32 {
    mark::of_warp(Location::caller(), None);
    // SAFETY: see above.
    unsafe { vote_ballot(group.mask(), true) }
}

#[inline(always)]
pub(super) fn active_mask<const N: usize>(_: &Tile<'_, N>) -> u32 {
    // SAFETY: has no precondition.
    unsafe { activemask() }
}

#[track_caller]
#[inline(always)]
pub(super) fn sync(group: &impl Members) {
    mark::of_warp(Location::caller(), None);
    // SAFETY: see above.
    unsafe { bar_warp_sync(group.mask()) }
}

#[track_caller]
#[inline(always)]
pub(super) fn ballot(group: &impl Members, predicate: bool) -> u32 {
    mark::of_warp(Location::caller(), None);
    // SAFETY: see above.
    unsafe { vote_ballot(group.mask(), predicate) }
}

#[track_caller]
#[inline(always)]
pub(super) fn all(group: &impl Members, predicate: bool) -> bool {
    mark::of_warp(Location::caller(), None);
    // SAFETY: see above.
    unsafe { vote_all(group.mask(), predicate) }
}

#[track_caller]
#[inline(always)]
pub(super) fn any(group: &impl Members, predicate: bool) -> bool {
    mark::of_warp(Location::caller(), None);
    // SAFETY: see above.
    unsafe { vote_any(group.mask(), predicate) }
}

#[track_caller]
#[inline(always)]
pub(super) fn match_any(group: &impl Members, (words, count): Words) -> u32 {
    mark::of_warp(Location::caller(), None);
    let mask = group.mask();
    let low = u64::from(words[0]) | u64::from(words[1]) << 32;
    let high = u64::from(words[2]) | u64::from(words[3]) << 32;
    // SAFETY: see above.
    unsafe {
        match count {
            0 | 1 => match_any_32(mask, words[0]),
            2 => match_any_64(mask, low),
            _ => match_any_64(mask, low) & match_any_64(mask, high),
        }
    }
}

/// A vote for each bit: `match.any` takes a step for each value that occurs.
#[track_caller]
#[inline(always)]
pub(super) fn match_bits<const BITS: u32>(group: &impl Members, value: u32) -> u32 {
    let mut equal = group.mask();
    let mut bit = 0;
    while bit < BITS {
        let is_set = value & (1 << bit) != 0;
        let votes = ballot(group, is_set);
        equal &= if is_set { votes } else { !votes };
        bit += 1;
    }
    equal
}

#[track_caller]
#[inline(always)]
pub(super) fn shuffle<const N: usize>(tile: &Tile<'_, N>, words: Four, count: usize, from: Source) -> Four {
    mark::of_warp(Location::caller(), None);
    let mask = tile.mask();
    // Bits 8 to 12: the bits of a lane that name its tile; bits 0 to 4: the last or first lane of a tile.
    let segment = (32 - N as u32) << 8;
    let word = |word| {
        // SAFETY: see above.
        unsafe {
            match from {
                Source::Rank(rank) => shfl_idx(mask, word, rank, segment | 31),
                Source::Below(delta) => shfl_up(mask, word, delta, segment),
                Source::Above(delta) => shfl_down(mask, word, delta, segment | 31),
                Source::Xor(bits) => shfl_bfly(mask, word, bits, segment | 31),
            }
        }
    };
    let found = core::array::from_fn(|at| if at < count { word(words[at]) } else { 0 });
    // `shfl.bfly` would reach into the tiles before this one.
    let outside = matches!(from, Source::Xor(bits) if bits & 31 >= N as u32);
    if outside { words } else { found }
}

/// The value of `lane`, which is one of the group's.
#[track_caller]
#[inline(always)]
pub(super) fn shuffle_lane(group: &impl Members, words: Four, count: usize, lane: u32) -> Four {
    mark::of_warp(Location::caller(), None);
    let mask = group.mask();
    // SAFETY: see above.
    let word = |word| unsafe { shfl_idx(mask, word, lane, 31) };
    core::array::from_fn(|at| if at < count { word(words[at]) } else { 0 })
}

/// The lanes of the warp: the last of a block may have fewer than 32.
#[inline(always)]
pub(super) fn existing<const N: usize>(tile: &Tile<'_, N>) -> u32 {
    use core::arch::nvptx::{_block_dim_x, _block_dim_y, _thread_idx_x, _thread_idx_y, _thread_idx_z};
    let threads = block_threads(tile);
    if threads % 32 == 0 {
        return u32::MAX;
    }
    // SAFETY: reading a special register has no precondition.
    let [x, y, z, width, height] = unsafe {
        [_thread_idx_x(), _thread_idx_y(), _thread_idx_z(), _block_dim_x(), _block_dim_y()]
            .map(|value| value as u32)
    };
    let first = (x + width * (y + height * z)) & !31;
    let count = (threads - first).min(32);
    u32::MAX >> (32 - count)
}

/// The number of threads in the block.
#[inline(always)]
pub(super) fn block_threads<const N: usize>(_: &Tile<'_, N>) -> u32 {
    use core::arch::nvptx::{_block_dim_x, _block_dim_y, _block_dim_z};
    // SAFETY: reading a special register has no precondition.
    unsafe { _block_dim_x() as u32 * _block_dim_y() as u32 * _block_dim_z() as u32 }
}

#[cfg(not(target_feature = "sm_80"))]
#[track_caller]
#[inline(always)]
pub(super) fn redux<T: Word32>(group: &impl Members, operation: Redux, value: T) -> T {
    group.combined(value, |a, b| operation.apply(a, b))
}

#[cfg(target_feature = "sm_80")]
#[track_caller]
#[inline(always)]
pub(super) fn redux<T: Word32>(group: &impl Members, operation: Redux, value: T) -> T {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.redux.sync.add"]
        fn redux_add(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.umin"]
        fn redux_umin(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.min"]
        fn redux_min(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.umax"]
        fn redux_umax(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.max"]
        fn redux_max(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.and"]
        fn redux_and(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.or"]
        fn redux_or(value: u32, mask: u32) -> u32;
        #[link_name = "llvm.nvvm.redux.sync.xor"]
        fn redux_xor(value: u32, mask: u32) -> u32;
    }
    let (bits, mask) = (value.bits(), group.mask());
    mark::of_warp(Location::caller(), None);
    // SAFETY: see above.
    T::of(unsafe {
        match operation {
            Redux::Add => redux_add(bits, mask),
            Redux::Min if T::SIGNED => redux_min(bits, mask),
            Redux::Min => redux_umin(bits, mask),
            Redux::Max if T::SIGNED => redux_max(bits, mask),
            Redux::Max => redux_umax(bits, mask),
            Redux::And => redux_and(bits, mask),
            Redux::Or => redux_or(bits, mask),
            Redux::Xor => redux_xor(bits, mask),
        }
    })
}
