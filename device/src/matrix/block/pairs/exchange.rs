//! The third product of pairs by the instructions of `sm_90a`. Groups exchange their rounded sums through shared memory, and multiply them a
//! step later, so that no group waits for another one that is at most half a step behind.

use core::arch::asm;
use core::mem::offset_of;

use super::super::hopper::{WARPS, swizzled};
use super::super::twice::hopper::Turns;
use super::super::{GROUP, GROUP_ROWS, HalfElement, Order, ProductElement, ProductSums, ROW, sealed};
use super::added::{ADDED, AddedSums, AddedTiles, SIDE};
use crate::matrix::block::result_rows::computed_anew;
use crate::matrix::unrolled;
use crate::memory::tensor_map::Encoded;
use crate::shared::mbarrier::Barrier;

/// The bytes that a warp adds to the plane at once.
const PART: usize = ADDED[0] * ADDED[1] * size_of::<f32>();
/// The parts of a warp's sums, beside each other.
const PARTS: usize = SIDE / ADDED[1];

/// A tile in whose lines the elements of 64 rows, or of as many columns, are beside each other.
struct Turned;

impl sealed::Factor for Turned {
    const IS_TRANSPOSED: bool = true;
    const ROWS: usize = SIDE;
}

/// The addresses of the exchange of a group, and the plane's map.
#[derive(Clone, Copy)]
pub(super) struct Exchange<const M: usize, const N: usize> {
    factors: u32,
    /// Of this warp.
    sums: u32,
    exchanged: Barrier,
    turns: Turns<M>,
    map: *const Encoded,
    /// The rows of the plane, if they have elements.
    rows: usize,
    /// The first row and the first column of the group's part of the product.
    part: [usize; 2],
    /// The first row of the warp within it.
    row: usize,
}

impl<const M: usize, const N: usize> Exchange<M, N> {
    /// That of the group and the warp of the `number`-th thread that multiplies, with memory at an address.
    #[inline(always)]
    pub(super) fn new<T: HalfElement, const D: usize>(
        memory: u32,
        plane: &AddedSums<'_>,
        number: usize,
    ) -> Self {
        let (group, warp, squares) = (number / GROUP, number / 32, N / SIDE);
        let offset = |offset: usize| memory + offset as u32;
        Exchange {
            factors: offset(offset_of!(AddedTiles<T, M, N, D>, factors)),
            sums: offset(offset_of!(AddedTiles<T, M, N, D>, sums) + warp * PARTS * PART),
            exchanged: Barrier(offset(offset_of!(AddedTiles<T, M, N, D>, exchanged))),
            turns: Turns::of(offset(offset_of!(AddedTiles<T, M, N, D>, turns)), group),
            map: plane.map().0,
            rows: if plane.width() == 0 { 0 } else { plane.height() },
            part: [group % squares * SIDE, group / squares * SIDE],
            row: warp % WARPS * ADDED[0],
        }
    }

    /// # Safety
    /// As for `Barrier::begin`.
    #[inline(always)]
    pub(super) unsafe fn begin(self) {
        // SAFETY: the caller's.
        unsafe {
            self.exchanged.begin(M / GROUP_ROWS * WARPS);
            self.turns.begin();
        }
    }

    /// Waits until the other of two groups has multiplied, and returns whether it has: not if a thread has panicked. So one multiplies
    /// while the other computes; if both did the same, tensor cores would wait for both.
    #[inline(always)]
    pub(super) fn has_turn(self, step: u32) -> bool {
        M == GROUP_ROWS || self.turns.wait(step)
    }

    /// The warp has multiplied.
    #[inline(always)]
    pub(super) fn pass_turn(self, is_first: bool) {
        if M > GROUP_ROWS {
            self.turns.pass(is_first);
        }
    }

    /// Waits for the exchange with that number, and returns whether it has been: not if a thread has panicked.
    #[inline(always)]
    pub(super) fn ends(self, number: u32) -> bool {
        self.exchanged.ends(number & 1)
    }

    /// The warp has written a factor, and multiplied the one before.
    #[inline(always)]
    pub(super) fn arrive(self, is_first: bool) {
        self.exchanged.arrive(is_first);
    }

    /// Writes the thread's rounded sums, with the first one's row and column, as a part of the factor of a step.
    ///
    /// # Safety
    /// No thread reads the factor before the warp has arrived.
    #[inline(always)]
    pub(super) unsafe fn write(self, step: u32, words: &[[u32; 4]; 8], [row, column]: [usize; 2]) {
        let line = self.factors + (step & 1) * (M * N * 2) as u32 + (row * ROW + column * 2) as u32;
        let swizzle = (row % 8 * 16) as u32;
        unrolled!(k in 8, {
            if k * 16 < N {
                let [a, b, c, d] = words[k];
                let [left, right] = [0, 16].map(|half| line + (k / 4 * M * ROW) as u32 + ((k % 4 * 32 + half) as u32 ^ swizzle));
                // SAFETY: within the factor, in two rows of this thread.
                unsafe {
                    asm!(
                        "st.shared.b32 [{0}], {2}; st.shared.b32 [{0}+1024], {3};",
                        "st.shared.b32 [{1}], {4}; st.shared.b32 [{1}+1024], {5};",
                        in(reg32) left, in(reg32) right, in(reg32) a, in(reg32) b, in(reg32) c, in(reg32) d,
                        options(nostack, preserves_flags),
                    );
                }
            }
        });
        // SAFETY: it orders what the thread has written before what products read.
        unsafe { asm!("fence.proxy.async.shared::cta;", options(nostack, preserves_flags)) };
    }

    /// Starts to multiply the group's part of the factor of a step by the rows of `right`, a tile of `M` of them.
    ///
    /// # Safety
    /// All threads of the group make the call, in the same order. All warps have arrived for the factor, and the tile stays.
    #[inline(always)]
    pub(super) unsafe fn multiply<T: HalfElement>(self, sums: &mut ProductSums<SIDE>, step: u32, right: u32) {
        let square = |first: usize| (first / SIDE * M * ROW) as u32;
        let left = self.factors + (step & 1) * (M * N * 2) as u32 + square(self.part[0]);
        let tiles = [left, right + square(self.part[1])].map(|tile| computed_anew(tile as usize) as u32);
        for k in 0..M / 16 {
            let [a, b] = tiles.map(|tile| swizzled(tile + (k * 16 * ROW) as u32, M * ROW));
            let order = if k == 0 { Order::First } else { Order::Following };
            // SAFETY: the caller's.
            unsafe { <T as ProductElement>::add::<SIDE, Turned, Turned>(&mut sums.sums, a, b, order) };
        }
    }

    /// Starts to add the warp's sums to the rows of the plane from one on, if there `is` such a step.
    #[inline(always)]
    pub(super) fn add(self, sums: &ProductSums<SIDE>, is: bool, row: u32) {
        let [own_row, column] = sums.first;
        let own_row = own_row % ADDED[0];
        let line = self.sums + (own_row * ROW) as u32;
        let (bytes, swizzle) = ((column * 4) as u32, (own_row % 8 * 16) as u32);
        unrolled!(n in 8, {
            let [a, b, c, d] = sums.sums[n];
            let at = line + (n / 4 * PART) as u32 + ((n % 4 * 32) as u32 + bytes ^ swizzle);
            // SAFETY: within the warp's part, which has been read.
            unsafe {
                asm!(
                    "st.shared.v2.f32 [{0}], {{{1}, {2}}}; st.shared.v2.f32 [{0}+1024], {{{3}, {4}}};",
                    in(reg32) at, in(reg32) a, in(reg32) b, in(reg32) c, in(reg32) d, options(nostack, preserves_flags),
                );
            }
        });
        let row = row as usize + self.part[0] + self.row;
        let starts = is & (row < self.rows);
        // SAFETY: the map is that of such parts in the plane, of which all accesses are additions; one of an empty plane is not used, nor a row beyond the last one. All threads of
        // the warp have written; the next ones write after `wait_for_reads`. No branch: products are in flight, and hence all threads commit.
        unsafe {
            asm!(
                "fence.proxy.async.shared::cta; bar.warp.sync 0xffffffff;",
                "{{ .reg .pred %starts; .reg .b32 %lane; elect.sync %lane|%starts, 0xffffffff;",
                "setp.ne.and.b32 %starts, {starts}, 0, %starts;",
                "@%starts cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [{map}, {{{left}, {row}}}], [{from}];",
                "@%starts cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [{map}, {{{right}, {row}}}], [{behind}];",
                "cp.async.bulk.commit_group; }}",
                starts = in(reg32) u32::from(starts), map = in(reg64) self.map, row = in(reg32) row as u32,
                left = in(reg32) self.part[1] as u32, right = in(reg32) (self.part[1] + ADDED[1]) as u32,
                from = in(reg32) self.sums, behind = in(reg32) self.sums + PART as u32,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Waits until what the threads of the warp add to the plane has been read.
#[inline(always)]
pub(super) fn wait_for_reads() {
    // SAFETY: it waits, and all threads of the warp come here.
    unsafe {
        asm!("cp.async.bulk.wait_group.read 0; bar.warp.sync 0xffffffff;", options(nostack, preserves_flags))
    };
}
