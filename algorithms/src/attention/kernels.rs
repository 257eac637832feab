//! The kernels of attention.

/// What the kernels do.
#[ferrogrid::module(arch = ["sm_80"])]
pub mod steps {
    use atomic::Ordering::Relaxed;
    use core::f32::consts::LOG2_E;
    use ferrogrid::device::half::HalfFloat;
    use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB, MatrixElement, RowValues};
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::StagedShared;

    /// The threads of a block.
    pub const THREADS: usize = 128;
    /// The queries of a block, of which each warp has 32.
    pub const QUERIES: usize = 128;
    /// The keys that are read at once.
    pub const KEYS: usize = 64;

    /// Elements that are read at once.
    pub type Group<T> = Aligned16<[T; 8]>;
    /// `H` rows of `W` groups.
    pub type Tile<T, const W: usize, const H: usize> = Padded<Group<T>, W, H>;

    /// An element whose attention is computed.
    pub trait TensorElement: MatrixElement<Sum = f32> + HalfFloat {}

    impl<T: MatrixElement<Sum = f32> + HalfFloat> TensorElement for T {}

    /// The sizes of all heads.
    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Sizes {
        pub queries: u32,
        pub keys: u32,
        /// The heads of queries for each head of keys.
        pub sharing: u32,
        /// The groups of a row.
        pub groups: u32,
        pub is_causal: bool,
        /// What scores are multiplied by.
        pub scale: f32,
    }

    /// The keys, or the values, of a head.
    #[derive(Clone, Copy)]
    struct Keys {
        first: usize,
        keys: usize,
        groups: usize,
        /// After how many tiles no query of the block sees more.
        steps: usize,
    }

    impl Keys {
        /// Begins to copy a tile, unless there are no more.
        #[inline(always)]
        fn copy<'b, T: TensorElement, const W: usize, const ID: usize>(
            self,
            t: &Thread<'b, 1>,
            tiles: &mut StagedShared<'b, Tile<T, W, KEYS>, 3, ID>,
            from: &'b [Group<T>],
            step: usize,
        ) {
            if step < self.steps {
                tiles.copy_with(t, |[row, group]| {
                    let key = step * KEYS + row;
                    let place = (self.first + key) * self.groups + group;
                    from.get(place).filter(|_| key < self.keys && group < self.groups)
                });
            }
        }
    }

    /// y <- softmax(scale q k^T) v for the queries of a block, by an online softmax (FlashAttention-2). Scores, weights and results stay
    /// in registers. Heads have `W` groups, and `H` times 64 elements, 64
    /// or 128.
    #[inline(always)]
    pub fn attend<'b, T: TensorElement, const W: usize, const H: usize, const A: usize, const B: usize>(
        t: &Thread<'b, 1>,
        s: Sizes,
        [q, k, v]: [&'b [Group<T>]; 3],
        y: &[DeviceAtomic<u32>],
        mut rows: Shared<'b, Tile<T, W, QUERIES>, A>,
        tiles: Shared<'b, Stages<Tile<T, W, KEYS>, 3>, B>,
    ) {
        let (warp, own) = (t.warp(), t.thread_rank() as usize / 32 * 32);
        let [queries, keys, groups] = [s.queries, s.keys, s.groups].map(|it| it as usize);
        // The last queries of a head come first: with a causal mask, they see most keys.
        let tiles_of_head = queries.div_ceil(QUERIES);
        let block = t.block_idx()[0] as usize;
        let (head, first) = (block / tiles_of_head, (tiles_of_head - 1 - block % tiles_of_head) * QUERIES);
        let first_query = head * queries + first;
        rows.fill_with(t, |[row, group]| {
            let place = (first_query + row) * groups + group;
            let query = q.get(place).filter(|_| first + row < queries && group < groups);
            query.copied().unwrap_or(Aligned16::new([T::ZERO; 8]))
        });
        let rows = t.publish(rows);

        // How many keys each query sees beyond its own number, and how many the last one of the block.
        let ahead = if s.is_causal { keys as i64 - queries as i64 } else { i64::from(u32::MAX) };
        let seen = (first as i64 + QUERIES as i64 + ahead).clamp(0, keys as i64) as usize;
        let steps = seen.div_ceil(KEYS);
        let keys_of_head = Keys { first: head / s.sharing as usize * keys, keys, groups, steps };
        let mut tiles = tiles.into_stages();
        keys_of_head.copy(t, &mut tiles, k, 0);
        t.advance(&mut tiles);
        keys_of_head.copy(t, &mut tiles, v, 0);
        t.advance(&mut tiles);

        let mut sums = [Accumulator::<T, 2, 8>::zero(); H];
        let mut greatest = RowValues::<f32, 2>::splat(f32::NEG_INFINITY);
        let mut totals = RowValues::<f32, 2>::splat(0.0);
        // Powers of 2 are faster than those of e.
        let scale = s.scale * LOG2_E;
        for step in 0..steps {
            // The keys of this step are read, and those of the next one copied.
            keys_of_head.copy(t, &mut tiles, k, step + 1);
            let mut scores = Accumulator::<T, 2, 8>::zero();
            for depth in (0..W * 8).step_by(T::DEPTH) {
                let q = FragmentA::load(&warp, rows.rows(), [own, depth]);
                let k = FragmentB::load_transposed(&warp, tiles.current().rows(), [0, depth]);
                scores.add_product(&warp, &q, &k);
            }
            t.advance(&mut tiles);
            // Now the values.
            keys_of_head.copy(t, &mut tiles, v, step + 1);
            let first_of_step = step * KEYS;
            let least_seen = (first as i64 + ahead + 1).min(keys as i64);
            if (first_of_step + KEYS) as i64 > least_seen {
                scores.map_places(&warp, |row, column, score| {
                    let key = (first_of_step + column) as i64;
                    let is_seen = key < keys as i64 && key <= (first + own + row) as i64 + ahead;
                    if is_seen { score } else { f32::NEG_INFINITY }
                });
            }
            let before = greatest;
            greatest = scores.reduce_rows(&warp, f32::max).zip(&before, f32::max);
            // A row that sees no key yet has no greatest score.
            let base = greatest.map(|it| if it == f32::NEG_INFINITY { 0.0 } else { it * scale });
            let shrunk = before.zip(&base, |before, base| before.mul_add(scale, -base).fast_exp2());
            scores.map_rows(&base, |score, base| score.mul_add(scale, -base).fast_exp2());
            totals = totals.zip(&shrunk, |total, shrunk| total * shrunk);
            totals = scores.reduce_rows(&warp, |a, b| a + b).zip(&totals, |a, b| a + b);
            let weights = FragmentA::from_sums::<8, 4>(&scores);
            let values = tiles.current();
            add_values(&warp, &mut sums[0], &shrunk, &weights, values, 0);
            if H == 2 {
                add_values(&warp, &mut sums[H - 1], &shrunk, &weights, values, 64);
            }
            t.advance(&mut tiles);
        }

        let factors = totals.map(|total| if total == 0.0 { 0.0 } else { 1.0 / total });
        let write = |first_column: usize, row: usize, column: usize, pair| {
            let (row, column) = (own + row, first_column + column);
            let place = ((first_query + row) * groups * 8 + column) / 2;
            if let Some(y) = y.get(place).filter(|_| first + row < queries && column < groups * 8) {
                y.store(T::pair_to_bits(pair), Relaxed);
            }
        };
        sums[0].map_rows(&factors, |sum, factor| sum * factor);
        sums[0].for_each_pair(&warp, |row, column, pair| write(0, row, column, pair));
        if H == 2 {
            sums[H - 1].map_rows(&factors, |sum, factor| sum * factor);
            sums[H - 1].for_each_pair(&warp, |row, column, pair| write(64, row, column, pair));
        }
    }

    /// Adds weighted values, from a column on, to sums that are shrunk first. A function, since LLVM does not inline a closure of so much
    /// code.
    #[inline(always)]
    fn add_values<T: TensorElement, const W: usize>(
        warp: &Warp,
        sums: &mut Accumulator<T, 2, 8>,
        shrunk: &RowValues<f32, 2>,
        weights: &[FragmentA<T, 2>; 4],
        values: &Tile<T, W, KEYS>,
        first_column: usize,
    ) {
        sums.map_rows(shrunk, |sum, shrunk| sum * shrunk);
        sums.add_products(warp, weights, |k| FragmentB::load(warp, values.rows(), [16 * k, first_column]));
    }
}

/// The kernels, by the greatest size of a head.
#[ferrogrid::module(arch = ["sm_80"])]
pub mod kernels {
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use super::steps::{Group, KEYS, QUERIES, Sizes, THREADS, TensorElement, Tile, attend};

    /// Heads of up to 64 elements.
    #[inline(always)]
    #[kernel(block = THREADS, T = [f16, bf16])]
    pub fn attend_64<T: TensorElement>(
        t: Thread<1>,
        s: Sizes,
        q: &[Group<T>],
        k: &[Group<T>],
        v: &[Group<T>],
        y: &[DeviceAtomic<u32>],
        rows: Shared<Tile<T, 8, QUERIES>>,
        tiles: Shared<Stages<Tile<T, 8, KEYS>, 3>>,
    ) {
        attend::<T, 8, 1, _, _>(&t, s, [q, k, v], y, rows, tiles);
    }

    /// Heads of up to 128 elements.
    #[inline(always)]
    #[kernel(block = THREADS, T = [f16, bf16])]
    pub fn attend_128<T: TensorElement>(
        t: Thread<1>,
        s: Sizes,
        q: &[Group<T>],
        k: &[Group<T>],
        v: &[Group<T>],
        y: &[DeviceAtomic<u32>],
        rows: Shared<Tile<T, 16, QUERIES>>,
        tiles: Shared<Stages<Tile<T, 16, KEYS>, 3>>,
    ) {
        attend::<T, 16, 2, _, _>(&t, s, [q, k, v], y, rows, tiles);
    }
}
