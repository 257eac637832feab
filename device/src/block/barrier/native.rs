//! Barriers on the CPU device, which reports threads that do not arrive.

use core::panic::Location;

use crate::thread::Thread;

#[track_caller]
#[inline(always)]
pub(super) fn sync_grid<const R: usize>(thread: &Thread<'_, R>) {
    thread.block.grid_barrier(thread.place());
}

#[inline(always)]
pub(super) fn agree_on<const R: usize>(
    thread: &Thread<'_, R>,
    region: *const u8,
    caller: &'static Location<'static>,
) {
    thread.block.agree(thread.place(), region.addr() as u64, caller);
}

#[track_caller]
#[inline(always)]
pub(super) fn sync<const R: usize>(thread: &Thread<'_, R>) {
    thread.block.barrier(thread.place());
}

#[track_caller]
#[inline(always)]
pub(super) fn count<const R: usize>(thread: &Thread<'_, R>, predicate: bool) -> u32 {
    thread.block.barrier_count(thread.place(), predicate)
}

#[track_caller]
#[inline(always)]
pub(super) fn and<const R: usize>(thread: &Thread<'_, R>, predicate: bool) -> bool {
    thread.block.barrier_count(thread.place(), !predicate) == 0
}

#[track_caller]
#[inline(always)]
pub(super) fn or<const R: usize>(thread: &Thread<'_, R>, predicate: bool) -> bool {
    thread.block.barrier_count(thread.place(), predicate) > 0
}
