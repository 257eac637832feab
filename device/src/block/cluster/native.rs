//! Clusters on the CPU device.

use crate::thread::Thread;

/// Block and cluster along each axis.
fn axes<const R: usize>(thread: &Thread<'_, R>, of: impl Fn(u32, u32) -> u32) -> [u32; 3] {
    let (block, cluster) = (thread.block.block_idx(), thread.block.cluster_dim);
    core::array::from_fn(|axis| of(block[axis], cluster[axis]))
}

pub(super) fn cluster_idx<const R: usize>(thread: &Thread<'_, R>) -> [u32; 3] {
    axes(thread, |block, cluster| block / cluster)
}

pub(super) fn cluster_dim<const R: usize>(thread: &Thread<'_, R>) -> [u32; 3] {
    thread.block.cluster_dim
}

pub(super) fn cluster_block_idx<const R: usize>(thread: &Thread<'_, R>) -> [u32; 3] {
    axes(thread, |block, cluster| block % cluster)
}

pub(super) fn cluster_rank<const R: usize>(thread: &Thread<'_, R>) -> u32 {
    let ([x, y, z], [width, height, _]) = (cluster_block_idx(thread), cluster_dim(thread));
    x + width * (y + height * z)
}

pub(super) fn cluster_blocks<const R: usize>(thread: &Thread<'_, R>) -> u32 {
    cluster_dim(thread).iter().product()
}

#[track_caller]
#[inline(always)]
pub(super) fn sync<const R: usize>(thread: &Thread<'_, R>) {
    thread.block.cluster_barrier(thread.place());
}

/// # Safety
/// The cluster has a block of this rank, and `start` is in the shared memory of the thread's own.
pub(super) unsafe fn in_block<A, const R: usize>(
    thread: &Thread<'_, R>,
    start: *mut A,
    rank: u32,
) -> *const A {
    let offset = start.addr() - thread.block.shared().0.addr();
    thread.block.cluster_shared(rank).wrapping_add(offset).cast_const().cast()
}
