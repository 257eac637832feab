//! The kernels of products by the tensor cores of warps (`mma.sync`): of `f64`, and of `f32` rounded to `tf32`.

/// The kernels. `LEFT` and `RIGHT` say whether a factor is stored with a row for each `k`, as `b` is unless it is transposed.
#[ferrogrid::module(arch = ["sm_80", "sm_90"])]
pub mod kernels {
    use atomic::{AtomicLoadStore, Ordering::Relaxed};
    use ferrogrid::device::matrix::{
        Accumulator, COLUMNS, FragmentA, FragmentB, MatrixElement, ROWS, ResultTile,
    };
    use ferrogrid::device::narrow::tf32;
    use ferrogrid::device::prelude::*;

    use crate::gemm::kernels::kernels::{Form, Sizes, scaled};

    /// Groups of 16 bytes in a row of shared memory.
    const ROW: usize = 8;

    /// Stages of `L` lines of a factor, rows of `a` or columns of `b`, and for each `ROW` groups of elements along `k`.
    type Lines<U, const G: usize, const L: usize, const S: usize> = Stages<[[Aligned16<[U; G]>; ROW]; L], S>;

    /// Where the group of an element is in `Lines`, stored line by line or `k` by `k`. Groups are exchanged within a row of 128
    /// bytes, so that the threads of a warp, which read 8 lines and 4 `k` at a time, read different banks.
    #[inline(always)]
    fn place<const G: usize, const L: usize, const BY_K: bool>(line: usize, k: usize) -> [usize; 2] {
        if BY_K {
            [k * (L / G / ROW) + line / G / ROW, (line / G % ROW) ^ (k * 2 % ROW)]
        } else {
            [line, (k / G) ^ (line * 4 / G % ROW)]
        }
    }

    /// The line and the `k` of the first element of the group at a place: the inverse of [`place`].
    #[inline(always)]
    fn element<const G: usize, const L: usize, const BY_K: bool>([row, group]: [usize; 2]) -> [usize; 2] {
        if BY_K {
            let k = row / (L / G / ROW);
            [(row % (L / G / ROW) * ROW + (group ^ (k * 2 % ROW))) * G, k]
        } else {
            [row, (group ^ (row * 4 / G % ROW)) * G]
        }
    }

    /// A factor of one batch or group: its lines from the first one of a block's tile on.
    struct Factor<'b, U: DeviceCopy, const G: usize, const L: usize, const BY_K: bool> {
        groups: &'b [Aligned16<[U; G]>],
        first: usize,
        /// The lines up to the edge, and the elements of each.
        lines: usize,
        depth: usize,
        pitch: usize,
    }

    impl<'b, U: DeviceCopy, const G: usize, const L: usize, const BY_K: bool> Factor<'b, U, G, L, BY_K> {
        /// The factor of `batch`, which has `lines` lines of `depth` elements up to line `end` of all batches, from line `first` of those on.
        #[inline(always)]
        fn new(
            groups: &'b [Aligned16<[U; G]>],
            pitch: usize,
            (batch, [lines, depth]): (usize, [usize; 2]),
            [first, end]: [usize; 2],
        ) -> Self {
            let start =
                if BY_K { batch * depth * pitch + (first - batch * lines) / G } else { first * pitch };
            Factor { groups, first: start, lines: end - first, depth, pitch }
        }

        /// The group for a place of the tile that begins at `k`; `None` beyond the edges.
        #[inline(always)]
        fn get(&self, place: [usize; 2], first_k: usize) -> Option<&'b Aligned16<[U; G]>> {
            let [line, k] = element::<G, L, BY_K>(place);
            let k = first_k + k;
            let at = if BY_K { k * self.pitch + line / G } else { line * self.pitch + k / G };
            self.groups.get(self.first + at).filter(|_| line < self.lines && k < self.depth)
        }
    }

    /// The product of one block, of whose warps each has `16 M` rows and `8 N` columns.
    #[inline(always)]
    fn multiply_block<
        T: MatrixElement<Sum = U>,
        U: Float + AtomicLoadStore + DeviceCopy,
        const G: usize,
        const M: usize,
        const N: usize,
        const LA: usize,
        const LB: usize,
        const S: usize,
        const LEFT: bool,
        const RIGHT: bool,
        const ID_A: usize,
        const ID_B: usize,
    >(
        t: &Thread<1>,
        form: Form<U>,
        [a, b]: [&[Aligned16<[U; G]>]; 2],
        c: &[DeviceAtomic<U>],
        (of_a, of_b): (Shared<Lines<U, G, LA, S>, ID_A>, Shared<Lines<U, G, LB, S>, ID_B>),
        round: impl Fn(U) -> T,
    ) where
        Aligned16<[U; G]>: SharedElement,
    {
        let tiles = form.tiles([LA, LB]);
        if let Some(ResultTile { matrix, rows: [first_row, end], column }) =
            tiles.get(t.block_idx()[0] as usize)
        {
            let s = form.sizes;
            let (mut of_a, mut of_b) = (of_a.into_stages(), of_b.into_stages());
            let [rows, columns] = s.result.map(|it| it as usize);
            let [pitch_a, pitch_b, pitch_c] = s.pitches.map(|it| it as usize);
            let depth = s.depth as usize;
            let a = Factor::<U, G, LA, LEFT>::new(a, pitch_a, (matrix, [rows, depth]), [first_row, end]);
            let lines_of_b = [matrix * columns + column, (matrix + 1) * columns];
            let b = Factor::<U, G, LB, RIGHT>::new(b, pitch_b, (matrix, [columns, depth]), lines_of_b);
            let (warp, number) = (t.warp(), t.thread_rank() as usize / 32);
            let [own_row, own_column] =
                [number % (LA / ROWS / M) * ROWS * M, number / (LA / ROWS / M) * COLUMNS * N];

            // Macros, as LLVM may leave a closure a function, with the sums in memory.
            macro_rules! copy {
                ($step:expr) => {
                    of_a.copy_with(t, |place| a.get(place, $step * ROW * G));
                    of_b.copy_with(t, |place| b.get(place, $step * ROW * G));
                };
            }
            macro_rules! load {
                ($part:expr) => {{
                    let (tile_a, tile_b, first) = (of_a.current(), of_b.current(), $part * T::DEPTH);
                    let a = FragmentA::<T, M>::from_fn(&warp, |row, k| {
                        let (line, k) = (own_row + row, first + k);
                        let [row, group] = place::<G, LA, LEFT>(line, k);
                        round(tile_a[row % LA][group][if LEFT { line } else { k } % G])
                    });
                    let b = FragmentB::<T, N>::from_fn(&warp, |k, column| {
                        let (line, k) = (own_column + column, first + k);
                        let [row, group] = place::<G, LB, RIGHT>(line, k);
                        round(tile_b[row % LB][group][if RIGHT { line } else { k } % G])
                    });
                    (a, b)
                }};
            }
            for step in 0..S - 1 {
                copy!(step);
                t.advance((&mut of_a, &mut of_b));
            }
            // Each part is loaded before the last one is multiplied, the first of a stage as well: no load waits right after the barrier.
            let (mut sums, mut loaded) = (Accumulator::<T, M, N>::zero(), load!(0));
            for step in S - 1..depth.div_ceil(ROW * G) + S - 1 {
                copy!(step);
                macro_rules! multiply {
                ($($part:literal)*) => { $(
                    if $part * T::DEPTH < ROW * G {
                        let next = load!($part);
                        sums.add_product(&warp, &loaded.0, &loaded.1);
                        loaded = next;
                    }
                )* };
            }
                multiply!(1 2 3);
                t.advance((&mut of_a, &mut of_b));
                let next = load!(0);
                sums.add_product(&warp, &loaded.0, &loaded.1);
                loaded = next;
            }
            sums.for_each(&warp, |row, its_column, sum| {
                let [row, column] = [own_row + row, column + own_column + its_column];
                if first_row + row < end
                    && column < columns
                    && let Some(c) = c.get((first_row + row) * pitch_c + column)
                {
                    c.store(scaled(form.scales, sum, || c.load(Relaxed)), Relaxed);
                }
            });
        }
        // At the end, where it needs no registers beside the sums.
        tiles.groups.check(t, tiles.extent[0]);
    }

    /// Of `f64`, 128 x 64 sums by each block: two of them share a multiprocessor, so that one multiplies while the other one copies.
    #[inline(always)]
    #[kernel(block = 128, min_blocks = 2, wide, LEFT = [false, true], RIGHT = [false, true])]
    pub fn multiply_doubles<const LEFT: bool, const RIGHT: bool>(
        t: Thread<1>,
        s: Sizes,
        scales: [f64; 2],
        offsets: &[u32],
        a: &[Aligned16<[f64; 2]>],
        b: &[Aligned16<[f64; 2]>],
        c: &[DeviceAtomic<f64>],
        of_a: Shared<Lines<f64, 2, 128, 3>>,
        of_b: Shared<Lines<f64, 2, 64, 3>>,
    ) {
        multiply_block::<f64, f64, 2, 4, 4, 128, 64, 3, LEFT, RIGHT, _, _>(
            &t,
            Form { sizes: s, scales, offsets },
            [a, b],
            c,
            (of_a, of_b),
            |it| it,
        );
    }

    /// Of `f64`, 64 x 64 sums by each block: of results that have too few of the larger tiles for a GPU.
    #[inline(always)]
    #[kernel(block = 128, min_blocks = 3, wide, LEFT = [false, true], RIGHT = [false, true])]
    pub fn multiply_few_doubles<const LEFT: bool, const RIGHT: bool>(
        t: Thread<1>,
        s: Sizes,
        scales: [f64; 2],
        offsets: &[u32],
        a: &[Aligned16<[f64; 2]>],
        b: &[Aligned16<[f64; 2]>],
        c: &[DeviceAtomic<f64>],
        of_a: Shared<Lines<f64, 2, 64, 3>>,
        of_b: Shared<Lines<f64, 2, 64, 3>>,
    ) {
        multiply_block::<f64, f64, 2, 2, 4, 64, 64, 3, LEFT, RIGHT, _, _>(
            &t,
            Form { sizes: s, scales, offsets },
            [a, b],
            c,
            (of_a, of_b),
            |it| it,
        );
    }
    /// Of `f32`, rounded to `tf32`, 128 x 256 sums by each block.
    #[inline(always)]
    #[kernel(block = 256, min_blocks = 1, wide, LEFT = [false, true], RIGHT = [false, true])]
    pub fn multiply_tf32<const LEFT: bool, const RIGHT: bool>(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: &[Aligned16<[f32; 4]>],
        b: &[Aligned16<[f32; 4]>],
        c: &[DeviceAtomic<f32>],
        of_a: Shared<Lines<f32, 4, 128, 3>>,
        of_b: Shared<Lines<f32, 4, 256, 3>>,
    ) {
        multiply_block::<tf32, f32, 4, 4, 8, 128, 256, 3, LEFT, RIGHT, _, _>(
            &t,
            Form { sizes: s, scales, offsets },
            [a, b],
            c,
            (of_a, of_b),
            tf32::from_f32,
        );
    }

    /// Of `f32`, rounded to `tf32`, 64 x 64 sums by each block.
    #[inline(always)]
    #[kernel(block = 128, min_blocks = 3, wide, LEFT = [false, true], RIGHT = [false, true])]
    pub fn multiply_few_tf32<const LEFT: bool, const RIGHT: bool>(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: &[Aligned16<[f32; 4]>],
        b: &[Aligned16<[f32; 4]>],
        c: &[DeviceAtomic<f32>],
        of_a: Shared<Lines<f32, 4, 64, 3>>,
        of_b: Shared<Lines<f32, 4, 64, 3>>,
    ) {
        multiply_block::<tf32, f32, 4, 2, 4, 64, 64, 3, LEFT, RIGHT, _, _>(
            &t,
            Form { sizes: s, scales, offsets },
            [a, b],
            c,
            (of_a, of_b),
            tf32::from_f32,
        );
    }
}
