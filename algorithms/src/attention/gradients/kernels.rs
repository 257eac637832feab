//! The kernels of attention's gradients.

/// What the kernels do.
#[ferrogrid::module(arch = ["sm_80"])]
pub mod steps {
    use core::f32::consts::LOG2_E;

    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB, MatrixRow};
    use ferrogrid::device::prelude::*;

    use crate::attention::kernels::steps::{Group, Part, Rows, Sizes, TensorElement, Tile};

    /// The threads of a block.
    pub const THREADS: usize = 128;
    /// The rows of a block, of which each warp has 16.
    pub const ROWS: usize = 64;
    /// The rows that are read at once.
    pub const OTHERS: usize = 32;
    /// The threads that have a row of a tensor: one for each group that a row may have.
    pub const LANES: usize = 32;

    /// The weight of a score whose query has the sum of weights `2^log_sum`, and infinity for a query without weights. `scale` is that of
    /// scores as exponents of 2.
    #[inline(always)]
    pub fn weight(score: f32, scale: f32, log_sum: f32) -> f32 {
        Float::mul_add(score, scale, -log_sum).fast_exp2_ftz()
    }

    /// The gradient of a score, of which the weight's is given, and the mean of those of all weights of the query.
    #[inline(always)]
    pub fn of_score(weight: f32, of_weight: f32, mean: f32) -> f32 {
        weight * (of_weight - mean)
    }

    /// Quotient and remainder. A division of 64 bits is long.
    #[inline(always)]
    pub fn divided(number: usize, by: u32) -> [usize; 2] {
        match u32::try_from(number) {
            Ok(number) => [number / by, number % by].map(|it| it as usize),
            Err(_) => [number / by as usize, number % by as usize],
        }
    }

    /// Finds of each query the logarithm of its sum of weights to base 2, and the mean of the weights' gradients: [`LANES`] threads have a
    /// row. Queries beyond the last one have no weights.
    #[inline(always)]
    #[kernel(block = THREADS, T = [f16, bf16])]
    pub fn prepare<T: TensorElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 2],
        y: &[Group<T>],
        dy: &[Group<T>],
        log_sums: &[f32],
        binary: &[DeviceAtomic<f32>],
        means: &[DeviceAtomic<f32>],
    ) {
        let thread = t.block_idx()[0] as usize * THREADS + t.thread_rank() as usize;
        let (row, lane) = (thread / LANES, thread % LANES);
        let (queries, groups) = (s.queries.max(1), s.groups as usize);
        let [head, of_head] = divided(row, queries);
        let [first, group] = s.corner(0, head, queries as usize);
        let [of_y, of_dy] = pitches.map(|pitch| {
            let len = usize::from(row < log_sums.len());
            Rows { corner: [first + of_head, group], pitch: pitch as usize, len, groups }
        });
        let pair = of_y.group(y, [0, lane]).zip(of_dy.group(dy, [0, lane]));
        let mut mean = pair.map_or(0.0, |(y, dy)| {
            (0..8).fold(0.0, |sum, i| Float::mul_add(y[i].to_f32(), dy[i].to_f32(), sum))
        });
        let warp = t.warp();
        for distance in [16, 8, 4, 2, 1] {
            mean += warp.shuffle_xor(mean, distance);
        }
        if lane == 0
            && let (Some(to), Some(mean_of_row)) = (binary.get(row), means.get(row))
        {
            let log_sum = log_sums.get(row).copied().unwrap_or(f32::NEG_INFINITY);
            to.store(if log_sum == f32::NEG_INFINITY { f32::INFINITY } else { log_sum * LOG2_E }, Relaxed);
            mean_of_row.store(mean, Relaxed);
        }
    }

    /// The rows of a block, and the others that it multiplies them by.
    #[derive(Clone, Copy)]
    pub struct Assignment {
        pub head: usize,
        pub first: usize,
        /// The steps in all heads, and in each.
        pub steps: usize,
        steps_of_head: usize,
        /// The first of the others in each head.
        first_other: usize,
    }

    impl Assignment {
        /// `rows` keys of a block, which it multiplies by all queries that see them, of all heads that share them; or `rows` queries, by all
        /// keys that they see.
        #[inline(always)]
        pub fn of<const KEYS: bool>(s: Sizes, block: u32, sizes @ [rows, _]: [usize; 2]) -> Self {
            let (block, len) = (block as usize, if KEYS { s.keys } else { s.queries });
            let tiles = (len as usize).div_ceil(rows);
            Self::of_tile::<KEYS>(s, [block / tiles, block % tiles], sizes)
        }

        /// As `of`, of a tile of a head.
        #[inline(always)]
        fn of_tile<const KEYS: bool>(s: Sizes, [head, tile]: [usize; 2], [rows, others]: [usize; 2]) -> Self {
            if !KEYS {
                let place = s.place_of_tile(head, tile, rows);
                let steps = place.seen.div_ceil(others);
                return Assignment {
                    head: place.head,
                    first: place.first,
                    steps,
                    steps_of_head: steps,
                    first_other: 0,
                };
            }
            let (first, queries) = (tile * rows, s.queries as usize);
            // The first query that sees a key.
            let first_query = (first as i64 - s.ahead()).clamp(0, queries as i64) as usize;
            let first_other = first_query / others * others;
            let steps_of_head = (queries - first_other).div_ceil(others);
            Assignment { head, first, steps: steps_of_head * s.sharing as usize, steps_of_head, first_other }
        }

        /// The query and the key of a product of one of the block's rows and one of the others, whose step begins at `first`.
        #[inline(always)]
        pub fn place<const KEYS: bool>(self, first: usize, [row, column]: [usize; 2]) -> [usize; 2] {
            let (row, column) = (self.first + row, first + column);
            if KEYS { [column, row] } else { [row, column] }
        }

        /// The head of the others in a step, of keys' `sharing` ones, and the first of them within it.
        #[inline(always)]
        pub fn others<const KEYS: bool>(self, s: Sizes, others: usize, step: usize) -> [usize; 2] {
            // Without a panic, after which the builder would leave out `setmaxnreg`.
            let sharing = (s.sharing as usize).max(1);
            if KEYS {
                // Of 32 bits: a longer division would be a call.
                let (step, steps) = (step as u32, (self.steps_of_head as u32).max(1));
                let (head, step) = (step / steps, step % steps);
                let [head, step] = [head, step].map(|it| it as usize);
                [self.head * sharing + head, self.first_other + step * others]
            } else {
                [self.head / sharing, step * others]
            }
        }
    }

    /// A tensor, and the groups from the start of a row to that of the next.
    pub type Tensor<'b, T> = (&'b [Group<T>], u32);

    /// What a block reads: both tensors of its own rows and both of the others, keys and values or queries and the results' gradients.
    #[derive(Clone, Copy)]
    pub struct Tensors<'b, T: TensorElement> {
        pub own: [Tensor<'b, T>; 2],
        pub others: [Tensor<'b, T>; 2],
        /// Of each query, what `prepare` finds.
        pub log_sums: &'b [f32],
        pub means: &'b [f32],
    }

    /// The gradients of keys as well as those of values.
    pub const BOTH: usize = 2;

    /// Memory for a block's own rows.
    type Own<'b, T, const W: usize, const ID: usize> = Shared<'b, Tile<T, W, ROWS>, ID>;
    /// Memory for what it multiplies them by.
    type Others<'b, T, const W: usize, const ID: usize> = Shared<'b, Stages<Tile<T, W, OTHERS>, 2>, ID>;

    /// The gradients of a block's rows, of keys and values or of queries: scores and the gradients of weights are multiplied again, step
    /// by step, and then both, rounded to `T`, by what they were multiplied with: scores' gradients are those of the first result, weights
    /// those of the second one, values. `RESULT` is the number of the one that is asked for, or [`BOTH`]. `W` and `H` as those of attention.
    #[inline(always)]
    pub fn differentiate<
        'b,
        T: TensorElement,
        const OF_KEYS: bool,
        const RESULT: usize,
        const W: usize,
        const H: usize,
        const A: usize,
        const B: usize,
        const C: usize,
        const D: usize,
    >(
        t: &Thread<'b, 1>,
        (s, offsets): (Sizes, [&'b [u32]; 2]),
        tensors: Tensors<'b, T>,
        results: [(&[DeviceAtomic<u32>], u32); 2],
        (mut first_own, mut second_own): (Own<'b, T, W, A>, Own<'b, T, W, B>),
        (first_others, second_others): (Others<'b, T, W, C>, Others<'b, T, W, D>),
    ) {
        let (warp, own) = (t.warp(), t.thread_rank() as usize / 32 * 16);
        Part::check(t, s, offsets);
        let which = usize::from(OF_KEYS);
        let Some(part) = Part::of(s, t.block_idx()[0], ROWS, which, offsets) else { return };
        let s = part.sizes;
        let work = Assignment::of_tile::<OF_KEYS>(s, [part.head, part.tile], [ROWS, OTHERS]);
        let own_rows = |pitch: u32| part.rows(which, work.head, work.first, pitch);
        let own_group = |(tensor, pitch): Tensor<'b, T>, place| {
            own_rows(pitch).group(tensor, place).copied().unwrap_or(Aligned16::new([T::ZERO; 8]))
        };
        first_own.fill_with(t, |place| own_group(tensors.own[0], place));
        second_own.fill_with(t, |place| own_group(tensors.own[1], place));
        let (first_own, second_own) = t.publish((first_own, second_own));

        let others = |step: usize| work.others::<OF_KEYS>(s, OTHERS, step);
        let (mut first_others, mut second_others) = (first_others.into_stages(), second_others.into_stages());
        let mut sums = [[Accumulator::<T, 1, 8>::zero(); H]; 2];
        for step in 0..=work.steps {
            // The tiles of this step are copied while those of the one before are multiplied.
            if step < work.steps {
                let [head, first] = others(step);
                let [(a, of_a), (b, of_b)] = tensors.others;
                let [of_a, of_b] = [of_a, of_b].map(|pitch| part.rows(1 - which, head, first, pitch));
                first_others.copy_with(t, |place| of_a.group(a, place));
                second_others.copy_with(t, |place| of_b.group(b, place));
            }
            if step > 0 {
                let [head, first] = others(step - 1);
                let (first_tile, second_tile) =
                    (first_others.current().rows(), second_others.current().rows());
                let mut scores = Accumulator::<T, 1, 4>::zero();
                let mut products = Accumulator::<T, 1, 4>::zero();
                for depth in (0..W * 8).step_by(T::DEPTH) {
                    let a = FragmentA::load(&warp, first_own.rows(), [own, depth]);
                    scores.add_product(&warp, &a, &FragmentB::load_transposed(&warp, first_tile, [0, depth]));
                    if RESULT != 1 {
                        let a = FragmentA::load(&warp, second_own.rows(), [own, depth]);
                        let b = FragmentB::load_transposed(&warp, second_tile, [0, depth]);
                        products.add_product(&warp, &a, &b);
                    }
                }
                let head = if OF_KEYS { head } else { work.head };
                let place = |row: usize, column: usize| work.place::<OF_KEYS>(first, [own + row, column]);
                let ([first_query, _], [_, last_key]) = (place(0, 0), place(15, OTHERS - 1));
                if !s.all_see(first_query, last_key + 1) {
                    scores.map_places(&warp, |row, column, score| s.masked(place(row, column), score));
                }
                let of_query = |values: &[f32], row: usize, column: usize| {
                    let [query, _] = place(row, column);
                    values.get(part.first_query(head) + query).copied().filter(|_| query < s.queries as usize)
                };
                scores.map_places(&warp, |row, column, score| {
                    let log_sum = of_query(tensors.log_sums, row, column).unwrap_or(f32::INFINITY);
                    weight(score, s.scale * LOG2_E, log_sum)
                });
                if RESULT != 1 {
                    products.zip_places(&warp, &scores, |row, column, [of_weight, weight]| {
                        of_score(weight, of_weight, of_query(tensors.means, row, column).unwrap_or(0.0))
                    });
                    add(&warp, &mut sums[0], &FragmentA::from_sums::<4, 2>(&products), first_tile);
                }
                if RESULT != 0 {
                    add(&warp, &mut sums[1], &FragmentA::from_sums::<4, 2>(&scores), second_tile);
                }
            }
            t.advance((&mut first_others, &mut second_others));
        }
        if RESULT != 1 {
            let (to, pitch) = results[0];
            write(&warp, &sums[0], |[row, column], pair| {
                own_rows(pitch).write::<T>(to, [own + row, column], pair.map(|sum| sum * s.scale));
            });
        }
        if RESULT != 0 {
            let (to, pitch) = results[1];
            write(&warp, &sums[1], |[row, column], pair| {
                own_rows(pitch).write::<T>(to, [own + row, column], pair);
            });
        }
    }

    /// Adds weighted rows of a tile.
    #[inline(always)]
    fn add<T: TensorElement, R: MatrixRow<T>, const H: usize>(
        warp: &Warp,
        sums: &mut [Accumulator<T, 1, 8>; H],
        weights: &[FragmentA<T>; 2],
        rows: &[R],
    ) {
        sums[0].add_products(warp, weights, |k| FragmentB::load(warp, rows, [16 * k, 0]));
        if H > 1 {
            sums[1 % H].add_products(warp, weights, |k| FragmentB::load(warp, rows, [16 * k, 64]));
        }
        if H > 2 {
            sums[2 % H].add_products(warp, weights, |k| FragmentB::load(warp, rows, [16 * k, 128]));
            sums[3 % H].add_products(warp, weights, |k| FragmentB::load(warp, rows, [16 * k, 192]));
        }
    }

    /// Calls `f` with row, column and value of each pair of neighbours.
    #[inline(always)]
    fn write<T: TensorElement, const H: usize>(
        warp: &Warp,
        sums: &[Accumulator<T, 1, 8>; H],
        mut f: impl FnMut([usize; 2], [f32; 2]),
    ) {
        sums[0].for_each_pair(warp, |row, column, pair| f([row, column], pair));
        if H > 1 {
            sums[1 % H].for_each_pair(warp, |row, column, pair| f([row, 64 + column], pair));
        }
        if H > 2 {
            sums[2 % H].for_each_pair(warp, |row, column, pair| f([row, 128 + column], pair));
            sums[3 % H].for_each_pair(warp, |row, column, pair| f([row, 192 + column], pair));
        }
    }
}

/// The kernels, by the greatest size of a head.
#[ferrogrid::module(arch = ["sm_80"])]
pub mod kernels {
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;

    use super::steps::{BOTH, OTHERS, ROWS, THREADS, Tensors, differentiate};
    use crate::attention::kernels::steps::{Group, Sizes, TensorElement, Tile};

    /// dk and dv, of heads of up to 64 elements.
    #[inline(always)]
    #[kernel(block = THREADS, T = [f16, bf16])]
    pub fn of_keys_64<T: TensorElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 6],
        for_queries: &[u32],
        for_keys: &[u32],
        q: &[Group<T>],
        k: &[Group<T>],
        v: &[Group<T>],
        dy: &[Group<T>],
        log_sums: &[f32],
        means: &[f32],
        dk: &[DeviceAtomic<u32>],
        dv: &[DeviceAtomic<u32>],
        first_own: Shared<Tile<T, 8, ROWS>>,
        second_own: Shared<Tile<T, 8, ROWS>>,
        first_others: Shared<Stages<Tile<T, 8, OTHERS>, 2>>,
        second_others: Shared<Stages<Tile<T, 8, OTHERS>, 2>>,
    ) {
        let [of_q, of_k, of_v, of_dy, first, second] = pitches;
        let (own, others) = ([(k, of_k), (v, of_v)], [(q, of_q), (dy, of_dy)]);
        let tensors = Tensors { own, others, log_sums, means };
        let (own, others) = ((first_own, second_own), (first_others, second_others));
        differentiate::<T, true, BOTH, 8, 1, _, _, _, _>(
            &t,
            (s, [for_queries, for_keys]),
            tensors,
            [(dk, first), (dv, second)],
            own,
            others,
        );
    }

    /// dq, of heads of up to 64 elements.
    #[inline(always)]
    #[kernel(block = THREADS, T = [f16, bf16])]
    pub fn of_queries_64<T: TensorElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 6],
        for_queries: &[u32],
        for_keys: &[u32],
        q: &[Group<T>],
        k: &[Group<T>],
        v: &[Group<T>],
        dy: &[Group<T>],
        log_sums: &[f32],
        means: &[f32],
        dq: &[DeviceAtomic<u32>],
        first_own: Shared<Tile<T, 8, ROWS>>,
        second_own: Shared<Tile<T, 8, ROWS>>,
        first_others: Shared<Stages<Tile<T, 8, OTHERS>, 2>>,
        second_others: Shared<Stages<Tile<T, 8, OTHERS>, 2>>,
    ) {
        let [of_q, of_k, of_v, of_dy, first, _] = pitches;
        let (own, others) = ([(q, of_q), (dy, of_dy)], [(k, of_k), (v, of_v)]);
        let tensors = Tensors { own, others, log_sums, means };
        let (own, others) = ((first_own, second_own), (first_others, second_others));
        differentiate::<T, false, 0, 8, 1, _, _, _, _>(
            &t,
            (s, [for_queries, for_keys]),
            tensors,
            [(dq, first), (&[], 0)],
            own,
            others,
        );
    }

    /// dk and dv, of heads of up to 128 elements.
    #[inline(always)]
    #[kernel(block = THREADS, T = [f16, bf16])]
    pub fn of_keys_128<T: TensorElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 6],
        for_queries: &[u32],
        for_keys: &[u32],
        q: &[Group<T>],
        k: &[Group<T>],
        v: &[Group<T>],
        dy: &[Group<T>],
        log_sums: &[f32],
        means: &[f32],
        dk: &[DeviceAtomic<u32>],
        dv: &[DeviceAtomic<u32>],
        first_own: Shared<Tile<T, 16, ROWS>>,
        second_own: Shared<Tile<T, 16, ROWS>>,
        first_others: Shared<Stages<Tile<T, 16, OTHERS>, 2>>,
        second_others: Shared<Stages<Tile<T, 16, OTHERS>, 2>>,
    ) {
        let [of_q, of_k, of_v, of_dy, first, second] = pitches;
        let (own, others) = ([(k, of_k), (v, of_v)], [(q, of_q), (dy, of_dy)]);
        let tensors = Tensors { own, others, log_sums, means };
        let (own, others) = ((first_own, second_own), (first_others, second_others));
        differentiate::<T, true, BOTH, 16, 2, _, _, _, _>(
            &t,
            (s, [for_queries, for_keys]),
            tensors,
            [(dk, first), (dv, second)],
            own,
            others,
        );
    }

    /// dq, of heads of up to 128 elements.
    #[inline(always)]
    #[kernel(block = THREADS, T = [f16, bf16])]
    pub fn of_queries_128<T: TensorElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 6],
        for_queries: &[u32],
        for_keys: &[u32],
        q: &[Group<T>],
        k: &[Group<T>],
        v: &[Group<T>],
        dy: &[Group<T>],
        log_sums: &[f32],
        means: &[f32],
        dq: &[DeviceAtomic<u32>],
        first_own: Shared<Tile<T, 16, ROWS>>,
        second_own: Shared<Tile<T, 16, ROWS>>,
        first_others: Shared<Stages<Tile<T, 16, OTHERS>, 2>>,
        second_others: Shared<Stages<Tile<T, 16, OTHERS>, 2>>,
    ) {
        let [of_q, of_k, of_v, of_dy, first, _] = pitches;
        let (own, others) = ([(q, of_q), (dy, of_dy)], [(k, of_k), (v, of_v)]);
        let tensors = Tensors { own, others, log_sums, means };
        let (own, others) = ((first_own, second_own), (first_others, second_others));
        differentiate::<T, false, 0, 16, 2, _, _, _, _>(
            &t,
            (s, [for_queries, for_keys]),
            tensors,
            [(dq, first), (&[], 0)],
            own,
            others,
        );
    }

    /// dk, or dv, of heads of up to 256 elements: a thread has registers for one of them.
    #[inline(always)]
    #[kernel(block = THREADS, T = [f16, bf16], RESULT = [0, 1])]
    pub fn of_keys_256<T: TensorElement, const RESULT: usize>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 6],
        for_queries: &[u32],
        for_keys: &[u32],
        q: &[Group<T>],
        k: &[Group<T>],
        v: &[Group<T>],
        dy: &[Group<T>],
        log_sums: &[f32],
        means: &[f32],
        d: &[DeviceAtomic<u32>],
        first_own: Shared<Tile<T, 32, ROWS>>,
        second_own: Shared<Tile<T, 32, ROWS>>,
        first_others: Shared<Stages<Tile<T, 32, OTHERS>, 2>>,
        second_others: Shared<Stages<Tile<T, 32, OTHERS>, 2>>,
    ) {
        let [of_q, of_k, of_v, of_dy, first, second] = pitches;
        let (own, others) = ([(k, of_k), (v, of_v)], [(q, of_q), (dy, of_dy)]);
        let tensors = Tensors { own, others, log_sums, means };
        let (own, others) = ((first_own, second_own), (first_others, second_others));
        differentiate::<T, true, RESULT, 32, 4, _, _, _, _>(
            &t,
            (s, [for_queries, for_keys]),
            tensors,
            [(d, first), (d, second)],
            own,
            others,
        );
    }

    /// dq, of heads of up to 256 elements.
    #[inline(always)]
    #[kernel(block = THREADS, T = [f16, bf16])]
    pub fn of_queries_256<T: TensorElement>(
        t: Thread<1>,
        s: Sizes,
        pitches: [u32; 6],
        for_queries: &[u32],
        for_keys: &[u32],
        q: &[Group<T>],
        k: &[Group<T>],
        v: &[Group<T>],
        dy: &[Group<T>],
        log_sums: &[f32],
        means: &[f32],
        dq: &[DeviceAtomic<u32>],
        first_own: Shared<Tile<T, 32, ROWS>>,
        second_own: Shared<Tile<T, 32, ROWS>>,
        first_others: Shared<Stages<Tile<T, 32, OTHERS>, 2>>,
        second_others: Shared<Stages<Tile<T, 32, OTHERS>, 2>>,
    ) {
        let [of_q, of_k, of_v, of_dy, first, _] = pitches;
        let (own, others) = ([(q, of_q), (dy, of_dy)], [(k, of_k), (v, of_v)]);
        let tensors = Tensors { own, others, log_sums, means };
        let (own, others) = ((first_own, second_own), (first_others, second_others));
        differentiate::<T, false, 0, 32, 4, _, _, _, _>(
            &t,
            (s, [for_queries, for_keys]),
            tensors,
            [(dq, first), (&[], 0)],
            own,
            others,
        );
    }
}
