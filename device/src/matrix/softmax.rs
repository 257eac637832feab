//! [`OnlineSoftmax`]: the softmax of rows whose scores come part by part.

use core::f32::consts::{LN_2, LOG2_E};

use super::{Accumulator, MatrixElement, ProductSums, RowValues};
use crate::number::math::{FastMath, Float};
use crate::warp::Warp;

/// The softmax of each row of a matrix whose columns come part by part, as sums of products: scores become weights, and what was
/// summed by earlier weights is shrunk (the online softmax of FlashAttention).
///
/// With `M` as that of the [`Accumulator`], or 1 for [`ProductSums`]. A score of minus infinity has the weight 0, so masked scores are set
/// to it; a row without others has only zeros.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
/// use ferrogrid::device::half::f16;
/// use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB, OnlineSoftmax};
///
/// /// y <- softmax(q k^T) v by one warp, for 16 queries and any number of keys, 16 at a time.
/// #[kernel(block = 32)]
/// pub fn attend(t: Thread<1>, q: Plane<f16>, k: Plane<f16>, v: Plane<f16>, y: &[DeviceAtomic<f32>]) {
///     let warp = t.warp();
///     let q = FragmentA::from_fn(&warp, |row, i| q[row][i]);
///     let (mut softmax, mut sums) = (OnlineSoftmax::new(1.0), Accumulator::<f16>::zero());
///     for first in (0..k.height()).step_by(16) {
///         let mut scores = Accumulator::<f16, 1, 2>::zero();
///         scores.add_product(&warp, &q, &FragmentB::from_fn(&warp, |i, key| k[first + key][i]));
///         let shrunk = softmax.step(&warp, &mut scores);
///         sums.map_rows(&shrunk, |sum, shrunk| sum * shrunk);
///         let weights = FragmentA::from_sums(&scores);
///         sums.add_products::<1>(&warp, &weights, |_| FragmentB::from_fn(&warp, |key, i| v[first + key][i]));
///     }
///     sums.map_rows(&softmax.factors(), |sum, factor| sum * factor);
///     sums.for_each(&warp, |row, i, sum| y[row * 8 + i].store(sum, Relaxed));
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::device::half::f16;
///
/// let (q, k) = (stream.fill(f16::ONE, 16 * 16)?, stream.fill(f16::ONE, 64 * 16)?); // all scores are equal
/// let v = stream.upload(&(0..64 * 8).map(|i| f16::from_f32((i / 8) as f32)).collect::<Vec<_>>())?;
/// let mut y = stream.zeros(16 * 8)?;
/// let (q, k) = (q.view_2d(16, 16)?, k.view_2d(16, 64)?);
/// kernels::attend(&stream, Grid::blocks(1), q, k, v.view_2d(8, 64)?, y.as_atomic())?;
/// assert_eq!(stream.download(&y)?, [31.5; 16 * 8]); // the mean of 0 to 63
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct OnlineSoftmax<const M: usize = 1> {
    greatest: RowValues<f32, M>,
    totals: RowValues<f32, M>,
    /// Of scores as exponents of 2, whose powers are faster than those of e.
    scale: f32,
}

impl<const M: usize> OnlineSoftmax<M> {
    /// Before any scores. They are multiplied by `scale`, which is positive.
    #[inline(always)]
    pub fn new(scale: f32) -> Self {
        let greatest = RowValues::splat(f32::NEG_INFINITY);
        OnlineSoftmax { greatest, totals: RowValues::splat(0.0), scale: scale * LOG2_E }
    }

    /// Replaces the scores of further columns by their weights, `exp(scale * (score - greatest))` with the greatest score of the row so
    /// far (PTX `ex2.approx.ftz`, `shfl.sync`), by all threads of the warp together. Returns what sums over earlier columns, by earlier
    /// weights, are multiplied by.
    ///
    /// # Panics
    /// As any operation of a [`Tile`](crate::Tile).
    #[track_caller]
    #[inline(always)]
    pub fn step(&mut self, warp: &Warp, scores: &mut impl ScoreRows<M>) -> RowValues<f32, M> {
        let (before, scale) = (self.greatest, self.scale);
        self.greatest = scores.reduce(warp, f32::max).zip(&before, f32::max);
        // A row without scores has no greatest one.
        let base = self.greatest.map(|it| if it == f32::NEG_INFINITY { 0.0 } else { it * scale });
        let weight = |score: f32, base: f32| Float::mul_add(score, scale, -base).fast_exp2_ftz();
        let shrunk = before.zip(&base, weight);
        self.totals = self.totals.zip(&shrunk, |total, shrunk| total * shrunk);
        scores.map(&base, weight);
        let totals = scores.reduce(warp, |a, b| a + b);
        self.totals = self.totals.zip(&totals, |a, b| a + b);
        shrunk
    }

    /// What sums by the weights are multiplied by in the end: 1 over the sum of the weights, or 0 for a row without scores.
    #[inline(always)]
    pub fn factors(&self) -> RowValues<f32, M> {
        self.totals.map(|total| if total == 0.0 { 0.0 } else { 1.0 / total })
    }

    /// The logarithm of each row's sum of `exp(scale * score)`, minus infinity for a row without scores: what gradients need, besides the
    /// scores, to have the weights again (FlashAttention's `softmax_lse`).
    #[inline(always)]
    pub fn log_sums(&self) -> RowValues<f32, M> {
        let scale = self.scale;
        self.greatest.zip(&self.totals, |greatest, total| {
            if total == 0.0 { f32::NEG_INFINITY } else { (greatest * scale + total.fast_log2()) * LN_2 }
        })
    }
}

/// Sums of products whose rows have a softmax: an [`Accumulator`] of `f32`, or [`ProductSums`].
pub trait ScoreRows<const M: usize>: sealed::Sealed {
    #[doc(hidden)]
    #[track_caller]
    fn reduce(&self, warp: &Warp, combine: impl Fn(f32, f32) -> f32) -> RowValues<f32, M>;

    #[doc(hidden)]
    fn map(&mut self, rows: &RowValues<f32, M>, f: impl FnMut(f32, f32) -> f32);
}

mod sealed {
    pub trait Sealed {}
}

impl<T: MatrixElement<Sum = f32>, const M: usize, const N: usize> sealed::Sealed for Accumulator<T, M, N> {}

impl<T: MatrixElement<Sum = f32>, const M: usize, const N: usize> ScoreRows<M> for Accumulator<T, M, N> {
    #[track_caller]
    #[inline(always)]
    fn reduce(&self, warp: &Warp, combine: impl Fn(f32, f32) -> f32) -> RowValues<f32, M> {
        self.reduce_rows(warp, combine)
    }

    #[inline(always)]
    fn map(&mut self, rows: &RowValues<f32, M>, f: impl FnMut(f32, f32) -> f32) {
        self.map_rows(rows, f);
    }
}

impl<const N: usize> sealed::Sealed for ProductSums<N> {}

impl<const N: usize> ScoreRows<1> for ProductSums<N> {
    #[track_caller]
    #[inline(always)]
    fn reduce(&self, warp: &Warp, combine: impl Fn(f32, f32) -> f32) -> RowValues<f32> {
        self.reduce_rows(warp, combine)
    }

    #[inline(always)]
    fn map(&mut self, rows: &RowValues<f32>, f: impl FnMut(f32, f32) -> f32) {
        self.map_rows(rows, f);
    }
}
