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
        let pitch = s.pitches[2] as usize / 4;
        let (first, step) = (t.block_idx()[0] as usize, t.grid_dim()[0] as usize);
        let count = (s.batches * s.tiles[0] * s.tiles[1]) as usize;
        // A batch's rows of `b` are below those of the batch before, as its rows of `a` are.
        let tiles = (first..count).step_by(step).map(|tile| {
            let (batch, [down, across]) = s.place(tile as u64);
            [batch as usize * rows + down as usize * M, batch as usize * columns + across as usize * N]
        });
        // -0, the product with 0, changes no sum, not even the sign of a zero.
        let beta = if beta == 0.0 { -0.0 } else { beta };
        t.multiply_tiles(memory, a, b, tiles, |[first_row, first_column], sums| {
            // The batch of the tile: its rows may go beyond the batch's last one.
            let batch = first_row / rows;
            let (end, first) = ((batch + 1) * rows, (first_column - batch * columns) / 4);
            sums.for_each_four(&t.warp(), |i| {
                let start = (first_row + i) * pitch;
                let c = c.get(start + first..start + columns.div_ceil(4)).filter(|_| first_row + i < end);
                let c = c.unwrap_or_default();
                let bits = move |column: usize, [left, right]: [f32; 2]| {
                    // What `c` held does not count without `beta`, not even NaN.
                    let before = c.get(column / 4).filter(|_| beta != 0.0);
                    let before = before.map_or(0, |c| c.load(Relaxed) >> (column % 4 * 16));
                    let [low, high] = [before, before >> 16].map(|bits| T::from_bits(bits as u16).to_f32());
                    T::pair_to_bits([beta.mul_add(low, alpha * left), beta.mul_add(high, alpha * right)])
                };
                let store = move |four: usize, bits| {
                    if let Some(c) = c.get(four) {
                        c.store(bits, Relaxed);
                    }
                };
                (bits, store)
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
