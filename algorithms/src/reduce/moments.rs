//! Mean and variance in one pass, from moments that are combined pairwise.

use ferrogrid_host::__private::{in_steps, in_two_steps, value_of};

use crate::reduce::Number;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Result, Stream};
use kernels::Statistic;

pub use kernels::Moments;

/// The kernels.
#[ferrogrid::module]
pub mod kernels {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::number::numbers::Element;
    use ferrogrid::device::fold::{ITEMS, THREADS, TILE, by_pairs, fold_tiles};

    /// Number, sum and squared deviations of some elements: what mean and variance are made of.
    #[derive(Clone, Copy, Debug, Default, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Moments {
        /// The number of elements.
        pub count: u64,
        /// Their sum.
        pub sum: f64,
        /// The sum of the squares of their distances from the mean.
        pub deviations: f64,
    }

    impl Moments {
        /// Those of nothing.
        pub const NONE: Moments = Moments { count: 0, sum: 0.0, deviations: 0.0 };

        /// The mean; NaN of nothing.
        #[inline(always)]
        pub fn mean(&self) -> f64 {
            self.sum / self.count as f64
        }

        /// The variance of the elements themselves (NumPy's `var`); NaN of nothing.
        #[inline(always)]
        pub fn variance(&self) -> f64 {
            self.deviations / self.count as f64
        }

        /// The estimate from a sample, `count - 1` for the divisor (NumPy's `var` with `ddof=1`); NaN of fewer than two
        /// elements.
        #[inline(always)]
        pub fn sample_variance(&self) -> f64 {
            self.deviations / (self.count as f64 - 1.0).max(0.0)
        }

        /// The moments of both, by Chan, Golub and LeVeque.
        #[inline(always)]
        pub fn merge(self, other: Self) -> Self {
            let (m, n) = (self.count as f64, other.count as f64);
            let distance = other.sum * m - self.sum * n;
            let between = distance / (m * n) * (distance / (m + n));
            let both = Moments {
                count: self.count + other.count,
                sum: self.sum + other.sum,
                deviations: self.deviations + other.deviations + between,
            };
            if self.count == 0 {
                other
            } else if other.count == 0 {
                self
            } else {
                both
            }
        }

        /// Those of a thread's items of a tile.
        #[inline(always)]
        pub fn of_items<T: Element>(items: [T; ITEMS]) -> Self {
            let items = items.map(T::real);
            let sum = by_pairs(items, |a, b| a + b);
            let mean = sum / ITEMS as f64;
            let deviations = by_pairs(items.map(|x| (x - mean) * (x - mean)), |a, b| a + b);
            Moments { count: ITEMS as u64, sum, deviations }
        }

        /// The deviations from the mean of `count` elements with that sum.
        #[inline(always)]
        pub fn deviations_from(self, sum: f64, count: u64) -> f64 {
            let distance = if self.count == 0 { 0.0 } else { self.mean() - sum / count as f64 };
            self.deviations + self.count as f64 * (distance * distance)
        }

        /// Those of all threads. Their deviations from the common mean add up, which takes fewer divisions than merging.
        #[inline(always)]
        fn of_block(self, t: &Thread<'_, 1>, mut scratch: Shared<'_, Scratch<(f64, u64)>, 0>) -> Self {
            let mut add = |a, b| t.block_reduce(&mut scratch, (a, b), |a, b| (a.0 + b.0, a.1 + b.1));
            let (sum, count) = add(self.sum, self.count);
            let (deviations, _) = add(self.deviations_from(sum, count), 0);
            Moments { count, sum, deviations }
        }
    }

    /// The moments of the thread's elements after the last tile. Two passes take less code than merging one by one.
    #[inline(always)]
    fn of_rest<T: Element>(t: &Thread<'_, 1>, rest: &[T]) -> Moments {
        let own = || t.block_stride(rest.len()).map(|i| rest[i].real());
        let count = (rest.len() + THREADS - 1 - t.thread_rank() as usize) / THREADS;
        let sum = own().sum::<f64>();
        let mean = sum / count as f64;
        Moments { count: count as u64, sum, deviations: own().map(|x| (x - mean) * (x - mean)).sum() }
    }

    /// found[b] <- the moments of the tiles of block `b`.
    #[kernel(
        block = THREADS,
        dependent_launch,
        wide,
        T = [
            i8, i16, i32, i64, u8, u16, u32, u64, f32, f64,
            #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16
        ],
        native = super::super::native::moments_of_tiles
    )]
    pub fn moments_of_tiles<T: Element>(
        t: Thread<1>,
        x: &[T],
        mut found: DisjointChunks<Moments, 1>,
        scratch: Shared<Scratch<(f64, u64)>>,
    ) {
        t.launch_dependents();
        let of_items = |_, items| Moments::of_items::<T>(items);
        let (tiles, rest) = x.as_chunks::<TILE>();
        // Never called for single elements: there are whole tiles only.
        let of_one = |_, _| Moments::NONE;
        let own = fold_tiles(&t, tiles.as_flattened(), Moments::NONE, of_items, of_one, Moments::merge);
        let ([block], [blocks]) = (t.block_idx(), t.grid_dim());
        let has_rest = tiles.len() % blocks as usize == block as usize;
        let own = own.merge(of_rest(&t, if has_rest { rest } else { &[] }));
        let moments = own.of_block(&t, scratch);
        found.fill_with(&t, |_| moments);
    }

    #[inline(always)]
    fn merged(t: &Thread<'_, 1>, parts: &[Moments], scratch: Shared<'_, Scratch<(f64, u64)>, 0>) -> Moments {
        t.block_stride(parts.len()).map(|i| parts[i]).fold(Moments::NONE, Moments::merge).of_block(t, scratch)
    }

    /// found[0] <- the moments of all blocks.
    #[kernel(block = THREADS, dependent_launch, native = super::super::native::moments_of_parts)]
    pub fn moments_of_parts(
        t: Thread<1>,
        parts: &[Moments],
        mut found: DisjointChunks<Moments, 1>,
        scratch: Shared<Scratch<(f64, u64)>>,
    ) {
        t.launch_dependents();
        let moments = merged(&t, parts, scratch);
        found.fill_with(&t, |_| moments);
    }

    /// What moments tell.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, DeviceCopy)]
    #[repr(u32)]
    pub enum Statistic {
        /// The mean.
        Mean,
        /// The variance.
        Variance,
    }

    impl Statistic {
        /// What these moments tell.
        #[inline(always)]
        pub fn of(self, moments: Moments) -> f64 {
            let divided = if self == Statistic::Mean { moments.sum } else { moments.deviations };
            divided / moments.count as f64
        }
    }

    /// found[0] <- what the moments of all blocks tell.
    #[kernel(block = THREADS, dependent_launch, native = super::super::native::statistic_of_parts)]
    pub fn statistic_of_parts(
        t: Thread<1>,
        statistic: Statistic,
        parts: &[Moments],
        mut found: DisjointChunks<f64, 1>,
        scratch: Shared<Scratch<(f64, u64)>>,
    ) {
        t.launch_dependents();
        let moments = merged(&t, parts, scratch);
        found.fill_with(&t, |_| statistic.of(moments));
    }
}

fn moments_of<T: Number>(stream: &Stream, x: DeviceView<T>, out: DeviceViewMut<Moments>) -> Result<()> {
    in_steps(
        stream,
        x.len(),
        out,
        |grid, parts| kernels::moments_of_tiles::<T>(stream, grid, x, parts),
        |grid, parts, out| kernels::moments_of_parts(stream, grid, parts, out),
    )
}

fn statistic_into<T: Number>(
    stream: &Stream,
    statistic: Statistic,
    x: DeviceView<T>,
    out: DeviceViewMut<f64>,
) -> Result<()> {
    in_two_steps(
        stream,
        x.len(),
        out,
        |grid, parts| kernels::moments_of_tiles::<T>(stream, grid, x, parts),
        |grid, parts, out| kernels::statistic_of_parts(stream, grid, statistic, parts, out),
    )
}

/// Number, sum and squared deviations of the elements, from which the methods of [`Moments`] make mean and variances.
///
/// It reads the elements once. They become `f64`, which is exact but for some integers of 64 bits. Deviations are
/// from means of a few elements, which are then combined pairwise, so a large mean costs the variance no digits. The result
/// has the same bits in each run, on each GPU and on the CPU device, as that of [`sum`](crate::sum).
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let x = stream.upload(&[1.0_f32, 2.0, 3.0, 4.0])?;
/// let moments = algorithms::moments(&stream, &x)?;
/// assert_eq!((moments.mean(), moments.variance()), (2.5, 1.25));
/// assert_eq!(moments.sample_variance().sqrt(), (5.0_f64 / 3.0).sqrt());
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch and of a copy: see [`Stream`].
pub fn moments<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<Moments> {
    let x = x.into_input();
    value_of(stream, |out| moments_of(stream, x, out))
}

/// [`moments`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// Those of a launch. `out` has at least one element.
pub fn moments_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, Moments>,
) -> Result<()> {
    moments_of(stream, x.into_input(), out.into_output())
}

/// The mean of the elements, NaN if there are none (CuPy's `mean`). As [`moments`] in all else.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// assert_eq!(algorithms::mean(&stream, &stream.upload(&[1, 2])?)?, 1.5);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`moments`].
pub fn mean<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<f64> {
    Ok(moments(stream, x)?.mean())
}

/// [`mean`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// As [`moments_into`].
pub fn mean_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, f64>,
) -> Result<()> {
    statistic_into(stream, Statistic::Mean, x.into_input(), out.into_output())
}

/// The mean of the squared distances from the mean, NaN if there are no elements (CuPy's `var`). As [`moments`] in all
/// else, which also gives the estimate from a sample.
///
/// # Errors
/// As [`moments`].
pub fn variance<'a, T: Number + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<f64> {
    Ok(moments(stream, x)?.variance())
}

/// [`variance`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// As [`moments_into`].
pub fn variance_into<'a, 'b, T: Number + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, f64>,
) -> Result<()> {
    statistic_into(stream, Statistic::Variance, x.into_input(), out.into_output())
}
