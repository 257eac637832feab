//! The kernels of attention.

/// What the kernels do.
#[ferrogrid::module(arch = ["sm_80"])]
pub mod steps {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::HalfFloat;
    use ferrogrid::device::matrix::{
        Accumulator, FragmentA, FragmentB, MatrixElement, OnlineSoftmax, RowGroups, RowValues,
    };
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::StagedShared;

    /// The threads of a block.
    pub const THREADS: usize = 128;
    /// The queries of a block, of which each warp has 32, and those for heads of more than 128 elements, of which it has 16.
    pub const QUERIES: [usize; 2] = [128, 64];
    /// The keys that are read at once.
    pub const KEYS: [usize; 2] = [64, 32];

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
        /// The groups of a row of a head.
        pub groups: u32,
        /// The heads that are beside each other in the rows of queries, and in those of keys.
        pub beside: [u32; 2],
        /// The slices of the keys, which have a block each for the same queries.
        pub slices: u32,
        pub is_causal: bool,
        /// What scores are multiplied by.
        pub scale: f32,
    }

    /// The block's place: its head, its first query within that, and how many keys its queries see.
    #[derive(Clone, Copy)]
    pub struct Place {
        pub head: usize,
        pub first: usize,
        pub seen: usize,
    }

    /// More than a tile has queries or keys.
    const LONG: i64 = 1 << 30;

    impl Sizes {
        /// How many keys each query sees beyond its own number.
        #[inline(always)]
        pub fn ahead(self) -> i64 {
            if self.is_causal { i64::from(self.keys) - i64::from(self.queries) } else { i64::from(u32::MAX) }
        }

        /// The last queries of a head come first: with a causal mask, they see most keys.
        #[inline(always)]
        pub fn place_of_tile(self, head: usize, tile: usize, queries: usize) -> Place {
            let first = ((self.queries as usize).div_ceil(queries) - 1 - tile) * queries;
            let end = (first + queries) as i64 + self.ahead();
            Place { head, first, seen: end.clamp(0, i64::from(self.keys)) as usize }
        }

        /// Where a head of queries, or of keys if `which` is 1, begins in its tensor: the row, of which each head has so many, and the group.
        #[inline(always)]
        pub fn corner(self, which: usize, head: usize, rows: usize) -> [usize; 2] {
            let beside = if which == 0 { self.beside[0] } else { self.beside[1] }.max(1);
            // Of 32 bits: a longer division would be a call.
            let (below, right) = (head as u32 / beside, head as u32 % beside);
            [below as usize * rows, (right * self.groups) as usize]
        }

        /// The slice of the keys that a block has, and its number among those of the slice, which follow those of the one before.
        #[inline(always)]
        pub fn slice(self, t: &Thread<1>) -> (usize, u32) {
            let blocks = (t.grid_dim()[0] / self.slices.max(1)).max(1);
            ((t.block_idx()[0] / blocks) as usize, t.block_idx()[0] % blocks)
        }

        /// The first step of a slice, and the one after its last, of so many in all.
        #[inline(always)]
        pub fn steps_of(self, slice: usize, steps: usize) -> [usize; 2] {
            // Of 32 bits: a longer division would be a call.
            let each = (steps as u32).div_ceil(self.slices.max(1)) as usize;
            [slice * each, (slice + 1) * each].map(|step| step.min(steps))
        }

        /// By how much the number of a key in a tile may exceed that of a query that sees it, if the tiles' first ones are these; with no causal
        /// mask more than a tile has.
        #[inline(always)]
        pub fn most_ahead(self, query: usize, key: usize) -> i32 {
            (query as i64 + self.ahead() - key as i64).clamp(-LONG, LONG) as i32
        }

        /// Whether all queries from `first` on see the keys before `end`.
        #[inline(always)]
        pub fn all_see(self, first: usize, end: usize) -> bool {
            end as i64 <= (first as i64 + self.ahead() + 1).min(i64::from(self.keys))
        }

        /// The score of a query with a key, unless it does not see it.
        #[inline(always)]
        pub fn masked(self, [query, key]: [usize; 2], score: f32) -> f32 {
            let is_seen = key < self.keys as usize && key as i64 <= query as i64 + self.ahead();
            if is_seen { score } else { f32::NEG_INFINITY }
        }
    }

    /// The tile of a block: of a head, or of one of the sequences that heads have.
    #[derive(Clone, Copy)]
    pub struct Part {
        /// Those of the sequence.
        pub sizes: Sizes,
        pub head: usize,
        pub tile: usize,
        /// The queries and the keys of a head, and the first ones of the sequence among them.
        rows: [usize; 2],
        first: [usize; 2],
    }

    #[track_caller]
    #[inline(always)]
    fn expect_ascending(are_ascending: bool) {
        assert!(are_ascending, "offsets of sequences ascend up to the rows of a head");
    }

    impl Part {
        /// Panics in the first block unless all offsets ascend: no block may have the sequence between two that do not. All threads panic, or
        /// none, since those of a warp multiply together: where one is missing, the hardware may fail.
        #[inline(always)]
        pub fn check(t: &Thread<1>, s: Sizes, offsets: [&[u32]; 2]) {
            if t.block_idx()[0] == 0 && !offsets[0].is_empty() {
                let ascend = |which: usize, rows: u32| RowGroups(offsets[which]).own_ascend(t, rows as usize);
                let own = ascend(0, s.queries) && ascend(1, s.keys);
                expect_ascending(t.sync_threads_and(own));
            }
        }

        /// Of queries, or of keys if `which` is 1, in tiles of `tile` rows. `offsets` has where the sequences of a head begin, and the end of the
        /// last one, for queries and keys; nothing if heads have no sequences. `None` for a block without rows.
        #[inline(always)]
        pub fn of(s: Sizes, block: u32, tile: usize, which: usize, offsets: [&[u32]; 2]) -> Option<Self> {
            let (block, rows) = (block as usize, [s.queries, s.keys].map(|it| it as usize));
            let sequences = offsets.map(RowGroups);
            if offsets[which].is_empty() {
                let tiles = rows[which].div_ceil(tile);
                return Some(Part {
                    sizes: s,
                    head: block / tiles,
                    tile: block % tiles,
                    rows,
                    first: [0; 2],
                });
            }
            let tiles = RowGroups::most_tiles(sequences[which].len(), rows[which], tile);
            let (head, number) = (block / tiles, block % tiles);
            let (sequence, [row, _]) = sequences[which].tile(number, tile)?;
            let [of_queries, of_keys] = sequences.map(|it| it.rows(sequence));
            expect_ascending(of_queries[0] <= of_queries[1] && of_queries[1] <= rows[0]);
            expect_ascending(of_keys[0] <= of_keys[1] && of_keys[1] <= rows[1]);
            let first = [of_queries[0], of_keys[0]];
            let [queries, keys] = [of_queries, of_keys].map(|[first, end]| end.wrapping_sub(first) as u32);
            let tile = (row - first[which]) / tile;
            Some(Part { sizes: Sizes { queries, keys, ..s }, head, tile, rows, first })
        }

        /// The sequence's first query in a head, among all.
        #[inline(always)]
        pub fn first_query(self, head: usize) -> usize {
            head * self.rows[0] + self.first[0]
        }

        /// The rows of a head of queries, or of keys if `which` is 1, from one on, in a tensor whose rows begin so many groups after each other.
        #[inline(always)]
        pub fn rows(self, which: usize, head: usize, from: usize, pitch: u32) -> Rows {
            let Part { sizes: s, rows, first, .. } = self;
            let [row, group] = s.corner(which, head, rows[which]);
            let len = if which == 0 { s.queries } else { s.keys } as usize - from;
            let corner = [row + first[which] + from, group];
            Rows { corner, pitch: pitch as usize, len, groups: s.groups as usize }
        }
    }

    /// The rows of a head from one on, in a tensor: how many, and the groups of each.
    #[derive(Clone, Copy)]
    pub struct Rows {
        /// The first row, and its first group.
        pub corner: [usize; 2],
        /// The groups from the start of a row of the tensor to that of the next.
        pub pitch: usize,
        pub len: usize,
        pub groups: usize,
    }

    impl Rows {
        #[inline(always)]
        pub fn place(self, row: usize, group: usize) -> usize {
            (self.corner[0] + row) * self.pitch + self.corner[1] + group
        }

        #[inline(always)]
        pub fn group<T: TensorElement>(
            self,
            from: &[Group<T>],
            [row, group]: [usize; 2],
        ) -> Option<&Group<T>> {
            from.get(self.place(row, group)).filter(|_| row < self.len && group < self.groups)
        }

        #[inline(always)]
        pub fn write<T: TensorElement>(
            self,
            to: &[DeviceAtomic<u32>],
            [row, column]: [usize; 2],
            pair: [f32; 2],
        ) {
            let place = self.place(row, 0) * 4 + column / 2;
            if let Some(to) = to.get(place).filter(|_| row < self.len && column < self.groups * 8) {
                to.store(T::pair_to_bits(pair), Relaxed);
            }
        }
    }

    /// The keys, or the values, of a head, and after how many tiles no query of the block sees more.
    #[derive(Clone, Copy)]
    struct Keys {
        rows: Rows,
        steps: usize,
    }

    impl Keys {
        /// Begins to copy a tile, unless there are no more.
        #[inline(always)]
        fn copy<'b, T: TensorElement, const W: usize, const K: usize, const ID: usize>(
            self,
            t: &Thread<'b, 1>,
            tiles: &mut StagedShared<'b, Tile<T, W, K>, 3, ID>,
            from: &'b [Group<T>],
            step: usize,
        ) {
            if step < self.steps {
                tiles.copy_with(t, |[row, group]| self.rows.group(from, [step * K + row, group]));
            }
        }
    }

    /// y <- softmax(scale q k^T) v for the queries of a block, by an online softmax (FlashAttention-2). Scores, weights and results stay
    /// in registers. Heads have `W` groups, and `H` times 64 elements, 64, 128 or 256. A block has `Q` queries, and each warp `M` times 16.
    /// `K` keys are read at once, `N` times 8 and `P` times 16.
    #[inline(always)]
    pub fn attend<
        'b,
        T: TensorElement,
        const W: usize,
        const H: usize,
        const M: usize,
        const Q: usize,
        const K: usize,
        const N: usize,
        const P: usize,
        const A: usize,
        const B: usize,
    >(
        t: &Thread<'b, 1>,
        (s, offsets, pitches): (Sizes, [&'b [u32]; 2], [u32; 4]),
        [q, k, v]: [&'b [Group<T>]; 3],
        y: &[DeviceAtomic<u32>],
        log_sums: &[DeviceAtomic<f32>],
        mut rows: Shared<'b, Tile<T, W, Q>, A>,
        tiles: Shared<'b, Stages<Tile<T, W, K>, 3>, B>,
    ) {
        let (warp, own) = (t.warp(), t.thread_rank() as usize / 32 * (16 * M));
        Part::check(t, s, offsets);
        let (slice, block) = s.slice(t);
        let Some(part) = Part::of(s, block, Q, 0, offsets) else { return };
        let s = part.sizes;
        let Place { head, first, seen } = s.place_of_tile(part.head, part.tile, Q);
        let [of_q, of_k, of_v, of_y] = pitches;
        let queries = part.rows(0, head, first, of_q);
        rows.fill_with(t, |place| queries.group(q, place).copied().unwrap_or(Aligned16::new([T::ZERO; 8])));
        let rows = t.publish(rows);

        let [first_step, steps] = s.steps_of(slice, seen.div_ceil(K));
        let [keys, values] =
            [of_k, of_v].map(|pitch| Keys { rows: part.rows(1, head / s.sharing as usize, 0, pitch), steps });
        let mut tiles = tiles.into_stages();
        keys.copy(t, &mut tiles, k, first_step);
        t.advance(&mut tiles);
        values.copy(t, &mut tiles, v, first_step);
        t.advance(&mut tiles);

        let mut sums = [Accumulator::<T, M, 8>::zero(); H];
        let mut softmax = OnlineSoftmax::<M>::new(s.scale);
        for step in first_step..steps {
            // The keys of this step are read, and those of the next one copied.
            keys.copy(t, &mut tiles, k, step + 1);
            let mut scores = Accumulator::<T, M, N>::zero();
            for depth in (0..W * 8).step_by(T::DEPTH) {
                let q = FragmentA::load(&warp, rows.rows(), [own, depth]);
                let k = FragmentB::load_transposed(&warp, tiles.current().rows(), [0, depth]);
                scores.add_product(&warp, &q, &k);
            }
            t.advance(&mut tiles);
            // Now the values.
            values.copy(t, &mut tiles, v, step + 1);
            if !s.all_see(first, (step + 1) * K) {
                scores.map_places(&warp, |row, column, score| {
                    s.masked([first + own + row, step * K + column], score)
                });
            }
            let shrunk = softmax.step(&warp, &mut scores);
            let weights = FragmentA::from_sums::<N, P>(&scores);
            let tile = tiles.current();
            add_values(&warp, &mut sums[0], &shrunk, &weights, tile, 0);
            if H > 1 {
                add_values(&warp, &mut sums[1 % H], &shrunk, &weights, tile, 64);
            }
            if H > 2 {
                add_values(&warp, &mut sums[2 % H], &shrunk, &weights, tile, 128);
                add_values(&warp, &mut sums[3 % H], &shrunk, &weights, tile, 192);
            }
            t.advance(&mut tiles);
        }

        let of_slice = log_sums.len() / (s.slices as usize).max(1);
        let first_query = slice * of_slice + part.first_query(head) + first;
        sums[0].for_each_row(&warp, &softmax.log_sums(), |row, log_sum| {
            if let Some(to) = log_sums.get(first_query + own + row).filter(|_| own + row < queries.len) {
                to.store(log_sum, Relaxed);
            }
        });
        let factors = softmax.factors();
        let results = match s.slices {
            0 | 1 => part.rows(0, head, first, of_y),
            _ => Rows { corner: [first_query, 0], pitch: queries.groups, ..queries },
        };
        let write = |first_column: usize, row: usize, column: usize, pair| {
            results.write::<T>(y, [own + row, first_column + column], pair);
        };
        macro_rules! write {
            ($($part:literal)*) => { $(
                if $part < H {
                    sums[$part % H].map_rows(&factors, |sum, factor| sum * factor);
                    sums[$part % H].for_each_pair(&warp, |row, column, pair| write($part * 64, row, column, pair));
                }
            )* };
        }
        write!(0 1 2 3);
    }

    /// Adds weighted values, from a column on, to sums that are shrunk first. A function, since LLVM does not inline a closure of so much
    /// code.
    #[inline(always)]
    fn add_values<T: TensorElement, const W: usize, const M: usize, const K: usize, const P: usize>(
        warp: &Warp,
        sums: &mut Accumulator<T, M, 8>,
        shrunk: &RowValues<f32, M>,
        weights: &[FragmentA<T, M>; P],
        values: &Tile<T, W, K>,
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
        pitches: [u32; 4],
        of_queries: &[u32],
        of_keys: &[u32],
        q: &[Group<T>],
        k: &[Group<T>],
        v: &[Group<T>],
        y: &[DeviceAtomic<u32>],
        log_sums: &[DeviceAtomic<f32>],
        rows: Shared<Tile<T, 8, { QUERIES[0] }>>,
        tiles: Shared<Stages<Tile<T, 8, { KEYS[0] }>, 3>>,
    ) {
        attend::<T, 8, 1, 2, _, _, 8, 4, _, _>(
            &t,
            (s, [of_queries, of_keys], pitches),
            [q, k, v],
            y,
            log_sums,
            rows,
            tiles,
        );
    }

    /// Heads of up to 128 elements.
    #[inline(always)]
    #[kernel(block = THREADS, T = [f16, bf16])]
    pub fn attend_128<T: TensorElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 4],
        of_queries: &[u32],
        of_keys: &[u32],
        q: &[Group<T>],
        k: &[Group<T>],
        v: &[Group<T>],
        y: &[DeviceAtomic<u32>],
        log_sums: &[DeviceAtomic<f32>],
        rows: Shared<Tile<T, 16, { QUERIES[0] }>>,
        tiles: Shared<Stages<Tile<T, 16, { KEYS[0] }>, 3>>,
    ) {
        attend::<T, 16, 2, 2, _, _, 8, 4, _, _>(
            &t,
            (s, [of_queries, of_keys], pitches),
            [q, k, v],
            y,
            log_sums,
            rows,
            tiles,
        );
    }

    /// Heads of up to 256 elements.
    #[inline(always)]
    #[kernel(block = THREADS, T = [f16, bf16])]
    pub fn attend_256<T: TensorElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 4],
        of_queries: &[u32],
        of_keys: &[u32],
        q: &[Group<T>],
        k: &[Group<T>],
        v: &[Group<T>],
        y: &[DeviceAtomic<u32>],
        log_sums: &[DeviceAtomic<f32>],
        rows: Shared<Tile<T, 32, { QUERIES[1] }>>,
        tiles: Shared<Stages<Tile<T, 32, { KEYS[1] }>, 3>>,
    ) {
        attend::<T, 32, 4, 1, _, _, 4, 2, _, _>(
            &t,
            (s, [of_queries, of_keys], pitches),
            [q, k, v],
            y,
            log_sums,
            rows,
            tiles,
        );
    }
}
