//! The kernels of products of 16-bit floats by tensor cores.

/// What the kernels do.
#[ferrogrid::module(arch = ["sm_80"])]
pub mod tiles {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::HalfFloat;
    use ferrogrid::device::matrix::{ProductElement, Products, TiledFactor};
    use ferrogrid::device::prelude::*;

    use crate::gemm::kernels::kernels::Sizes;
    use crate::number::numbers::Element;

    /// An element that tensor cores multiply.
    pub trait TensorElement: Element<Total = f32> + ProductElement + HalfFloat {}

    impl<T: Element<Total = f32> + ProductElement + HalfFloat> TensorElement for T {}

    /// c <- alpha a b^T + beta c, with `c` in fours.
    #[inline(always)]
    pub fn multiply_tiles<
        T: TensorElement,
        const M: usize,
        const N: usize,
        const S: usize,
        const ID: usize,
    >(
        t: &Thread<1>,
        s: Sizes,
        [alpha, beta]: [f32; 2],
        a: impl TiledFactor<T>,
        b: impl TiledFactor<T>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, M, N, S>, ID>,
    ) {
        let [rows, columns] = s.result.map(|it| it as usize);
        let pitch = s.pitches[2] as usize;
        let (first, step) = (t.block_idx()[0] as usize, t.grid_dim()[0] as usize);
        let count = (s.batches * s.tiles[0] * s.tiles[1]) as usize;
        // A batch's rows of `b` are below those of the batch before, as its rows of `a` are.
        let tiles = (first..count).step_by(step).map(|tile| {
            let (batch, [down, across]) = s.place(tile as u64);
            [batch as usize * rows + down as usize * M, batch as usize * columns + across as usize * N]
        });
        t.multiply_tiles(memory, a, b, tiles, |[first_row, first_column], sums| {
            // The batch of the tile: its rows may go beyond the batch's last one.
            let batch = first_row / rows;
            let (end, first_column) = ((batch + 1) * rows, first_column - batch * columns);
            sums.for_each_four(&t.warp(), |i, four, sums| {
                let (row, column) = (first_row + i, first_column + four * 4);
                if row < end
                    && column < columns
                    && let Some(c) = c.get((row * pitch + column) / 4)
                {
                    // What `c` held does not count without `beta`, not even NaN.
                    let before = if beta == 0.0 { 0 } else { c.load(Relaxed) };
                    let sum = |k: usize| {
                        beta.mul_add(T::from_bits((before >> (16 * k)) as u16).to_f32(), alpha * sums[k])
                    };
                    let [low, high] =
                        [[sum(0), sum(1)], [sum(2), sum(3)]].map(|pair| u64::from(T::pair_to_bits(pair)));
                    c.store(low | high << 32, Relaxed);
                }
            });
        });
    }
}

/// The kernels, of the architectures with instructions of their own. `LEFT` and `RIGHT` say whether `a` and `b` are stored by columns
/// of the factor: `a` as `k` rows, `b` as `k` rows.
#[ferrogrid::module(arch = ["sm_80", "sm_90a"])]
pub mod kernels {
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::matrix::Products;
    use ferrogrid::device::prelude::*;

    use super::tiles::{TensorElement, multiply_tiles};
    use crate::gemm::kernels::kernels::Sizes;

    /// 128 x 256 sums by each block.
    #[inline(always)]
    #[kernel(
        block = 384, min_blocks = 1, T = [f16, bf16], LEFT = [false, true], RIGHT = [false, true]
    )]
    pub fn multiply_large<T: TensorElement, const LEFT: bool, const RIGHT: bool>(
        t: Thread<1>,
        s: Sizes,
        alpha: f32,
        beta: f32,
        a: TensorMap<T, 64, 64>,
        b: TensorMap<T, 64, 64>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, 128, 256, 4>>,
    ) {
        multiply_tiles(
            &t,
            s,
            [alpha, beta],
            a.transposed_if::<LEFT>(),
            b.transposed_if::<RIGHT>(),
            c,
            memory,
        );
    }

    /// 64 x 128 sums by each block.
    #[inline(always)]
    #[kernel(block = 256, T = [f16, bf16], LEFT = [false, true], RIGHT = [false, true])]
    pub fn multiply_small<T: TensorElement, const LEFT: bool, const RIGHT: bool>(
        t: Thread<1>,
        s: Sizes,
        alpha: f32,
        beta: f32,
        a: TensorMap<T, 64, 64>,
        b: TensorMap<T, 64, 64>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, 64, 128, 4>>,
    ) {
        multiply_tiles(
            &t,
            s,
            [alpha, beta],
            a.transposed_if::<LEFT>(),
            b.transposed_if::<RIGHT>(),
            c,
            memory,
        );
    }
}
