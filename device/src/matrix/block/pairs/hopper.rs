//! Pairs of products by the instructions of `sm_90a`: one thread copies tiles, and groups multiply both from shared memory and, as left
//! factors of the second pair, from registers. `block/hopper.rs` says what the barriers are for.

use core::arch::asm;

use super::super::hopper::{
    begin_barriers, give_up_unless_whole, is_whole, most_registers, reconverge, share_registers, wait_for,
    wait_until_pending,
};
use super::super::stages::{Addresses, Turn};
use super::super::twice::hopper::{add_rows, commit, multiply_rows, rounded, start_rows};
use super::super::{ALIGNMENT, GROUP, GROUP_ROWS, HalfElement, ProductSums, ROW, TiledFactor, first_sum};
use super::{PairedProducts, Span};
use crate::feedback::panic::give_up_at_once;
use crate::shared::mbarrier::Barrier;
use crate::shared::{Shared, within_shared};
use crate::thread::Thread;

/// The addresses of both left factors, one behind the other, and their barrier.
#[derive(Clone, Copy)]
struct Left {
    tiles: u32,
    have_arrived: Barrier,
}

#[track_caller]
#[inline(always)]
pub(super) fn multiply<
    T: HalfElement,
    F: TiledFactor<T>,
    const M: usize,
    const N: usize,
    const D: usize,
    const S: usize,
    const R: usize,
    const ID: usize,
>(
    thread: &Thread<'_, 1>,
    memory: Shared<'_, PairedProducts<T, M, N, D, S>, ID>,
    [left, right]: [[F; 2]; 2],
    span: Span,
    places: impl FnMut(usize) -> [u32; 2],
    (first, second): (
        impl FnMut(usize, &mut ProductSums<N>),
        impl FnMut(usize, &ProductSums<N>, &mut ProductSums<N>),
    ),
    finish: impl FnOnce([ProductSums<D>; R]),
) {
    let at = within_shared(memory.start);
    let tiles = (at + ALIGNMENT as u32 - 1) & !(ALIGNMENT as u32 - 1);
    let offset = |offset: usize| at + offset as u32;
    let have_arrived = Barrier(offset(core::mem::offset_of!(PairedProducts<T, M, N, D, S>, have_left)));
    let said = offset(core::mem::offset_of!(PairedProducts<T, M, N, D, S>, said));
    let addresses = Addresses {
        stages: tiles + (2 * M * D * 2) as u32,
        barriers: offset(core::mem::offset_of!(PairedProducts<T, M, N, D, S>, barriers)),
        agreed: offset(core::mem::offset_of!(PairedProducts<T, M, N, D, S>, agreed)),
    };
    let of_left = Left { tiles, have_arrived };
    let rank = thread.thread_rank() as usize;
    if rank == 0 {
        // SAFETY: in the memory of this call, for the barrier of the block below.
        unsafe {
            have_arrived.begin(1);
            asm!("st.shared.b32 [{}], {};", in(reg32) said, in(reg32) span.steps, options(nostack, preserves_flags));
            begin_barriers::<S>(addresses, M / GROUP_ROWS);
        }
    }
    thread.sync_for(&memory);
    let steps: u32;
    // SAFETY: written before the barrier, and not again.
    unsafe {
        asm!("ld.shared.b32 {}, [{}];", out(reg32) steps, in(reg32) said, options(nostack, preserves_flags));
    }
    // Nothing that needs many registers is on both ways.
    if rank < GROUP {
        share_registers::<M>(false);
        if rank == 0 {
            copy::<T, F, M, N, D, S>(addresses, of_left, left, right, span, places);
        }
    } else {
        share_registers::<M>(true);
        finish(add::<T, F, M, N, D, S, R>(addresses, of_left, rank - GROUP, steps, first, second));
    }
}

/// Copies both left factors, and then the tiles of both right ones together.
#[inline(always)]
fn copy<T: HalfElement, F: TiledFactor<T>, const M: usize, const N: usize, const D: usize, const S: usize>(
    addresses: Addresses,
    of_left: Left,
    left: [F; 2],
    [c, d]: [F; 2],
    span: Span,
    mut places: impl FnMut(usize) -> [u32; 2],
) {
    of_left.have_arrived.arrive_for((2 * M * D * 2) as u32);
    let (place, second) = ([span.row as usize, 0], of_left.tiles + (M * D * 2) as u32);
    // Not a loop, which would keep the factors in local memory.
    // SAFETY: nothing else uses the memory of the left factors before they have arrived. The block ends after all groups have waited for the
    // copies, or after `linger`.
    unsafe {
        start_rows::<T, F, M, D>(of_left.tiles, left[0], place, of_left.have_arrived);
        start_rows::<T, F, M, D>(second, left[1], place, of_left.have_arrived);
    }
    let mut turn = Turn::FIRST;
    for step in 0..span.steps as usize {
        let place = places(step).map(|axis| axis as usize);
        addresses.empty(turn).wait(turn.phase ^ 1);
        let full = addresses.full(turn);
        full.arrive_for((2 * N * D * 2) as u32);
        let [to_c, to_d] = tiles::<N, D>(addresses, turn);
        // SAFETY: the stage is empty, so this thread alone uses it; else as above.
        unsafe {
            start_rows::<T, F, N, D>(to_c, c, place, full);
            start_rows::<T, F, N, D>(to_d, d, place, full);
        }
        turn.next::<S>();
    }
}

/// The addresses of the tiles of a stage.
#[inline(always)]
fn tiles<const N: usize, const D: usize>(addresses: Addresses, turn: Turn) -> [u32; 2] {
    let first = addresses.stages + turn.stage * (2 * N * D * 2) as u32;
    [first, first + (N * D * 2) as u32]
}

/// Multiplies what is copied. The products of the next step follow those by rounded sums, if there are registers for all, and the second of a pair is computed while
/// `first` is at work. Only then may sums become a left factor: ptxas would wait if that was done while a product is in flight.
#[inline(always)]
fn add<
    T: HalfElement,
    F: TiledFactor<T>,
    const M: usize,
    const N: usize,
    const D: usize,
    const S: usize,
    const R: usize,
>(
    addresses: Addresses,
    left: Left,
    number: usize,
    steps: u32,
    mut first: impl FnMut(usize, &mut ProductSums<N>),
    mut second: impl FnMut(usize, &ProductSums<N>, &mut ProductSums<N>),
) -> [ProductSums<D>; R] {
    let (group, is_first) = (number / GROUP, number % 32 == 0);
    let agreed = addresses.agreed(group);
    let place = first_sum(number);
    let mut turn = Turn::FIRST;
    let mut results = [const { ProductSums::<D> { sums: [[0.0; 4]; 32], first: [0; 2] } }; R];
    (results[0].first, results[R - 1].first) = (place, place);
    let a = left.tiles + (group * GROUP_ROWS * ROW) as u32;
    let a = [a, a + (M * D * 2) as u32];
    give_up_unless_whole(agreed, is_first, 0);
    if !left.have_arrived.ends(0) {
        give_up_at_once();
    }
    let mut p = ProductSums::<N> { sums: [[0.0; 4]; 32], first: place };
    let mut q = ProductSums::<N> { sums: [[0.0; 4]; 32], first: place };
    let multiply = |p: &mut ProductSums<N>, q: &mut ProductSums<N>, turn: Turn| {
        let b = tiles::<N, D>(addresses, turn);
        // SAFETY: all threads of the group come here, in the same order: none has panicked, and all know the number of steps from one thread.
        // The tiles have arrived, and nothing is copied to the right ones before all warps have arrived at `empty`.
        unsafe {
            multiply_rows::<T, F, M, N, D>(p, a[0], b[0]);
            commit();
            multiply_rows::<T, F, M, N, D>(q, a[1], b[1]);
            commit();
        }
    };
    if steps == 0 {
        return results;
    }
    if !addresses.full(turn).ends(turn.phase) {
        give_up_at_once();
    }
    // The zeros are in registers before products are in flight.
    wait_for::<D>(&mut results[0].sums);
    wait_for::<D>(&mut results[R - 1].sums);
    multiply(&mut p, &mut q, turn);
    let mut last = turn;
    // Of each thread, with some 40 for all else.
    let is_merged = const { (R * D + 2 * N) / 2 + R * N / 4 + 40 <= most_registers(M / GROUP_ROWS) };
    for step in 0..steps {
        let b = tiles::<N, D>(addresses, turn);
        wait_until_pending::<1, N>(&mut p.sums);
        // So are those by the stage before.
        addresses.empty(last).arrive(is_first && step > 0);
        first(step as usize, &mut p);
        wait_for::<N>(&mut q.sums);
        second(step as usize, &p, &mut q);
        let words = [rounded::<T, N>(&p), rounded::<T, N>(&q)];
        reconverge();
        last = turn;
        turn.next::<S>();
        // After the last step products that are not used: a branch would be between products in flight.
        let next = if step + 1 < steps { turn } else { last };
        // The products are begun by all threads of the group: none has panicked in the closures.
        if !is_whole(agreed, is_first, step + 1) || !addresses.full(next).ends(next.phase) {
            give_up_at_once();
        }
        // SAFETY: as above.
        unsafe {
            if R == 2 {
                add_rows::<T, N, D>(&mut results[R - 1], &words[0], b[1]);
            }
            add_rows::<T, N, D>(&mut results[0], &words[1], b[0]);
        }
        commit();
        if !is_merged {
            wait_for::<D>(&mut results[0].sums);
            wait_for::<D>(&mut results[R - 1].sums);
        }
        multiply(&mut p, &mut q, next);
    }
    wait_for::<D>(&mut results[0].sums);
    wait_for::<D>(&mut results[R - 1].sums);
    results
}
