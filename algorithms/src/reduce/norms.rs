//! Norms: of magnitudes the sum, the root of the sum of squares, and the greatest.

use ferrogrid_host::__private::{in_steps, value_of};

use crate::reduce::Number;
use crate::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Result, Stream};
use kernels::{Norm, norm_of_tiles};

/// The kernels.
#[ferrogrid::module]
pub mod kernels {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::number::numbers::Element;
    use ferrogrid::device::fold::{ITEMS, THREADS, by_pairs, fold, fold_tiles};

    /// A norm. All threads take the same branch for it, so one kernel serves all three.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, DeviceCopy)]
    #[repr(u32)]
    pub enum Norm {
        /// The sum of magnitudes.
        One,
        /// The root of the sum of squares.
        Two,
        /// The greatest magnitude.
        Max,
    }

    #[inline(always)]
    fn add(a: f64, b: f64) -> f64 {
        a + b
    }

    /// The greater of two magnitudes, or NaN if one is NaN: their bits have that order.
    #[inline(always)]
    fn greater(a: f64, b: f64) -> f64 {
        f64::from_bits(a.to_bits().max(b.to_bits()))
    }

    impl Norm {
        /// What an element contributes.
        #[inline(always)]
        pub fn of(self, x: f64) -> f64 {
            if self == Norm::Two { x * x } else { x.abs() }
        }

        /// What a thread's items of a tile contribute.
        #[inline(always)]
        pub fn of_items<T: Element>(self, items: [T; ITEMS]) -> f64 {
            let items = items.map(T::real);
            match self {
                Norm::One => by_pairs(items.map(f64::abs), add),
                Norm::Two => by_pairs(items.map(|x| x * x), add),
                Norm::Max => by_pairs(items.map(f64::abs), greater),
            }
        }

        /// Two parts of the norm, before its end.
        #[inline(always)]
        pub fn combine(self, a: f64, b: f64) -> f64 {
            if self == Norm::Max { greater(a, b) } else { add(a, b) }
        }

        /// The norm.
        #[inline(always)]
        pub fn finish(self, total: f64) -> f64 {
            if self == Norm::Two { Float::sqrt(total) } else { total }
        }
    }

    /// parts[b] <- the part of the norm in the tiles of block `b`; the norm if there is one block.
    #[kernel(
        block = THREADS,
        dependent_launch,
        wide,
        T = [f32, f64, #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16],
        native = super::super::native::norm_of_tiles
    )]
    pub fn norm_of_tiles<T: Element>(
        t: Thread<1>,
        norm: Norm,
        x: &[T],
        mut parts: DisjointChunks<f64, 1>,
        mut scratch: Shared<Scratch<f64>>,
    ) {
        t.launch_dependents();
        let of_items = |_, items| norm.of_items::<T>(items);
        let own = fold_tiles(&t, x, 0.0, of_items, |_, x| norm.of(x.real()), |a, b| norm.combine(a, b));
        let part = t.block_reduce(&mut scratch, own, |a, b| norm.combine(a, b));
        let is_only = t.grid_dim() == [1];
        parts.fill_with(&t, |_| if is_only { norm.finish(part) } else { part });
    }

    /// found[0] <- the norm of which blocks have found parts.
    #[kernel(block = THREADS, dependent_launch, native = super::super::native::norm_of_parts)]
    pub fn norm_of_parts(
        t: Thread<1>,
        norm: Norm,
        parts: &[f64],
        mut found: DisjointChunks<f64, 1>,
        mut scratch: Shared<Scratch<f64>>,
    ) {
        t.launch_dependents();
        let own = fold(&t, parts, 0.0, |part| part, |a, b| norm.combine(a, b));
        let total = t.block_reduce(&mut scratch, own, |a, b| norm.combine(a, b));
        found.fill_with(&t, |_| norm.finish(total));
    }
}

/// A floating-point number that has norms: `f32` or `f64`; with the feature `half` also `f16` and `bf16`.
#[diagnostic::on_unimplemented(
    message = "there are no norms of elements of type `{Self}`",
    label = "expected `f32` or `f64`, or `f16` or `bf16` with the feature `half`"
)]
pub trait Real: Number + norm_of_tiles::Instance {}

impl<T: Number + norm_of_tiles::Instance> Real for T {}

fn norm_into<T: Real>(stream: &Stream, norm: Norm, x: DeviceView<T>, out: DeviceViewMut<f64>) -> Result<()> {
    in_steps(
        stream,
        x.len(),
        out,
        |grid, parts| kernels::norm_of_tiles::<T>(stream, grid, norm, x, parts),
        |grid, parts, out| kernels::norm_of_parts(stream, grid, norm, parts, out),
    )
}

/// The sum of the magnitudes, 0 if there are no elements (cuBLAS's `asum`, the L1 norm; CuPy's `linalg.norm(x, 1)`).
///
/// Elements are added up as `f64`. The result has the same bits in each run, on each GPU and on the CPU device, as that of
/// [`sum`](crate::sum). NaN spreads.
///
/// ```
/// # use ferrogrid_host::{Device, Result};
/// # fn main() -> Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// # use ferrogrid_algorithms as algorithms;
/// let x = stream.upload(&[3.0_f32, -4.0])?;
/// assert_eq!(algorithms::asum(&stream, &x)?, 7.0);
/// assert_eq!(algorithms::nrm2(&stream, &x)?, 5.0);
/// assert_eq!(algorithms::amax(&stream, &x)?, 4.0);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of a launch and of a copy: see [`Stream`].
pub fn asum<'a, T: Real + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<f64> {
    let x = x.into_input();
    value_of(stream, |out| norm_into(stream, Norm::One, x, out))
}

/// [`asum`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// Those of a launch. `out` has at least one element.
pub fn asum_into<'a, 'b, T: Real + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, f64>,
) -> Result<()> {
    norm_into(stream, Norm::One, x.into_input(), out.into_output())
}

/// The square root of the sum of squares (cuBLAS's `nrm2`, the Euclidean norm; CuPy's `linalg.norm`). As [`asum`] in all else.
/// Squares are `f64`: no `f32` is too large for them, but an `f64` beyond 1e154 is. The sum of squares itself is
/// [`dot`](crate::dot) of `x` and `x`.
///
/// # Errors
/// As [`asum`].
pub fn nrm2<'a, T: Real + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<f64> {
    let x = x.into_input();
    value_of(stream, |out| norm_into(stream, Norm::Two, x, out))
}

/// [`nrm2`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// As [`asum_into`].
pub fn nrm2_into<'a, 'b, T: Real + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, f64>,
) -> Result<()> {
    norm_into(stream, Norm::Two, x.into_input(), out.into_output())
}

/// The greatest magnitude, 0 if there are no elements (the maximum norm; CuPy's `linalg.norm(x, numpy.inf)`; where cuBLAS's
/// `amax` points). Unlike [`max`](crate::max) it is NaN if an element is. As [`asum`] in all else.
///
/// # Errors
/// As [`asum`].
pub fn amax<'a, T: Real + 'a>(stream: &Stream, x: impl DeviceInput<'a, T>) -> Result<f64> {
    let x = x.into_input();
    value_of(stream, |out| norm_into(stream, Norm::Max, x, out))
}

/// [`amax`], written to the first element of `out` in stream order, without waiting for it.
///
/// # Errors
/// As [`asum_into`].
pub fn amax_into<'a, 'b, T: Real + 'a>(
    stream: &Stream,
    x: impl DeviceInput<'a, T>,
    out: impl DeviceOutput<'b, f64>,
) -> Result<()> {
    norm_into(stream, Norm::Max, x.into_input(), out.into_output())
}
