//! The kernels of products of `f64` and 16-bit floats without tensor cores: sums of one thread are in its registers, factors in shared memory.

/// The kernels. Each sum adds its products in the order of `k`, rounded once for each: the bits do not depend on the device.
#[ferrogrid::module(arch = ["sm_75", "sm_80"])]
pub mod kernels {
    use atomic::{AtomicLoadStore, Ordering::Relaxed};
    #[cfg(feature = "half")]
    use ferrogrid::device::half::{HalfFloat, bf16, f16};
    #[cfg(feature = "half")]
    use ferrogrid::device::matrix::MatrixElement;
    use ferrogrid::device::matrix::{ProductTiles, ResultTile, RowGroups};
    use ferrogrid::device::prelude::*;

    use crate::sort::digits::kernels::each;

    /// The threads of a block.
    pub const THREADS: usize = 256;
    /// Groups of elements along `k` that a block copies together.
    const STEP: usize = 4;

    /// The sizes of a product, `c <- alpha a b + beta c` for each of the batches, whose matrices are below each other.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Sizes {
        /// Rows and columns of the result: all rows, if they are in groups.
        pub result: [u64; 2],
        /// Columns of `a` and rows of `b`.
        pub depth: u64,
        /// The number of batches: 1, if rows are in groups.
        pub batches: u64,
        /// From the start of a row to that of the next: of `a` and `b` in groups of 16 bytes, of `c` in elements.
        pub pitches: [u64; 3],
        /// The parts of the depth whose products are added up apart, and the elements of each of them.
        pub parts: [u64; 2],
    }

    /// The form of a product: its sizes, `alpha` and `beta`, and where groups of rows begin, with the end of the last one, if there are any.
    #[derive(Clone, Copy)]
    pub struct Form<'o, A> {
        pub sizes: Sizes,
        pub scales: [A; 2],
        pub offsets: &'o [u32],
    }

    impl<'o, A> Form<'o, A> {
        /// The tiles of so many rows and columns.
        #[inline(always)]
        pub fn tiles(&self, tile: [usize; 2]) -> ProductTiles<'o> {
            let (extent, groups) = (self.sizes.result.map(|it| it as usize), RowGroups(self.offsets));
            ProductTiles { extent, tile, batches: self.sizes.batches as usize, groups }
        }
    }

    /// Rows of `a` that a block reads.
    type Left<U, const M: usize> = Stages<Padded<U, STEP, M>, 3>;
    /// Rows of `b`.
    type Right<U, const B: usize, const K: usize> = Stages<[[U; B]; K], 3>;

    /// `alpha` times a sum, and `beta` times what was there before: that does not count without `beta`, not even NaN.
    #[inline(always)]
    pub fn scaled<A: Float>([alpha, beta]: [A; 2], sum: A, before: impl FnOnce() -> A) -> A {
        let scaled = alpha * sum;
        if beta == A::ZERO { scaled } else { beta.mul_add(before(), scaled) }
    }

    /// The product of one block: `16 R` rows, and `B` groups of columns.
    #[inline(always)]
    fn multiply_block<
        T: AtomicLoadStore,
        A: Float,
        U: SharedElement + DeviceCopy,
        const G: usize,
        const C: usize,
        const R: usize,
        const M: usize,
        const B: usize,
        const K: usize,
        const ID_A: usize,
        const ID_B: usize,
    >(
        t: &Thread<1>,
        form: Form<A>,
        ([a, b], c): ([&[U]; 2], &[DeviceAtomic<T>]),
        memory: (Shared<Left<U, M>, ID_A>, Shared<Right<U, B, K>, ID_B>),
        split: impl Fn(U) -> [A; G],
        (widen, narrow): (impl Fn(T) -> A, impl Fn(A) -> T),
    ) {
        let tiles = form.tiles([M, B * G]);
        if let Some(ResultTile { matrix, rows: [row_a, end], column }) = tiles.get(t.block_idx()[0] as usize)
        {
            let s = form.sizes;
            let (mut of_a, mut of_b) = (memory.0.into_stages(), memory.1.into_stages());
            let (columns, first_group, rows) = (s.result[1] as usize, column / G, end - row_a);
            let [pitch_a, pitch_b, pitch_c] = s.pitches.map(|it| it as usize);
            let (depth, groups) = (s.depth as usize, columns.div_ceil(G));
            let (steps, deep) = (depth.div_ceil(STEP * G), depth.div_ceil(G));
            let row_b = matrix * depth;
            let (rank, lane) = (t.thread_rank() as usize % THREADS, t.thread_rank() as usize % 32);
            let own_row = rank / 64 * (4 * R) + lane / 8;
            let own_group = rank / 32 % 2 * (8 * C) + lane % 8;

            // What a thread copies is below the same places at every step: a slice for each of its elements, empty beyond the edges.
            let own = |width: usize, number: usize| {
                let place = rank + number * THREADS;
                [place / width, place % width]
            };
            let own_of_a = |number| {
                let [row, k] = own(STEP, number);
                let start = (row_a + row) * pitch_a;
                a.get(start + k..start + deep).filter(|_| row < rows).unwrap_or_default()
            };
            let own_of_b = |number| {
                let [k, group] = own(B, number);
                let start = (row_b + k) * pitch_b + first_group + group;
                let end = ((row_b + depth) * pitch_b).min(b.len());
                b.get(start..end).filter(|_| first_group + group < groups).unwrap_or_default()
            };
            let (own_of_a, own_of_b) = ([own_of_a(0), own_of_a(1)], [own_of_b(0), own_of_b(1)]);

            // Of `C` groups of columns in each of `R` rows.
            let mut sums = [[[A::ZERO; G]; C]; R];
            for step in 0..steps + 2 {
                let (mut copied_a, mut copied_b) = (0, 0);
                of_a.copy_with(t, |_| {
                    copied_a += 1;
                    own_of_a[(copied_a - 1) % 2].get(step * STEP)
                });
                of_b.copy_with(t, |_| {
                    copied_b += 1;
                    own_of_b[(copied_b - 1) % 2].get(step * (STEP * G * pitch_b))
                });
                if step >= 2 {
                    let (tile_a, tile_b) = (of_a.current(), of_b.current());
                    for k in 0..STEP {
                        let mut left = [[A::ZERO; G]; R];
                        each::<(), R>(|i| left[i] = split(tile_a[own_row + i * 4][k]));
                        each::<(), G>(|deep| {
                            let (line, mut right) = (&tile_b[k * G + deep], [[A::ZERO; G]; C]);
                            each::<(), C>(|group| right[group] = split(line[own_group + group * 8]));
                            each::<(), R>(|i| {
                                each::<(), C>(|group| {
                                    each::<(), G>(|j| {
                                        let sum = &mut sums[i][group][j];
                                        *sum = left[i][deep].mul_add(right[group][j], *sum);
                                    });
                                });
                            });
                        });
                    }
                }
                t.advance((&mut of_a, &mut of_b));
            }
            each::<(), R>(|i| {
                each::<(), C>(|group| {
                    each::<(), G>(|j| {
                        let row = own_row + i * 4;
                        let column = (first_group + own_group + group * 8) * G + j;
                        if row < rows
                            && column < columns
                            && let Some(c) = c.get((row_a + row) * pitch_c + column)
                        {
                            let sum = scaled(form.scales, sums[i][group][j], || widen(c.load(Relaxed)));
                            c.store(narrow(sum), Relaxed);
                        }
                    });
                });
            });
        }
        // At the end, where it needs no registers beside the sums.
        tiles.groups.check(t, tiles.extent[0]);
    }

    /// Of `f64`, 64 x 64 sums by each block.
    #[inline(always)]
    #[kernel(block = THREADS, min_blocks = 2, wide, native = super::super::native::multiply_doubles)]
    pub fn multiply_doubles(
        t: Thread<1>,
        s: Sizes,
        scales: [f64; 2],
        offsets: &[u32],
        a: &[Aligned16<[f64; 2]>],
        b: &[Aligned16<[f64; 2]>],
        c: &[DeviceAtomic<f64>],
        of_a: Shared<Left<Aligned16<[f64; 2]>, 64>>,
        of_b: Shared<Right<Aligned16<[f64; 2]>, 32, 8>>,
    ) {
        multiply_block::<f64, f64, _, 2, 2, 4, 64, 32, 8, _, _>(
            &t,
            Form { sizes: s, scales, offsets },
            ([a, b], c),
            (of_a, of_b),
            Aligned16::into_inner,
            (|it| it, |it| it),
        );
    }

    /// Of 16-bit floats, 128 x 128 sums in `f32` by each block.
    #[cfg(feature = "half")]
    #[inline(always)]
    #[kernel(block = THREADS, min_blocks = 2, wide, T = [f16, bf16], native = super::super::native::multiply_halves)]
    pub fn multiply_halves<T: MatrixElement + HalfFloat + AtomicLoadStore>(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: &[Aligned16<[T; 8]>],
        b: &[Aligned16<[T; 8]>],
        c: &[DeviceAtomic<T>],
        of_a: Shared<Left<Aligned16<[T; 8]>, 128>>,
        of_b: Shared<Right<Aligned16<[T; 8]>, 16, 32>>,
    ) {
        multiply_block::<T, f32, _, 8, 1, 8, 128, 16, 32, _, _>(
            &t,
            Form { sizes: s, scales, offsets },
            ([a, b], c),
            (of_a, of_b),
            |group| group.into_inner().map(T::to_f32),
            (T::to_f32, T::from_f32),
        );
    }
}
