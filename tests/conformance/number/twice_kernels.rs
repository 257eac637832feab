//! Kernels whose blocks multiply what comes of a product, or of two.

/// Code for `sm_90a` multiplies by `wgmma`.
#[ferrogrid::module]
pub mod twice {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::matrix::{HalfElement, PairedProducts, ProductSums, TwoProducts};
    use ferrogrid::device::prelude::*;

    /// y <- (a b^T - the greatest of each row in a tile of `N` columns) c, where the sums are halved before each tile, unless step `last`
    /// comes.
    #[inline(always)]
    fn compute<
        T: HalfElement,
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
        let first = |[steps, _]: &mut [usize; 2], step: usize, units: &mut ProductSums<N>| {
            *steps += 1;
            assert!(step < last as usize || t.thread_rank() != 200, "the third step");
            let greatest = units.reduce_rows(&warp, f32::max);
            units.map_rows(&greatest, |unit, greatest| unit - greatest);
        };
        let second = |[steps, halved]: &mut [usize; 2], sums: &mut ProductSums<D>| {
            *halved += 1;
            sums.map_places(|_, _, sum| if *halved == *steps { sum / 2.0 } else { f32::NAN });
        };
        let steps = factors[1].height().div_ceil(N);
        t.multiply_twice(memory, factors, [row, 0], steps, [0; 2], first, second, |kept, mut sums| {
            sums.map_places(|i, column, sum| {
                if row + i < height && column < width && kept == [steps; 2] {
                    y[(row + i) * width + column].store(sum, Relaxed);
                }
                sum
            });
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

    /// Three groups, which take turns, and the registers of the threads that copy.
    #[inline(always)]
    #[kernel(block = 512, min_blocks = 1)]
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

    /// Three groups, whose threads have no registers for both products at once.
    #[inline(always)]
    #[kernel(block = 512, min_blocks = 1)]
    pub fn tall_and_long(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<f16, 192, 128, 64, 2>>,
    ) {
        compute(t, [a, b, c], last, y, memory);
    }

    /// (2 p - q) c and 2 p d, or the first of them, with p = a c^T and q = b d^T, the last tiles first and then
    /// one far past the end, unless step `last` comes.
    #[inline(always)]
    fn compute_pairs<
        T: HalfElement,
        const M: usize,
        const N: usize,
        const D: usize,
        const S: usize,
        const R: usize,
        const ID: usize,
    >(
        t: Thread<1>,
        [left, right]: [[TensorMap<T, 64, 64>; 2]; 2],
        last: u32,
        results: [&[DeviceAtomic<f32>]; R],
        memory: Shared<PairedProducts<T, M, N, D, S>, ID>,
    ) {
        let (height, width) = (left[0].height(), left[0].width());
        let row = t.block_idx()[0] as usize * M;
        let first = |step: usize, p: &mut ProductSums<N>| {
            assert!(step < last as usize || t.thread_rank() != 200, "the third step");
            p.map_places(|_, _, p| 2.0 * p);
        };
        let second = |step: usize, p: &ProductSums<N>, q: &mut ProductSums<N>| {
            assert!(step < last as usize + 1 || t.thread_rank() != 300, "the third second step");
            q.zip_places(p, |_, _, [q, p]| p - q);
        };
        let store = |to: &[DeviceAtomic<f32>], sums: &ProductSums<D>| {
            sums.for_each_pair(|i, column, pair| {
                for (column, sum) in (column..).zip(pair) {
                    if row + i < height && column < width {
                        to[(row + i) * width + column].store(sum, Relaxed);
                    }
                }
            });
        };
        let steps = right[0].height().div_ceil(N);
        let places = |step: usize| [steps.wrapping_sub(step + 1).saturating_mul(N), 0];
        t.multiply_pairs(memory, left, right, row, steps + 1, places, first, second, |sums: [_; R]| {
            store(results[0], &sums[0]);
            if R == 2 {
                store(results[R - 1], &sums[R - 1]);
            }
        });
    }

    /// One group.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn small_pairs(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        d: TensorMap<f16, 64, 64>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<PairedProducts<f16, 64, 64, 64, 2>>,
    ) {
        compute_pairs(t, [[a, b], [c, d]], last, [y], memory);
    }

    /// Two groups.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn deep_pairs(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        d: TensorMap<bf16, 64, 64>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        z: &[DeviceAtomic<f32>],
        memory: Shared<PairedProducts<bf16, 128, 64, 128, 2>>,
    ) {
        compute_pairs(t, [[a, b], [c, d]], last, [y, z], memory);
    }
}
