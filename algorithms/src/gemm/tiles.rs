//! The kernels of products by the tensor cores of blocks: of 16-bit floats, 8-bit floats, integers, and `f32` that was rounded to `tf32`.

/// What the kernels do.
#[ferrogrid::module(arch = ["sm_80"])]
pub mod tiles {
    use atomic::Ordering::Relaxed;
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{HalfFloat, bf16, f16};
    use ferrogrid::device::matrix::{
        PartialProduct, ProductElement, ProductSums, Products, ResultTile, TiledFactor,
    };
    use ferrogrid::device::prelude::*;

    use crate::gemm::kernels::kernels::Form;
    use crate::number::numbers::Element;

    /// An element of results, whose sums are `U`.
    pub trait Stored<U: Copy>: Sized {
        /// The elements of 8 bytes.
        const GROUP: usize = 8 / size_of::<Self>();

        /// Stores `alpha` times the sums and `beta` times what was there before. `row` has the groups of a row of the product.
        fn store<'c, const N: usize>(
            sums: &ProductSums<N, U>,
            warp: &Warp,
            scales: [U; 2],
            row: impl Fn(usize) -> &'c [DeviceAtomic<u64>],
        );
    }

    /// What counts of a group that was there before: nothing without `beta`, not even NaN.
    #[inline(always)]
    fn before(group: Option<&DeviceAtomic<u64>>, counts: bool) -> u64 {
        group.filter(|_| counts).map_or(0, |group| group.load(Relaxed))
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
                #[inline(always)]
                fn store<'c, const N: usize>(
                    sums: &ProductSums<N>,
                    warp: &Warp,
                    [alpha, beta]: [f32; 2],
                    row: impl Fn(usize) -> &'c [DeviceAtomic<u64>],
                ) {
                    let (counts, beta) = (beta != 0.0, signed_zero(beta));
                    sums.for_each_four(warp, |i| {
                        let c = row(i);
                        let bits = move |column: usize, [left, right]: [f32; 2]| {
                            let before = before(c.get(column / 4), counts) >> (column % 4 * 16);
                            let [low, high] = [before, before >> 16].map(|bits| $t::from_bits(bits as u16).to_f32());
                            $t::pair_to_bits([beta.mul_add(low, alpha * left), beta.mul_add(high, alpha * right)])
                        };
                        let store = move |four: usize, bits| {
                            if let Some(c) = c.get(four) {
                                c.store(bits, Relaxed);
                            }
                        };
                        (bits, store)
                    });
                }
            }
        )* };
    }
    #[cfg(feature = "half")]
    halves!(f16, bf16);

    macro_rules! words {
        ($($t:ident: $counts:expr, $scaled:expr, $of_bits:expr, $bits:expr;)*) => { $(
            impl Stored<$t> for $t {
                #[inline(always)]
                fn store<'c, const N: usize>(
                    sums: &ProductSums<N, $t>,
                    _: &Warp,
                    [alpha, beta]: [$t; 2],
                    row: impl Fn(usize) -> &'c [DeviceAtomic<u64>],
                ) {
                    let counts = $counts(beta);
                    sums.for_each_pair(|i, column, [left, right]| {
                        if let Some(c) = row(i).get(column / 2) {
                            let before = before(Some(c), counts);
                            let word = |sum, before: u64| {
                                let scaled: $t = $scaled([alpha, beta], sum, $of_bits(before as u32));
                                u64::from($bits(scaled))
                            };
                            c.store(word(left, before) | word(right, before >> 32) << 32, Relaxed);
                        }
                    });
                }
            }
        )* };
    }
    words! {
        f32: |beta| beta != 0.0, |[alpha, beta]: [f32; 2], sum: f32, before| {
            signed_zero(beta).mul_add(before, alpha * sum)
        }, f32::from_bits, f32::to_bits;
        i32: |beta| beta != 0, |[alpha, beta]: [i32; 2], sum: i32, before| {
            alpha.wrapping_mul(sum).wrapping_add(beta.wrapping_mul(before))
        }, |bits| bits as i32, |sum| sum as u32;
    }

    /// The groups of the rows of a tile, in `c` or below those of other parts, up to the end of its batch or group.
    #[inline(always)]
    fn groups<'c, U>(
        form: &Form<U>,
        c: &'c [DeviceAtomic<u64>],
        group: usize,
        part: usize,
        ResultTile { rows: [first_row, end], column, .. }: ResultTile,
    ) -> impl Fn(usize) -> &'c [DeviceAtomic<u64>] {
        let s = form.sizes;
        let ([rows, columns], pitch) = (s.result.map(|it| it as usize), s.pitches[2] as usize / group);
        let (above, first) = (part * s.batches as usize * rows + first_row, column / group);
        move |i| {
            let start = (above + i) * pitch;
            let c = c.get(start + first..start + columns.div_ceil(group));
            c.filter(|_| first_row + i < end).unwrap_or_default()
        }
    }

    /// c <- alpha a b^T + beta c, with `c` in groups of 8 bytes.
    #[inline(always)]
    pub fn multiply_tiles<
        T: ProductElement<Sum: Copy>,
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
        let tiles = form.tiles([M, N]);
        t.multiply_tiles(memory, a, b, tiles.places(t), |place, sums| {
            C::store(sums, &t.warp(), form.scales, groups(&form, c, C::GROUP, 0, tiles.at(place)));
        });
        // At the end, where it needs no registers beside the sums.
        tiles.groups.check(t, tiles.extent[0]);
    }

    /// As `multiply_tiles`; but if the depth has several parts, `c` has the sums of each, below each other.
    #[inline(always)]
    pub fn multiply_parts<
        T: ProductElement<Sum: Stored<T::Sum> + Element>,
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
            if parts == 1 {
                C::store(sums, &t.warp(), form.scales, groups(&form, c, C::GROUP, 0, all.at(place)));
                return;
            }
            let (part, scales) = (depth[0] / elements, [T::Sum::ONE, T::Sum::ZERO]);
            let group = <T::Sum as Stored<T::Sum>>::GROUP;
            <T::Sum as Stored<T::Sum>>::store(
                sums,
                &t.warp(),
                scales,
                groups(&form, c, group, part, all.at(place)),
            );
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
    use ferrogrid::device::matrix::{HalfElement, Products};
    use ferrogrid::device::prelude::*;

    use super::tiles::{Stored, multiply_parts, multiply_tiles};
    use crate::gemm::kernels::kernels::{Form, Sizes};

    /// 128 x 256 sums by each block.
    #[inline(always)]
    #[kernel(
        block = 384, min_blocks = 1, T = [f16, bf16], LEFT = [false, true], RIGHT = [false, true]
    )]
    pub fn multiply_large<T: HalfElement + Stored<f32>, const LEFT: bool, const RIGHT: bool>(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: TensorMap<T, 64, 64>,
        b: TensorMap<T, 64, 64>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, 128, 256, 4>>,
    ) {
        multiply_tiles::<T, T, _, _, _, _>(
            &t,
            Form { sizes: s, scales, offsets },
            a.transposed_each_if::<LEFT>(s.depth as usize),
            b.transposed_each_if::<RIGHT>(s.depth as usize),
            c,
            memory,
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
    use ferrogrid::device::matrix::{ProductElement, Products};
    use ferrogrid::device::narrow::{f8e4m3, f8e5m2};
    use ferrogrid::device::prelude::*;

    use super::tiles::{Stored, multiply_parts, multiply_tiles};
    use crate::gemm::kernels::kernels::{Form, Sizes};

    /// 128 x 256 sums by each block.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f8e4m3, f8e5m2], C = [f32, bf16])]
    pub fn multiply_large<T: ProductElement<Sum = f32>, C: Stored<f32>>(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: TensorMap<T, 128, 128>,
        b: TensorMap<T, 128, 256>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, 128, 256, 4>>,
    ) {
        multiply_tiles::<T, C, _, _, _, _>(&t, Form { sizes: s, scales, offsets }, a, b, c, memory);
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
    use ferrogrid::device::matrix::Products;
    use ferrogrid::device::prelude::*;

    use super::tiles::{multiply_parts, multiply_tiles};
    use crate::gemm::kernels::kernels::{Form, Sizes};

    /// 128 x 256 sums by each block.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn multiply_large(
        t: Thread<1>,
        s: Sizes,
        scales: [i32; 2],
        offsets: &[u32],
        a: TensorMap<i8, 128, 128>,
        b: TensorMap<i8, 128, 256>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<i8, 128, 256, 4>>,
    ) {
        multiply_tiles::<i8, i32, _, _, _, _>(&t, Form { sizes: s, scales, offsets }, a, b, c, memory);
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
    use ferrogrid::device::matrix::Products;
    use ferrogrid::device::narrow::tf32;
    use ferrogrid::device::prelude::*;

    use super::tiles::{multiply_parts, multiply_tiles};
    use crate::gemm::kernels::kernels::{Form, Sizes};

    /// 128 x 256 sums by each block.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn multiply_large(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: TensorMap<tf32, 32, 128>,
        b: TensorMap<tf32, 32, 256>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<tf32, 128, 256, 4>>,
    ) {
        multiply_tiles::<tf32, f32, _, _, _, _>(&t, Form { sizes: s, scales, offsets }, a, b, c, memory);
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
