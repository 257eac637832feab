//! Barriers on a GPU: LLVM's intrinsics, which it knows to be convergent. Each follows a mark, for which the
//! build step proves that all threads reach it together.

use core::arch::asm;
use core::panic::Location;

use crate::atomic::{DeviceAtomic, Ordering};
use crate::compiler::mark;
use crate::feedback::panic::{give_up, is_reported};
use crate::thread::Thread;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.all"]
    fn barrier_sync(barrier: u32);
    #[link_name = "llvm.nvvm.barrier.cta.red.popc.aligned.all"]
    fn barrier_popc(barrier: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.barrier.cta.red.and.aligned.all"]
    fn barrier_and(barrier: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.barrier.cta.red.or.aligned.all"]
    fn barrier_or(barrier: u32, predicate: bool) -> bool;
}

#[track_caller]
#[inline(always)]
pub(super) fn sync_grid<const R: usize>(thread: &Thread<'_, R>) {
    mark::of_grid(Location::caller(), None);
    // SAFETY: all threads of the grid come here together, in a cooperative launch, as is proven for the mark.
    unsafe { wait_for_grid(thread) }
}

/// One thread of each block adds to a counter that the driver keeps for a cooperative launch, and waits until
/// its highest bit changes. One block adds what the others leave missing to half the range, so the bit
/// changes when all have arrived. The other bits are 0 again then, whatever the number of blocks, and the
/// next barrier starts in the same state.
///
/// # Safety
/// All threads of the grid make this call together, in a cooperative launch.
#[inline(never)]
unsafe fn wait_for_grid<const R: usize>(thread: &Thread<'_, R>) {
    const HALF: u32 = 1 << 31;
    // SAFETY: all threads of the block come here, as the caller vouches.
    unsafe { barrier_sync(0) };
    if thread.thread_rank() == 0 {
        let (blocks, first) = thread.blocks();
        let missing = if first { HALF - (blocks - 1) } else { 1 };
        // SAFETY: in a cooperative launch the driver provides the counter, and only barriers use it.
        let counter = unsafe { &*grid_counter() };
        let before = counter.fetch_add(missing, Ordering::AcqRel);
        let mut turns = 0_u32;
        while (before ^ counter.load(Ordering::Acquire)) & HALF == 0 {
            turns = turns.wrapping_add(1);
            // Polling is slow: the record is in the host's memory.
            if turns % 1024 == 0 && is_reported() {
                // A thread that has panicked never arrives. This restores the counter.
                counter.fetch_sub(missing, Ordering::AcqRel);
                give_up();
            }
        }
    }
    // SAFETY: as above.
    unsafe { barrier_sync(0) };
}

/// The counter of the launch. The driver puts the address of its workspace into environment registers 1
/// (high) and 2 (low); the counter follows the size.
#[inline(always)]
fn grid_counter() -> *const DeviceAtomic<u32> {
    let (high, low): (u32, u32);
    // SAFETY: reads registers.
    unsafe {
        asm!("mov.u32 {high}, %envreg1;", "mov.u32 {low}, %envreg2;", high = out(reg32) high, low = out(reg32) low, options(pure, nomem, nostack));
    }
    let workspace = (u64::from(high) << 32 | u64::from(low)) as usize;
    core::ptr::with_exposed_provenance::<DeviceAtomic<u32>>(workspace + 4)
}

#[inline(always)]
pub(super) fn agree_on<const R: usize>(_: &Thread<'_, R>, region: *const u8, caller: &Location<'_>) {
    mark::of_block(caller, Some(region));
}

#[track_caller]
#[inline(always)]
pub(super) fn sync<const R: usize>(_: &Thread<'_, R>) {
    mark::of_block(Location::caller(), None);
    // SAFETY: all threads of the block come here together, as is proven for the mark.
    unsafe { barrier_sync(0) }
}

#[track_caller]
#[inline(always)]
pub(super) fn count<const R: usize>(_: &Thread<'_, R>, predicate: bool) -> u32 {
    mark::of_block(Location::caller(), None);
    // SAFETY: as above.
    unsafe { barrier_popc(0, predicate) }
}

#[track_caller]
#[inline(always)]
pub(super) fn and<const R: usize>(_: &Thread<'_, R>, predicate: bool) -> bool {
    mark::of_block(Location::caller(), None);
    // SAFETY: as above.
    unsafe { barrier_and(0, predicate) }
}

#[track_caller]
#[inline(always)]
pub(super) fn or<const R: usize>(_: &Thread<'_, R>, predicate: bool) -> bool {
    mark::of_block(Location::caller(), None);
    // SAFETY: as above.
    unsafe { barrier_or(0, predicate) }
}
