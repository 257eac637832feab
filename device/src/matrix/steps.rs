//! A product of matrices by shuffles and sums, where there is no instruction for it.

use bytemuck::Pod;

use super::{MatrixElement, unrolled};
use crate::warp::Warp;

/// Each thread gets the rows and the columns that its own sums need from the threads that hold them.
#[track_caller]
#[inline(always)]
pub(super) fn add_product<T: MatrixElement, const M: usize, const N: usize>(
    warp: &Warp,
    a: &[[T::Word; 4]; M],
    b: &[[T::Word; 2]; N],
    sums: &mut [[[T::Sum; 4]; N]; M],
) {
    let lane = warp.lane();
    let mut rows = [[[T::Word::default(); 4]; 4]; M];
    unrolled!(m in M, {
        rows[m] = [0, 1, 2, 3].map(|part| shuffle(warp, a[m], (lane & !3) + part));
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

/// The words of another thread: threads exchange 16 bytes at once.
#[track_caller]
#[inline(always)]
fn shuffle<W: Pod>(warp: &Warp, mut words: [W; 4], lane: u32) -> [W; 4] {
    for part in bytemuck::cast_slice_mut::<W, [u32; 4]>(&mut words) {
        *part = warp.shuffle(*part, lane);
    }
    words
}
