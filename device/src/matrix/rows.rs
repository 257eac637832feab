//! Work on the rows of an accumulator, and accumulators as factors: what kernels put between two products, such as a softmax.

use super::block::{GROUP, ProductSums, each_column, first_sum};
use super::{
    Accumulator, COLUMNS, FragmentA, FragmentB, MatrixElement, ROWS, assert_whole, own_place, unrolled,
};
#[cfg(feature = "half")]
use crate::number::half::HalfFloat;
use crate::thread::Thread;
use crate::warp::{Exchange, Warp};

/// A value for each row of an [`Accumulator`] with `M` times [`ROWS`](super::ROWS) rows, known to each thread that holds a part of the
/// row.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
/// use ferrogrid::device::half::f16;
/// use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB};
///
/// /// c <- softmax(a b) d by one warp, of 16 x 16, 16 x 16 and 16 x 8 numbers: the sums of the first product stay in registers.
/// #[kernel(block = 32)]
/// pub fn attend(t: Thread<1>, a: Plane<f16>, b: Plane<f16>, d: Plane<f16>, c: &[DeviceAtomic<f32>]) {
///     let warp = t.warp();
///     let a = FragmentA::from_fn(&warp, |row, k| a[row][k]);
///     let mut scores = Accumulator::<f16, 1, 2>::zero();
///     scores.add_product(&warp, &a, &FragmentB::from_fn(&warp, |k, column| b[k][column]));
///     let greatest = scores.reduce_rows(&warp, f32::max);
///     scores.map_rows(&greatest, |score, greatest| (score - greatest).exp());
///     let total = scores.reduce_rows(&warp, |a, b| a + b);
///     let mut sums = Accumulator::<f16>::zero();
///     let weights = FragmentA::from_sums(&scores);
///     sums.add_products::<1>(&warp, &weights, |_| FragmentB::from_fn(&warp, |k, column| d[k][column]));
///     sums.map_rows(&total, |sum, total| sum / total);
///     sums.for_each(&warp, |row, column, sum| c[row * 8 + column].store(sum, Relaxed));
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::device::half::f16;
///
/// let (a, b) = (stream.fill(f16::ONE, 16 * 16)?, stream.fill(f16::ONE, 16 * 16)?); // all scores are equal
/// let d = stream.upload(&(0..16 * 8).map(|i| f16::from_f32((i / 8) as f32)).collect::<Vec<_>>())?;
/// let mut c = stream.zeros(16 * 8)?;
/// let [a, b] = [a.view_2d(16, 16)?, b.view_2d(16, 16)?];
/// kernels::attend(&stream, Grid::blocks(1), a, b, d.view_2d(8, 16)?, c.as_atomic())?;
/// assert_eq!(stream.download(&c)?, [7.5; 16 * 8]); // the mean of 0 to 15
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RowValues<V, const M: usize = 1> {
    /// Of each fragment those of row `lane / 4` and of the eighth row after it.
    values: [[V; 2]; M],
}

impl<V: Copy> RowValues<V> {
    /// `value` for each row of a block's products ([`ProductSums`]) that the thread has sums of; one that has none gets those of the first
    /// rows.
    #[inline(always)]
    pub fn of_product(thread: &Thread<'_, 1>, mut value: impl FnMut(usize) -> V) -> Self {
        let [row, _] = first_sum((thread.thread_rank() as usize).saturating_sub(GROUP));
        RowValues { values: [[value(row), value(row + ROWS / 2)]] }
    }
}

impl<V: Copy, const M: usize> RowValues<V, M> {
    /// The value of a row that the thread holds a part of.
    #[inline(always)]
    pub fn get(&self, row: usize) -> V {
        self.values[row / ROWS % M][row / (ROWS / 2) % 2]
    }

    /// `value` for each row.
    #[inline(always)]
    pub fn splat(value: V) -> Self {
        RowValues { values: [[value; 2]; M] }
    }

    /// `f` of each value. `f` must be a function of its argument alone, as all threads of a row call it.
    #[inline(always)]
    pub fn map<U: Copy>(&self, mut f: impl FnMut(V) -> U) -> RowValues<U, M> {
        self.zip(&RowValues::splat(()), |value, ()| f(value))
    }

    /// `f` of the values of both for each row. `f` must be a function of its arguments alone, as all threads of a row call it.
    #[inline(always)]
    pub fn zip<U: Copy, W: Copy>(
        &self,
        other: &RowValues<U, M>,
        mut f: impl FnMut(V, U) -> W,
    ) -> RowValues<W, M> {
        let mut values = [[f(self.values[0][0], other.values[0][0]); 2]; M];
        unrolled!(m in M, {
            let ([a, b], [c, d]) = (self.values[m], other.values[m]);
            values[m] = [f(a, c), f(b, d)];
        });
        RowValues { values }
    }
}

/// The values of both rows of a thread combined with those of the three other threads that share the rows.
#[track_caller]
#[inline(always)]
fn of_row<V: Exchange>(warp: &Warp, [upper, lower]: [V; 2], combine: impl Fn(V, V) -> V) -> [V; 2] {
    let upper = combine(upper, warp.shuffle_xor(upper, 1));
    let lower = combine(lower, warp.shuffle_xor(lower, 1));
    [combine(upper, warp.shuffle_xor(upper, 2)), combine(lower, warp.shuffle_xor(lower, 2))]
}

impl<T: MatrixElement, const M: usize, const N: usize> Accumulator<T, M, N> {
    /// The sums of each row combined, in the same order for all rows; all threads of the warp together (PTX `shfl.sync`). `combine` must
    /// not depend on the order of its arguments, as threads exchange them.
    ///
    /// # Panics
    /// As [`add_product`](Self::add_product).
    #[track_caller]
    #[inline(always)]
    pub fn reduce_rows(&self, warp: &Warp, combine: impl Fn(T::Sum, T::Sum) -> T::Sum) -> RowValues<T::Sum, M>
    where
        T::Sum: Exchange,
    {
        assert_whole(warp);
        let mut values = [[T::Sum::default(); 2]; M];
        unrolled!(m in M, {
            let [a, b, c, d] = self.sums[m][0];
            let (mut upper, mut lower) = (combine(a, b), combine(c, d));
            unrolled!(n in N, {
                if n > 0 {
                    let [a, b, c, d] = self.sums[m][n];
                    upper = combine(upper, combine(a, b));
                    lower = combine(lower, combine(c, d));
                }
            });
            values[m] = of_row(warp, [upper, lower], &combine);
        });
        RowValues { values }
    }

    /// Replaces each sum by `f` of it and the value of its row.
    #[inline(always)]
    pub fn map_rows<V: Copy>(&mut self, rows: &RowValues<V, M>, mut f: impl FnMut(T::Sum, V) -> T::Sum) {
        unrolled!(m in M, {
            let [upper, lower] = rows.values[m];
            unrolled!(n in N, {
                let [a, b, c, d] = self.sums[m][n];
                self.sums[m][n] = [f(a, upper), f(b, upper), f(c, lower), f(d, lower)];
            });
        });
    }

    /// Replaces each sum by `f` of row, column and sum.
    #[inline(always)]
    pub fn map_places(&mut self, warp: &Warp, mut f: impl FnMut(usize, usize, T::Sum) -> T::Sum) {
        let lane = warp.lane() as usize;
        unrolled!(m in M, {
            unrolled!(n in N, {
                let mut of = |number: usize| {
                    let [row, column] = own_place(lane, [m, n], number);
                    f(row, column, self.sums[m][n][number])
                };
                self.sums[m][n] = [of(0), of(1), of(2), of(3)];
            });
        });
    }

    /// Replaces each sum by `f` of row, column, the sum, and the one of `other` in the same place.
    #[inline(always)]
    pub fn zip_places(
        &mut self,
        warp: &Warp,
        other: &Self,
        mut f: impl FnMut(usize, usize, [T::Sum; 2]) -> T::Sum,
    ) {
        let lane = warp.lane() as usize;
        unrolled!(m in M, {
            unrolled!(n in N, {
                unrolled!(number in 4, {
                    let [row, column] = own_place(lane, [m, n], number);
                    let both = [self.sums[m][n][number], other.sums[m][n][number]];
                    self.sums[m][n][number] = f(row, column, both);
                });
            });
        });
    }

    /// Calls `f` with each row and its value, in one of the threads that hold a part of the row.
    #[inline(always)]
    pub fn for_each_row<V: Copy>(&self, warp: &Warp, rows: &RowValues<V, M>, mut f: impl FnMut(usize, V)) {
        let lane = warp.lane() as usize;
        if lane.is_multiple_of(4) {
            unrolled!(m in M, {
                let row = m * ROWS + lane / 4;
                f(row, rows.values[m][0]);
                f(row + ROWS / 2, rows.values[m][1]);
            });
        }
    }

    /// Adds `K` products, of `a[k]` and what `b` returns for `k`, 1 to 8; all threads of the warp together. A loop over an array of
    /// fragments would put them into local memory.
    ///
    /// # Panics
    /// As [`add_product`](Self::add_product).
    #[track_caller]
    #[inline(always)]
    pub fn add_products<const K: usize>(
        &mut self,
        warp: &Warp,
        a: &[FragmentA<T, M>; K],
        mut b: impl FnMut(usize) -> FragmentB<T, N>,
    ) {
        unrolled!(k in K, {
            self.add_product(warp, &a[k], &b(k));
        });
    }
}

impl<const N: usize> ProductSums<N> {
    /// The sums of each row combined: [`Accumulator::reduce_rows`] says more. All threads of the warp together.
    ///
    /// # Panics
    /// As any operation of a [`Tile`](crate::Tile).
    #[track_caller]
    #[inline(always)]
    pub fn reduce_rows(&self, warp: &Warp, combine: impl Fn(f32, f32) -> f32) -> RowValues<f32> {
        let [a, b, c, d] = self.sums[0];
        let (mut upper, mut lower) = (combine(a, b), combine(c, d));
        each_column!(n, N, {
            if n > 0 {
                let [a, b, c, d] = self.sums[n];
                upper = combine(upper, combine(a, b));
                lower = combine(lower, combine(c, d));
            }
        });
        RowValues { values: [of_row(warp, [upper, lower], combine)] }
    }

    /// Replaces each sum by `f` of it and the value of its row.
    #[inline(always)]
    pub fn map_rows<V: Copy>(&mut self, rows: &RowValues<V>, mut f: impl FnMut(f32, V) -> f32) {
        let [upper, lower] = rows.values[0];
        each_column!(n, N, {
            let [a, b, c, d] = self.sums[n];
            self.sums[n] = [f(a, upper), f(b, upper), f(c, lower), f(d, lower)];
        });
    }

    /// Replaces each sum by `f` of row and column within the product, and sum.
    #[inline(always)]
    pub fn map_places(&mut self, mut f: impl FnMut(usize, usize, f32) -> f32) {
        let [row, column] = self.first;
        each_column!(n, N, {
            let ([a, b, c, d], column, lower) = (self.sums[n], column + n * COLUMNS, row + ROWS / 2);
            self.sums[n] =
                [f(row, column, a), f(row, column + 1, b), f(lower, column, c), f(lower, column + 1, d)];
        });
    }

    /// Replaces sums whose column exceeds their row by more than `most`, a causal mask. That needs fewer registers than
    /// [`map_places`](Self::map_places), which has rows and columns as numbers.
    #[inline(always)]
    pub fn mask_above(&mut self, most: i32, by: f32) {
        let [row, column] = self.first.map(|it| it as i32);
        let above = (column - row).saturating_sub(most);
        self.mask(by, |down, right| above > down - right);
    }

    /// Replaces sums whose row exceeds their column by more than `most`: a causal mask of a transposed product.
    #[inline(always)]
    pub fn mask_below(&mut self, most: i32, by: f32) {
        let [row, column] = self.first.map(|it| it as i32);
        let below = (row - column).saturating_sub(most);
        self.mask(by, |down, right| below > right - down);
    }

    /// Replaces sums that are so far below and right of the first one.
    #[inline(always)]
    fn mask(&mut self, by: f32, is_masked: impl Fn(i32, i32) -> bool) {
        each_column!(n, N, {
            unrolled!(number in 4, {
                let (down, right) = (number / 2 * (ROWS / 2), n * COLUMNS + number % 2);
                if is_masked(down as i32, right as i32) {
                    self.sums[n][number] = by;
                }
            });
        });
    }

    /// Replaces each sum by `f` of row and column within the product, the sum, and the one of `other` in the same place.
    #[inline(always)]
    pub fn zip_places(&mut self, other: &Self, mut f: impl FnMut(usize, usize, [f32; 2]) -> f32) {
        let [row, column] = self.first;
        each_column!(n, N, {
            unrolled!(number in 4, {
                let (row, column) = (row + number / 2 * (ROWS / 2), column + n * COLUMNS + number % 2);
                self.sums[n][number] = f(row, column, [self.sums[n][number], other.sums[n][number]]);
            });
        });
    }

    /// Calls `f` with each row within the product and its value, in one of the threads that hold a part of the row.
    #[inline(always)]
    pub fn for_each_row<V: Copy>(&self, rows: &RowValues<V>, mut f: impl FnMut(usize, V)) {
        let ([row, column], [upper, lower]) = (self.first, rows.values[0]);
        if column == 0 {
            f(row, upper);
            f(row + ROWS / 2, lower);
        }
    }
}

#[cfg(feature = "half")]
impl<T: MatrixElement<Sum = f32> + HalfFloat, const M: usize> FragmentA<T, M> {
    /// Sums, rounded to `T`, as `K` left factors of a next product, each of 16 columns: `N` is `2 * K`. Threads hold both in the same
    /// places, so nothing is exchanged.
    #[inline(always)]
    pub fn from_sums<const N: usize, const K: usize>(sums: &Accumulator<T, M, N>) -> [Self; K] {
        const { assert!(2 * K == N, "two fragments of 8 columns are one left factor of 16") }
        let mut all = [FragmentA { words: [[T::Word::default(); 4]; M] }; K];
        unrolled!(k in K, {
            unrolled!(m in M, {
                let ([a, b, c, d], [e, f, g, h]) = (sums.sums[m][2 * k], sums.sums[m][2 * k + 1]);
                all[k].words[m] = bytemuck::cast([[a, b], [c, d], [e, f], [g, h]].map(T::pair_to_bits));
            });
        });
        all
    }
}
