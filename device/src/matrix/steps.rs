//! A product of matrices by shuffles and sums, where there is no instruction for it.

use super::MatrixElement;
use crate::warp::Warp;

/// Each thread gets the rows and the columns that its own sums need from the threads that hold them.
#[track_caller]
#[inline(always)]
pub(super) fn multiply_add<T: MatrixElement>(
    warp: &Warp,
    a: [u32; 4],
    b: [u32; 2],
    mut sums: [T::Sum; 4],
) -> [T::Sum; 4] {
    let lane = warp.lane();
    let rows = [0, 1, 2, 3].map(|part| warp.shuffle(a, (lane & !3) + part));
    for column in 0..2 {
        let holder = (lane % 4 * 2 + column) * 4;
        let column_words = [0, 1, 2, 3].map(|part| warp.shuffle(b, holder + part));
        for row in 0..2 {
            let sum = &mut sums[row * 2 + column as usize];
            for half in 0..2 {
                for part in 0..4 {
                    *sum = T::add_products(rows[part][row + half * 2], column_words[part][half], *sum);
                }
            }
        }
    }
    sums
}
