//! The kernels of products of `f32` without tensor cores. Both factors are read with a row for each `k`: then a thread loads four rows, or four
//! columns, at a time, and has few operands beside its sums. With rows of `a` along `k` it would hold four `k` of each row, and ptxas
//! placed a third of the multiplications' operands in one bank of registers, for which schedulers wait.

/// The kernels. Each sum adds its products in the order of `k`, rounded once for each: the bits do not depend on the device.
#[ferrogrid::module(arch = ["sm_75", "sm_80"])]
pub mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::matrix::ResultTile;
    use ferrogrid::device::prelude::*;

    use crate::gemm::kernels::kernels::{Form, Sizes, scaled};
    use crate::sort::digits::kernels::each;

    /// The threads of a block.
    pub const THREADS: usize = 128;
    /// How many rows fewer a tile has if rows are in groups: a group may begin anywhere, and copies begin at every fourth row.
    pub const SKIPPED: usize = 3;

    /// Groups of four elements.
    type Group = Aligned16<[f32; 4]>;
    /// `K` rows of a factor that a block reads, of so many groups.
    type Lines<const GROUPS: usize, const K: usize> = Stages<[[Group; GROUPS]; K], 3>;

    /// The body for `$i` from 0 on, at most 4 times: LLVM would leave a loop of that much code, with the sums in memory.
    macro_rules! unrolled {
        ($i:ident in $n:expr, $body:block) => { unrolled!(@ $i, $n, $body, 0, 1, 2, 3) };
        (@ $i:ident, $n:expr, $body:block, $($k:literal),*) => {{ $(if $k < $n { let $i = $k; $body })* }};
    }

    /// Adds the products of four rows and four columns.
    #[inline(always)]
    fn add_products(sums: &mut [[f32; 4]; 4], left: [f32; 4], right: [f32; 4]) {
        for i in 0..4 {
            for j in 0..4 {
                sums[i][j] = left[i].mul_add(right[j], sums[i][j]);
            }
        }
    }

    /// The product of one block, of two warps below and two beside each other. The lanes of a warp are in `LANES` rows; each thread has
    /// `R` times four rows and `C` times four columns.
    #[inline(always)]
    fn multiply_block<
        const LANES: usize,
        const R: usize,
        const C: usize,
        const GROUPS_A: usize,
        const GROUPS_B: usize,
        const K: usize,
        const COPIES_A: usize,
        const COPIES_B: usize,
        const ID_A: usize,
        const ID_B: usize,
    >(
        t: &Thread<1>,
        form: Form<f32>,
        [a, b]: [&[Group]; 2],
        c: &[DeviceAtomic<f32>],
        memory: (Shared<Lines<GROUPS_A, K>, ID_A>, Shared<Lines<GROUPS_B, K>, ID_B>),
    ) {
        let is_grouped = !form.offsets.is_empty();
        let height = GROUPS_A * 4 - if is_grouped { SKIPPED } else { 0 };
        let tiles = form.tiles([height, GROUPS_B * 4]);
        if let Some(ResultTile { matrix, rows: [first_row, end], column }) =
            tiles.get(t.block_idx()[0] as usize)
        {
            let s = form.sizes;
            let (mut of_a, mut of_b) = (memory.0.into_stages(), memory.1.into_stages());
            let [rows, columns] = s.result.map(|it| it as usize);
            let [pitch_a, pitch_b, pitch_c] = s.pitches.map(|it| it as usize);
            let depth = s.depth as usize;
            let (rank, lane) = (t.thread_rank() as usize % THREADS, t.thread_rank() as usize % 32);
            let own_a = rank / 64 * (LANES * R) + lane / (32 / LANES);
            let own_b = rank / 32 % 2 * (32 / LANES * C) + lane % (32 / LANES);

            // Groups of rows share a matrix, batches have one each.
            let (of_left, row_of_left) =
                if is_grouped { (0, first_row) } else { (matrix, first_row - matrix * rows) };
            let (group_a, group_b) = (row_of_left / 4, column / 4);
            let origin = first_row - row_of_left % 4;
            let end = end.min(first_row + height);

            // What a thread copies is below the same places at every step: a slice for each of its groups, empty beyond the edges.
            let own = |factor: &'_ [Group],
                       [matrix, pitch]: [usize; 2],
                       [first, groups]: [usize; 2],
                       place: [usize; 2]| {
                let [k, group] = place;
                let start = (matrix * depth + k) * pitch + first + group;
                let end = ((matrix + 1) * depth * pitch).min(factor.len());
                if first + group < groups { start..end.max(start) } else { 0..0 }
            };
            let own_of_a: [&[Group]; COPIES_A] = each(|number| {
                let place = rank + number * THREADS;
                let place = [place / GROUPS_A, place % GROUPS_A];
                a.get(own(a, [of_left, pitch_a], [group_a, rows.div_ceil(4)], place)).unwrap_or_default()
            });
            let own_of_b: [&[Group]; COPIES_B] = each(|number| {
                let place = rank + number * THREADS;
                let place = [place / GROUPS_B, place % GROUPS_B];
                b.get(own(b, [matrix, pitch_b], [group_b, columns.div_ceil(4)], place)).unwrap_or_default()
            });

            let mut sums = [[[[0.0_f32; 4]; 4]; C]; R];
            macro_rules! copy {
                ($step:expr) => {{
                    let (mut copied_a, mut copied_b) = (0, 0);
                    of_a.copy_with(t, |_| {
                        copied_a += 1;
                        own_of_a[(copied_a - 1) % COPIES_A].get($step * (K * pitch_a))
                    });
                    of_b.copy_with(t, |_| {
                        copied_b += 1;
                        own_of_b[(copied_b - 1) % COPIES_B].get($step * (K * pitch_b))
                    });
                }};
            }
            macro_rules! load {
                ($k:expr) => {{
                    let (line_a, line_b) = (&of_a.current()[$k], &of_b.current()[$k]);
                    let (mut left, mut right) = ([[0.0; 4]; R], [[0.0; 4]; C]);
                    unrolled!(i in R, { left[i] = line_a[own_a + i * LANES].into_inner(); });
                    unrolled!(j in C, { right[j] = line_b[own_b + j * (32 / LANES)].into_inner(); });
                    (left, right)
                }};
            }
            macro_rules! multiply {
                ($loaded:expr) => {{
                    let (left, right) = &$loaded;
                    unrolled!(i in R, { unrolled!(j in C, { add_products(&mut sums[i][j], left[i], right[j]); }) });
                }};
            }
            for step in 0..2 {
                copy!(step);
                t.advance((&mut of_a, &mut of_b));
            }
            // Each line is loaded before the last one is multiplied, the first of a stage as well: no load waits right after the barrier.
            let mut first = load!(0);
            for step in 2..depth.div_ceil(K) + 2 {
                copy!(step);
                for k in 0..K / 4 - 1 {
                    let second = load!(k * 4 + 1);
                    multiply!(first);
                    let third = load!(k * 4 + 2);
                    multiply!(second);
                    let fourth = load!(k * 4 + 3);
                    multiply!(third);
                    first = load!(k * 4 + 4);
                    multiply!(fourth);
                }
                let second = load!(K - 3);
                multiply!(first);
                let third = load!(K - 2);
                multiply!(second);
                let fourth = load!(K - 1);
                multiply!(third);
                t.advance((&mut of_a, &mut of_b));
                first = load!(0);
                multiply!(fourth);
            }
            unrolled!(i in R, {
                unrolled!(j in C, {
                    each::<(), 4>(|own_row| {
                        each::<(), 4>(|own_column| {
                            let row = origin + (own_a + i * LANES) * 4 + own_row;
                            let column = column + (own_b + j * (32 / LANES)) * 4 + own_column;
                            if row >= first_row
                                && row < end
                                && column < columns
                                && let Some(c) = c.get(row * pitch_c + column)
                            {
                                let sum = sums[i][j][own_row][own_column];
                                c.store(scaled(form.scales, sum, || c.load(Relaxed)), Relaxed);
                            }
                        });
                    });
                })
            });
        }
        // At the end, where it needs no registers beside the sums.
        tiles.groups.check(t, tiles.extent[0]);
    }

    /// 128 x 128 sums by each block. It has 96 KiB of shared memory.
    #[inline(always)]
    #[kernel(block = THREADS, min_blocks = 2, wide, native = super::super::native::multiply_singles)]
    pub fn multiply_singles(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: &[Aligned16<[f32; 4]>],
        b: &[Aligned16<[f32; 4]>],
        c: &[DeviceAtomic<f32>],
        of_a: Shared<Lines<32, 32>>,
        of_b: Shared<Lines<32, 32>>,
    ) {
        let form = Form { sizes: s, scales, offsets };
        multiply_block::<8, 2, 4, 32, 32, 32, 8, 8, _, _>(&t, form, [a, b], c, (of_a, of_b));
    }

    /// 128 x 64 sums by each block.
    #[inline(always)]
    #[kernel(block = THREADS, min_blocks = 4, wide, native = super::super::native::multiply_singles)]
    pub fn multiply_few_singles(
        t: Thread<1>,
        s: Sizes,
        scales: [f32; 2],
        offsets: &[u32],
        a: &[Aligned16<[f32; 4]>],
        b: &[Aligned16<[f32; 4]>],
        c: &[DeviceAtomic<f32>],
        of_a: Shared<Lines<32, 16>>,
        of_b: Shared<Lines<16, 16>>,
    ) {
        let form = Form { sizes: s, scales, offsets };
        multiply_block::<8, 2, 2, 32, 16, 16, 4, 2, _, _>(&t, form, [a, b], c, (of_a, of_b));
    }
}
