//! Clusters on GPUs that have them (compute capability 9.0 and later).

use core::arch::asm;
use core::hint::assert_unchecked;

use crate::thread::Thread;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.read.ptx.sreg.clusterid.x"]
    fn clusterid_x() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.clusterid.y"]
    fn clusterid_y() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.clusterid.z"]
    fn clusterid_z() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.cluster.nctaid.x"]
    fn cluster_nctaid_x() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.cluster.nctaid.y"]
    fn cluster_nctaid_y() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.cluster.nctaid.z"]
    fn cluster_nctaid_z() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.cluster.ctaid.x"]
    fn cluster_ctaid_x() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.cluster.ctaid.y"]
    fn cluster_ctaid_y() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.cluster.ctaid.z"]
    fn cluster_ctaid_z() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.cluster.ctarank"]
    fn cluster_ctarank() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.cluster.nctarank"]
    fn cluster_nctarank() -> u32;
}

unsafe extern "C" {
    #[link_name = "llvm.nvvm.barrier.cluster.arrive"]
    fn arrive();
    #[link_name = "llvm.nvvm.barrier.cluster.wait"]
    fn wait();
    #[link_name = "llvm.nvvm.mapa"]
    fn mapa(address: *const u8, rank: u32) -> *const u8;
    #[link_name = "llvm.nvvm.isspacep.shared.cluster"]
    fn isspacep_shared_cluster(address: *const u8) -> bool;
}

#[inline(always)]
pub(super) fn cluster_idx<const R: usize>(_: &Thread<'_, R>) -> [u32; 3] {
    // SAFETY: reading a special register has no precondition.
    unsafe { [clusterid_x(), clusterid_y(), clusterid_z()] }
}

#[inline(always)]
pub(super) fn cluster_dim<const R: usize>(_: &Thread<'_, R>) -> [u32; 3] {
    // SAFETY: as above.
    unsafe { [cluster_nctaid_x(), cluster_nctaid_y(), cluster_nctaid_z()] }
}

#[inline(always)]
pub(super) fn cluster_block_idx<const R: usize>(_: &Thread<'_, R>) -> [u32; 3] {
    // SAFETY: as above.
    unsafe { [cluster_ctaid_x(), cluster_ctaid_y(), cluster_ctaid_z()] }
}

#[inline(always)]
pub(super) fn cluster_rank<const R: usize>(_: &Thread<'_, R>) -> u32 {
    // SAFETY: as above.
    unsafe { cluster_ctarank() }
}

#[inline(always)]
pub(super) fn cluster_blocks<const R: usize>(_: &Thread<'_, R>) -> u32 {
    // SAFETY: as above.
    unsafe { cluster_nctarank() }
}

#[track_caller]
#[inline(always)]
pub(super) fn sync<const R: usize>(_: &Thread<'_, R>) {
    crate::compiler::mark::of_cluster(core::panic::Location::caller(), None);
    // SAFETY: all threads of the cluster come here together, as is proven for the mark.
    unsafe { leave() }
}

/// The forms without `.aligned`: threads of a warp may arrive one after the other.
///
/// # Safety
/// All threads of the cluster call it.
#[inline(always)]
pub(super) unsafe fn leave() {
    // SAFETY: all threads of the cluster come here, as the caller vouches; each arrives, then waits.
    unsafe {
        arrive();
        wait();
    }
}

/// The address in another block of the cluster that corresponds to `start` in the thread's own. LLVM is told
/// that it is in the shared memory of the cluster, which makes the accesses `ld.shared::cluster`.
///
/// # Safety
/// The cluster has a block of this rank, and `start` is in shared memory.
#[inline(always)]
pub(super) unsafe fn in_block<A, const R: usize>(_: &Thread<'_, R>, start: *mut A, rank: u32) -> *const A {
    // SAFETY: as the caller vouches; what is assumed holds of all that `mapa` gives. The empty code between
    // keeps LLVM from dropping the assumption before it is of use.
    unsafe {
        let address = mapa(start.cast_const().cast(), rank);
        let is_shared = isspacep_shared_cluster(address);
        asm!("// {0}", in(reg32) u32::from(is_shared), options(nomem, nostack));
        assert_unchecked(is_shared);
        address.cast()
    }
}
