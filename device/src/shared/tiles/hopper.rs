//! Tiles by the instructions of `sm_90a`. The first thread of a block starts each copy, and all wait for it at a barrier in shared memory
//! of the stage (`mbarrier`), whose phase ends once in each round through the stages, with or without a copy.
//!
//! A copy must not arrive in the memory of a block that has ended, nor be read from it. So the first thread waits for its copies before
//! it ends: after the kernel's function, whatever that did with the stages, and when it panics.

use core::arch::asm;
use core::mem::offset_of;

use super::super::mbarrier::{Barrier, is_panicking};
use super::super::{address, within_shared};
use super::array::{AXES, BoxArray};
use super::{Arrivals, BoxStages, Mark, STEP, StagedBoxes};
use crate::element::device_copy::DeviceCopy;
use crate::feedback::panic::give_up;
use crate::memory::tensor_map::{BoxSource, by_rank};
use crate::shared::SharedElement;
use crate::thread::Thread;

/// The word of the mark at an address. If a kernel without such regions has it there by chance, a thread that panics waits, or faults, in
/// its own shared memory.
fn word(mark: *const Mark) -> u64 {
    0x7469_6c65_735f_696e ^ mark.addr() as u64
}

/// The barrier of a stage.
fn full(arrivals: *const Arrivals) -> Barrier {
    Barrier(within_shared(arrivals.cast_mut()))
}

/// The stages' arrivals, behind the mark.
fn arrivals(mark: *const Mark) -> *const Arrivals {
    mark.wrapping_add(1).cast()
}

/// Begins the barriers of a region, and marks it.
///
/// # Safety
/// The calling thread is the first of the block, and nothing has used the region.
#[inline(always)]
pub(super) unsafe fn begin<A, const S: usize>(memory: *mut BoxStages<A, S>) {
    const {
        let behind = offset_of!(BoxStages<A, S>, mark) + size_of::<Mark>();
        assert!(behind == offset_of!(BoxStages<A, S>, arrivals) && behind.is_multiple_of(STEP));
    }
    // SAFETY: the caller's. The fences let the hardware that copies see the barriers. The other threads use them after a barrier of the
    // block, that of an earlier turn.
    unsafe {
        for stage in 0..S {
            let arrivals = (&raw mut (*memory).arrivals).cast::<Arrivals>().add(stage);
            full(arrivals).begin(1);
            (*arrivals).begun = 0;
        }
        let mark = &raw mut (*memory).mark;
        mark.write(Mark { word: word(mark), stages: S });
        asm!(
            "ferrogrid.tiles;",
            "fence.mbarrier_init.release.cluster;",
            "fence.proxy.async.shared::cta;",
            options(nostack, preserves_flags)
        );
    }
}

/// Waits for the copies to a region with so many stages, and unmarks it.
///
/// # Safety
/// The calling thread has begun the region that has this mark.
#[inline(always)]
pub(super) unsafe fn end(mark: *mut Mark, stages: usize) {
    for stage in 0..stages {
        let arrivals = arrivals(mark).wrapping_add(stage);
        // SAFETY: one of the region's stages.
        let begun = unsafe { (*arrivals).begun };
        // A phase that this thread has begun to end ends when its copy arrives.
        while begun > 0 && !full(arrivals).has_ended((begun - 1) as u32 & 1) {}
    }
    // SAFETY: the thread's own word.
    unsafe { (*mark).word = 0 };
}

/// Ends the regions of the thread's block, if it is the first thread, before it ends by a panic. The build step leaves the call out where
/// no kernel has such regions (its pass `tiles`).
#[cfg(not(feature = "panic-trap"))]
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn __ferrogrid_end_tiles() {
    let (place, bytes): (u32, u32);
    // SAFETY: it reads special registers.
    unsafe {
        asm!(
            "{{ .reg .b32 %y, %z; mov.u32 {0}, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;",
            "or.b32 {0}, {0}, %y; or.b32 {0}, {0}, %z; mov.u32 {1}, %dynamic_smem_size; }}",
            out(reg32) place, out(reg32) bytes, options(nomem, nostack, preserves_flags),
        );
    }
    if place != 0 {
        return;
    }
    super::output::wait_for_reads();
    for offset in (0..bytes as usize / STEP * STEP).step_by(STEP) {
        let mark = address::start().wrapping_add(offset).cast::<Mark>();
        // SAFETY: within the block's shared memory, where any bits are a number, and aligned. The mark is there only if this thread has
        // begun the region, and not ended it.
        unsafe {
            if (*mark).word == word(mark) {
                end(mark, (*mark).stages);
            }
        }
    }
}

impl<'b, A: BoxArray<Element: SharedElement + DeviceCopy>, const S: usize, const ID: usize>
    StagedBoxes<'b, A, S, ID>
{
    /// Starts to copy the box at a place, the rows' axis first, to the stage that is written; all threads of the block.
    #[inline(always)]
    pub(super) fn copy_by_map<const R: usize>(
        &self,
        thread: &Thread<'_, R>,
        from: impl BoxSource<'b, A>,
        place: [i32; AXES],
    ) {
        let is_first = thread.thread_rank() == 0;
        if from.is_empty() {
            // SAFETY: elements of this thread alone, which take any bits.
            self.for_own_places(thread, |to, _| unsafe { to.write(core::mem::zeroed()) });
            // SAFETY: a later copy must not overtake the zeros. The first thread arrives once in the phase.
            unsafe {
                asm!("fence.proxy.async.shared::cta;", options(nostack, preserves_flags));
                if is_first {
                    self.arrive(0);
                }
            }
        } else if is_first {
            let to = within_shared(self.stage(self.written).start.cast_mut());
            // SAFETY: all threads have read the stage before the last turn's barrier, and nothing uses it before they have waited for the
            // phase. The map is that of such boxes.
            unsafe {
                self.arrive(size_of::<A>());
                by_rank!(
                    A::RANK,
                    place,
                    [
                        "cp.async.bulk.tensor",
                        ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [{to}], [{map}, ",
                        "], [{full}];"
                    ],
                    to = in(reg32) to, map = in(reg64) from.encoded(), full = in(reg32) full(self.arrivals(self.written)).0,
                    options(nostack, preserves_flags),
                );
            }
        }
    }

    /// Lets the phase of the stage that is written end when so many bytes have been copied.
    ///
    /// # Safety
    /// The calling thread is the first of the block, and makes the call once for the phase.
    #[inline(always)]
    pub(super) unsafe fn arrive(&self, bytes: usize) {
        let arrivals = self.arrivals(self.written);
        // SAFETY: the thread's own word.
        unsafe { (*arrivals).begun = self.round + 1 };
        full(arrivals).arrive_for(bytes as u32);
    }

    fn arrivals(&self, stage: usize) -> *mut Arrivals {
        // SAFETY: one of the stages.
        unsafe { (&raw mut (*self.memory).arrivals).cast::<Arrivals>().add(stage) }
    }

    /// Counts the turn that begins, and waits for the stage that is read in it, if it has been written.
    #[inline(always)]
    pub(super) fn wait(&mut self) {
        if self.written == 0 {
            self.round += 1;
        }
        let current = Self::after(self.written);
        // The first stage has been written in this round, the others in the one before.
        let rounds = if current == 0 { self.round + 1 } else { self.round };
        let (full, mut turns) = (full(self.arrivals(current)), 0);
        while rounds > 0 && !full.has_ended((rounds - 1) as u32 & 1) {
            // A thread that has panicked may be the one that this waits for.
            if is_panicking(&mut turns) {
                give_up();
            }
        }
    }
}
