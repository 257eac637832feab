//! Products where there is no `wgmma`: all threads copy a tile, then groups multiply it.

use super::place::{Depth, END, Words};
use super::{
    EachProduct, GROUP, ProductElement, ProductPlace, ProductSums, Products, ROW, TiledFactor, each_column,
    first_sum,
};
use crate::matrix::{COLUMNS, ROWS, unrolled};
use crate::shared::Shared;
use crate::thread::Thread;

/// The words of a row of a tile.
const WORDS: usize = ROW / 4;

#[track_caller]
#[inline(always)]
pub(super) fn multiply<
    T: ProductElement,
    P: ProductPlace,
    const M: usize,
    const N: usize,
    const S: usize,
    const ID: usize,
>(
    thread: &Thread<'_, 1>,
    memory: Shared<'_, Products<T, M, N, S>, ID>,
    a: impl TiledFactor<T>,
    b: impl TiledFactor<T>,
    depth: Depth,
    mut tiles: impl Iterator<Item = Words>,
    mut each: impl EachProduct<P, N, T::Sum>,
) {
    let rank = thread.thread_rank() as usize;
    // SAFETY: fields of the region, which this call owns.
    let (stage, place) =
        unsafe { (&raw mut (*memory.start).stages[0], &raw mut (*memory.start).barriers[0].place) };
    // SAFETY: as above.
    let (tile_a, tile_b) =
        unsafe { ((&raw mut (*stage).a).cast::<u32>(), (&raw mut (*stage).b).cast::<u32>()) };
    loop {
        if rank == 0 {
            // SAFETY: all have read the last place before a barrier.
            unsafe { place.write(tiles.next().unwrap_or([END; 4])) };
        }
        thread.sync_for(&memory);
        // SAFETY: written before the barrier.
        let place = unsafe { place.read() };
        let [row, column, first, steps] = place.map(|word| word as usize);
        if row == END as usize {
            break;
        }
        let mut sums =
            ProductSums { sums: [[T::Sum::default(); 4]; 32], first: first_sum(rank.wrapping_sub(GROUP)) };
        for step in first..first + steps {
            // SAFETY: no thread reads the tiles before the barrier, and each writes words of its own.
            unsafe {
                copy::<T, _, M>(thread, tile_a, a, [row, step]);
                copy::<T, _, N>(thread, tile_b, b, [column, step]);
            }
            thread.sync_threads();
            if rank >= GROUP {
                // SAFETY: written before the barrier, and not again before the next.
                unsafe { add::<T, N>(thread, tile_a, tile_b, rank - GROUP, &mut sums) };
            }
            thread.sync_threads();
        }
        if rank >= GROUP {
            each.of(P::new([row, column], depth, [first, steps]), &sums);
        }
        thread.sync_threads();
    }
}

/// Copies the thread's words of a tile with `R` rows, which begins at row `row` and is the `step`-th of them. Neighbouring threads read
/// neighbouring elements of the plane.
///
/// # Safety
/// `tile` is the address of such a tile, whose words of this thread no other thread uses.
#[inline(always)]
unsafe fn copy<T: ProductElement, F: TiledFactor<T>, const R: usize>(
    thread: &Thread<'_, 1>,
    tile: *mut u32,
    factor: F,
    [row, step]: [usize; 2],
) {
    for number in thread.block_stride(R * WORDS) {
        let [r, w] =
            if F::IS_TRANSPOSED { [number % R, number / R] } else { [number / WORDS, number % WORDS] };
        let first = (step * WORDS + w) * T::PER_WORD;
        let zero = || bytemuck::Zeroable::zeroed();
        let word = T::word(|i| factor.element(row, r, first + i).copied().unwrap_or_else(zero));
        // SAFETY: within the tile, and this thread's.
        unsafe { tile.add(place(r, w)).write(word) };
    }
}

/// The number of a word in a tile. In groups of four they are swizzled as by a tensor map, so that threads which read a column of words
/// read different banks.
#[inline(always)]
fn place(row: usize, word: usize) -> usize {
    row * WORDS + (word ^ (row % 8 * 4))
}

/// Adds the products of a tile's elements to the thread's sums.
///
/// # Safety
/// The tiles have as many rows as the sums of all groups need, and no thread writes them.
#[track_caller]
#[inline(always)]
unsafe fn add<T: ProductElement, const N: usize>(
    thread: &Thread<'_, 1>,
    a: *const u32,
    b: *const u32,
    number: usize,
    sums: &mut ProductSums<N, T::Sum>,
) {
    // SAFETY: the caller's.
    let word = |tile: *const u32, row, word| unsafe { tile.add(place(row, word)).read() };
    let [row, column] = sums.first;
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    if T::HAS_PRODUCT {
        let (warp, quarter, across) = (thread.warp(), column / 2, number % 32 / 4);
        for k in 0..WORDS / 8 {
            let of = |tile, row, half: usize| word(tile, row, k * 8 + half * 4 + quarter);
            let of_a = [[of(a, row, 0), of(a, row + 8, 0), of(a, row, 1), of(a, row + 8, 1)]];
            each_column!(n, N, {
                let (row, mut own) = (n * COLUMNS + across, [[sums.sums[n]]]);
                T::add_product(&warp, &of_a, &[[of(b, row, 0), of(b, row, 1)]], &mut own);
                sums.sums[n] = own[0][0];
            });
        }
        return;
    }
    let _ = (thread, number);
    // A loop over the words, not over those of each sum: compiled code is a 16th as long, and words are read once for all columns.
    for w in 0..WORDS {
        let of_a = [word(a, row, w), word(a, row + ROWS / 2, w)];
        each_column!(n, N, {
            let column = n * COLUMNS + column;
            let of_b = [word(b, column, w), word(b, column + 1, w)];
            let [top_left, top_right, left, right] = sums.sums[n];
            sums.sums[n] = [
                T::add_products(of_a[0], of_b[0], top_left),
                T::add_products(of_a[0], of_b[1], top_right),
                T::add_products(of_a[1], of_b[0], left),
                T::add_products(of_a[1], of_b[1], right),
            ];
        });
    }
}
