//! GPUs before compute capability 9.0 have no clusters: each block is a cluster of its own.

use core::arch::nvptx::{_block_idx_x, _block_idx_y, _block_idx_z};

use crate::thread::Thread;

#[inline(always)]
pub(super) fn cluster_idx<const R: usize>(_: &Thread<'_, R>) -> [u32; 3] {
    // SAFETY: reading a special register has no precondition.
    unsafe { [_block_idx_x() as u32, _block_idx_y() as u32, _block_idx_z() as u32] }
}

#[inline(always)]
pub(super) fn cluster_dim<const R: usize>(_: &Thread<'_, R>) -> [u32; 3] {
    [1; 3]
}

#[inline(always)]
pub(super) fn cluster_block_idx<const R: usize>(_: &Thread<'_, R>) -> [u32; 3] {
    [0; 3]
}

#[inline(always)]
pub(super) fn cluster_rank<const R: usize>(_: &Thread<'_, R>) -> u32 {
    0
}

#[inline(always)]
pub(super) fn cluster_blocks<const R: usize>(_: &Thread<'_, R>) -> u32 {
    1
}

#[track_caller]
#[inline(always)]
pub(super) fn sync<const R: usize>(thread: &Thread<'_, R>) {
    thread.sync_threads();
}

/// # Safety
/// None: each block is a cluster of its own. Other architectures require that all threads of the cluster call it.
pub(super) unsafe fn leave() {}

/// # Safety
/// None: there is one block. Other architectures require that the cluster has a block of this rank.
#[inline(always)]
pub(super) unsafe fn in_block<A, const R: usize>(_: &Thread<'_, R>, start: *mut A, _: u32) -> *const A {
    start
}
