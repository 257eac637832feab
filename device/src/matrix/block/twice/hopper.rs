//! Two products by the instructions of `sm_90a`: one thread copies tiles, groups multiply both from shared memory and, as left factor
//! of the second product, from registers. `block/hopper.rs` says what the barriers are for.

use core::arch::asm;
use core::mem::offset_of;

use super::super::hopper::{
    WARPS, begin_barriers, descriptor, give_up_unless_whole, most_registers, origin, reconverge,
    share_registers, start, swizzled, wait_for, wait_until_pending,
};
use super::super::stages::{Addresses, Turn};
use super::super::{
    ALIGNMENT, GROUP, GROUP_ROWS, HalfElement, Order, ProductElement, ProductSums, ROW, TiledFactor,
    first_sum,
};
use super::{END, FAR, Left, TwoProducts, Words};
use crate::feedback::panic::give_up_at_once;
use crate::matrix::unrolled;
use crate::number::half::HalfFloat;
use crate::shared::mbarrier::Barrier;
use crate::shared::{Shared, within_shared};
use crate::thread::Thread;

/// The elements of a row that one copy has.
const COLUMNS: usize = ROW / 2;

/// The addresses of the left factor's rows, and of what each group waits for before it multiplies its own.
#[derive(Clone, Copy)]
struct Lefts {
    tile: u32,
    barriers: u32,
}

impl Lefts {
    #[inline(always)]
    fn full(self, group: usize) -> Barrier {
        Barrier(self.barriers + (group * size_of::<Left>()) as u32)
    }

    #[inline(always)]
    fn empty(self, group: usize) -> Barrier {
        Barrier(self.full(group).0 + offset_of!(Left, empty) as u32)
    }

    /// The rows of a group.
    #[inline(always)]
    fn rows<const D: usize>(self, group: usize) -> u32 {
        self.tile + (group * GROUP_ROWS * D * 2) as u32
    }

    /// Waits until the group has multiplied its rows by those of the last place, and writes the steps and the tag of the next one.
    #[inline(always)]
    fn set_words(self, group: usize, phase: u32, [steps, tag]: [u32; 2]) {
        self.empty(group).wait(phase);
        // SAFETY: the group has read the words of the last place, and waits for these.
        unsafe {
            asm!(
                "st.shared.v2.b32 [{}], {{{}, {}}};",
                in(reg32) self.full(group).0 + offset_of!(Left, words) as u32, in(reg32) steps, in(reg32) tag,
                options(nostack, preserves_flags),
            );
        }
    }

    /// The steps and the tag of the group's place, which the first thread of each warp reads.
    ///
    /// # Safety
    /// The threads have waited for the place.
    #[inline(always)]
    unsafe fn words(self, group: usize, is_first: bool) -> [u32; 2] {
        let (steps, tag): (u32, u32);
        // SAFETY: the words were written before, and are not again before all warps have arrived at `empty`, by the thread that reads. The mask
        // is a number that the builder reads: it proves that the threads of a warp go on together.
        unsafe {
            asm!(
                "{{ .reg .pred %reads; .reg .b32 %steps, %tag; setp.ne.b32 %reads, {3}, 0; mov.b32 %steps, 0; mov.b32 %tag, 0;",
                "@%reads ld.shared.v2.b32 {{%steps, %tag}}, [{2}];",
                "shfl.sync.idx.b32 {0}, %steps, 0, 31, -1; shfl.sync.idx.b32 {1}, %tag, 0, 31, -1; }}",
                out(reg32) steps, out(reg32) tag, in(reg32) self.full(group).0 + offset_of!(Left, words) as u32,
                in(reg32) u32::from(is_first), options(nostack, preserves_flags),
            );
        }
        [steps, tag]
    }
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
    places: impl Iterator<Item = Words>,
    begin: impl FnMut(u32) -> K,
    (first, second): (
        impl FnMut(&mut K, usize, &mut ProductSums<N>),
        impl FnMut(&mut K, &mut ProductSums<D>),
    ),
    finish: impl FnMut(K, ProductSums<D>),
) {
    let at = within_shared(memory.start);
    let tile = (at + ALIGNMENT as u32 - 1) & !(ALIGNMENT as u32 - 1);
    let offset = |offset: usize| at + offset as u32;
    let left = Lefts { tile, barriers: offset(offset_of!(TwoProducts<T, M, N, D, S>, of_left)) };
    let turns = offset(offset_of!(TwoProducts<T, M, N, D, S>, turns));
    let addresses = Addresses {
        stages: tile + (M * D * 2) as u32,
        barriers: offset(offset_of!(TwoProducts<T, M, N, D, S>, barriers)),
        agreed: offset(offset_of!(TwoProducts<T, M, N, D, S>, agreed)),
    };
    let rank = thread.thread_rank() as usize;
    if rank == 0 {
        // SAFETY: in the memory of this call, for the barrier of the block below.
        unsafe {
            for group in 0..M / GROUP_ROWS {
                left.full(group).begin(1);
                left.empty(group).begin(WARPS);
            }
            Turns::<M>::of(turns, 0).begin();
            begin_barriers::<S>(addresses, M / GROUP_ROWS);
        }
    }
    thread.sync_for(&memory);
    // Nothing that needs many registers is on both ways.
    if rank < GROUP {
        share_registers::<M>(false);
        if rank == 0 {
            copy::<T, F, M, N, D, S>(addresses, left, factors, places);
        }
    } else {
        share_registers::<M>(true);
        let number = rank - GROUP;
        add::<T, F, K, M, N, D, S>(addresses, left, turns, number, begin, (first, second), finish);
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

/// Copies the tiles of both right factors in the order in which they are multiplied, place after place, and each group's rows of the left one as
/// soon as it has multiplied those of the place before. So the groups need not wait for each other between places.
#[inline(always)]
fn copy<T: HalfElement, F: TiledFactor<T>, const M: usize, const N: usize, const D: usize, const S: usize>(
    addresses: Addresses,
    left: Lefts,
    [a, b, c]: [F; 3],
    places: impl Iterator<Item = Words>,
) {
    let mut turn = Turn::FIRST;
    let mut copy = |factor: F, row: &mut u32, column: usize| {
        addresses.empty(turn).wait(turn.phase ^ 1);
        let full = addresses.full(turn);
        full.arrive_for((N * D * 2) as u32);
        let to = addresses.stages + turn.stage * (N * D * 2) as u32;
        // SAFETY: the stage is empty, so this thread alone uses it. The block ends after all groups have waited for the copies, or after
        // `linger`.
        unsafe { start_rows::<T, F, N, D>(to, factor, [*row as usize, column], full) };
        *row = (*row + N as u32).min(FAR as u32);
        turn.next::<S>();
    };
    let ahead = u32::from(const { is_overlapped::<M, N, D>() });
    // The rows of the first place are empty.
    let mut phase = 1;
    for [steps, tag, row, start, of_left, of_right] in places {
        let [of_left, of_right] = [of_left, of_right].map(|it| it as usize);
        let (mut of_b, mut of_c) = (start, start);
        if steps > 0 {
            copy(b, &mut of_b, of_right);
        }
        for group in 0..M / GROUP_ROWS {
            left.set_words(group, phase, [steps, tag]);
            let full = left.full(group);
            full.arrive_for((GROUP_ROWS * D * 2) as u32);
            let place = [row as usize + group * GROUP_ROWS, of_left];
            // SAFETY: the group has multiplied the rows that were there; else as above.
            unsafe { start_rows::<T, F, GROUP_ROWS, D>(left.rows::<D>(group), a, place, full) };
        }
        phase ^= 1;
        for step in 0..steps + ahead {
            if step > 0 && step < steps {
                copy(b, &mut of_b, of_right);
            }
            if step >= ahead {
                copy(c, &mut of_c, of_right);
            }
        }
    }
    for group in 0..M / GROUP_ROWS {
        left.set_words(group, phase, [END, 0]);
        left.full(group).arrive(true);
    }
}

/// Multiplies what is copied: the first product of a step, and behind it the second one of the step before, which is computed while `first`
/// is at work; one after the other if there are no registers for both. Groups take turns in beginning products.
#[inline(always)]
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
    left: Lefts,
    turns: u32,
    number: usize,
    mut begin: impl FnMut(u32) -> K,
    (mut first, mut second): (
        impl FnMut(&mut K, usize, &mut ProductSums<N>),
        impl FnMut(&mut K, &mut ProductSums<D>),
    ),
    mut finish: impl FnMut(K, ProductSums<D>),
) {
    let (group, is_first) = (number / GROUP, number % 32 == 0);
    let agreed = addresses.agreed(group);
    let turns = Turns::<M>::of(turns, group);
    let tile = |turn: Turn| addresses.stages + turn.stage * (N * D * 2) as u32;
    let begin_first = |scores: &mut ProductSums<N>, turn: Turn| {
        // SAFETY: all threads of the group come here, in the same order: none has panicked, and all know the number of steps from one
        // thread. Both tiles have arrived, and nothing is copied to them before all warps have arrived at `empty`.
        unsafe { multiply_rows::<T, F, GROUP_ROWS, N, D>(scores, left.rows::<D>(group), tile(turn)) };
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
    let mut turn = Turn::FIRST;
    // How often the warps have agreed, which phase of the left factor comes, and how many turns the group has had.
    let (mut round, mut phase, mut had) = (0, 0, 0);
    loop {
        // Products are begun by all threads of the group: none has panicked in the closures.
        give_up_unless_whole(agreed, is_first, round);
        round += 1;
        give_up_unless(left.full(group).ends(phase));
        phase ^= 1;
        // SAFETY: just waited for.
        let [steps, tag] = unsafe { left.words(group, is_first) };
        if steps == END {
            break;
        }
        let mut kept = begin(tag);
        let mut sums = ProductSums::<D> { sums: [[0.0; 4]; 32], first: first_sum(number) };
        let mut scores = ProductSums::<N> { sums: [[0.0; 4]; 32], first: sums.first };
        left.empty(group).arrive(is_first && steps == 0);
        if steps > 0 {
            give_up_unless_whole(agreed, is_first, round);
            round += 1;
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
                left.empty(group).arrive(is_first && step + 1 == steps);
                first(&mut kept, step as usize, &mut scores);
                let is_overlapped = const { is_overlapped::<M, N, D>() };
                // Of three groups another one has a product in flight: these additions would cost more.
                if is_overlapped && M < 3 * GROUP_ROWS {
                    settle(&scores, left.tile);
                }
                wait_for::<D>(&mut sums.sums);
                addresses.empty(of_second).arrive(is_first && is_overlapped && step > 0);
                second(&mut kept, &mut sums);
                let words = rounded::<T, N>(&scores);
                reconverge();
                step += 1;
                give_up_unless_whole(agreed, is_first, round);
                round += 1;
                if is_overlapped && step < steps {
                    of_first = turn;
                    turn.next::<S>();
                    of_second = turn;
                    turn.next::<S>();
                    give_up_unless(is_full(of_first) && is_full(of_second) && turns.wait(had));
                    had += 1;
                    begin_first(&mut scores, of_first);
                    begin_second(&mut sums, &words, of_second);
                    turns.pass(is_first);
                    continue;
                }
                give_up_unless(is_full(turn));
                begin_second(&mut sums, &words, turn);
                wait_for::<D>(&mut sums.sums);
                addresses.empty(turn).arrive(is_first);
                turn.next::<S>();
                if is_overlapped || step == steps {
                    break;
                }
                of_first = turn;
                turn.next::<S>();
                give_up_unless(is_full(of_first));
                begin_first(&mut scores, of_first);
                commit();
            }
        }
        finish(kept, sums);
        reconverge();
    }
}
