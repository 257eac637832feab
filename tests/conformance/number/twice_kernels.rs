//! Kernels whose blocks multiply what comes of a product.

/// Code for `sm_90a` multiplies by `wgmma`.
#[ferrogrid::module]
pub mod twice {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{HalfFloat, bf16, f16};
    use ferrogrid::device::matrix::{ProductElement, ProductSums, TwoProducts};
    use ferrogrid::device::prelude::*;

    /// y <- (a b^T - the greatest of each row in a tile of `N` columns) c, unless step `last` comes.
    #[inline(always)]
    fn compute<
        T: ProductElement + HalfFloat,
        const M: usize,
        const N: usize,
        const D: usize,
        const S: usize,
        const ID: usize,
    >(
        t: Thread<1>,
        factors: [TensorMap<T, 64, 64>; 3],
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, M, N, D, S>, ID>,
    ) {
        let (height, width) = (factors[0].height(), factors[0].width());
        let (row, warp) = (t.block_idx()[0] as usize * M, t.warp());
        let between = |step: usize, units: &mut ProductSums<N>, _: &mut ProductSums<D>| {
            assert!(step < last as usize || t.thread_rank() != 200, "the third step");
            let greatest = units.reduce_rows(&warp, f32::max);
            units.map_rows(&greatest, |unit, greatest| unit - greatest);
        };
        let steps = factors[1].height().div_ceil(N);
        let Some(mut sums) = t.multiply_twice(memory, factors, [row, 0], steps, between) else { return };
        sums.map_places(|i, column, sum| {
            if row + i < height && column < width {
                y[(row + i) * width + column].store(sum, Relaxed);
            }
            sum
        });
    }

    /// One group.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn small(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<f16, 64, 64, 64, 2>>,
    ) {
        compute(t, [a, b, c], last, y, memory);
    }

    /// Rows of 128 elements.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn wide(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<bf16, 64, 64, 128, 2>>,
    ) {
        compute(t, [a, b, c], last, y, memory);
    }

    /// Three groups, which take turns.
    #[inline(always)]
    #[kernel(block = 512)]
    pub fn tall(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<f16, 192, 64, 64, 3>>,
    ) {
        compute(t, [a, b, c], last, y, memory);
    }

    /// As few stages as possible.
    #[inline(always)]
    #[kernel(block = 384)]
    pub fn long(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<bf16, 128, 128, 64, 2>>,
    ) {
        compute(t, [a, b, c], last, y, memory);
    }
}
