//! Pairs of products where there is no `wgmma`: all threads copy tiles, then groups multiply them.

use super::super::twice::steps::{add, add_rounded, copy};
use super::super::{GROUP, HalfElement, ProductSums, TiledFactor, first_sum};
use super::added::{Added, AddedSums, AddedTiles};
use super::{PairStep, PairedFactors, PairedPlace, PairedProducts};
use crate::atomic::Ordering::Relaxed;
use crate::shared::Shared;
use crate::shared::tiles::output::BoxTarget;
use crate::thread::Thread;

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
    mut places: impl FnMut(usize) -> PairedPlace,
    (mut first, mut second): (
        impl FnMut(PairStep<N>, &mut ProductSums<N>),
        impl FnMut(PairStep<N>, &ProductSums<N>, &mut ProductSums<N>),
    ),
    finish: impl FnOnce([ProductSums<D>; R]),
) {
    let PairedFactors { left: [a, b], right: [c, d], row, steps, values, added: plane } = factors;
    let (plane, rank) = (X::plane(plane), thread.thread_rank() as usize);
    // SAFETY: fields of the region, which this call owns.
    let ([left_a, left_b], [right_c, right_d], of_rows, added, said) = unsafe {
        let memory = memory.start;
        (
            [&raw mut (*memory).left[0], &raw mut (*memory).left[1]],
            [&raw mut (*memory).right[0][0], &raw mut (*memory).right[0][1]],
            &raw mut (*memory).values[0].0,
            (&raw mut (*memory).added).cast::<AddedTiles<T, M, N, D>>(),
            &raw mut (*memory).said,
        )
    };
    if rank == 0 {
        // SAFETY: no other thread uses it before the barrier.
        unsafe { said.write([row, steps, 0, 0, 0, 0].map(|it| it as u32)) };
    }
    thread.sync_for(&memory);
    // SAFETY: written before the barrier, and these words not again.
    let [row, steps, ..] = unsafe { said.read() }.map(|it| it as usize);
    // SAFETY: each thread writes elements of its own, and none reads them before a barrier.
    unsafe {
        copy(thread, left_a, a, [row, 0]);
        copy(thread, left_b, b, [row, 0]);
    }
    let place = first_sum(rank.wrapping_sub(GROUP));
    let mut results = [const { ProductSums::<D> { sums: [[0.0; 4]; 32], first: [0; 2] } }; R];
    results.iter_mut().for_each(|sums| sums.first = place);
    for step in 0..steps {
        if rank == 0 {
            // SAFETY: all have read the last place before a barrier.
            unsafe {
                let PairedPlace { row, column, number, tag } = places(step);
                let [row, column, number] = [row, column, number].map(|it| it as u32);
                (&raw mut (*said)[2]).cast::<[u32; 4]>().write([row, column, number, tag]);
            }
        }
        thread.sync_threads();
        // SAFETY: written before the barrier.
        let [row, column, number, tag] = unsafe { (&raw const (*said)[2]).cast::<[u32; 4]>().read() };
        let [row, column, number] = [row, column, number].map(|it| it as usize);
        // SAFETY: they are written before they are used, and not again in this step.
        let (from, this) = ([row, column], unsafe { PairStep::new(step, tag, place[1], of_rows) });
        let [mut p, mut q] = [(); 2].map(|()| ProductSums::<N> { sums: [[0.0; 4]; 32], first: place });
        // SAFETY: the barriers are between the writes of each thread to elements of its own, and reads of them.
        unsafe {
            copy(thread, right_c, c, from);
            copy(thread, right_d, d, from);
            for own in thread.block_stride(2 * N) {
                let value = values.and_then(|values| values.get(own / N, (number & !3) + own % N).copied());
                of_rows.cast::<f32>().add(own).write(value.unwrap_or_default());
            }
            thread.sync_threads();
            if rank >= GROUP {
                add::<T, M, N, D>(&*left_a, &*right_c, &mut p);
                add::<T, M, N, D>(&*left_b, &*right_d, &mut q);
                first(this, &mut p);
                second(this, &p, &mut q);
                add_rounded::<T, N, D>(thread, &q, &*right_c, &mut results[0]);
                if R == 2 {
                    add_rounded::<T, N, D>(thread, &p, &*right_d, &mut results[R - 1]);
                }
            }
            if let Some(plane) = plane {
                let factor = &raw mut (*added).factors[0];
                if rank >= GROUP {
                    q.for_each_pair(|row, column, pair| {
                        for (column, sum) in (column..).zip(pair) {
                            (&raw mut (*factor)[row][column]).write(T::from_f32(sum));
                        }
                    });
                }
                thread.sync_threads();
                add_transposed(thread, &*factor, &*left_a, plane, number);
            }
            thread.sync_threads();
        }
    }
    if rank >= GROUP {
        finish(results);
    }
}

/// Adds the product of a transposed factor and the rows of another to the rows of the plane from one on.
fn add_transposed<T: HalfElement, const M: usize, const N: usize, const D: usize>(
    thread: &Thread<'_, 1>,
    left: &[[T; N]; M],
    right: &[[T; D]; M],
    plane: &AddedSums<'_>,
    row: usize,
) {
    for number in thread.block_stride(N * D) {
        let [down, across] = [number / D, number % D];
        if let Some(to) = plane.element([across, row + down, 0, 0, 0]) {
            let products =
                left.iter().zip(right).map(|(left, right)| left[down].to_f32() * right[across].to_f32());
            to.fetch_add(products.sum(), Relaxed);
        }
    }
}
