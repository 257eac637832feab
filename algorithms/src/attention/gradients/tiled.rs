//! The kernels of attention's gradients by products of a block.

/// The kernels of GPUs that multiply tiles: for heads whose queries are a multiple of [`QUERIES`](kernels::QUERIES), and keys of
/// [`KEYS_64`](kernels::KEYS_64) or [`KEYS_128`](kernels::KEYS_128).
#[ferrogrid::module(arch = ["sm_90a"])]
pub mod kernels {
    use core::f32::consts::LOG2_E;

    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::matrix::{
        Added, AddedTiles, PairStep, PairedFactors, PairedPlace, PairedProducts, ProductSums, RowValues,
    };
    use ferrogrid::device::prelude::*;

    use crate::attention::gradients::kernels::steps::{Assignment, divided, of_score, weight};
    use crate::attention::kernels::steps::{Rows, Sizes};
    use crate::attention::tiled::kernels::{TiledElement, write_rows};

    /// The rows of a block.
    pub const ROWS: usize = 128;
    /// The queries that are read at once.
    pub const QUERIES: usize = 64;
    /// The keys that are read at once, of heads of up to 64 elements.
    pub const KEYS_64: usize = 128;
    /// Those of heads of up to 128 elements.
    pub const KEYS_128: usize = 64;
    /// The queries that are read at once if gradients are added, of heads of up to 64 elements.
    pub const QUERIES_ADDED: usize = 128;

    /// As `steps::differentiate`; rows of the results are fours of elements. If there are tiles for it, the gradients of queries are added, too.
    #[inline(always)]
    fn differentiate<
        T: TiledElement,
        X: Added<T, ROWS, N, D>,
        const OF_KEYS: bool,
        const N: usize,
        const D: usize,
        const S: usize,
        const R: usize,
        const ID: usize,
    >(
        t: &Thread<1>,
        s: Sizes,
        [own, others]: [[TensorMap<T, 64, 64>; 2]; 2],
        (values, of_rows): (Option<TensorMap<f32, N, 2>>, [&[f32]; 2]),
        results: [(&[DeviceAtomic<u64>], u32); R],
        added: X::Plane<'_>,
        memory: Shared<PairedProducts<T, ROWS, N, D, S, X>, ID>,
    ) {
        let (block, sizes) = (t.block_idx()[0], [ROWS, N]);
        let work = Assignment::of::<OF_KEYS>(s, block, sizes);
        let [queries, keys] = [s.queries as usize, s.keys as usize];
        let ([len, len_of_others], which) = if OF_KEYS { ([keys, queries], 1) } else { ([queries, keys], 0) };
        let ([row, group], groups) = (s.corner(which, work.head, len), s.groups as usize);
        let row = row + work.first;
        let left = own.map(|tensor| tensor.columns(group * 8, groups * 8));
        let right = others.map(|tensor| tensor.columns(0, groups * 8));
        let places = |step: usize| {
            let [head, first] = work.others::<OF_KEYS>(s, N, step);
            let [row, group] = s.corner(1 - which, head, len_of_others);
            let [query, key] = if OF_KEYS { [first, work.first] } else { [work.first, first] };
            let most = s.most_ahead(query, key);
            let number = head * queries + first;
            PairedPlace { row: row + first, column: group * 8, number, tag: most.cast_unsigned() }
        };
        // What is known of queries: of the others, or of the block's rows.
        let of_rows = RowValues::of_product(t, |row| {
            let number = work.head * queries + work.first + row;
            of_rows.map(|of| of.get(number).copied().unwrap_or_default())
        });
        let value = |step: PairStep<N>, which: usize, row: usize, column: usize| {
            if OF_KEYS { step.value(which, column) } else { of_rows.get(row)[which] }
        };
        // Faster in this kernel alone; others have too few registers for it, or tensor cores that wait for less.
        let by_columns = X::ADDS && D == 128;
        let weigh = |step: PairStep<N>, scores: &mut ProductSums<N>| {
            let most = step.tag().cast_signed();
            if most < if OF_KEYS { ROWS } else { N } as i32 {
                if OF_KEYS {
                    scores.mask_below(most, f32::NEG_INFINITY);
                } else {
                    scores.mask_above(most, f32::NEG_INFINITY);
                }
            }
            let scale = s.scale * LOG2_E;
            if by_columns {
                // Not `weight`: with its shorter power this kernel takes 8 % longer, by ptxas's order of instructions.
                let columns = step.column_values(0);
                scores.map_columns(&columns, |score, log_sum| {
                    Float::mul_add(score, scale, -log_sum).fast_exp2()
                });
            } else {
                scores.map_places(|row, column, score| weight(score, scale, value(step, 0, row, column)));
            }
        };
        let of_scores = |step: PairStep<N>, weights: &ProductSums<N>, products: &mut ProductSums<N>| {
            let of_score = |[of_weight, weight]: [f32; 2], mean| of_score(weight, of_weight, mean);
            if by_columns {
                products.zip_columns(weights, &step.column_values(1), of_score);
            } else {
                products.zip_places(weights, |row, column, pair| of_score(pair, value(step, 1, row, column)));
            }
        };
        let finish = |mut sums: [ProductSums<D>; R]| {
            let rows = |pitch: u32| {
                let (corner, len) = ([row, group], len - work.first);
                Rows { corner, pitch: pitch as usize, len, groups }
            };
            sums[0].map_places(|_, _, sum| sum * s.scale);
            let (to, pitch) = results[0];
            write_rows::<T, D>(t, rows(pitch), &sums[0], to);
            if R == 2 {
                let (to, pitch) = results[R - 1];
                write_rows::<T, D>(t, rows(pitch), &sums[R - 1], to);
            }
        };
        let factors = PairedFactors { left, right, row, steps: work.steps, values, added };
        t.multiply_pairs(memory, factors, places, weigh, of_scores, finish);
    }

    /// dk and dv, of heads of up to 64 elements.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f16, bf16])]
    pub fn of_keys_tiles_64<T: TiledElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 2],
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        dy: TensorMap<T, 64, 64>,
        values: TensorMap<f32, QUERIES, 2>,
        dk: &[DeviceAtomic<u64>],
        dv: &[DeviceAtomic<u64>],
        memory: Shared<PairedProducts<T, ROWS, QUERIES, 64, 4>>,
    ) {
        differentiate::<T, (), true, QUERIES, 64, 4, 2, _>(
            &t,
            s,
            [[k, v], [q, dy]],
            (Some(values), [&[]; 2]),
            [(dk, pitches[0]), (dv, pitches[1])],
            (),
            memory,
        );
    }

    /// dq, of heads of up to 64 elements.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f16, bf16])]
    pub fn of_queries_tiles_64<T: TiledElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 2],
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        dy: TensorMap<T, 64, 64>,
        log_sums: &[f32],
        means: &[f32],
        dq: &[DeviceAtomic<u64>],
        memory: Shared<PairedProducts<T, ROWS, KEYS_64, 64, 4>>,
    ) {
        differentiate::<T, (), false, KEYS_64, 64, 4, 1, _>(
            &t,
            s,
            [[q, dy], [k, v]],
            (None, [log_sums, means]),
            [(dq, pitches[0])],
            (),
            memory,
        );
    }

    /// dk and dv, of heads of up to 128 elements.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f16, bf16])]
    pub fn of_keys_tiles_128<T: TiledElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 2],
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        dy: TensorMap<T, 64, 64>,
        values: TensorMap<f32, QUERIES, 2>,
        dk: &[DeviceAtomic<u64>],
        dv: &[DeviceAtomic<u64>],
        memory: Shared<PairedProducts<T, ROWS, QUERIES, 128, 4>>,
    ) {
        differentiate::<T, (), true, QUERIES, 128, 4, 2, _>(
            &t,
            s,
            [[k, v], [q, dy]],
            (Some(values), [&[]; 2]),
            [(dk, pitches[0]), (dv, pitches[1])],
            (),
            memory,
        );
    }

    /// dq, of heads of up to 128 elements.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f16, bf16])]
    pub fn of_queries_tiles_128<T: TiledElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 2],
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        dy: TensorMap<T, 64, 64>,
        log_sums: &[f32],
        means: &[f32],
        dq: &[DeviceAtomic<u64>],
        memory: Shared<PairedProducts<T, ROWS, KEYS_128, 128, 4>>,
    ) {
        differentiate::<T, (), false, KEYS_128, 128, 4, 1, _>(
            &t,
            s,
            [[q, dy], [k, v]],
            (None, [log_sums, means]),
            [(dq, pitches[0])],
            (),
            memory,
        );
    }
    /// dk and dv, of heads of up to 64 elements; the gradients of queries are added to `sums`, whose rows have `size` elements.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f16, bf16])]
    pub fn of_both_tiles_64<T: TiledElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 2],
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        dy: TensorMap<T, 64, 64>,
        values: TensorMap<f32, QUERIES_ADDED, 2>,
        dk: &[DeviceAtomic<u64>],
        dv: &[DeviceAtomic<u64>],
        sums: TensorMapMut<f32, 32, 16>,
        memory: Shared<PairedProducts<T, ROWS, QUERIES_ADDED, 64, 2, AddedTiles<T, ROWS, QUERIES_ADDED, 64>>>,
    ) {
        differentiate::<T, AddedTiles<_, _, _, _>, true, QUERIES_ADDED, 64, 2, 2, _>(
            &t,
            s,
            [[k, v], [q, dy]],
            (Some(values), [&[]; 2]),
            [(dk, pitches[0]), (dv, pitches[1])],
            &sums,
            memory,
        );
    }

    /// dk and dv, of heads of up to 128 elements; the gradients of queries are added to `sums`, whose rows have `size` elements.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [f16, bf16])]
    pub fn of_both_tiles_128<T: TiledElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 2],
        q: TensorMap<T, 64, 64>,
        k: TensorMap<T, 64, 64>,
        v: TensorMap<T, 64, 64>,
        dy: TensorMap<T, 64, 64>,
        values: TensorMap<f32, QUERIES, 2>,
        dk: &[DeviceAtomic<u64>],
        dv: &[DeviceAtomic<u64>],
        sums: TensorMapMut<f32, 32, 16>,
        memory: Shared<PairedProducts<T, ROWS, QUERIES, 128, 3, AddedTiles<T, ROWS, QUERIES, 128>>>,
    ) {
        differentiate::<T, AddedTiles<_, _, _, _>, true, QUERIES, 128, 3, 2, _>(
            &t,
            s,
            [[k, v], [q, dy]],
            (Some(values), [&[]; 2]),
            [(dk, pitches[0]), (dv, pitches[1])],
            &sums,
            memory,
        );
    }

    /// Scales `sums` of the gradients of queries, groups of 8 elements, and rounds them.
    #[inline(always)]
    #[kernel(block = 256, T = [f16, bf16])]
    pub fn round_queries<T: TiledElement>(
        t: Thread<1>,
        s: Sizes,
        pitch: u32,
        sums: &[[f32; 8]],
        dq: &[DeviceAtomic<u64>],
    ) {
        let i = t.index().get();
        let (groups, queries) = (s.groups.max(1), s.queries.max(1));
        let [row, group] = divided(i, groups);
        let [head, query] = divided(row, queries);
        let [first, corner] = s.corner(0, head, queries as usize);
        let to = ((first + query) * pitch as usize + corner + group) * 2;
        if let (Some(sums), Some(to)) = (sums.get(i), dq.get(to..to + 2)) {
            for (to, sums) in to.iter().zip(sums.as_chunks::<4>().0) {
                let [low, high] =
                    [[0, 1], [2, 3]].map(|pair| u64::from(T::pair_to_bits(pair.map(|i| sums[i] * s.scale))));
                to.store(low | high << 32, Relaxed);
            }
        }
    }
}
