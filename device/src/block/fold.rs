//! What threads and blocks contribute to a reduction of whole slices, in an order that depends on the length alone. The
//! crate of ready-made algorithms and the kernels of `#[reduction]` share it.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use crate::block::exchange::expect_threads;
use crate::element::device_copy::DeviceCopy;
use crate::shared::{AnyBits, Shared};
use crate::thread::Thread;

/// The threads of a block.
pub const THREADS: usize = 256;
/// The elements that a thread loads before it combines them: enough loads in flight to hide their latency.
pub const ITEMS: usize = 16;
/// The elements that a block combines at a time.
pub const TILE: usize = THREADS * ITEMS;
/// The most blocks of a reduction: two for each of 8 places on 132 multiprocessors. A constant, because the order in which
/// values are combined depends on it, and is the same on all devices.
pub const BLOCKS: usize = 2112;

/// The values of the thread's elements in tiles `b`, `b + blocks`, `b + 2 * blocks` and so on, for block `b`, combined.
/// The order depends on the length of `x` and the number of blocks alone.
#[inline(always)]
pub fn fold<T: DeviceCopy, A: Copy>(
    t: &Thread<'_, 1>,
    x: &[T],
    identity: A,
    value: impl Fn(T) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    let of_items = |_, items: [T; ITEMS]| by_pairs(items.map(&value), &combine);
    fold_tiles(t, x, identity, of_items, |_, x| value(x), &combine)
}

/// As [`fold`], of pairs of elements of two slices of one length.
#[inline(always)]
pub fn fold_pairs<T: DeviceCopy, A: Copy>(
    t: &Thread<'_, 1>,
    (x, y): (&[T], &[T]),
    identity: A,
    value: impl Fn(T, T) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    let of_items = |first: usize, items: [T; ITEMS]| {
        let others = Items::of(y, first);
        by_pairs(core::array::from_fn(|k| value(items[k], *others.get(k))), &combine)
    };
    fold_tiles(t, x, identity, of_items, |index, x| value(x, y[index]), &combine)
}

/// The thread's items of one tile of a slice.
pub struct Items<'x, T> {
    tile: &'x [T; TILE],
    rank: usize,
}

impl<'x, T> Items<'x, T> {
    /// Those of the tile in which the thread's first element is number `first` of `x`.
    #[inline(always)]
    pub fn of(x: &'x [T], first: usize) -> Self {
        let (tiles, _) = x.as_chunks::<TILE>();
        // The remainders leave no bounds check but that of the tile.
        Items { tile: &tiles[first / TILE], rank: first % THREADS }
    }

    /// Item `k`, of [`ITEMS`].
    #[inline(always)]
    pub fn get(&self, k: usize) -> &'x T {
        &self.tile[k * THREADS + self.rank]
    }
}

/// Combines neighbours: shorter chains, and fewer roundings for each element, than one after the other.
#[inline(always)]
pub fn by_pairs<A: Copy>(mut items: [A; ITEMS], combine: impl Fn(A, A) -> A) -> A {
    let mut half = ITEMS / 2;
    while half > 0 {
        for k in 0..half {
            items[k] = combine(items[k], items[k + half]);
        }
        half /= 2;
    }
    items[0]
}

/// Combines `identity`, what `of_items` makes of the thread's items of each tile, and what `of_one` makes of its
/// elements after the last tile. Both get the index of their first element; items follow each other by `THREADS`.
#[inline(always)]
pub fn fold_tiles<T: DeviceCopy, A>(
    t: &Thread<'_, 1>,
    x: &[T],
    identity: A,
    of_items: impl Fn(usize, [T; ITEMS]) -> A,
    of_one: impl Fn(usize, T) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    // The remainder tells LLVM what the kernel's `block` says, so that no place in a tile is checked.
    let rank = t.thread_rank() as usize % THREADS;
    let ([block], [blocks]) = (t.block_idx(), t.grid_dim());
    let (tiles, rest) = x.as_chunks::<TILE>();
    let (mut own, mut tile) = (identity, block as usize);
    while tile < tiles.len() {
        let items = core::array::from_fn(|k| tiles[tile][k * THREADS + rank]);
        own = combine(own, of_items(tile * TILE + rank, items));
        tile += blocks as usize;
    }
    if tile == tiles.len() {
        let mut place = rank;
        while place < rest.len() {
            own = combine(own, of_one(tile * TILE + place, rest[place]));
            place += THREADS;
        }
    }
    own
}

/// Shared memory for [`fold_block`]: a value of each thread.
#[repr(C)]
pub struct FoldScratch<A> {
    values: MaybeUninit<[A; THREADS]>,
    element: PhantomData<A>,
}

crate::shared::without_elements!([A: AnyBits + Copy] FoldScratch<A>, u8);

/// The values of all threads of the block, combined in the order of `Thread::block_reduce`, for values of any size. Every
/// thread gets the result.
///
/// # Panics
/// If the block has not `THREADS` threads.
#[track_caller]
#[inline(always)]
pub fn fold_block<A: AnyBits + Copy, const ID: usize>(
    t: &Thread<'_, 1>,
    mut scratch: Shared<'_, FoldScratch<A>, ID>,
    own: A,
    combine: impl Fn(A, A) -> A,
) -> A {
    /// The lanes that one thread combines, and those that are left of a warp.
    const LANES: usize = 8;
    const LEFT: usize = 32 / LANES;
    expect_threads::<1, THREADS>(t);
    let (rank, places) = (t.thread_rank() as usize, scratch.as_mut_ptr().cast::<A>());
    // SAFETY: there are as many places as threads, and only this thread writes this one.
    unsafe { places.add(rank).write(own) };
    t.agree_on(&scratch);
    t.sync_threads();
    // Distances 1, 2 and 4, as lanes of a warp combine their values.
    // SAFETY: all writing ended at the barrier, `32 * LANES` is the number of places, and elements take any bits.
    let lanes = (rank < THREADS / LANES)
        .then(|| neighbours(unsafe { places.cast::<[A; LANES]>().add(rank).read() }, &combine));
    t.sync_threads();
    if let Some(lanes) = lanes {
        // SAFETY: all reading ended at the barrier; only this thread writes this place.
        unsafe { places.add(rank).write(lanes) };
    }
    t.sync_threads();
    // SAFETY: all writing ended at the barrier, so many places have been written, and no thread writes any again.
    let warp = |number: usize| neighbours(unsafe { places.cast::<[A; LEFT]>().add(number).read() }, &combine);
    let mut total = warp(0);
    for number in 1..THREADS / 32 {
        total = combine(total, warp(number));
    }
    total
}

/// Combines neighbours, then neighbouring pairs, and so on.
#[inline(always)]
fn neighbours<A: Copy, const N: usize>(mut values: [A; N], combine: impl Fn(A, A) -> A) -> A {
    let mut distance = 1;
    while distance < N {
        for k in 0..N / (2 * distance) {
            let first = 2 * k * distance;
            values[first] = combine(values[first], values[first + distance]);
        }
        distance *= 2;
    }
    values[0]
}

/// `operation`: tells the compiler the types of a closure's arguments and of its result.
#[inline(always)]
pub fn combination<A, F: Fn(A, A) -> A>(operation: F) -> F {
    operation
}

/// `map`: tells the compiler the types of a closure's argument and of its result.
#[inline(always)]
pub fn completion<A, R, F: Fn(A) -> R>(map: F) -> F {
    map
}
