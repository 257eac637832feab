//! [`Barrier`]: a barrier in shared memory that also counts the bytes of copies (`mbarrier`), and copies by tensor maps, in code for
//! `sm_90a`.

use core::arch::asm;

use crate::feedback::panic::{give_up_at_once, is_reported};

/// The barrier at an address in shared memory (`mbarrier`).
#[derive(Clone, Copy)]
pub(crate) struct Barrier(pub(crate) u32);

impl Barrier {
    /// # Safety
    /// It is the address of 8 bytes for a barrier that no thread uses before a barrier of the block.
    #[inline(always)]
    pub(crate) unsafe fn begin(self, count: usize) {
        // SAFETY: the caller's.
        unsafe {
            asm!("mbarrier.init.shared.b64 [{}], {};", in(reg32) self.0, in(reg32) count as u32, options(nostack, preserves_flags))
        };
    }

    /// Waits until the phase of that parity has ended; one thread alone.
    #[inline(always)]
    pub(crate) fn wait(self, phase: u32) {
        let mut turns = 0;
        while !self.has_ended(phase) {
            if is_panicking(&mut turns) {
                linger();
                give_up_at_once();
            }
        }
    }

    /// Waits until the phase of that parity has ended, and returns whether it has: not if a thread has panicked, which may be the one that
    /// this waits for. All threads of the warp get the same answer.
    #[inline(always)]
    pub(crate) fn ends(self, phase: u32) -> bool {
        let mut turns = 0;
        while !warp_all(self.has_ended(phase)) {
            if !warp_all(!is_panicking(&mut turns)) {
                linger();
                return warp_all(self.has_ended(phase));
            }
        }
        true
    }

    /// Whether the phase of that parity has ended, after it may have waited for some time.
    #[inline(always)]
    pub(crate) fn has_ended(self, phase: u32) -> bool {
        let ended: u32;
        // SAFETY: the barrier was begun. The hardware lets the thread sleep for a while.
        unsafe {
            asm!(
                "{{ .reg .pred %done; mbarrier.try_wait.parity.shared.b64 %done, [{1}], {2}; selp.b32 {0}, 1, 0, %done; }}",
                out(reg32) ended, in(reg32) self.0, in(reg32) phase, options(nostack, preserves_flags),
            );
        }
        ended != 0
    }

    /// Arrives if `counts`, for what the thread has done so far. There is no branch: behind one, the other threads of the warp might
    /// wait, and keep this thread from arriving.
    #[inline(always)]
    pub(crate) fn arrive(self, counts: bool) {
        // SAFETY: the barrier was begun.
        unsafe {
            asm!(
                "{{ .reg .pred %counts; setp.ne.b32 %counts, {1}, 0; @%counts mbarrier.arrive.shared.b64 _, [{0}]; }}",
                in(reg32) self.0, in(reg32) u32::from(counts), options(nostack, preserves_flags),
            );
        }
    }

    /// Arrives, and lets the phase end only when `bytes` have been copied.
    #[inline(always)]
    pub(crate) fn arrive_for(self, bytes: u32) {
        // SAFETY: the barrier was begun.
        unsafe {
            asm!("mbarrier.arrive.expect_tx.shared.b64 _, [{}], {};", in(reg32) self.0, in(reg32) bytes, options(nostack, preserves_flags));
        }
    }
}

/// Starts to copy the tile whose first element is at `[column, row]` of a plane, and counts its bytes at `full`.
///
/// # Safety
/// `map` is the address of a tensor map of the plane, and `to` that of as many bytes in shared memory as its tiles have, aligned as they
/// must be, which nothing else uses before `full` has ended its phase.
#[inline(always)]
pub(crate) unsafe fn start_copy(to: u32, map: *const u8, [column, row]: [i32; 2], full: Barrier) {
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{}], [{}, {{{}, {}}}], [{}];",
            in(reg32) to, in(reg64) map, in(reg32) column, in(reg32) row, in(reg32) full.0,
            options(nostack, preserves_flags),
        );
    }
}

/// Whether a thread of the launch has panicked, looked up in one of many turns: the record is in the host's memory, and when many warps
/// read it, each waits so long that the next wait takes as many turns, and so on.
#[inline(always)]
pub(crate) fn is_panicking(turns: &mut u32) -> bool {
    *turns = turns.wrapping_add(1);
    turns.is_multiple_of(1024) && is_reported()
}

/// Whether `holds` is true in all 32 threads of the warp, of which none has ended.
#[inline(always)]
pub(crate) fn warp_all(holds: bool) -> bool {
    let all: u32;
    // SAFETY: all threads of the warp come here that have not ended.
    unsafe {
        asm!(
            "{{ .reg .pred %holds; setp.ne.b32 %holds, {1}, 0; vote.sync.ballot.b32 {0}, %holds, 0xffffffff; }}",
            out(reg32) all, in(reg32) u32::from(holds), options(nostack, preserves_flags),
        );
    }
    all == u32::MAX
}

/// Waits for some 100 milliseconds, before a thread ends because another has panicked. Copies to the block's shared memory take less;
/// when all of its threads have ended, that goes to another block. And the other warps of a group are never so far behind: if one
/// multiplied without this one, the launch would fail with an illegal instruction instead of the panic.
#[inline(always)]
fn linger() {
    for _ in 0..100 {
        // SAFETY: it waits for at most 2 milliseconds.
        unsafe { asm!("nanosleep.u32 1000000;", options(nomem, nostack, preserves_flags)) };
    }
}
