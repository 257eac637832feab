//! Kernels for sums, products and dot products.

/// The kernels.
#[ferrogrid::module]
pub mod kernels {
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use crate::number::numbers::{Add, Element, Multiply, Operation};
    use ferrogrid::device::fold::{THREADS, fold, fold_pairs};

    /// totals[b] <- the total of the tiles of block `b`.
    #[kernel(
        block = THREADS,
        dependent_launch,
        wide,
        T = [
            i8, i16, i32, i64, u8, u16, u32, u64, f32, f64,
            #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16
        ],
        O = [Add, Multiply],
        native = super::super::native::totals
    )]
    pub fn totals<T: Element, O: Operation>(
        t: Thread<1>,
        x: &[T],
        mut totals: DisjointChunks<<T as Element>::Total, 1>,
        mut scratch: Shared<Scratch<<T as Element>::Total>>,
    ) {
        t.launch_dependents();
        let own = fold(&t, x, O::identity(), T::widen, O::combine);
        let total = t.block_reduce(&mut scratch, own, O::combine);
        totals.fill_with(&t, |_| total);
    }

    /// sums[b] <- the sum of `x[i] * y[i]` in the tiles of block `b`.
    #[kernel(
        block = THREADS,
        dependent_launch,
        wide,
        same_shape(x, y),
        T = [
            i8, i16, i32, i64, u8, u16, u32, u64, f32, f64,
            #[cfg(feature = "half")] f16, #[cfg(feature = "half")] bf16
        ],
        native = super::super::native::dot_of_tiles
    )]
    pub fn dot_of_tiles<T: Element>(
        t: Thread<1>,
        x: &[T],
        y: &[T],
        mut sums: DisjointChunks<<T as Element>::Total, 1>,
        mut scratch: Shared<Scratch<<T as Element>::Total>>,
    ) {
        t.launch_dependents();
        let product = |x: T, y: T| x.widen().multiply(y.widen());
        let own = fold_pairs(&t, (x, y), Element::ZERO, product, Element::add);
        let sum = t.block_reduce(&mut scratch, own, Element::add);
        sums.fill_with(&t, |_| sum);
    }
}
