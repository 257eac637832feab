//! Pairs of products by the instructions of `sm_90a`: one thread copies tiles, and groups multiply both from shared memory and, as left
//! factors of the second pair, from registers. `block/hopper.rs` says what the barriers are for.

use core::arch::asm;
use core::mem::offset_of;

use super::super::hopper::{
    begin_barriers, give_up_unless_whole, is_whole, most_registers, reconverge, share_registers, start_zeros,
    wait_for, wait_until_pending, warp_first,
};
use super::super::result_rows::computed_anew;
use super::super::stages::{Addresses, Turn};
use super::super::twice::hopper::{add_rows, commit, multiply_rows, rounded, start_rows};
use super::super::{ALIGNMENT, GROUP, GROUP_ROWS, HalfElement, ProductSums, ROW, TiledFactor, first_sum};
use super::added::{Added, SIDE};
use super::exchange::{Exchange, wait_for_reads};
use super::{ColumnValues, PairStep, PairedFactors, PairedPlace, PairedProducts};
use crate::feedback::panic::give_up_at_once;
use crate::shared::mbarrier::{Barrier, start_copy};
use crate::shared::{Shared, within_shared};
use crate::thread::Thread;

/// The addresses of both left factors, one behind the other, and their barrier; of the stages, and of their values; and of what is behind the
/// tiles.
#[derive(Clone, Copy)]
struct Memory {
    left: u32,
    have_left: Barrier,
    stages: Addresses,
    values: u32,
    added: u32,
}

#[track_caller]
#[inline(always)]
pub(super) fn multiply<
    T: HalfElement,
    F: TiledFactor<T>,
    X: Added<T, M, N, D>,
    const M: usize,
    const N: usize,
    const D: usize,
    const S: usize,
    const R: usize,
    const ID: usize,
>(
    thread: &Thread<'_, 1>,
    memory: Shared<'_, PairedProducts<T, M, N, D, S, X>, ID>,
    factors: PairedFactors<'_, F, N, X::Plane<'_>>,
    places: impl FnMut(usize) -> PairedPlace,
    (first, second): (
        impl FnMut(PairStep<N>, &mut ProductSums<N>),
        impl FnMut(PairStep<N>, &ProductSums<N>, &mut ProductSums<N>),
    ),
    finish: impl FnOnce([ProductSums<D>; R]),
) {
    let at = within_shared(memory.start);
    let left = (at + ALIGNMENT as u32 - 1) & !(ALIGNMENT as u32 - 1);
    let offset = |offset: usize| at + offset as u32;
    let have_left = Barrier(offset(offset_of!(PairedProducts<T, M, N, D, S, X>, have_left)));
    let said = offset(offset_of!(PairedProducts<T, M, N, D, S, X>, said));
    // Copies need multiples of 128 bytes.
    const { assert!(offset_of!(PairedProducts<T, M, N, D, S, X>, values).is_multiple_of(128)) };
    let behind_left =
        |offset: usize| left + (offset - offset_of!(PairedProducts<T, M, N, D, S, X>, left)) as u32;
    let stages = Addresses {
        stages: behind_left(offset_of!(PairedProducts<T, M, N, D, S, X>, right)),
        barriers: offset(offset_of!(PairedProducts<T, M, N, D, S, X>, barriers)),
        agreed: offset(offset_of!(PairedProducts<T, M, N, D, S, X>, agreed)),
    };
    let values = behind_left(offset_of!(PairedProducts<T, M, N, D, S, X>, values));
    let added = behind_left(offset_of!(PairedProducts<T, M, N, D, S, X>, added));
    let memory_of = Memory { left, have_left, stages, values, added };
    let rank = thread.thread_rank() as usize;
    let added_to = factors.added;
    // Computed anew each time: addresses would take registers.
    let exchange = || {
        X::plane(added_to)
            .map(|plane| Exchange::new::<T, D>(added, plane, computed_anew(rank.wrapping_sub(GROUP))))
    };
    if rank == 0 {
        // SAFETY: in the memory of this call, for the barrier of the block below.
        unsafe {
            have_left.begin(1);
            if let Some(exchange) = exchange() {
                exchange.begin();
            }
            asm!("st.shared.b32 [{}], {};", in(reg32) said, in(reg32) factors.steps as u32, options(nostack, preserves_flags));
            begin_barriers::<S>(stages, M / GROUP_ROWS);
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
            copy::<T, F, _, M, N, D, S>(memory_of, factors, places);
        }
    } else {
        share_registers::<M>(true);
        finish(add::<T, F, M, N, D, S, R, X>(memory_of, exchange, rank - GROUP, steps, (first, second)));
    }
}

/// Copies both left factors, and then the tiles of both right ones together.
#[inline(always)]
fn copy<
    T: HalfElement,
    F: TiledFactor<T>,
    P,
    const M: usize,
    const N: usize,
    const D: usize,
    const S: usize,
>(
    memory: Memory,
    PairedFactors { left, right: [c, d], row, steps, values, .. }: PairedFactors<'_, F, N, P>,
    mut places: impl FnMut(usize) -> PairedPlace,
) {
    let Memory { stages, have_left, .. } = memory;
    let bytes_of_values = if values.is_some() { 2 * N * size_of::<f32>() } else { 0 };
    have_left.arrive_for((2 * M * D * 2) as u32);
    let (place, second) = ([row, 0], memory.left + (M * D * 2) as u32);
    // Not a loop, which would keep the factors in local memory.
    // SAFETY: nothing else uses the memory of the left factors before they have arrived. The block ends after all groups have waited for the
    // copies, or after `linger`.
    unsafe {
        start_rows::<T, F, M, D>(memory.left, left[0], place, have_left);
        start_rows::<T, F, M, D>(second, left[1], place, have_left);
    }
    let mut turn = Turn::FIRST;
    for step in 0..steps {
        let PairedPlace { row, column, number, tag } = places(step);
        let place = [row, column];
        stages.empty(turn).wait(turn.phase ^ 1);
        let full = stages.full(turn);
        let [to_c, to_d] = tiles::<N, D>(stages, turn);
        // SAFETY: the stage is empty, so this thread alone uses it; else as above.
        unsafe {
            stages.set_place(turn, [number as u32, tag, 0, 0]);
            full.arrive_for((2 * N * D * 2 + bytes_of_values) as u32);
            if let Some(values) = values {
                let to = values_of::<N>(memory, turn);
                if values.width() == 0 || values.height() == 0 {
                    start_zeros(to, bytes_of_values, full);
                } else {
                    start_copy(to, values.map(), [(number & !3) as i32, 0], full);
                }
            }
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

/// The address of the values of a stage.
#[inline(always)]
fn values_of<const N: usize>(memory: Memory, turn: Turn) -> u32 {
    memory.values + turn.stage * (2 * N * size_of::<f32>()) as u32
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
    X: Added<T, M, N, D>,
>(
    memory: Memory,
    exchange: impl Fn() -> Option<Exchange<M, N>>,
    number: usize,
    steps: u32,
    (mut first, mut second): (
        impl FnMut(PairStep<N>, &mut ProductSums<N>),
        impl FnMut(PairStep<N>, &ProductSums<N>, &mut ProductSums<N>),
    ),
) -> [ProductSums<D>; R] {
    let Memory { stages: addresses, have_left, .. } = memory;
    let (group, is_first) = (number / GROUP, number % 32 == 0);
    let agreed = addresses.agreed(group);
    let place = first_sum(number);
    let mut turn = Turn::FIRST;
    let mut results = [const { ProductSums::<D> { sums: [[0.0; 4]; 32], first: [0; 2] } }; R];
    (results[0].first, results[R - 1].first) = (place, place);
    let a = memory.left + (group * GROUP_ROWS * ROW) as u32;
    let a = [a, a + (M * D * 2) as u32];
    give_up_unless_whole(agreed, is_first, 0);
    if !have_left.ends(0) {
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
    // What the thread that copies has said of a step, whose stage is not yet copied to again, in the thread that arrives at `empty`.
    // SAFETY: written before the stage was full.
    let said_of = |turn| unsafe { addresses.first_words(turn, is_first) };
    if steps == 0 {
        return results;
    }
    if !addresses.full(turn).ends(turn.phase) {
        give_up_at_once();
    }
    let mut third = ProductSums::<SIDE> { sums: [[0.0; 4]; 32], first: place };
    if let Some(exchange) = exchange() {
        // What is multiplied in the first step, and not added.
        // SAFETY: nothing has read it.
        unsafe { exchange.write(1, &[[0; 4]; 8], place) };
        reconverge();
        exchange.arrive(is_first);
    }
    // The zeros are in registers before products are in flight.
    wait_for::<D>(&mut results[0].sums);
    wait_for::<D>(&mut results[R - 1].sums);
    multiply(&mut p, &mut q, turn);
    let mut last = turn;
    // Of each thread, with some 40 for all else.
    let is_merged =
        const { !X::ADDS && (R * D + 2 * N) / 2 + R * N / 4 + 40 <= most_registers(M / GROUP_ROWS) };
    for step in 0..steps {
        let b = tiles::<N, D>(addresses, turn);
        // What `first` may need, and below what `second` may: LLVM leaves out what is not used.
        let values = values_of::<N>(memory, turn);
        // SAFETY: the stage is full, and not yet released.
        let read = |which| unsafe { ColumnValues::<N>::read(values, which, place[1]) };
        let columns = read(0);
        wait_until_pending::<1, N>(&mut p.sums);
        let row = if X::ADDS { said_of(last)[0] } else { 0 };
        // So are those by the stage before.
        addresses.empty(last).arrive(is_first && step > 0);
        if X::ADDS {
            wait_for_reads();
        }
        let tag = warp_first(said_of(turn)[1]);
        // SAFETY: as above.
        let this = unsafe { PairStep::new(step as usize, tag, place[1], values) };
        first(this.having(0, columns), &mut p);
        let columns = read(1);
        wait_for::<N>(&mut q.sums);
        second(this.having(1, columns), &p, &mut q);
        let words = [rounded::<T, N>(&p), rounded::<T, N>(&q)];
        if let Some(exchange) = exchange() {
            if !exchange.ends(step) {
                give_up_at_once();
            }
            // SAFETY: all warps have multiplied what is there, that of the step before the last one.
            unsafe { exchange.write(step, &words[1], place) };
        }
        reconverge();
        last = turn;
        turn.next::<S>();
        // After the last step products that are not used: a branch would be between products in flight.
        let next = if step + 1 < steps { turn } else { last };
        // The products are begun by all threads of the group: none has panicked in the closures.
        if !is_whole(agreed, is_first, step + 1) || !addresses.full(next).ends(next.phase) {
            give_up_at_once();
        }
        if let Some(exchange) = exchange() {
            if !exchange.has_turn(step) {
                give_up_at_once();
            }
            // SAFETY: all warps have arrived for the factor of the step before.
            unsafe { exchange.multiply::<T>(&mut third, step + 1, memory.left) };
            commit();
        }
        // SAFETY: as above.
        unsafe {
            if R == 2 {
                add_rows::<T, N, D>(&mut results[R - 1], &words[0], b[1]);
            }
            add_rows::<T, N, D>(&mut results[0], &words[1], b[0]);
        }
        commit();
        if let Some(exchange) = exchange() {
            wait_until_pending::<1, SIDE>(&mut third.sums);
            exchange.arrive(is_first);
            exchange.add(&third, step > 0, row);
        }
        if !is_merged {
            wait_for::<D>(&mut results[0].sums);
            wait_for::<D>(&mut results[R - 1].sums);
        }
        if let Some(exchange) = exchange() {
            exchange.pass_turn(is_first);
        }
        multiply(&mut p, &mut q, next);
    }
    wait_for::<D>(&mut results[0].sums);
    wait_for::<D>(&mut results[R - 1].sums);
    if let Some(exchange) = exchange() {
        // Those that are not used, too.
        wait_for::<N>(&mut p.sums);
        wait_for::<N>(&mut q.sums);
        wait_for_reads();
        if !exchange.ends(steps) {
            give_up_at_once();
        }
        reconverge();
        // SAFETY: all warps have arrived for the factor of the last step.
        unsafe { exchange.multiply::<T>(&mut third, steps + 1, memory.left) };
        commit();
        wait_for::<SIDE>(&mut third.sums);
        exchange.add(&third, true, said_of(last)[0]);
        wait_for_reads();
    }
    results
}
