//! The stages of a product on `sm_90a`: their addresses, and the barriers (`mbarrier`) that say which are full and which empty.

use core::arch::asm;

use super::Barriers;
use super::place::Words;
use crate::shared::mbarrier::Barrier;

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
    pub(super) unsafe fn set_place(self, turn: Turn, [row, column, first, steps]: Words) {
        // SAFETY: the words belong to the stage, which no other thread uses meanwhile.
        unsafe {
            asm!(
                "st.shared.v4.b32 [{}], {{{}, {}, {}, {}}};",
                in(reg32) self.place(turn), in(reg32) row, in(reg32) column, in(reg32) first, in(reg32) steps,
                options(nostack, preserves_flags),
            );
        }
    }

    /// The first words of the place if the thread `reads`, without a branch: products may be in flight.
    ///
    /// # Safety
    /// The thread has waited for the stage to be full.
    #[cfg(feature = "half")]
    #[inline(always)]
    pub(super) unsafe fn first_words(self, turn: Turn, reads: bool) -> [u32; 2] {
        let (first, second): (u32, u32);
        // SAFETY: as for `place_of`.
        unsafe {
            asm!(
                "{{ .reg .pred %reads; setp.ne.b32 %reads, {3}, 0; mov.b32 {0}, 0; mov.b32 {1}, 0;",
                "@%reads ld.shared.v2.b32 {{{0}, {1}}}, [{2}]; }}",
                out(reg32) first, out(reg32) second, in(reg32) self.place(turn), in(reg32) u32::from(reads),
                options(nostack, preserves_flags),
            );
        }
        [first, second]
    }

    /// # Safety
    /// The thread has waited for the stage to be full.
    #[inline(always)]
    pub(super) unsafe fn place_of(self, turn: Turn) -> Words {
        let (row, column, first, steps): (u32, u32, u32, u32);
        // SAFETY: the words were written before, and are not again before all have multiplied the stage.
        unsafe {
            asm!(
                "ld.shared.v4.b32 {{{}, {}, {}, {}}}, [{}];",
                out(reg32) row, out(reg32) column, out(reg32) first, out(reg32) steps, in(reg32) self.place(turn),
                options(nostack, preserves_flags),
            );
        }
        [row, column, first, steps]
    }
}
