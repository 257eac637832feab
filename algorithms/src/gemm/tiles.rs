//! The kernels of products by the tensor cores of blocks: of 16-bit floats, 8-bit floats, integers, and `f32` that was rounded to `tf32`.

/// What the kernels do.
#[ferrogrid::module(arch = ["sm_80"])]
pub mod tiles {
    use core::marker::PhantomData;

    use atomic::Ordering::Relaxed;
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{HalfFloat, bf16, f16};
    use ferrogrid::device::matrix::{
        EachProduct, GroupedRows, PartialProduct, ProductElement, ProductSums, ProductTiles, Products,
        ResultRows, ResultTile, StoredPair, TiledFactor, WarpRows,
    };
    use ferrogrid::device::prelude::*;

    use crate::gemm::kernels::kernels::Form;
    use crate::number::numbers::Element;

    /// An element of results, whose sums are `U`.
    pub trait Stored<U: Copy>: Sized {
        /// The elements of 8 bytes.
        const GROUP: usize = 8 / size_of::<Self>();
        /// Two neighbours.
        type Pair: StoredPair;

        /// The numbers of two neighbours, which are the lowest bits.
        fn numbers(bits: u64) -> [U; 2];

        /// Two neighbours.
        fn pair(sums: [U; 2]) -> Self::Pair;

        /// Stores what `pair` makes of a row's groups, a column, and two sums of which the first one is there.
        fn store<const N: usize>(
            sums: &ProductSums<N, U>,
            warp: &Warp,
            pair: impl Fn(&[DeviceAtomic<u64>], usize, [U; 2]) -> Self::Pair + Copy,
            to: GroupedRows<u64>,
        );
    }

    /// Sums of products.
    pub trait Sum: Element {
        /// `alpha` times the sum.
        fn times(self, alpha: Self) -> Self;

        /// `alpha` times the sum and `beta` times what was there before.
        fn scaled(self, scales: [Self; 2], before: Self) -> Self;
    }

    impl Sum for f32 {
        #[inline(always)]
        fn times(self, alpha: f32) -> f32 {
            alpha * self
        }

        #[inline(always)]
        fn scaled(self, [alpha, beta]: [f32; 2], before: f32) -> f32 {
            signed_zero(beta).mul_add(before, alpha * self)
        }
    }

    impl Sum for i32 {
        #[inline(always)]
        fn times(self, alpha: i32) -> i32 {
            alpha.wrapping_mul(self)
        }

        #[inline(always)]
        fn scaled(self, [alpha, beta]: [i32; 2], before: i32) -> i32 {
            alpha.wrapping_mul(self).wrapping_add(beta.wrapping_mul(before))
        }
    }

    /// Stores `alpha` times the sums and `beta` times what was there before.
    #[inline(always)]
    fn add<U: Sum, C: Stored<U>, const N: usize>(
        sums: &ProductSums<N, U>,
        warp: &Warp,
        scales: [U; 2],
        to: GroupedRows<u64>,
    ) {
        // Without `beta` nothing counts that was there before, not even NaN.
        let counts = scales[1] != U::ZERO;
        let pair = move |row: &[DeviceAtomic<u64>], column: usize, [left, right]: [U; 2]| {
            let group = row.get(column / C::GROUP).filter(|_| counts);
            let before = group.map_or(0, |group| group.load(Relaxed));
            let [low, high] = C::numbers(before >> (column % C::GROUP * size_of::<C>() * 8));
            C::pair([left.scaled(scales, low), right.scaled(scales, high)])
        };
        C::store(sums, warp, pair, to);
    }

    /// -0 for 0: its product with 0 changes no sum, not even the sign of a zero.
    #[inline(always)]
    fn signed_zero(beta: f32) -> f32 {
        if beta == 0.0 { -0.0 } else { beta }
    }

    #[cfg(feature = "half")]
    macro_rules! halves {
        ($($t:ident),*) => { $(
            impl Stored<f32> for $t {
                type Pair = u32;

                #[inline(always)]
                fn numbers(bits: u64) -> [f32; 2] {
                    [bits, bits >> 16].map(|bits| $t::from_bits(bits as u16).to_f32())
                }

                #[inline(always)]
                fn pair(sums: [f32; 2]) -> u32 {
                    $t::pair_to_bits(sums)
                }

                #[inline(always)]
                fn store<const N: usize>(
                    sums: &ProductSums<N>,
                    warp: &Warp,
                    pair: impl Fn(&[DeviceAtomic<u64>], usize, [f32; 2]) -> u32 + Copy,
                    to: GroupedRows<u64>,
                ) {
                    sums.for_each_four(warp, |i| {
                        let row = to.row(i);
                        let store = move |four: usize, bits| {
                            if let Some(c) = row.get(four) {
                                c.store(bits, Relaxed);
                            }
                        };
                        (move |column, sums| pair(row, column, sums), store)
                    });
                }
            }
        )* };
    }
    #[cfg(feature = "half")]
    halves!(f16, bf16);

    macro_rules! words {
        ($($t:ident: $of_bits:expr, $bits:expr;)*) => { $(
            impl Stored<$t> for $t {
                type Pair = u64;

                #[inline(always)]
                fn numbers(bits: u64) -> [$t; 2] {
                    [bits, bits >> 32].map(|bits| $of_bits(bits as u32))
                }

                #[inline(always)]
                fn pair(sums: [$t; 2]) -> u64 {
                    let [low, high] = sums.map(|sum| u64::from($bits(sum)));
                    low | high << 32
                }

                #[inline(always)]
                fn store<const N: usize>(
                    sums: &ProductSums<N, $t>,
                    _: &Warp,
                    pair: impl Fn(&[DeviceAtomic<u64>], usize, [$t; 2]) -> u64 + Copy,
                    to: GroupedRows<u64>,
                ) {
                    sums.for_each_pair(|i, column, sums| {
                        let row = to.row(i);
                        if let Some(c) = row.get(column / 2) {
                            c.store(pair(row, column, sums), Relaxed);
                        }
                    });
                }
            }
        )* };
    }
    words! {
        f32: f32::from_bits, f32::to_bits;
        i32: u32::cast_signed, i32::cast_unsigned;
    }

    /// The rows of all batches, in `c` or of so many parts below each other.
    #[inline(always)]
    fn rows_of<'c, U>(
        form: &Form<U>,
        c: &'c [DeviceAtomic<u64>],
        group: usize,
        parts: usize,
    ) -> GroupedRows<'c, u64> {
        let s = form.sizes;
        let ([rows, columns], pitch) = (s.result.map(|it| it as usize), s.pitches[2] as usize / group);
        GroupedRows::new(c, pitch, [parts * s.batches as usize * rows, columns.div_ceil(group)])
    }

    /// Where large tiles are stored, as `C`; if it `ADDS`, beside `beta` times what was there before.
    struct Results<'c, U, C, const ADDS: bool> {
        warp: &'c Warp<'c>,
        rows: WarpRows<'c>,
        scales: [U; 2],
        tiles: ProductTiles<'c>,
        c: GroupedRows<'c, u64>,
        stored: PhantomData<C>,
    }

    impl<U: Sum, C: Stored<U>, const ADDS: bool, const N: usize> EachProduct<[usize; 2], N, U>
        for Results<'_, U, C, ADDS>
    {
        #[inline(always)]
        fn of(&mut self, place: [usize; 2], sums: &ProductSums<N, U>) {
            let (to, [alpha, _]) = (self.c.of_tile(self.tiles.at(place), C::GROUP), self.scales);
            if ADDS {
                return add::<_, C, N>(sums, self.warp, self.scales, to);
            }
            let pair = |_, sums: [U; 2]| C::pair(sums.map(|sum| sum.times(alpha)));
            sums.store_rows(self.warp, &mut self.rows, |_| pair, to);
        }
    }

    /// c <- alpha a b^T, or, if it `ADDS`, alpha a b^T + beta c, with `c` in groups of 8 bytes. Code for both would have no registers for the sums.
    #[inline(always)]
    pub fn multiply_tiles<
        T: ProductElement<Sum: Sum>,
        C: Stored<T::Sum>,
        const M: usize,
        const N: usize,
        const S: usize,
        const ADDS: bool,
        const ID: usize,
        const ROWS: usize,
    >(
        t: &Thread<1>,
        form: Form<T::Sum>,
        a: impl TiledFactor<T>,
        b: impl TiledFactor<T>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, M, N, S>, ID>,
        rows: Shared<ResultRows<M>, ROWS>,
    ) {
        let tiles = form.tiles([M, N]);
        let results = Results::<_, C, ADDS> {
            warp: &t.warp(),
            rows: rows.into_rows(),
            scales: form.scales,
            tiles,
            c: rows_of(&form, c, C::GROUP, 1),
            stored: PhantomData,
        };
        t.multiply_each(memory, a, b, tiles.places(t), results);
        // At the end, where it needs no registers beside the sums.
        tiles.groups.check(t, tiles.extent[0]);
    }

    /// As `multiply_tiles`; but if the depth has several parts, `c` has the sums of each, below each other.
    #[inline(always)]
    pub fn multiply_parts<
        T: ProductElement<Sum: Stored<T::Sum> + Sum>,
        C: Stored<T::Sum>,
        const M: usize,
        const N: usize,
        const S: usize,
        const ID: usize,
    >(
        t: &Thread<1>,
        form: Form<T::Sum>,
        a: impl TiledFactor<T>,
        b: impl TiledFactor<T>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, M, N, S>, ID>,
    ) {
        let all = form.tiles([M, N]);
        let [parts, elements] = form.sizes.parts.map(|it| it as usize);
        let tiles = all.partial_places(t, [parts, elements]);
        t.multiply_tiles(memory, a, b, tiles, |PartialProduct { place, depth }, sums| {
            let tile = all.at(place);
            if parts == 1 {
                let to = rows_of(&form, c, C::GROUP, 1).of_tile(tile, C::GROUP);
                return add::<_, C, N>(sums, &t.warp(), form.scales, to);
            }
            let (part, scales) = (depth[0] / elements, [T::Sum::ONE, T::Sum::ZERO]);
            let (group, above) = (<T::Sum as Stored<T::Sum>>::GROUP, part * all.batches * all.extent[0]);
            let tile = ResultTile { rows: tile.rows.map(|row| above + row), ..tile };
            let to = rows_of(&form, c, group, parts).of_tile(tile, group);
            add::<_, T::Sum, N>(sums, &t.warp(), scales, to);
        });
        all.groups.check(t, all.extent[0]);
    }
}

/// The kernels of 16-bit floats, of the architectures with instructions of their own. `LEFT` and `RIGHT` say whether `a` and `b` are stored by columns
/// of the factor: `a` as `k` rows, `b` as `k` rows.
#[cfg(feature = "half")]
#[ferrogrid::module(arch = ["sm_80", "sm_90a"])]
pub mod halves {
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::matrix::{HalfElement, Products, ResultRows};
    use ferrogrid::device::prelude::*;

    use super::tiles::{Stored, multiply_parts, multiply_tiles};
    use crate::gemm::kernels::kernels::{Form, Sizes};

    /// 128 x 256 sums by each block.
    #[inline(always)]
    #[kernel(
        block = 384, min_blocks = 1, T = [f16, bf16], LEFT = [false, true], RIGHT = [false, true], ADDS = [false, true]
    )]
    pub fn multiply_large<
        T: HalfElement + Stored<f32>,
        const LEFT: bool,
        const RIGHT: bool,
        const ADDS: bool,
    >(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: TensorMap<T, 64, 64>,
        b: TensorMap<T, 64, 64>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, 128, 256, 4>>,
        rows: Shared<ResultRows<128>>,
    ) {
        multiply_tiles::<T, T, _, _, _, ADDS, _, _>(
            &t,
            Form { sizes: s, scales, offsets },
            a.transposed_each_if::<LEFT>(s.depth as usize),
            b.transposed_each_if::<RIGHT>(s.depth as usize),
            c,
            memory,
            rows,
        );
    }

    /// 64 x 128 sums by each block.
    #[inline(always)]
    #[kernel(block = 256, T = [f16, bf16], LEFT = [false, true], RIGHT = [false, true])]
    pub fn multiply_small<T: HalfElement + Stored<f32>, const LEFT: bool, const RIGHT: bool>(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: TensorMap<T, 64, 64>,
        b: TensorMap<T, 64, 64>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, 64, 128, 4>>,
    ) {
        multiply_parts::<T, T, _, _, _, _>(
            &t,
            Form { sizes: s, scales, offsets },
            a.transposed_each_if::<LEFT>(s.depth as usize),
            b.transposed_each_if::<RIGHT>(s.depth as usize),
            c,
            memory,
        );
    }

    /// 64 x 64 sums by each block.
    #[inline(always)]
    #[kernel(block = 256, T = [f16, bf16], LEFT = [false, true], RIGHT = [false, true])]
    pub fn multiply_narrow<T: HalfElement + Stored<f32>, const LEFT: bool, const RIGHT: bool>(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: TensorMap<T, 64, 64>,
        b: TensorMap<T, 64, 64>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, 64, 64, 6>>,
    ) {
        multiply_parts::<T, T, _, _, _, _>(
            &t,
            Form { sizes: s, scales, offsets },
            a.transposed_each_if::<LEFT>(s.depth as usize),
            b.transposed_each_if::<RIGHT>(s.depth as usize),
            c,
            memory,
        );
    }
}

/// The kernels of 8-bit floats, stored as `C`.
#[cfg(feature = "half")]
#[ferrogrid::module(arch = ["sm_89", "sm_90a"])]
pub mod narrow_floats {
    use ferrogrid::device::half::bf16;
    use ferrogrid::device::matrix::{ProductElement, Products, ResultRows};
    use ferrogrid::device::narrow::{f8e4m3, f8e5m2};
    use ferrogrid::device::prelude::*;

    use super::tiles::{Stored, multiply_parts, multiply_tiles};
    use crate::gemm::kernels::kernels::{Form, Sizes};

    /// 128 x 256 sums by each block.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f8e4m3, f8e5m2], C = [f32, bf16], ADDS = [false, true])]
    pub fn multiply_large<T: ProductElement<Sum = f32>, C: Stored<f32>, const ADDS: bool>(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: TensorMap<T, 128, 128>,
        b: TensorMap<T, 128, 256>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, 128, 256, 4>>,
        rows: Shared<ResultRows<128>>,
    ) {
        let form = Form { sizes: s, scales, offsets };
        multiply_tiles::<T, C, _, _, _, ADDS, _, _>(&t, form, a, b, c, memory, rows);
    }

    /// 64 x 128 sums by each block.
    #[inline(always)]
    #[kernel(block = 256, T = [f8e4m3, f8e5m2], C = [f32, bf16])]
    pub fn multiply_small<T: ProductElement<Sum = f32>, C: Stored<f32>>(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: TensorMap<T, 128, 64>,
        b: TensorMap<T, 128, 128>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, 64, 128, 4>>,
    ) {
        multiply_parts::<T, C, _, _, _, _>(&t, Form { sizes: s, scales, offsets }, a, b, c, memory);
    }
}

/// The kernels of `i8`.
#[ferrogrid::module(arch = ["sm_80", "sm_90a"])]
pub mod integers {
    use ferrogrid::device::matrix::{Products, ResultRows};
    use ferrogrid::device::prelude::*;

    use super::tiles::{multiply_parts, multiply_tiles};
    use crate::gemm::kernels::kernels::{Form, Sizes};

    /// 128 x 256 sums by each block.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, ADDS = [false, true])]
    pub fn multiply_large<const ADDS: bool>(
        t: Thread<1>,
        s: Sizes,
        scales: [i32; 2],
        offsets: &[u32],
        a: TensorMap<i8, 128, 128>,
        b: TensorMap<i8, 128, 256>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<i8, 128, 256, 4>>,
        rows: Shared<ResultRows<128>>,
    ) {
        let form = Form { sizes: s, scales, offsets };
        multiply_tiles::<i8, i32, _, _, _, ADDS, _, _>(&t, form, a, b, c, memory, rows);
    }

    /// 64 x 128 sums by each block.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn multiply_small(
        t: Thread<1>,
        s: Sizes,
        scales: [i32; 2],
        offsets: &[u32],
        a: TensorMap<i8, 128, 64>,
        b: TensorMap<i8, 128, 128>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<i8, 64, 128, 4>>,
    ) {
        multiply_parts::<i8, i32, _, _, _, _>(&t, Form { sizes: s, scales, offsets }, a, b, c, memory);
    }
}

/// The kernels of `tf32`, for GPUs that multiply tiles: others are faster elsewhere.
#[ferrogrid::module(arch = ["sm_90a"])]
pub mod rounded {
    use ferrogrid::device::matrix::{Products, ResultRows};
    use ferrogrid::device::narrow::tf32;
    use ferrogrid::device::prelude::*;

    use super::tiles::{multiply_parts, multiply_tiles};
    use crate::gemm::kernels::kernels::{Form, Sizes};

    /// 128 x 256 sums by each block.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, ADDS = [false, true])]
    pub fn multiply_large<const ADDS: bool>(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: TensorMap<tf32, 32, 128>,
        b: TensorMap<tf32, 32, 256>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<tf32, 128, 256, 4>>,
        rows: Shared<ResultRows<128>>,
    ) {
        let form = Form { sizes: s, scales, offsets };
        multiply_tiles::<tf32, f32, _, _, _, ADDS, _, _>(&t, form, a, b, c, memory, rows);
    }

    /// 64 x 128 sums by each block.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn multiply_small(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: TensorMap<tf32, 32, 64>,
        b: TensorMap<tf32, 32, 128>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<tf32, 64, 128, 4>>,
    ) {
        multiply_parts::<tf32, f32, _, _, _, _>(&t, Form { sizes: s, scales, offsets }, a, b, c, memory);
    }
}
