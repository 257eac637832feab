//! Two products by the instructions of `sm_90a`: one thread copies tiles, groups multiply both from shared memory and, as left factor
//! of the second product, from registers. `block/hopper.rs` says what the barriers are for.

use core::arch::asm;

use super::super::hopper::{
    WARPS, begin_barriers, descriptor, give_up_unless_whole, most_registers, origin, reconverge,
    share_registers, start, swizzled, wait_for, wait_until_pending,
};
use super::super::stages::{Addresses, Turn};
use super::super::{
    ALIGNMENT, GROUP, GROUP_ROWS, HalfElement, Order, ProductElement, ProductSums, ROW, TiledFactor,
    first_sum,
};
use super::{Span, TwoProducts};
use crate::feedback::panic::give_up_at_once;
use crate::matrix::unrolled;
use crate::number::half::HalfFloat;
use crate::shared::mbarrier::Barrier;
use crate::shared::{Shared, within_shared};
use crate::thread::Thread;

/// The elements of a row that one copy has.
const COLUMNS: usize = ROW / 2;

/// The addresses of the left factor and its barrier, besides those of the stages.
#[derive(Clone, Copy)]
struct Left {
    tile: u32,
    has_arrived: Barrier,
}

/// The barriers of a group's own turn, and of the next group's.
#[derive(Clone, Copy)]
pub(in super::super) struct Turns<const M: usize> {
    barriers: u32,
    own: Barrier,
    next: Barrier,
    /// Whether the group has the first turn.
    is_first: bool,
}

impl<const M: usize> Turns<M> {
    #[inline(always)]
    pub(in super::super) fn of(barriers: u32, group: usize) -> Self {
        let of = |group: usize| Barrier(barriers + (group * size_of::<u64>()) as u32);
        let next = if (group + 1) * GROUP_ROWS == M { 0 } else { group + 1 };
        Turns { barriers, own: of(group), next: of(next), is_first: group == 0 }
    }

    /// # Safety
    /// As for `Barrier::begin`, for a barrier of each group.
    #[inline(always)]
    pub(in super::super) unsafe fn begin(self) {
        for group in 0..M / GROUP_ROWS {
            // SAFETY: the caller's.
            unsafe { Barrier(self.barriers + (group * size_of::<u64>()) as u32).begin(WARPS) };
        }
    }

    /// Waits for the turn of that number. Returns whether it has come: as `Barrier::ends`.
    #[inline(always)]
    pub(in super::super) fn wait(self, number: u32) -> bool {
        self.own.ends((number & 1) ^ u32::from(self.is_first))
    }

    #[inline(always)]
    pub(in super::super) fn pass(self, counts: bool) {
        self.next.arrive(counts);
    }
}

#[inline(always)]
pub(in super::super) fn commit() {
    // SAFETY: all threads of the group come here.
    unsafe { asm!("wgmma.commit_group.sync.aligned;", options(nostack, preserves_flags)) };
}

#[track_caller]
#[inline(always)]
pub(super) fn multiply<
    T: HalfElement,
    F: TiledFactor<T>,
    K,
    const M: usize,
    const N: usize,
    const D: usize,
    const S: usize,
    const ID: usize,
>(
    thread: &Thread<'_, 1>,
    memory: Shared<'_, TwoProducts<T, M, N, D, S>, ID>,
    factors: [F; 3],
    span: Span,
    mut kept: K,
    (first, second): (
        impl FnMut(&mut K, usize, &mut ProductSums<N>),
        impl FnMut(&mut K, &mut ProductSums<D>),
    ),
    finish: impl FnOnce(K, ProductSums<D>),
) {
    let at = within_shared(memory.start);
    let tile = (at + ALIGNMENT as u32 - 1) & !(ALIGNMENT as u32 - 1);
    let offset = |offset: usize| at + offset as u32;
    let has_arrived = Barrier(offset(core::mem::offset_of!(TwoProducts<T, M, N, D, S>, has_left)));
    let said = offset(core::mem::offset_of!(TwoProducts<T, M, N, D, S>, said));
    let left = Left { tile, has_arrived };
    let turns = offset(core::mem::offset_of!(TwoProducts<T, M, N, D, S>, turns));
    let addresses = Addresses {
        stages: tile + (M * D * 2) as u32,
        barriers: offset(core::mem::offset_of!(TwoProducts<T, M, N, D, S>, barriers)),
        agreed: offset(core::mem::offset_of!(TwoProducts<T, M, N, D, S>, agreed)),
    };
    let rank = thread.thread_rank() as usize;
    if rank == 0 {
        // SAFETY: in the memory of this call, for the barrier of the block below.
        unsafe {
            has_arrived.begin(1);
            asm!("st.shared.b32 [{}], {};", in(reg32) said, in(reg32) span.steps, options(nostack, preserves_flags));
            Turns::<M>::of(turns, 0).begin();
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
            copy::<T, F, M, N, D, S>(addresses, left, factors, span);
        }
    } else {
        share_registers::<M>(true);
        let number = rank - GROUP;
        let sums =
            add::<T, F, K, M, N, D, S>(addresses, left, turns, number, steps, &mut kept, first, second);
        finish(kept, sums);
    }
}

/// Starts to copy `R` rows from one on, `D` elements of each, from some columns further right than the factor's first one: 64 columns after the
/// other.
///
/// # Safety
/// As for `start`.
#[inline(always)]
pub(in super::super) unsafe fn start_rows<T, F: TiledFactor<T>, const R: usize, const D: usize>(
    to: u32,
    factor: F,
    [row, column]: [usize; 2],
    full: Barrier,
) {
    let origin = origin(factor, row);
    for part in 0..D / COLUMNS {
        let (to, depth) = (to + (part * R * ROW) as u32, column + part * COLUMNS);
        // SAFETY: the caller's.
        unsafe { start::<T, F, R>(to, factor, origin, depth, full) };
    }
}

/// Starts to compute the sums of 64 rows of a tile of `M` and the `N` rows of another, `D` elements deep. It replaces the sums.
///
/// # Safety
/// All threads of the group make the call, in the same order. Both tiles have arrived, and stay until the product is complete.
#[inline(always)]
pub(in super::super) unsafe fn multiply_rows<
    T: HalfElement,
    F: TiledFactor<T>,
    const M: usize,
    const N: usize,
    const D: usize,
>(
    sums: &mut ProductSums<N>,
    a: u32,
    b: u32,
) {
    for k in 0..D / 16 {
        let (part, within) = (k * 16 / COLUMNS, k % (COLUMNS / 16));
        let a = descriptor::<F>(a + (part * M * ROW) as u32, within);
        let b = descriptor::<F>(b + (part * N * ROW) as u32, within);
        let order = if k == 0 { Order::First } else { Order::Following };
        // SAFETY: the caller's.
        unsafe { <T as ProductElement>::add::<N, F, F>(&mut sums.sums, a, b, order) };
    }
}

/// Sums, rounded to `T`, as the left factor of a product.
#[inline(always)]
pub(in super::super) fn rounded<T: HalfFloat, const N: usize>(sums: &ProductSums<N>) -> [[u32; 4]; 8] {
    let mut words = [[0; 4]; 8];
    unrolled!(k in 8, {
        if k * 16 < N {
            let ([a, b, c, d], [e, f, g, h]) = (sums.sums[2 * k], sums.sums[2 * k + 1]);
            words[k] = [[a, b], [c, d], [e, f], [g, h]].map(T::pair_to_bits);
        }
    });
    words
}

/// Starts to add the product of rounded sums and the rows of a tile of `N`.
///
/// # Safety
/// As for `multiply_rows`.
#[inline(always)]
pub(in super::super) unsafe fn add_rows<T: HalfElement, const N: usize, const D: usize>(
    sums: &mut ProductSums<D>,
    words: &[[u32; 4]; 8],
    tile: u32,
) {
    unrolled!(k in 8, {
        if k * 16 < N {
            // Rows are the depth, and 64 columns each are below the ones before.
            let tile = swizzled(tile + (k * 16 * ROW) as u32, N * ROW);
            let order = if k == 0 { Order::Fenced } else { Order::Following };
            // SAFETY: the caller's.
            unsafe { T::add_words::<D>(&mut sums.sums, words[k], tile, order) };
        }
    });
}

/// Lets the sums be computed before what follows. ptxas waits for a product as soon as it may, even if the thread has much to do that does not
/// depend on it; but not before this store, which depends on all sums. Sums of a softmax's weights, which it computes anyway, are these.
#[inline(always)]
pub(super) fn settle<const N: usize>(sums: &ProductSums<N>, memory: u32) {
    let [a, b, c, d] = sums.sums[0];
    let (mut upper, mut lower) = (a + b, c + d);
    super::super::each_column!(n, N, {
        if n > 0 {
            let [a, b, c, d] = sums.sums[n];
            upper += a + b;
            lower += c + d;
        }
    });
    // SAFETY: it writes nothing. These bits are a NaN, and the hardware's additions have no other one than 0x7fffffff.
    unsafe {
        asm!(
            "{{ .reg .pred %never; setp.eq.b32 %never, {0}, 0x7fc12345; @%never st.shared.b32 [{1}], {0}; }}",
            in(reg32) upper + lower, in(reg32) memory, options(nostack, preserves_flags),
        );
    }
}

/// Whether the threads have registers for the sums of both products, and a rounded factor, at once: with 32 for all else.
const fn is_overlapped<const M: usize, const N: usize, const D: usize>() -> bool {
    N / 2 + D / 2 + N / 4 + 32 <= most_registers(M / GROUP_ROWS)
}

/// Copies the left factor, and then the tiles of both right ones in the order in which they are multiplied.
#[inline(always)]
fn copy<T: HalfElement, F: TiledFactor<T>, const M: usize, const N: usize, const D: usize, const S: usize>(
    addresses: Addresses,
    left: Left,
    [a, b, c]: [F; 3],
    span: Span,
) {
    left.has_arrived.arrive_for((M * D * 2) as u32);
    // SAFETY: nothing else uses the memory of the left factor before it has arrived. The block ends after all groups have waited for the
    // copies, or after `linger`.
    unsafe { start_rows::<T, F, M, D>(left.tile, a, [span.row as usize, 0], left.has_arrived) };
    let mut turn = Turn::FIRST;
    let mut copy = |factor: F, step: usize| {
        addresses.empty(turn).wait(turn.phase ^ 1);
        let full = addresses.full(turn);
        full.arrive_for((N * D * 2) as u32);
        let to = addresses.stages + turn.stage * (N * D * 2) as u32;
        // SAFETY: the stage is empty, so this thread alone uses it; else as above.
        unsafe { start_rows::<T, F, N, D>(to, factor, [span.first as usize + step * N, 0], full) };
        turn.next::<S>();
    };
    let ahead = usize::from(const { is_overlapped::<M, N, D>() });
    let steps = span.steps as usize;
    for step in 0..steps + ahead {
        if step < steps {
            copy(b, step);
        }
        if step >= ahead {
            copy(c, step - ahead);
        }
    }
}

/// Multiplies what is copied: the first product of a step, and behind it the second one of the step before, which is computed while `first`
/// is at work; one after the other if there are no registers for both. Groups take turns in beginning products.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "addresses, numbers and closures, each of which has its name")]
fn add<
    T: HalfElement,
    F: TiledFactor<T>,
    K,
    const M: usize,
    const N: usize,
    const D: usize,
    const S: usize,
>(
    addresses: Addresses,
    left: Left,
    turns: u32,
    number: usize,
    steps: u32,
    kept: &mut K,
    mut first: impl FnMut(&mut K, usize, &mut ProductSums<N>),
    mut second: impl FnMut(&mut K, &mut ProductSums<D>),
) -> ProductSums<D> {
    let (group, is_first) = (number / GROUP, number % 32 == 0);
    let agreed = addresses.agreed(group);
    let turns = Turns::<M>::of(turns, group);
    let mut turn = Turn::FIRST;
    let mut sums = ProductSums::<D> { sums: [[0.0; 4]; 32], first: first_sum(number) };
    let mut scores = ProductSums::<N> { sums: [[0.0; 4]; 32], first: sums.first };
    let tile = |turn: Turn| addresses.stages + turn.stage * (N * D * 2) as u32;
    let begin_first = |scores: &mut ProductSums<N>, turn: Turn| {
        let a = left.tile + (group * GROUP_ROWS * ROW) as u32;
        // SAFETY: all threads of the group come here, in the same order: none has panicked, and all know the number of steps from one
        // thread. Both tiles have arrived, and nothing is copied to the right one before all warps have arrived at `empty`.
        unsafe { multiply_rows::<T, F, M, N, D>(scores, a, tile(turn)) };
        commit();
    };
    let begin_second = |sums: &mut ProductSums<D>, words: &[[u32; 4]; 8], turn: Turn| {
        // SAFETY: as for the first product.
        unsafe { add_rows::<T, N, D>(sums, words, tile(turn)) };
        commit();
    };
    let give_up_unless = |holds: bool| {
        if !holds {
            give_up_at_once();
        }
    };
    let is_full = |turn: Turn| addresses.full(turn).ends(turn.phase);
    give_up_unless_whole(agreed, is_first, 0);
    give_up_unless(left.has_arrived.ends(0));
    if steps == 0 {
        return sums;
    }
    give_up_unless(is_full(turn));
    // The zeros are in registers before products are in flight.
    wait_for::<D>(&mut sums.sums);
    let mut of_first = turn;
    let mut of_second = turn;
    begin_first(&mut scores, of_first);
    turn.next::<S>();
    // In place of a second product.
    commit();
    let mut step = 0;
    loop {
        wait_until_pending::<1, N>(&mut scores.sums);
        addresses.empty(of_first).arrive(is_first);
        first(kept, step as usize, &mut scores);
        let is_overlapped = const { is_overlapped::<M, N, D>() };
        // Of three groups another one has a product in flight: these additions would cost more.
        if is_overlapped && M < 3 * GROUP_ROWS {
            settle(&scores, left.tile);
        }
        wait_for::<D>(&mut sums.sums);
        addresses.empty(of_second).arrive(is_first && is_overlapped && step > 0);
        second(kept, &mut sums);
        let words = rounded::<T, N>(&scores);
        reconverge();
        step += 1;
        // Products are begun by all threads of the group: none has panicked in the closures.
        give_up_unless_whole(agreed, is_first, step);
        if is_overlapped && step < steps {
            of_first = turn;
            turn.next::<S>();
            of_second = turn;
            turn.next::<S>();
            give_up_unless(is_full(of_first) && is_full(of_second) && turns.wait(step - 1));
            begin_first(&mut scores, of_first);
            begin_second(&mut sums, &words, of_second);
            turns.pass(is_first);
            continue;
        }
        give_up_unless(is_full(turn));
        begin_second(&mut sums, &words, turn);
        wait_for::<D>(&mut sums.sums);
        if is_overlapped || step == steps {
            break;
        }
        addresses.empty(turn).arrive(is_first);
        turn.next::<S>();
        of_first = turn;
        turn.next::<S>();
        give_up_unless(is_full(of_first));
        begin_first(&mut scores, of_first);
        commit();
    }
    sums
}
