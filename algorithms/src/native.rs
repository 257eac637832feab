//! What native bodies share: the pieces of a slice that threads take, and the order of `ferrogrid_device::fold`, in loops over
//! the threads of a block that the compiler vectorises.

use ferrogrid_device::fold::{ITEMS, THREADS, TILE, by_pairs};
use rayon::iter::{
    IndexedParallelIterator, IntoParallelIterator, IntoParallelRefMutIterator, ParallelIterator,
};

/// The least elements that are worth a thread of their own.
const PIECE: usize = 1 << 14;

/// The most pieces for each thread: enough to even out threads that other work delays.
const PIECES: usize = 4;

/// The length of the pieces that threads share.
pub(crate) fn piece(len: usize) -> usize {
    len.div_ceil(PIECES * rayon::current_num_threads()).max(PIECE)
}

/// What `work` returns for each number below `count`, computed on the threads of the device. A trait object, since rayon's code
/// would be compiled for each closure.
pub(crate) fn in_parallel<R: Send>(count: usize, work: &(dyn Fn(usize) -> R + Sync)) -> Vec<R> {
    (0..count).into_par_iter().map(work).collect()
}

/// What `work` returns for the pieces of `x` of `len` elements, and their numbers, computed on the threads of the device.
pub(crate) fn in_pieces<T: Sync, R: Send>(
    x: &[T],
    len: usize,
    work: &(dyn Fn(usize, &[T]) -> R + Sync),
) -> Vec<R> {
    in_parallel(x.len().div_ceil(len), &|number| {
        work(number, &x[number * len..x.len().min((number + 1) * len)])
    })
}

/// A block of a reduction.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    number: usize,
    blocks: usize,
}

/// Writes to `results[b]` what `result` returns for block `b`, for all blocks, on the threads of the device.
pub(crate) fn for_each_block<R: Send>(
    [blocks]: [u32; 1],
    results: &mut [R],
    result: impl Fn(Block) -> R + Sync,
) {
    let blocks = blocks as usize;
    let write = |(number, place): (usize, &mut R)| *place = result(Block { number, blocks });
    results.par_iter_mut().take(blocks).enumerate().for_each(&write as &(dyn Fn(_) + Sync));
}

impl Block {
    /// The block's tiles with the index of their first elements, and what is after the last tile if that is its.
    pub(crate) fn tiles<T>(self, x: &[T]) -> impl Iterator<Item = (usize, &[T])> {
        x.chunks(TILE).enumerate().skip(self.number).step_by(self.blocks).map(|(tile, x)| (tile * TILE, x))
    }

    /// Whether tile number `tile` is one of the block's.
    pub(crate) fn has_tile(self, tile: usize) -> bool {
        tile % self.blocks == self.number
    }

    /// As `fold::fold`: the value of each thread.
    #[inline(always)]
    pub(crate) fn fold<T: Copy, A: Copy>(
        self,
        x: &[T],
        identity: A,
        value: impl Fn(T) -> A,
        combine: impl Fn(A, A) -> A,
    ) -> [A; THREADS] {
        let of_items = |_, items: [T; ITEMS]| by_pairs(items.map(&value), &combine);
        self.fold_tiles(x, identity, of_items, |_, x| value(x), &combine)
    }

    /// As `fold::fold_tiles`: the value of each thread.
    #[inline(always)]
    pub(crate) fn fold_tiles<T: Copy, A: Copy>(
        self,
        x: &[T],
        identity: A,
        of_items: impl Fn(usize, [T; ITEMS]) -> A,
        of_one: impl Fn(usize, T) -> A,
        combine: impl Fn(A, A) -> A,
    ) -> [A; THREADS] {
        let mut own = [identity; THREADS];
        for (first, x) in self.tiles(x) {
            if let Some(tile) = x.first_chunk::<TILE>() {
                for (rank, own) in own.iter_mut().enumerate() {
                    let items = std::array::from_fn(|k| tile[k * THREADS + rank]);
                    *own = combine(*own, of_items(first + rank, items));
                }
            } else {
                for (place, x) in x.iter().enumerate() {
                    let own = &mut own[place % THREADS];
                    *own = combine(*own, of_one(first + place, *x));
                }
            }
        }
        own
    }
}

/// The elements of a tile combined in any order, with fewer accumulators than a block has threads.
#[inline(always)]
pub(crate) fn in_any_order<T: Copy, A: Copy>(
    tile: &[T],
    identity: A,
    add: impl Fn(A, T) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    const LANES: usize = 32;
    let mut own = [identity; LANES];
    let (rows, rest) = tile.as_chunks::<LANES>();
    for row in rows {
        own.iter_mut().zip(row).for_each(|(own, x)| *own = add(*own, *x));
    }
    own.into_iter().fold(rest.iter().fold(identity, |own, x| add(own, *x)), combine)
}

/// As `Thread::block_reduce`: neighbours within each warp, then the warps in order.
#[inline(always)]
pub(crate) fn block_reduce<A: Copy>(own: [A; THREADS], combine: impl Fn(A, A) -> A) -> A {
    let (warps, _) = own.as_chunks::<32>();
    let totals = warps.iter().map(|warp| in_pairs(*warp, &combine));
    totals.reduce(&combine).expect("a block has warps")
}

/// Neighbours combined, then neighbouring pairs, and so on.
#[inline(always)]
pub(crate) fn in_pairs<A: Copy>(mut values: [A; 32], combine: impl Fn(A, A) -> A) -> A {
    let mut left = 16;
    while left > 0 {
        for k in 0..left {
            values[k] = combine(values[2 * k], values[2 * k + 1]);
        }
        left /= 2;
    }
    values[0]
}
