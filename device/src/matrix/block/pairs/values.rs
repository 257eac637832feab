//! A step of pairs of products, and the values of its rows: [`PairStep`], [`ColumnValues`].

use core::marker::PhantomData;

use super::super::{ProductSums, each_column};
use crate::matrix::{COLUMNS, unrolled};

/// The address of the values in shared memory.
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
pub(super) type Address<const N: usize> = u32;
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
pub(super) type Address<const N: usize> = *const [[f32; N]; 2];

/// A step of [`multiply_pairs`](crate::Thread::multiply_pairs): its number, and the values of its `N` rows.
#[derive(Clone, Copy)]
pub struct PairStep<'s, const N: usize> {
    number: usize,
    tag: u32,
    /// The first column whose sums the thread has.
    column: usize,
    values: Address<N>,
    /// Values of the columns that are read already, and whether the first or the second ones.
    read: Option<(usize, ColumnValues<N>)>,
    /// Until the step ends.
    step: PhantomData<&'s ()>,
}

impl<const N: usize> PairStep<'_, N> {
    /// # Safety
    /// The values are written, and stay until the step ends.
    #[inline(always)]
    pub(super) unsafe fn new(number: usize, tag: u32, column: usize, values: Address<N>) -> Self {
        PairStep { number, tag, column, values, read: None, step: PhantomData }
    }

    /// The step, whose first or second values are read already.
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    #[inline(always)]
    pub(super) fn having(self, which: usize, columns: ColumnValues<N>) -> Self {
        PairStep { read: Some((which, columns)), ..self }
    }

    /// Its number.
    #[inline(always)]
    pub fn number(self) -> usize {
        self.number
    }

    /// What [`PairedPlace::tag`](super::PairedPlace::tag) is in the first thread.
    #[inline(always)]
    pub fn tag(self) -> u32 {
        self.tag
    }

    /// The first or the second of the [`values`](super::PairedFactors::values) of a row of the right factors, a column of the sums; any
    /// number if there are none.
    ///
    /// # Panics
    /// Unless `which` is 0 or 1, and `row` less than `N`.
    #[track_caller]
    #[inline(always)]
    pub fn value(self, which: usize, row: usize) -> f32 {
        assert!(which < 2 && row < N, "a step of pairs of products has two values for each row");
        // Those of two columns are read at once. LLVM leaves out the second time if it sees that the thread's own columns are a constant
        // number behind its first one, which is even.
        let behind = row.wrapping_sub(self.column) as isize >> 1;
        let pair = (self.column / 2).wrapping_add_signed(behind);
        // SAFETY: both are below the limits, and the step has not ended.
        unsafe { pair_at::<N>(self.values, which, pair)[row % 2] }
    }

    /// The first or the second [`value`](Self::value)s of all columns that the thread has sums of. In `sm_90a`, the first ones are read while
    /// `p` is multiplied and the second ones while `q` is, if the closures ask for them: so the thread waits less, and needs more
    /// registers.
    ///
    /// # Panics
    /// Unless `which` is 0 or 1.
    #[track_caller]
    #[inline(always)]
    pub fn column_values(self, which: usize) -> ColumnValues<N> {
        assert!(which < 2, "a step of pairs of products has two values for each row");
        match self.read {
            Some((read, columns)) if read == which => columns,
            // SAFETY: the step has not ended.
            _ => unsafe { ColumnValues::read(self.values, which, self.column) },
        }
    }
}

/// The values of two rows, of which the first is `2 * pair`.
///
/// # Safety
/// The values are written, and stay. `which` is less than 2, and `pair` less than `N / 2`.
#[inline(always)]
unsafe fn pair_at<const N: usize>(values: Address<N>, which: usize, pair: usize) -> [f32; 2] {
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
    {
        let (left, right): (f32, f32);
        // SAFETY: within the values, by the caller.
        unsafe {
            core::arch::asm!(
                "ld.shared.v2.f32 {{{}, {}}}, [{}];",
                out(reg32) left, out(reg32) right, in(reg32) values + (which * size_of::<[f32; N]>() + pair * size_of::<[f32; 2]>()) as u32,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        [left, right]
    }
    #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_90a")))]
    // SAFETY: within the values, by the caller.
    unsafe {
        (&raw const (*values)[which][2 * pair]).cast::<[f32; 2]>().read()
    }
}

/// A number for each column of a product that the thread has sums of: [`PairStep::column_values`].
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use atomic::Ordering::Relaxed;
/// use ferrogrid::device::half::{HalfFloat, bf16};
/// use ferrogrid::device::matrix::{PairStep, PairedFactors, PairedPlace, PairedProducts, ProductSums};
///
/// /// y <- (a c^T v + b d^T w) c, of 64 rows, with diagonal matrices v and w.
/// #[kernel(block = 256)]
/// pub fn weighed(
///     t: Thread<1>, a: TensorMap<bf16, 64, 64>, b: TensorMap<bf16, 64, 64>, c: TensorMap<bf16, 64, 64>, d: TensorMap<bf16, 64, 64>,
///     v_and_w: TensorMap<f32, 64, 2>, y: &[DeviceAtomic<u32>], memory: Shared<PairedProducts<bf16, 64, 64, 64, 2>>,
/// ) {
///     let (steps, values) = (c.height() / 64, Some(v_and_w));
///     let factors = PairedFactors { left: [a, b], right: [c, d], row: 0, steps, values, added: () };
///     let first = |step: PairStep<64>, p: &mut ProductSums<64>| p.map_columns(&step.column_values(0), |p, v| p * v);
///     let second = |step: PairStep<64>, p: &ProductSums<64>, q: &mut ProductSums<64>| {
///         q.zip_columns(p, &step.column_values(1), |[q, p], w| p + q * w)
///     };
///     t.multiply_pairs(memory, factors, |step| PairedPlace::of_row(64 * step), first, second, |[sums]| {
///         sums.for_each_pair(|row, column, pair| y[row * 32 + column / 2].store(bf16::pair_to_bits(pair), Relaxed));
///     });
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::device::half::{HalfFloat, bf16};
///
/// let ones = stream.fill(bf16::ONE, 64 * 64)?;
/// let (values, mut y) = (stream.upload(&[[1.0; 64], [2.0; 64]].concat())?, stream.zeros(64 * 32)?);
/// let x = ones.view_2d(64, 64)?;
/// kernels::weighed(&stream, Grid::blocks(1), x, x, x, x, values.view_2d(64, 2)?, y.as_atomic())?;
/// let expected = bf16::pair_to_bits([64.0 * (64.0 + 2.0 * 64.0); 2]);
/// assert_eq!(stream.download(&y)?, [expected; 64 * 32]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ColumnValues<const N: usize> {
    pairs: [[f32; 2]; 32],
}

impl<const N: usize> ColumnValues<N> {
    /// The first or the second values of a step, of the columns from one on that a thread has, which is even and less than 8.
    ///
    /// # Safety
    /// The values are written, and stay while this reads them.
    #[inline(always)]
    pub(super) unsafe fn read(values: Address<N>, which: usize, column: usize) -> Self {
        let mut pairs = [[0.0; 2]; 32];
        each_column!(n, N, {
            // SAFETY: the caller's.
            pairs[n] = unsafe { pair_at::<N>(values, which, column / 2 + n * (COLUMNS / 2)) }
        });
        ColumnValues { pairs }
    }
}

impl<const N: usize> ProductSums<N> {
    /// Replaces each sum by `f` of it and the value of its column.
    #[inline(always)]
    pub fn map_columns(&mut self, columns: &ColumnValues<N>, mut f: impl FnMut(f32, f32) -> f32) {
        each_column!(n, N, {
            let ([a, b, c, d], [left, right]) = (self.sums[n], columns.pairs[n]);
            self.sums[n] = [f(a, left), f(b, right), f(c, left), f(d, right)];
        });
    }

    /// Replaces each sum by `f` of it, the one of `other` in the same place, and the value of their column.
    #[inline(always)]
    pub fn zip_columns(
        &mut self,
        other: &Self,
        columns: &ColumnValues<N>,
        mut f: impl FnMut([f32; 2], f32) -> f32,
    ) {
        each_column!(n, N, {
            unrolled!(number in 4, {
                let sums = [self.sums[n][number], other.sums[n][number]];
                self.sums[n][number] = f(sums, columns.pairs[n][number % 2]);
            });
        });
    }
}
