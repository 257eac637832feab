//! Two products where there is no `wgmma`: all threads copy a tile, then groups multiply it, and exchange the first sums in a warp.

use super::super::{COLUMNS, GROUP, HalfElement, ProductSums, ROWS, TiledFactor, each_column, first_sum};
use super::{END, FAR, TwoProducts, Words};
use crate::matrix::unrolled;
use crate::shared::Shared;
use crate::thread::Thread;

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
    [a, b, c]: [F; 3],
    mut places: impl Iterator<Item = Words>,
    mut begin: impl FnMut(u32) -> K,
    (mut first, mut second): (
        impl FnMut(&mut K, usize, &mut ProductSums<N>),
        impl FnMut(&mut K, &mut ProductSums<D>),
    ),
    mut finish: impl FnMut(K, ProductSums<D>),
) {
    let rank = thread.thread_rank() as usize;
    // SAFETY: fields of the region, which this call owns.
    let (left, right, said) = unsafe {
        let memory = memory.start;
        ((&raw mut (*memory).left), (&raw mut (*memory).right[0]), (&raw mut (*memory).of_left[0].words))
    };
    let mut say = || {
        if rank == 0 {
            // SAFETY: no other thread uses it before the next barrier.
            unsafe { said.write(places.next().unwrap_or([END, 0, 0, 0, 0, 0])) };
        }
    };
    say();
    thread.sync_for(&memory);
    let number = rank.wrapping_sub(GROUP);
    loop {
        // SAFETY: written before the last barrier, and not again before the next one.
        let [steps, tag, row, start, of_left, of_right] = unsafe { said.read() };
        if steps == END {
            break;
        }
        let right_of = |step: usize| [(start as usize + step * N).min(FAR), of_right as usize];
        // SAFETY: each thread writes elements of its own, and none reads them before a barrier.
        unsafe { copy(thread, left, a, [row as usize, of_left as usize]) };
        let mut sums = ProductSums::<D> { sums: [[0.0; 4]; 32], first: first_sum(number) };
        let mut kept = if rank >= GROUP { Some(begin(tag)) } else { None };
        for step in 0..steps as usize {
            let mut scores = ProductSums::<N> { sums: [[0.0; 4]; 32], first: sums.first };
            // SAFETY: the barriers are between the writes of each thread to elements of its own, and reads of them.
            unsafe {
                copy(thread, right, b, right_of(step));
                thread.sync_threads();
                if rank >= GROUP {
                    add::<T, M, N, D>(&*left, &*right, &mut scores);
                }
                thread.sync_threads();
                copy(thread, right, c, right_of(step));
                thread.sync_threads();
                if let Some(kept) = &mut kept {
                    first(kept, step, &mut scores);
                    second(kept, &mut sums);
                    add_rounded::<T, N, D>(thread, &scores, &*right, &mut sums);
                }
                thread.sync_threads();
            }
        }
        if let Some(kept) = kept {
            finish(kept, sums);
        }
        thread.sync_threads();
        say();
        thread.sync_threads();
    }
}

/// Copies the thread's elements of the rows from one on, from some columns further right than the factor's first one.
///
/// # Safety
/// No other thread uses these elements.
#[inline(always)]
pub(in super::super) unsafe fn copy<T: HalfElement, F: TiledFactor<T>, const R: usize, const D: usize>(
    thread: &Thread<'_, 1>,
    to: *mut [[T; D]; R],
    from: F,
    [row, column]: [usize; 2],
) {
    for number in thread.block_stride(R * D) {
        let element = from.element(row, number / D, column + number % D).copied();
        // SAFETY: within the tile, and this thread's.
        unsafe { to.cast::<T>().add(number).write(element.unwrap_or_else(bytemuck::Zeroable::zeroed)) };
    }
}

/// Adds the products of rows of both, which are exact, to the thread's sums.
#[inline(always)]
pub(in super::super) fn add<T: HalfElement, const M: usize, const N: usize, const D: usize>(
    left: &[[T; D]; M],
    right: &[[T; D]; N],
    sums: &mut ProductSums<N>,
) {
    let [row, column] = sums.first;
    for k in 0..D {
        let [upper, lower] = [left[row][k], left[row + ROWS / 2][k]].map(T::to_f32);
        each_column!(n, N, {
            let column = n * COLUMNS + column;
            let [first, second] = [right[column][k], right[column + 1][k]].map(T::to_f32);
            let [a, b, c, d] = sums.sums[n];
            sums.sums[n] = [a + upper * first, b + upper * second, c + lower * first, d + lower * second];
        });
    }
}

/// Adds the products of rounded sums, which the threads of a row tell each other, and rows.
#[track_caller]
#[inline(always)]
pub(in super::super) fn add_rounded<T: HalfElement, const N: usize, const D: usize>(
    thread: &Thread<'_, 1>,
    scores: &ProductSums<N>,
    right: &[[T; D]; N],
    sums: &mut ProductSums<D>,
) {
    let (warp, column) = (thread.warp(), sums.first[1]);
    let lane = warp.lane();
    each_column!(n, N, {
        for part in 0..4 {
            let [a, b, c, d]: [f32; 4] = warp.shuffle(scores.sums[n], (lane & !3) + part);
            for (k, [upper, lower]) in [[a, c], [b, d]].into_iter().enumerate() {
                let row = &right[n * COLUMNS + part as usize * 2 + k];
                let [upper, lower] = [upper, lower].map(|it| T::from_f32(it).to_f32());
                each_column!(m, D, {
                    let column = m * COLUMNS + column;
                    let [first, second] = [row[column], row[column + 1]].map(T::to_f32);
                    let [a, b, c, d] = sums.sums[m];
                    sums.sums[m] =
                        [a + upper * first, b + upper * second, c + lower * first, d + lower * second];
                });
            }
        }
    });
}
