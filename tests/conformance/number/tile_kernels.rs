//! Kernels whose blocks multiply tiles of matrices.

/// Code for `sm_90a` multiplies by `wgmma`, code for `sm_80` to `sm_90` by `mma.sync`.
#[ferrogrid::module]
pub mod tiling {
    use atomic::{AtomicValue, Ordering::Relaxed};
    use ferrogrid::device::half::{HalfFloat, bf16, f16};
    use ferrogrid::device::matrix::{
        GroupedRows, HalfElement, MatrixElement, PartialProduct, ProductElement, ProductSums, Products,
        ResultRows, StoredGroup, StoredPair, TiledFactor,
    };
    use ferrogrid::device::narrow::{f8e4m3, f8e5m2, tf32};
    use ferrogrid::device::prelude::*;

    /// c += a b^T. Each block takes every `grid_dim`-th tile.
    #[inline(always)]
    #[kernel(block = 256, T = [bf16, f16], N = [32, 128])]
    pub fn multiply<T: HalfElement, const N: usize>(
        t: Thread<1>,
        a: TensorMap<T, 64, 64>,
        b: TensorMap<T, 64, N>,
        c: &[DeviceAtomic<f32>],
        memory: Shared<Products<T, 64, N, 2>>,
    ) {
        add_product(t, [a.height(), b.height()], a, b, c, memory);
    }

    /// c <- a b^T of `of` results to a group, in rows that begin every `pitch` groups.
    #[inline(always)]
    fn store_product<G: StoredGroup, P: StoredPair, const N: usize, const ID: usize, const ROWS: usize>(
        t: &Thread<1>,
        [pitch, of]: [usize; 2],
        (a, b): (TensorMap<bf16, 64, 64>, TensorMap<bf16, 64, 32>),
        c: &[DeviceAtomic<G>],
        (memory, rows): (Shared<Products<bf16, 128, N, 2>, ID>, Shared<ResultRows<128>, ROWS>),
        pair: impl Fn([f32; 2]) -> P + Copy,
    ) {
        let (height, width, mut rows) = (a.height(), b.height(), rows.into_rows());
        let c = GroupedRows::new(c, pitch, [height, width.div_ceil(of)]);
        let (first, step, across) =
            (t.block_idx()[0] as usize, t.grid_dim()[0] as usize, width.div_ceil(N).max(1));
        let tiles = (first..height.div_ceil(128) * across).step_by(step);
        let places = tiles.map(|tile| [tile / across * 128, tile % across * N]);
        t.multiply_tiles(memory, a, b, places, |[row, column], sums: &ProductSums<N>| {
            let to = c.part([row, column / of]);
            sums.store_rows(&t.warp(), &mut rows, |_| move |_, sums| pair(sums), to);
        });
    }

    /// c <- a b^T, rounded to `bf16`.
    #[inline(always)]
    #[kernel(block = 384, N = [32, 256])]
    pub fn store_halves<const N: usize>(
        t: Thread<1>,
        pitch: usize,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 32>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<bf16, 128, N, 2>>,
        rows: Shared<ResultRows<128>>,
    ) {
        store_product(&t, [pitch, 4], (a, b), c, (memory, rows), bf16::pair_to_bits);
    }

    /// c <- a b^T
    #[inline(always)]
    #[kernel(block = 384)]
    pub fn store_words(
        t: Thread<1>,
        pitch: usize,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 32>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<bf16, 128, 64, 2>>,
        rows: Shared<ResultRows<128>>,
    ) {
        store_product(&t, [pitch, 2], (a, b), c, (memory, rows), |[left, right]| {
            u64::from(left.to_bits()) | u64::from(right.to_bits()) << 32
        });
    }

    /// c <- a b^T, of which the lowest 8 bits count.
    #[inline(always)]
    #[kernel(block = 384)]
    pub fn store_bytes(
        t: Thread<1>,
        pitch: usize,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 32>,
        c: &[DeviceAtomic<u32>],
        memory: Shared<Products<bf16, 128, 64, 2>>,
        rows: Shared<ResultRows<128>>,
    ) {
        store_product(&t, [pitch, 4], (a, b), c, (memory, rows), |sums| {
            let [left, right] = sums.map(|sum| sum as i32 as u8);
            u16::from(left) | u16::from(right) << 8
        });
    }

    /// c <- a b^T, of 64 x 64 sums, of so many columns of both from `first` on.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn multiply_columns(
        t: Thread<1>,
        first: usize,
        len: usize,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: &[DeviceAtomic<f32>],
        memory: Shared<Products<bf16, 64, 64, 2>>,
    ) {
        t.multiply_tiles(memory, a.columns(first, len), b.columns(first, len), [[0, 0]], |_, sums| {
            sums.for_each_pair(|row, column, pair| {
                for (column, sum) in (column..).zip(pair) {
                    c[row * 64 + column].store(sum, Relaxed);
                }
            });
        });
    }

    /// As `multiply`, of elements of one byte.
    #[inline(always)]
    #[kernel(block = 256, T = [i8, u8, f8e4m3, f8e5m2])]
    pub fn multiply_bytes<T: ProductElement<Sum: AtomicValue>>(
        t: Thread<1>,
        a: TensorMap<T, 128, 64>,
        b: TensorMap<T, 128, 32>,
        c: &[DeviceAtomic<<T as MatrixElement>::Sum>],
        memory: Shared<Products<T, 64, 32, 2>>,
    ) {
        add_product(t, [a.height(), b.height()], a, b, c, memory);
    }

    /// As `multiply`, of elements of four bytes.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn multiply_tf32(
        t: Thread<1>,
        a: TensorMap<tf32, 32, 64>,
        b: TensorMap<tf32, 32, 32>,
        c: &[DeviceAtomic<f32>],
        memory: Shared<Products<tf32, 64, 32, 2>>,
    ) {
        add_product(t, [a.height(), b.height()], a, b, c, memory);
    }

    /// As `multiply_bytes`, by two groups.
    #[inline(always)]
    #[kernel(block = 384, T = [i8, f8e4m3])]
    pub fn multiply_tall_bytes<T: ProductElement<Sum: AtomicValue>>(
        t: Thread<1>,
        a: TensorMap<T, 128, 128>,
        b: TensorMap<T, 128, 128>,
        c: &[DeviceAtomic<<T as MatrixElement>::Sum>],
        memory: Shared<Products<T, 128, 128, 3>>,
    ) {
        add_product(t, [a.height(), b.height()], a, b, c, memory);
    }

    /// As `multiply`, by two groups.
    #[inline(always)]
    #[kernel(block = 384, T = [bf16, f16], N = [64, 256])]
    pub fn multiply_tall<T: HalfElement, const N: usize>(
        t: Thread<1>,
        a: TensorMap<T, 64, 128>,
        b: TensorMap<T, 64, N>,
        c: &[DeviceAtomic<f32>],
        memory: Shared<Products<T, 128, N, 4>>,
    ) {
        add_product(t, [a.height(), b.height()], a, b, c, memory);
    }

    /// c += a b
    #[inline(always)]
    #[kernel(block = 384, T = [bf16, f16], N = [64, 256])]
    pub fn multiply_right<T: HalfElement, const N: usize>(
        t: Thread<1>,
        a: TensorMap<T, 64, 128>,
        b: TensorMap<T, 64, 64>,
        c: &[DeviceAtomic<f32>],
        memory: Shared<Products<T, 128, N, 3>>,
    ) {
        add_product(t, [a.height(), b.width()], a, b.transposed(), c, memory);
    }

    /// c += a^T b
    #[inline(always)]
    #[kernel(block = 384, T = [bf16, f16], N = [128])]
    pub fn multiply_both<T: HalfElement, const N: usize>(
        t: Thread<1>,
        a: TensorMap<T, 64, 64>,
        b: TensorMap<T, 64, 64>,
        c: &[DeviceAtomic<f32>],
        memory: Shared<Products<T, 128, N, 3>>,
    ) {
        add_product(t, [a.width(), b.width()], a.transposed(), b.transposed(), c, memory);
    }

    /// c <- a^T b of matrices with `height` rows that are below each other: all 64 x 128 sums of each, also beyond its edges.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn multiply_each(
        t: Thread<1>,
        height: u64,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: &[DeviceAtomic<f32>],
        memory: Shared<Products<bf16, 64, 128, 2>>,
    ) {
        let (of_a, of_b) = (a.transposed_each(height as usize), b.transposed_each(height as usize));
        let tiles = (0..c.len() / (64 * 128)).map(|matrix| [matrix * a.width(), matrix * b.width()]);
        t.multiply_tiles(memory, of_a, of_b, tiles, |[row, _], sums| {
            let first = row / a.width() * 64;
            sums.for_each_pair(|i, j, [left, right]| {
                c[(first + i) * 128 + j].store(left, Relaxed);
                c[(first + i) * 128 + j + 1].store(right, Relaxed);
            });
        });
    }

    /// What these kernels do, for that many rows and columns.
    #[inline(always)]
    pub fn add_product<
        T: ProductElement<Sum: AtomicValue>,
        const M: usize,
        const N: usize,
        const S: usize,
        const ID: usize,
    >(
        t: Thread<1>,
        [height, width]: [usize; 2],
        a: impl TiledFactor<T>,
        b: impl TiledFactor<T>,
        c: &[DeviceAtomic<<T as MatrixElement>::Sum>],
        memory: Shared<Products<T, M, N, S>, ID>,
    ) {
        let (down, across) = (height.div_ceil(M), width.div_ceil(N));
        let (first, step) = (t.block_idx()[0] as usize, t.grid_dim()[0] as usize);
        let tiles = (first..down * across).step_by(step).map(|tile| [tile / across * M, tile % across * N]);
        t.multiply_tiles(memory, a, b, tiles, |[row, column], sums| {
            sums.for_each_pair(|i, j, pair| {
                for (j, sum) in (j..).zip(pair) {
                    if row + i < height && column + j < width {
                        c[(row + i) * width + column + j].fetch_add(sum, Relaxed);
                    }
                }
            });
        });
    }

    /// Of each part of the depth, which begins and ends as `ends` says, the sums: those of all parts are below each other.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn multiply_parts(
        t: Thread<1>,
        ends: &[u64],
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 32>,
        c: &[DeviceAtomic<f32>],
        memory: Shared<Products<bf16, 64, 32, 2>>,
    ) {
        let (height, width) = (a.height(), b.height());
        let (across, count) = (width.div_ceil(32), height.div_ceil(64) * width.div_ceil(32));
        let (first, step) = (t.block_idx()[0] as usize, t.grid_dim()[0] as usize);
        let tiles = (first..(ends.len() - 1) * count).step_by(step).map(|number| {
            let (part, tile) = (number / count, number % count);
            let depth = [ends[part], ends[part + 1]].map(|end| end as usize);
            PartialProduct { place: [tile / across * 64, tile % across * 32], depth }
        });
        t.multiply_tiles(memory, a, b, tiles, |PartialProduct { place: [row, column], depth }, sums| {
            let is_part = |ends: &[u64]| depth == [ends[0], ends[1]].map(|end| a.width().min(end as usize));
            let part = ends.windows(2).position(is_part).unwrap_or(usize::MAX);
            sums.for_each_pair(|i, j, pair| {
                for (j, sum) in (j..).zip(pair) {
                    if row + i < height && column + j < width {
                        c[(part * height + row + i) * width + column + j].fetch_add(sum, Relaxed);
                    }
                }
            });
        });
    }

    /// What threads of a product do that panic.
    #[kernel]
    pub fn panicking(
        t: Thread<1>,
        kind: u32,
        a: TensorMap<bf16, 64, 128>,
        memory: Shared<Products<bf16, 128, 128, 3>>,
    ) {
        let rank = t.thread_rank();
        let tiles = (0..8).map(|tile| {
            assert!(kind != 0 || tile != 5, "no more tiles");
            [0, 0]
        });
        t.multiply_tiles(memory, a, a, tiles, |_, _| {
            assert!(kind != 1 || rank != 135, "one thread");
            assert!(kind != 2 || rank / 32 != 5, "one warp");
            assert!(kind != 3, "all threads");
        });
    }

    /// A product with a transposed factor, at any place along its rows.
    #[kernel(block = 256)]
    pub fn place_transposed(
        t: Thread<1>,
        column: usize,
        a: TensorMap<bf16, 64, 64>,
        c: &[DeviceAtomic<f32>],
        memory: Shared<Products<bf16, 64, 64, 2>>,
    ) {
        t.multiply_tiles(memory, a, a.transposed(), [[0, column]], |_, sums| {
            sums.for_each_pair(|_, _, [sum, _]| c[0].store(sum, Relaxed));
        });
    }
}
