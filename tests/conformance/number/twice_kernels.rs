//! Kernels whose blocks multiply what comes of a product, or of two.

/// Code for `sm_90a` multiplies by `wgmma`.
#[ferrogrid::module]
pub mod twice {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::matrix::{
        Added, AddedTiles, HalfElement, PairStep, PairedFactors, PairedPlace, PairedProducts, ProductSums,
        RowValues, TwicePlace, TwoProducts,
    };
    use ferrogrid::device::prelude::*;

    /// y <- (a b^T - the greatest of each row in a tile of `N` columns) c, where the sums are halved before each tile, unless step `last`
    /// comes.
    #[inline(always)]
    fn compute<
        T: HalfElement,
        const M: usize,
        const N: usize,
        const D: usize,
        const S: usize,
        const ID: usize,
    >(
        t: Thread<1>,
        factors: [TensorMap<T, 64, 64>; 3],
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, M, N, D, S>, ID>,
    ) {
        let (height, width) = (factors[0].height(), factors[0].width());
        let (row, warp) = (t.block_idx()[0] as usize * M, t.warp());
        let first = |[steps, _]: &mut [usize; 2], step: usize, units: &mut ProductSums<N>| {
            *steps += 1;
            assert!(step < last as usize || t.thread_rank() != 200, "the third step");
            let greatest = units.reduce_rows(&warp, f32::max);
            units.map_rows(&greatest, |unit, greatest| unit - greatest);
        };
        let second = |[steps, halved]: &mut [usize; 2], sums: &mut ProductSums<D>| {
            *halved += 1;
            sums.map_places(|_, _, sum| if *halved == *steps { sum / 2.0 } else { f32::NAN });
        };
        let steps = factors[1].height().div_ceil(N);
        t.multiply_twice(memory, factors, [row, 0], steps, [0; 2], first, second, |kept, mut sums| {
            sums.map_places(|i, column, sum| {
                if row + i < height && column < width && kept == [steps; 2] {
                    y[(row + i) * width + column].store(sum, Relaxed);
                }
                sum
            });
        });
    }

    /// One group.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn small(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<f16, 64, 64, 64, 2>>,
    ) {
        compute(t, [a, b, c], last, y, memory);
    }

    /// Rows of 128 elements.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn wide(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<bf16, 64, 64, 128, 2>>,
    ) {
        compute(t, [a, b, c], last, y, memory);
    }

    /// Three groups, which take turns, and the registers of the threads that copy.
    #[inline(always)]
    #[kernel(block = 512, min_blocks = 1)]
    pub fn tall(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<f16, 192, 64, 64, 3>>,
    ) {
        compute(t, [a, b, c], last, y, memory);
    }

    /// As few stages as possible.
    #[inline(always)]
    #[kernel(block = 384)]
    pub fn long(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<bf16, 128, 128, 64, 2>>,
    ) {
        compute(t, [a, b, c], last, y, memory);
    }

    /// Three groups, whose threads have no registers for both products at once.
    #[inline(always)]
    #[kernel(block = 512, min_blocks = 1)]
    pub fn tall_and_long(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<f16, 192, 128, 64, 2>>,
    ) {
        compute(t, [a, b, c], last, y, memory);
    }

    /// y <- as `compute`, of tiles that blocks take by counting them. Tile `n` has `n % 4` tiles of `b` and `c` from number `n % 3` on, and other
    /// columns of `a`, and of these, than its neighbours. A thread panics in one of the closures if `fails` is that tile and the closure.
    #[inline(always)]
    fn compute_places<
        T: HalfElement,
        const M: usize,
        const N: usize,
        const D: usize,
        const S: usize,
        const ID: usize,
    >(
        t: Thread<1>,
        factors: [TensorMap<T, 64, 64>; 3],
        taken: &[DeviceAtomic<u32>],
        fails: Option<[u32; 2]>,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<T, M, N, D, S>, ID>,
    ) {
        let (height, warp) = (factors[0].height(), t.warp());
        let places = core::iter::from_fn(|| {
            let number = taken.first()?.fetch_add(1, Relaxed);
            let tile = number as usize;
            (tile * M < height).then_some(TwicePlace {
                row: tile * M,
                start: tile % 3 * N,
                columns: [tile % 2 * D, tile / 2 % 2 * D],
                steps: tile % 4,
                tag: number,
            })
        });
        let fail = |number: u32, closure: u32| {
            if fails == Some([number, closure]) {
                assert!(t.thread_rank() != 200, "a closure of a later tile");
            }
        };
        let begin = |number: u32| {
            fail(number, 0);
            [number, 0, 0]
        };
        let first = |[number, steps, _]: &mut [u32; 3], step: usize, units: &mut ProductSums<N>| {
            fail(*number, 1);
            let is_next = *steps == step as u32;
            *steps += 1;
            let greatest = units.reduce_rows(&warp, f32::max);
            units.map_rows(&greatest, |unit, greatest| if is_next { unit - greatest } else { f32::NAN });
        };
        let second = |[_, steps, halved]: &mut [u32; 3], sums: &mut ProductSums<D>| {
            *halved += 1;
            sums.map_places(|_, _, sum| if *halved == *steps { sum / 2.0 } else { f32::NAN });
        };
        let finish = |[number, steps, halved]: [u32; 3], sums: ProductSums<D>| {
            fail(number, 2);
            sums.for_each_pair(|i, column, pair| {
                let row = number as usize * M + i;
                for (column, sum) in (column..).zip(pair) {
                    let to = y.get(row * D + column).filter(|_| row < height);
                    if let Some(to) = to.filter(|_| [steps, halved] == [number % 4; 2]) {
                        to.store(sum, Relaxed);
                    }
                }
            });
        };
        let factors = factors.map(|it| it.columns(0, D));
        t.multiply_tiles_twice(memory, factors, places, begin, first, second, finish);
    }

    /// One group, at several places.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn small_places(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        taken: &[DeviceAtomic<u32>],
        fails: [u32; 2],
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<f16, 64, 64, 64, 2>>,
    ) {
        compute_places(t, [a, b, c], taken, Some(fails), y, memory);
    }

    /// Three groups, which do not wait for each other between places.
    #[inline(always)]
    #[kernel(block = 512, min_blocks = 1)]
    pub fn tall_places(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        taken: &[DeviceAtomic<u32>],
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<f16, 192, 64, 64, 3>>,
    ) {
        compute_places(t, [a, b, c], taken, None, y, memory);
    }

    /// Two groups, with rows of 128 elements.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn wide_places(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        taken: &[DeviceAtomic<u32>],
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<bf16, 128, 64, 128, 2>>,
    ) {
        compute_places(t, [a, b, c], taken, None, y, memory);
    }

    /// Three groups, one product after the other.
    #[inline(always)]
    #[kernel(block = 512, min_blocks = 1)]
    pub fn long_places(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        taken: &[DeviceAtomic<u32>],
        fails: [u32; 2],
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<f16, 192, 128, 64, 2>>,
    ) {
        compute_places(t, [a, b, c], taken, Some(fails), y, memory);
    }

    /// The numbers of rows, those of columns masked above or below a diagonal, and added to their row's own: `c` is the identity.
    #[inline(always)]
    #[kernel(block = 384)]
    pub fn masked(
        t: Thread<1>,
        zeros: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        most: i32,
        is_above: bool,
        y: &[DeviceAtomic<f32>],
        memory: Shared<TwoProducts<f16, 128, 64, 64, 2>>,
    ) {
        let rows = RowValues::of_product(&t, |row| row as f32);
        let first = |_: &mut (), _, sums: &mut ProductSums<64>| {
            if is_above {
                sums.mask_above(most, 500.0);
            } else {
                sums.mask_below(most, 500.0);
            }
            sums.map_places(|row, _, sum| sum + rows.get(row));
        };
        t.multiply_twice(
            memory,
            [zeros, zeros, c],
            [0; 2],
            1,
            (),
            first,
            |_, _| (),
            |(), sums| {
                sums.for_each_pair(|i, column, pair| {
                    for (column, sum) in (column..).zip(pair) {
                        y[i * 64 + column].store(sum, Relaxed);
                    }
                });
            },
        );
    }

    /// (p v - q w) c and p v d, or the first of them, with p = a c^T and q = b d^T and numbers v and w of each row of c and d, the last tiles first
    /// and then one far past the end, unless there is a `last` step, and it comes. The numbers begin four columns late, and so do the rows that
    /// third products are added to.
    #[inline(always)]
    fn compute_pairs<
        T: HalfElement,
        X: Added<T, M, N, D>,
        const M: usize,
        const N: usize,
        const D: usize,
        const S: usize,
        const R: usize,
        const ID: usize,
    >(
        t: Thread<1>,
        [left, right]: [[TensorMap<T, 64, 64>; 2]; 2],
        values: TensorMap<f32, N, 2>,
        last: Option<u32>,
        results: [&[DeviceAtomic<f32>]; R],
        added: X::Plane<'_>,
        memory: Shared<PairedProducts<T, M, N, D, S, X>, ID>,
    ) {
        let (height, width) = (left[0].height(), left[0].width());
        let row = t.block_idx()[0] as usize * M;
        let is_past =
            |step: PairStep<N>, more: usize| last.is_some_and(|last| step.number() >= last as usize + more);
        let first = |step: PairStep<N>, p: &mut ProductSums<N>| {
            if is_past(step, 0) {
                assert!(t.thread_rank() != 200, "the third step");
            }
            let is_tagged = step.tag() as usize == 3 * step.number();
            let by = |p: f32, value: f32| if is_tagged { value * p } else { f32::NAN };
            match last {
                Some(_) => p.map_places(|_, column, p| by(p, step.value(0, column))),
                None => p.map_columns(&step.column_values(0), by),
            }
        };
        let second = |step: PairStep<N>, p: &ProductSums<N>, q: &mut ProductSums<N>| {
            if is_past(step, 1) {
                assert!(t.thread_rank() != 300, "the third second step");
            }
            match last {
                Some(_) => q.zip_places(p, |_, column, [q, p]| p - step.value(1, column) * q),
                None => q.zip_columns(p, &step.column_values(1), |[q, p], value| p - value * q),
            }
        };
        let store = |to: &[DeviceAtomic<f32>], sums: &ProductSums<D>| {
            sums.for_each_pair(|i, column, pair| {
                for (column, sum) in (column..).zip(pair) {
                    let place = (row + i) * width + column;
                    if row + i < height
                        && column < width
                        && let Some(to) = to.get(place)
                    {
                        to.store(sum, Relaxed);
                    }
                }
            });
        };
        let steps = right[0].height().div_ceil(N);
        let places = |step: usize| {
            let row = steps.wrapping_sub(step + 1).saturating_mul(N);
            PairedPlace { row, column: 0, number: row.saturating_add(4), tag: 3 * step as u32 }
        };
        let factors = PairedFactors { left, right, row, steps: steps + 1, values: Some(values), added };
        t.multiply_pairs(memory, factors, places, first, second, |sums: [_; R]| {
            store(results[0], &sums[0]);
            if R == 2 {
                store(results[R - 1], &sums[R - 1]);
            }
        });
    }

    /// One group.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn small_pairs(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        d: TensorMap<f16, 64, 64>,
        values: TensorMap<f32, 64, 2>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        memory: Shared<PairedProducts<f16, 64, 64, 64, 2>>,
    ) {
        compute_pairs(t, [[a, b], [c, d]], values, Some(last), [y], (), memory);
    }

    /// Two groups.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn deep_pairs(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        d: TensorMap<bf16, 64, 64>,
        values: TensorMap<f32, 64, 2>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        z: &[DeviceAtomic<f32>],
        memory: Shared<PairedProducts<bf16, 128, 64, 128, 2>>,
    ) {
        compute_pairs(t, [[a, b], [c, d]], values, Some(last), [y, z], (), memory);
    }

    /// A third product by one group.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn small_added(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        d: TensorMap<f16, 64, 64>,
        values: TensorMap<f32, 64, 2>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        z: &[DeviceAtomic<f32>],
        sums: TensorMapMut<f32, 32, 16>,
        memory: Shared<PairedProducts<f16, 64, 64, 64, 2, AddedTiles<f16, 64, 64, 64>>>,
    ) {
        compute_pairs(t, [[a, b], [c, d]], values, Some(last), [y, z], &sums, memory);
    }

    /// By two groups, of which each has half of the columns; nothing panics, and values are read by columns.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn deep_added(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 64>,
        c: TensorMap<bf16, 64, 64>,
        d: TensorMap<bf16, 64, 64>,
        values: TensorMap<f32, 64, 2>,
        y: &[DeviceAtomic<f32>],
        z: &[DeviceAtomic<f32>],
        sums: TensorMapMut<f32, 32, 16>,
        memory: Shared<PairedProducts<bf16, 128, 64, 128, 2, AddedTiles<bf16, 128, 64, 128>>>,
    ) {
        compute_pairs(t, [[a, b], [c, d]], values, None, [y, z], &sums, memory);
    }

    /// By two groups, of which each has half of the rows.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn long_added(
        t: Thread<1>,
        a: TensorMap<f16, 64, 64>,
        b: TensorMap<f16, 64, 64>,
        c: TensorMap<f16, 64, 64>,
        d: TensorMap<f16, 64, 64>,
        values: TensorMap<f32, 128, 2>,
        last: u32,
        y: &[DeviceAtomic<f32>],
        z: &[DeviceAtomic<f32>],
        sums: TensorMapMut<f32, 32, 16>,
        memory: Shared<PairedProducts<f16, 128, 128, 64, 2, AddedTiles<f16, 128, 128, 64>>>,
    ) {
        compute_pairs(t, [[a, b], [c, d]], values, Some(last), [y, z], &sums, memory);
    }
}
