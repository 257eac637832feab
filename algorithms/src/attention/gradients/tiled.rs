//! The kernels of attention's gradients by products of a block.

/// The kernels of GPUs that multiply tiles: for heads whose queries are a multiple of [`QUERIES`](kernels::QUERIES), and keys of
/// [`KEYS_64`](kernels::KEYS_64) or [`KEYS_128`](kernels::KEYS_128).
#[ferrogrid::module(arch = ["sm_90a"])]
pub mod kernels {
    use core::f32::consts::LOG2_E;

    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::matrix::{PairedProducts, ProductSums};
    use ferrogrid::device::prelude::*;

    use crate::attention::gradients::kernels::steps::{Assignment, of_score, weight};
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

    /// As `steps::differentiate`; rows of the results are fours of elements. What is known of queries lies in pairs, and a block or a step
    /// reads `P` of them.
    #[inline(always)]
    fn differentiate<
        'b,
        T: TiledElement,
        const OF_KEYS: bool,
        const N: usize,
        const P: usize,
        const D: usize,
        const R: usize,
        const ID: usize,
    >(
        t: &Thread<1>,
        s: Sizes,
        [own, others]: [[TensorMap<T, 64, 64>; 2]; 2],
        [log_sums, means]: [&'b [u64]; 2],
        results: [(&[DeviceAtomic<u64>], u32); R],
        memory: Shared<PairedProducts<T, ROWS, N, D, 4>, ID>,
    ) {
        let (block, sizes) = (t.block_idx()[0], [ROWS, N]);
        let work = Assignment::of::<OF_KEYS>(s, block, sizes);
        let [of_queries, of_keys] = [s.queries as usize, s.keys as usize];
        let ([of_own, of_others], which) =
            if OF_KEYS { ([of_keys, of_queries], 1) } else { ([of_queries, of_keys], 0) };
        let ([row, group], groups) = (s.corner(which, work.head, of_own), s.groups as usize);
        let row = row + work.first;
        let own = own.map(|tensor| tensor.columns(group * 8, groups * 8));
        let others = others.map(|tensor| tensor.columns(0, groups * 8));
        let place_of = |step: usize| {
            let [head, first] = work.others::<OF_KEYS>(s, N, step);
            let [row, group] = s.corner(1 - which, head, of_others);
            [row + first, group * 8]
        };
        // While products are in flight no thread may branch on its own: there are values for all threads, or for none.
        let values = |of: &'b [u64], step: usize| -> Option<&'b [u64; P]> {
            let [head, first] =
                if OF_KEYS { work.others::<OF_KEYS>(s, N, step) } else { [work.head, work.first] };
            of.get((head * of_queries + first) / 2..).and_then(|of| of.first_chunk())
        };
        let of_query = |values: &[u64; P], row: usize, column: usize| {
            let number = if OF_KEYS { column } else { row } % (2 * P);
            f32::from_bits((values[number / 2] >> (number % 2 * 32)) as u32)
        };
        let weigh = |step: usize, scores: &mut ProductSums<N>| {
            let [_, first] = work.others::<OF_KEYS>(s, N, step);
            let place = |row: usize, column: usize| work.place::<OF_KEYS>(first, [row, column]);
            let ([first_query, _], [_, last_key]) = (place(0, 0), place(ROWS - 1, N - 1));
            if !s.all_see(first_query, last_key + 1) {
                scores.map_places(|row, column, score| s.masked(place(row, column), score));
            }
            let Some(log_sums) = values(log_sums, step) else { return };
            scores.map_places(|row, column, score| {
                weight(score, s.scale * LOG2_E, of_query(log_sums, row, column))
            });
        };
        let of_scores = |step: usize, weights: &ProductSums<N>, products: &mut ProductSums<N>| {
            let Some(means) = values(means, step) else { return };
            products.zip_places(weights, |row, column, [of_weight, weight]| {
                of_score(weight, of_weight, of_query(means, row, column))
            });
        };
        let finish = |mut sums: [ProductSums<D>; R]| {
            let rows = |pitch: u32| {
                let (corner, len) = ([row, group], of_own - work.first);
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
        t.multiply_pairs(memory, own, others, row, work.steps, place_of, weigh, of_scores, finish);
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
        log_sums: &[u64],
        means: &[u64],
        dk: &[DeviceAtomic<u64>],
        dv: &[DeviceAtomic<u64>],
        memory: Shared<PairedProducts<T, ROWS, QUERIES, 64, 4>>,
    ) {
        differentiate::<T, true, QUERIES, 32, 64, 2, _>(
            &t,
            s,
            [[k, v], [q, dy]],
            [log_sums, means],
            [(dk, pitches[0]), (dv, pitches[1])],
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
        log_sums: &[u64],
        means: &[u64],
        dq: &[DeviceAtomic<u64>],
        memory: Shared<PairedProducts<T, ROWS, KEYS_64, 64, 4>>,
    ) {
        differentiate::<T, false, KEYS_64, 64, 64, 1, _>(
            &t,
            s,
            [[q, dy], [k, v]],
            [log_sums, means],
            [(dq, pitches[0])],
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
        log_sums: &[u64],
        means: &[u64],
        dk: &[DeviceAtomic<u64>],
        dv: &[DeviceAtomic<u64>],
        memory: Shared<PairedProducts<T, ROWS, QUERIES, 128, 4>>,
    ) {
        differentiate::<T, true, QUERIES, 32, 128, 2, _>(
            &t,
            s,
            [[k, v], [q, dy]],
            [log_sums, means],
            [(dk, pitches[0]), (dv, pitches[1])],
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
        log_sums: &[u64],
        means: &[u64],
        dq: &[DeviceAtomic<u64>],
        memory: Shared<PairedProducts<T, ROWS, KEYS_128, 128, 4>>,
    ) {
        differentiate::<T, false, KEYS_128, 64, 128, 1, _>(
            &t,
            s,
            [[q, dy], [k, v]],
            [log_sums, means],
            [(dq, pitches[0])],
            memory,
        );
    }
}
