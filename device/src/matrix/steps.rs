//! A product of matrices by shuffles and sums, where there is no instruction for it.

use super::{MatrixElement, unrolled};
use crate::warp::Warp;

/// Each thread gets the rows and the columns that its own sums need from the threads that hold them.
#[track_caller]
#[inline(always)]
pub(super) fn add_product<T: MatrixElement, const M: usize, const N: usize>(
    warp: &Warp,
    a: &[[u32; 4]; M],
    b: &[[u32; 2]; N],
    sums: &mut [[[T::Sum; 4]; N]; M],
) {
    let lane = warp.lane();
    let mut rows = [[[0; 4]; 4]; M];
    unrolled!(m in M, {
        rows[m] = [0, 1, 2, 3].map(|part| warp.shuffle(a[m], (lane & !3) + part));
    });
    for column in 0..2 {
        let holder = (lane % 4 * 2 + column as u32) * 4;
        unrolled!(n in N, {
            let columns = [0, 1, 2, 3].map(|part| warp.shuffle(b[n], holder + part));
            unrolled!(m in M, {
                for row in 0..2 {
                    let sum = &mut sums[m][n][row * 2 + column];
                    for half in 0..2 {
                        for part in 0..4 {
                            *sum = T::add_products(rows[m][part][row + half * 2], columns[part][half], *sum);
                        }
                    }
                }
            });
        });
    }
}
