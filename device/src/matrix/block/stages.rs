//! The stages of a product on `sm_90a`: their addresses, and the barriers (`mbarrier`) that say which are full and which empty.

use core::arch::asm;

use super::Barriers;
use crate::feedback::panic::{give_up, is_reported};

/// The addresses of the stages within shared memory.
#[derive(Clone, Copy)]
pub(super) struct Addresses {
    pub(super) stages: u32,
    pub(super) barriers: u32,
    pub(super) agreed: u32,
}

/// A stage, and the phase of its barriers that comes next.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) stage: u32,
    pub(super) phase: u32,
}

impl Turn {
    pub(super) const FIRST: Turn = Turn { stage: 0, phase: 0 };

    /// The next of `S` stages.
    #[inline(always)]
    pub(super) fn next<const S: usize>(&mut self) {
        self.stage += 1;
        if self.stage == S as u32 {
            *self = Turn { stage: 0, phase: self.phase ^ 1 };
        }
    }
}

/// The barrier at an address in shared memory (`mbarrier`).
#[derive(Clone, Copy)]
pub(super) struct Barrier(pub(super) u32);

impl Barrier {
    /// # Safety
    /// It is the address of 8 bytes for a barrier that no thread uses before a barrier of the block.
    #[inline(always)]
    pub(super) unsafe fn begin(self, count: usize) {
        // SAFETY: the caller's.
        unsafe {
            asm!("mbarrier.init.shared.b64 [{}], {};", in(reg32) self.0, in(reg32) count as u32, options(nostack, preserves_flags))
        };
    }

    /// Waits until the phase of that parity has ended; one thread alone.
    #[inline(always)]
    pub(super) fn wait(self, phase: u32) {
        let mut turns = 0;
        while !self.has_ended(phase) {
            if is_panicking(&mut turns) {
                linger();
                give_up();
            }
        }
    }

    /// Waits until the phase of that parity has ended, and returns whether it has: not if a thread has panicked, which may be the one that
    /// this waits for. All threads of the warp get the same answer.
    #[inline(always)]
    pub(super) fn ends(self, phase: u32) -> bool {
        let mut turns = 0;
        while !warp_all(self.has_ended(phase)) {
            if !warp_all(!is_panicking(&mut turns)) {
                linger();
                return warp_all(self.has_ended(phase));
            }
        }
        true
    }

    #[inline(always)]
    fn has_ended(self, phase: u32) -> bool {
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
    pub(super) fn arrive(self, counts: bool) {
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
    pub(super) fn arrive_for(self, bytes: u32) {
        // SAFETY: the barrier was begun.
        unsafe {
            asm!("mbarrier.arrive.expect_tx.shared.b64 _, [{}], {};", in(reg32) self.0, in(reg32) bytes, options(nostack, preserves_flags));
        }
    }
}

impl Addresses {
    #[inline(always)]
    pub(super) fn full(self, turn: Turn) -> Barrier {
        Barrier(self.barriers + turn.stage * size_of::<Barriers>() as u32)
    }

    #[inline(always)]
    pub(super) fn empty(self, turn: Turn) -> Barrier {
        Barrier(self.full(turn).0 + core::mem::offset_of!(Barriers, empty) as u32)
    }

    #[inline(always)]
    fn place(self, turn: Turn) -> u32 {
        self.full(turn).0 + core::mem::offset_of!(Barriers, place) as u32
    }

    /// What the warps of a group wait for before a product.
    #[inline(always)]
    pub(super) fn agreed(self, group: usize) -> Barrier {
        Barrier(self.agreed + (group * size_of::<u64>()) as u32)
    }

    /// # Safety
    /// The thread copies to this stage.
    #[inline(always)]
    pub(super) unsafe fn set_place(self, turn: Turn, [row, column]: [u32; 2]) {
        // SAFETY: the word belongs to the stage, which no other thread uses meanwhile.
        unsafe {
            asm!(
                "st.shared.v2.b32 [{}], {{{}, {}}};",
                in(reg32) self.place(turn), in(reg32) row, in(reg32) column, options(nostack, preserves_flags),
            );
        }
    }

    /// # Safety
    /// The thread has waited for the stage to be full.
    #[inline(always)]
    pub(super) unsafe fn place_of(self, turn: Turn) -> [u32; 2] {
        let (row, column): (u32, u32);
        // SAFETY: the word was written before, and is not again before all have multiplied the stage.
        unsafe {
            asm!(
                "ld.shared.v2.b32 {{{}, {}}}, [{}];",
                out(reg32) row, out(reg32) column, in(reg32) self.place(turn), options(nostack, preserves_flags),
            );
        }
        [row, column]
    }
}

/// Whether a thread of the launch has panicked, looked up in one of many turns: the record is in the host's memory, and when many warps
/// read it, each waits so long that the next wait takes as many turns, and so on.
#[inline(always)]
fn is_panicking(turns: &mut u32) -> bool {
    *turns = turns.wrapping_add(1);
    turns.is_multiple_of(1024) && is_reported()
}

/// Whether `holds` is true in all 32 threads of the warp, of which none has ended.
#[inline(always)]
pub(super) fn warp_all(holds: bool) -> bool {
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
