//! Products by the instructions of `sm_90a`: tiles are copied by tensor maps, and multiplied from shared memory.
//!
//! One thread of the first group copies, the other groups multiply. Each stage has two barriers in shared memory (`mbarrier`), of
//! which each ends a phase in each round through the stages: `full` when its tiles have arrived, `empty` when all groups have
//! multiplied them. The thread that copies also writes the place of a product, so all groups have the same.
//!
//! While the tensor cores compute, no thread may branch on its own or end: ptxas would wait after each instruction (its message
//! C7510 and the following). So the threads of a warp decide together, and a thread ends between products.

use core::arch::asm;

use super::place::{Depth, END, Words};
use super::stages::{Addresses, Turn};
use super::{
    ALIGNMENT, BlockSum, EachProduct, GROUP, GROUP_ROWS, Order, ProductElement, ProductPlace, ProductSums,
    Products, ROW, TiledFactor, first_sum, sealed::Factor,
};
use crate::feedback::panic::give_up_at_once;
use crate::shared::mbarrier::{Barrier, start_copy, warp_all};
use crate::shared::{Shared, within_shared};
use crate::thread::Thread;

/// The rows of 128 bytes after which the pattern of a swizzled tile repeats.
const PATTERN: usize = 8;
/// The warps of a group.
pub(super) const WARPS: usize = GROUP / 32;
/// The bytes of a row that one instruction multiplies.
const DEPTH: usize = 32;
/// The bytes of 64 rows: what one copy of a transposed factor is.
const SQUARE: usize = GROUP_ROWS * ROW;

#[track_caller]
#[inline(always)]
pub(super) fn multiply<
    T: ProductElement,
    A: TiledFactor<T>,
    B: TiledFactor<T>,
    P: ProductPlace,
    const M: usize,
    const N: usize,
    const S: usize,
    const ID: usize,
>(
    thread: &Thread<'_, 1>,
    memory: Shared<'_, Products<T, M, N, S>, ID>,
    a: A,
    b: B,
    depth: Depth,
    tiles: impl Iterator<Item = Words>,
    each: impl EachProduct<P, N, T::Sum>,
) {
    let start = within_shared(memory.start);
    let first = (start + ALIGNMENT as u32 - 1) & !(ALIGNMENT as u32 - 1);
    let barriers = start + core::mem::offset_of!(Products<T, M, N, S>, barriers) as u32;
    let agreed = start + core::mem::offset_of!(Products<T, M, N, S>, agreed) as u32;
    let addresses = Addresses { stages: first, barriers, agreed };
    let rank = thread.thread_rank() as usize;
    if rank == 0 {
        // SAFETY: in the memory of this call, for the barrier of the block below.
        unsafe { begin_barriers::<S>(addresses, M / GROUP_ROWS) };
    }
    thread.sync_for(&memory);
    if rank == 0 {
        copy::<T, M, N, S>(addresses, a, b, tiles);
    }
    if rank >= GROUP {
        add::<T, A, B, P, M, N, S>(addresses, rank - GROUP, depth, each);
    }
}

/// Begins the barriers of the stages and of so many groups.
///
/// # Safety
/// As for `Barrier::begin`, of all of them.
#[inline(always)]
pub(super) unsafe fn begin_barriers<const S: usize>(addresses: Addresses, groups: usize) {
    // SAFETY: the caller's. The fences order accesses: the hardware that copies sees the barriers.
    unsafe {
        for stage in 0..S as u32 {
            let turn = Turn { stage, phase: 0 };
            addresses.full(turn).begin(1);
            addresses.empty(turn).begin(groups * WARPS);
        }
        for group in 0..groups {
            addresses.agreed(group).begin(WARPS);
        }
        asm!(
            "fence.mbarrier_init.release.cluster;",
            "fence.proxy.async.shared::cta;",
            options(nostack, preserves_flags)
        );
    }
}

/// Waits for all threads of the group, for the `number`-th time, and ends the thread if one of them has ended: after a panic. What
/// follows is begun by all of them.
#[inline(always)]
pub(super) fn give_up_unless_whole(agreed: Barrier, is_first: bool, number: u32) {
    if !is_whole(agreed, is_first, number) {
        give_up_at_once();
    }
}

/// Waits for all threads of the group, for the `number`-th time, and returns whether none has ended.
#[inline(always)]
pub(super) fn is_whole(agreed: Barrier, is_first: bool, number: u32) -> bool {
    let warp_is_whole = warp_all(true);
    agreed.arrive(is_first && warp_is_whole);
    warp_is_whole && agreed.ends(number & 1)
}

/// Copies the tiles of one product after the other.
#[inline(always)]
fn copy<T: ProductElement, const M: usize, const N: usize, const S: usize>(
    addresses: Addresses,
    a: impl TiledFactor<T>,
    b: impl TiledFactor<T>,
    tiles: impl Iterator<Item = Words>,
) {
    let mut turn = Turn::FIRST;
    for place in tiles {
        let [row, column, first, steps] = place.map(|word| word as usize);
        let (of_a, of_b) = (origin(a, row), origin(b, column));
        for step in first..first + steps.max(1) {
            addresses.empty(turn).wait(turn.phase ^ 1);
            let full = addresses.full(turn);
            // SAFETY: the stage is empty, so this thread alone uses it. Tiles lie within it, and the maps are those of the tiles' sizes.
            // The block ends after all groups have waited for the copies, or after `linger`.
            unsafe {
                addresses.set_place(turn, place);
                if steps == 0 {
                    full.arrive(true);
                } else {
                    full.arrive_for(((M + N) * ROW) as u32);
                    let to = addresses.stages + turn.stage * ((M + N) * ROW) as u32;
                    let depth = step * (ROW / size_of::<T>());
                    start::<T, _, M>(to, a, of_a, depth, full);
                    start::<T, _, N>(to + (M * ROW) as u32, b, of_b, depth, full);
                }
            }
            turn.next::<S>();
        }
    }
    addresses.empty(turn).wait(turn.phase ^ 1);
    // SAFETY: as above.
    unsafe { addresses.set_place(turn, [END; 4]) };
    addresses.full(turn).arrive(true);
}

/// Multiplies what is copied, until there is no more.
#[inline(always)]
fn add<
    T: ProductElement,
    A: TiledFactor<T>,
    B: TiledFactor<T>,
    P: ProductPlace,
    const M: usize,
    const N: usize,
    const S: usize,
>(
    addresses: Addresses,
    number: usize,
    depth: Depth,
    mut each: impl EachProduct<P, N, T::Sum>,
) {
    let (group, is_first) = (number / GROUP, number % 32 == 0);
    let (mut turn, mut product) = (Turn::FIRST, 0);
    loop {
        // A product is begun by all threads of the group: none has panicked in the last `each`, or before.
        give_up_unless_whole(addresses.agreed(group), is_first, product);
        if !addresses.full(turn).ends(turn.phase) {
            give_up_at_once();
        }
        product += 1;
        // SAFETY: just waited for; the thread that reads it arrives at `empty`.
        let [row, column, first, steps] =
            if is_first { unsafe { addresses.place_of(turn) } } else { [END; 4] };
        let [row, column] = [warp_first(row), warp_first(column)];
        if row == END {
            break;
        }
        let [first, steps] =
            if P::HAS_DEPTH { [warp_first(first), warp_first(steps)] } else { [0, depth.steps() as u32] };
        let mut sums = ProductSums { sums: [[T::Sum::default(); 4]; 32], first: first_sum(number) };
        let (mut last, mut has_all) = (turn, true);
        let multiply = |sums: &mut [[T::Sum; 4]; 32], turn: Turn, order| {
            let a = addresses.stages + turn.stage * ((M + N) * ROW) as u32;
            let b = a + (M * ROW) as u32;
            let a = a + (group * GROUP_ROWS * ROW) as u32;
            // SAFETY: all threads of the group come here, in the same order: the branch and the loops depend on its number, on what one
            // thread has written, and on the width of the matrices. The tiles have arrived, and nothing is copied there before all
            // warps have arrived at `empty`.
            unsafe {
                for k in 0..ROW / DEPTH {
                    let order = if k == 0 { order } else { Order::Following };
                    T::add::<N, A, B>(sums, descriptor::<A>(a, k), descriptor::<B>(b, k), order);
                }
                asm!("wgmma.commit_group.sync.aligned;", options(nostack, preserves_flags));
            }
        };
        if steps > 0 {
            multiply(&mut sums.sums, turn, Order::First);
        }
        turn.next::<S>();
        for _ in 1..steps {
            has_all = addresses.full(turn).ends(turn.phase);
            if !has_all {
                break; // to end when no product is in flight
            }
            multiply(&mut sums.sums, turn, Order::Fenced);
            // SAFETY: it waits for the product before this one.
            unsafe { asm!("wgmma.wait_group.sync.aligned 1;", options(nostack, preserves_flags)) };
            addresses.empty(last).arrive(is_first);
            last = turn;
            turn.next::<S>();
        }
        T::Sum::wait::<0, N>(&mut sums.sums);
        if !has_all {
            give_up_at_once();
        }
        addresses.empty(last).arrive(is_first);
        let [place, steps] = [[row, column], [first, steps]].map(|pair| pair.map(|it| it as usize));
        each.of(P::new(place, depth, steps), &sums);
        reconverge();
    }
}

/// The most registers of a thread that multiplies, of `groups`: what `share_registers` leaves them of a multiprocessor's 65,536.
#[cfg(feature = "half")]
pub(super) const fn most_registers(groups: usize) -> usize {
    match groups {
        3 => 160,
        2 => 240,
        _ => 255,
    }
}

/// Leaves registers to the groups that multiply, or takes them; all threads of a group. The builder drops both instructions in kernels
/// that may begin with fewer registers, or may panic afterwards (its pass `registers`).
#[cfg(feature = "half")]
#[inline(always)]
pub(super) fn share_registers<const M: usize>(multiplies: bool) {
    // SAFETY: all threads of the group come here, and none holds what it gives up: this is ptxas's work.
    unsafe {
        match (M / GROUP_ROWS, multiplies) {
            (2, false) => asm!("setmaxnreg.dec.sync.aligned.u32 24;", options(nostack, preserves_flags)),
            (2, true) => asm!("setmaxnreg.inc.sync.aligned.u32 240;", options(nostack, preserves_flags)),
            (3, false) => asm!("setmaxnreg.dec.sync.aligned.u32 32;", options(nostack, preserves_flags)),
            (3, true) => asm!("setmaxnreg.inc.sync.aligned.u32 160;", options(nostack, preserves_flags)),
            _ => (),
        }
    }
}

/// The threads of the warp go on together.
#[inline(always)]
pub(super) fn reconverge() {
    // SAFETY: all threads of the warp come here that have not ended.
    unsafe { asm!("bar.warp.sync 0xffffffff;", options(nostack, preserves_flags)) };
}

/// The word that the first thread of the warp passes.
#[inline(always)]
pub(super) fn warp_first(word: u32) -> u32 {
    let first: u32;
    // SAFETY: all threads of the warp come here.
    unsafe {
        asm!("shfl.sync.idx.b32 {}, {}, 0, 31, 0xffffffff;", out(reg32) first, in(reg32) word, options(nostack, preserves_flags));
    }
    first
}

/// Where the tiles of the rows from `row` on begin in the plane; `None` if it is empty. It may take a division, which is too long for each step.
#[inline(always)]
pub(super) fn origin<T, F: TiledFactor<T>>(factor: F, row: usize) -> Option<[usize; 2]> {
    if factor.extent().contains(&0) { None } else { Some(factor.place(row)) }
}

/// Starts to copy the tile of rows with that origin that begins at element `depth` of each, in one or several parts.
///
/// # Safety
/// `to` is the address of a tile's bytes in shared memory that nothing else uses before `full` has ended its phase.
#[inline(always)]
pub(super) unsafe fn start<T, F: TiledFactor<T>, const R: usize>(
    to: u32,
    factor: F,
    origin: Option<[usize; 2]>,
    depth: usize,
    full: Barrier,
) {
    let Some([row, column]) = origin else {
        // SAFETY: the caller's. An empty plane has no map.
        return unsafe { start_zeros(to, R * ROW, full) };
    };
    for first in (0..R).step_by(F::ROWS) {
        let to = to + (first * ROW) as u32;
        let [down, right] = if F::IS_TRANSPOSED { [depth, first] } else { [first, depth] };
        // SAFETY: the caller's; the map is of tiles with that many rows, each of 128 bytes.
        unsafe { start_copy(to, factor.map(), [column + right, row + down].map(|axis| axis as i32), full) };
    }
}

/// Writes `bytes` zeros where a copy would write them, a multiple of 16, and counts them as copied.
///
/// # Safety
/// As for `start`.
#[inline(always)]
pub(super) unsafe fn start_zeros(to: u32, bytes: usize, full: Barrier) {
    let (mut at, end) = (to, to + bytes as u32);
    while at != end {
        // SAFETY: the caller's. It counts, too, so that LLVM does not unroll what hardly ever runs.
        unsafe {
            asm!(
                "st.shared.v4.b32 [{at}], {{{zero}, {zero}, {zero}, {zero}}}; add.u32 {at}, {at}, 16;",
                at = inout(reg32) at, zero = in(reg32) 0, options(nostack, preserves_flags),
            );
        }
    }
    // SAFETY: the barrier was begun. The first fence makes the zeros visible to products, the second one orders them before the barrier's
    // phase ends.
    unsafe {
        asm!(
            "fence.proxy.async.shared::cta; fence.acq_rel.cta; mbarrier.complete_tx.shared::cta.b64 [{}], {};",
            in(reg32) full.0, in(reg32) bytes as u32, options(nostack, preserves_flags),
        );
    }
}

/// The descriptor of the `k`-th 32 bytes of an operand's rows, in a tile at `tile`: lines of 128 bytes, swizzled in patterns of 8. A line is
/// a row, or, if the factor is transposed, an element of each of 64 rows; the next 64 rows are in the next square then.
#[inline(always)]
pub(super) fn descriptor<F: Factor>(tile: u32, k: usize) -> u64 {
    let (first, leading) = if F::IS_TRANSPOSED { (k * 16 * ROW, SQUARE) } else { (k * DEPTH, 16) };
    swizzled(tile + first as u32, leading)
}

/// The descriptor of lines that begin at `first`, with `leading` bytes to the next 64 rows of a transposed operand.
#[inline(always)]
pub(super) fn swizzled(first: u32, leading: usize) -> u64 {
    const SWIZZLE_128: u64 = 1 << 62;
    const STRIDE: u64 = ((PATTERN * ROW / 16) as u64) << 32;
    (u64::from(first & 0x3_FFFF) >> 4) | (leading as u64 / 16) << 16 | STRIDE | SWIZZLE_128
}

/// A repetition per number of 8 columns.
macro_rules! each {
    ($n:literal $text:literal) => {
        $text
    };
}

macro_rules! columns {
    ($macro:ident 32 $($arguments:tt)*) => { $macro!($($arguments)* 0: 1 2 3) };
    ($macro:ident 64 $($arguments:tt)*) => { $macro!($($arguments)* 0: 1 2 3 4 5 6 7) };
    ($macro:ident 128 $($arguments:tt)*) => { $macro!($($arguments)* 0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    ($macro:ident 256 $($arguments:tt)*) => {
        $macro!($($arguments)* 0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
}

/// One `wgmma`, behind `$before`, which adds to the sums (`inout`, 1) or sets them (`out`, 0).
macro_rules! product {
    ($before:literal $how:ident $adds:literal $form:literal $columns:literal $turns:tt $sums:ident $a:ident $b:ident $first:literal: $($n:literal)*) => {
        product!(
            @ concat!(
                $before, "wgmma.mma_async.sync.aligned.m64n", $columns, $form, " {{{}, {}, {}, {}",
                $(each!($n ", {}, {}, {}, {}"),)* "}}, {}, {}, ", $adds
            );
            $turns;
            $how(reg32) $sums[$first][0], $how(reg32) $sums[$first][1], $how(reg32) $sums[$first][2], $how(reg32) $sums[$first][3],
            $($how(reg32) $sums[$n][0], $how(reg32) $sums[$n][1], $how(reg32) $sums[$n][2], $how(reg32) $sums[$n][3],)*
            in(reg64) $a, in(reg64) $b
        )
    };
    // Factors of 16-bit floats may be transposed; those of floats have signs.
    (@ $text:expr; (halves); $($operands:tt)*) => {
        asm!(
            $text, ", 1, 1, {turned_a}, {turned_b};", $($operands)*,
            turned_a = const A::IS_TRANSPOSED as u8, turned_b = const B::IS_TRANSPOSED as u8, options(nostack, preserves_flags),
        )
    };
    (@ $text:expr; (floats); $($operands:tt)*) => {
        asm!($text, ", 1, 1;", $($operands)*, options(nostack, preserves_flags))
    };
    (@ $text:expr; (integers); $($operands:tt)*) => {
        asm!($text, ";", $($operands)*, options(nostack, preserves_flags))
    };
}

/// One `wgmma` whose left factor the threads hold, and whose right one is transposed; it adds to the sums.
macro_rules! product_of_words {
    ($before:literal $t:literal $columns:literal $sums:ident $a:ident $b:ident $first:literal: $($n:literal)*) => {
        asm!(
            concat!(
                $before, "wgmma.mma_async.sync.aligned.m64n", $columns, "k16.f32.", $t, ".", $t, " {{{}, {}, {}, {}",
                $(each!($n ", {}, {}, {}, {}"),)* "}}, {{{}, {}, {}, {}}}, {}, 1, 1, 1, 1;"
            ),
            inout(reg32) $sums[$first][0], inout(reg32) $sums[$first][1], inout(reg32) $sums[$first][2], inout(reg32) $sums[$first][3],
            $(inout(reg32) $sums[$n][0], inout(reg32) $sums[$n][1], inout(reg32) $sums[$n][2], inout(reg32) $sums[$n][3],)*
            in(reg32) $a[0], in(reg32) $a[1], in(reg32) $a[2], in(reg32) $a[3], in(reg64) $b,
            options(nostack, preserves_flags),
        )
    };
}

macro_rules! products_of_words {
    ($($name:ident $t:literal;)*) => { $(
        #[doc = "See [`HalfElement::add_words`](super::HalfElement::add_words)."]
        ///
        /// # Safety
        /// As there.
        #[inline(always)]
        pub(super) unsafe fn $name<const N: usize>(sums: &mut [[f32; 4]; 32], a: [u32; 4], b: u64, order: Order) {
            macro_rules! of {
                ($columns:tt) => {
                    // SAFETY: the caller's.
                    unsafe {
                        match order {
                            Order::Following => columns!(product_of_words $columns "" $t $columns sums a b),
                            _ => columns!(product_of_words $columns "wgmma.fence.sync.aligned; " $t $columns sums a b),
                        }
                    }
                };
            }
            match N {
                64 => of!(64),
                128 => of!(128),
                _ => of!(256),
            }
        }
    )* };
}

#[cfg(feature = "half")]
products_of_words! {
    f16_of_words "f16";
    bf16_of_words "bf16";
}

macro_rules! products {
    ($($name:ident $sum:ident $form:literal $turns:tt;)*) => { $(
        #[doc = "See [`ProductElement::add`]."]
        ///
        /// # Safety
        /// As there.
        #[inline(always)]
        pub(super) unsafe fn $name<const N: usize, A: Factor, B: Factor>(
            sums: &mut [[$sum; 4]; 32],
            a: u64,
            b: u64,
            order: Order,
        ) {
            macro_rules! of {
                ($columns:tt) => {
                    // SAFETY: the caller's.
                    unsafe {
                        match order {
                            Order::First => columns!(product $columns "wgmma.fence.sync.aligned; " out "0" $form $columns $turns sums a b),
                            Order::Fenced => columns!(product $columns "wgmma.fence.sync.aligned; " inout "1" $form $columns $turns sums a b),
                            Order::Following => columns!(product $columns "" inout "1" $form $columns $turns sums a b),
                        }
                    }
                };
            }
            match N {
                32 => of!(32),
                64 => of!(64),
                128 => of!(128),
                _ => of!(256),
            }
        }
    )* };
}

#[cfg(feature = "half")]
products! {
    f16 f32 "k16.f32.f16.f16" (halves);
    bf16 f32 "k16.f32.bf16.bf16" (halves);
}
products! {
    tf32 f32 "k8.f32.tf32.tf32" (floats);
    f8e4m3 f32 "k32.f32.e4m3.e4m3" (floats);
    f8e5m2 f32 "k32.f32.e5m2.e5m2" (floats);
    i8 i32 "k32.s32.s8.s8" (integers);
    u8 i32 "k32.s32.u8.u8" (integers);
}

macro_rules! sums {
    ($($t:ident),*) => { $(
        impl BlockSum for $t {
            #[inline(always)]
            fn wait<const P: usize, const N: usize>(sums: &mut [[$t; 4]; 32]) {
                // SAFETY: it waits.
                unsafe {
                    match N {
                        32 => columns!(wait 32 sums P),
                        64 => columns!(wait 64 sums P),
                        128 => columns!(wait 128 sums P),
                        _ => columns!(wait 256 sums P),
                    }
                }
            }
        }
    )* };
}

macro_rules! wait {
    ($sums:ident $pending:ident $first:literal: $($n:literal)*) => {
        asm!(
            concat!("wgmma.wait_group.sync.aligned {pending}; // {} {} {} {}" $(, each!($n " {} {} {} {}"))*),
            inout(reg32) $sums[$first][0], inout(reg32) $sums[$first][1], inout(reg32) $sums[$first][2], inout(reg32) $sums[$first][3],
            $(inout(reg32) $sums[$n][0], inout(reg32) $sums[$n][1], inout(reg32) $sums[$n][2], inout(reg32) $sums[$n][3],)*
            pending = const $pending, options(nostack, preserves_flags),
        )
    };
}
sums!(f32, i32);

/// Waits for all products of the group, whose sums no instruction reads before.
#[cfg(feature = "half")]
#[inline(always)]
pub(super) fn wait_for<const N: usize>(sums: &mut [[f32; 4]; 32]) {
    f32::wait::<0, N>(sums);
}

/// Waits for all but the last `P` products of the group that were committed. No instruction reads these sums before.
#[cfg(feature = "half")]
#[inline(always)]
pub(super) fn wait_until_pending<const P: usize, const N: usize>(sums: &mut [[f32; 4]; 32]) {
    f32::wait::<P, N>(sums);
}
