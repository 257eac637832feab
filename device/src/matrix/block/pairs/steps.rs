//! Pairs of products where there is no `wgmma`: all threads copy tiles, then groups multiply them.

use super::super::twice::steps::{add, add_rounded, copy};
use super::super::{GROUP, HalfElement, ProductSums, TiledFactor, first_sum};
use super::{PairedProducts, Span};
use crate::shared::Shared;
use crate::thread::Thread;

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
    [[a, b], [c, d]]: [[F; 2]; 2],
    span: Span,
    mut places: impl FnMut(usize) -> [u32; 2],
    (mut first, mut second): (
        impl FnMut(usize, &mut ProductSums<N>),
        impl FnMut(usize, &ProductSums<N>, &mut ProductSums<N>),
    ),
    finish: impl FnOnce([ProductSums<D>; R]),
) {
    let rank = thread.thread_rank() as usize;
    // SAFETY: fields of the region, which this call owns.
    let ([left_a, left_b], [right_c, right_d], said) = unsafe {
        let memory = memory.start;
        (
            [&raw mut (*memory).left[0], &raw mut (*memory).left[1]],
            [&raw mut (*memory).right[0][0], &raw mut (*memory).right[0][1]],
            &raw mut (*memory).said,
        )
    };
    if rank == 0 {
        // SAFETY: no other thread uses it before the barrier.
        unsafe { said.write([span.row, span.steps, 0, 0]) };
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
            unsafe { (&raw mut (*said)[2]).cast::<[u32; 2]>().write(places(step)) };
        }
        thread.sync_threads();
        // SAFETY: written before the barrier.
        let from = unsafe { (&raw const (*said)[2]).cast::<[u32; 2]>().read() }.map(|axis| axis as usize);
        let [mut p, mut q] = [(); 2].map(|()| ProductSums::<N> { sums: [[0.0; 4]; 32], first: place });
        // SAFETY: the barriers are between the writes of each thread to elements of its own, and reads of them.
        unsafe {
            copy(thread, right_c, c, from);
            copy(thread, right_d, d, from);
            thread.sync_threads();
            if rank >= GROUP {
                add::<T, M, N, D>(&*left_a, &*right_c, &mut p);
                add::<T, M, N, D>(&*left_b, &*right_d, &mut q);
                first(step, &mut p);
                second(step, &p, &mut q);
                add_rounded::<T, N, D>(thread, &q, &*right_c, &mut results[0]);
                if R == 2 {
                    add_rounded::<T, N, D>(thread, &p, &*right_d, &mut results[R - 1]);
                }
            }
            thread.sync_threads();
        }
    }
    if rank >= GROUP {
        finish(results);
    }
}
