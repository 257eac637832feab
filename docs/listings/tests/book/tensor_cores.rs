//! Listings of the chapter "Tensor cores".

use ferrogrid::device::half::bf16;
use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::bf16;
    use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB, Products};
    use ferrogrid::device::prelude::*;

    /// c <- a b^T. A block has 4 warps with 32 x 32 sums each, and copies two steps ahead.
    #[kernel(block = 128)]
    pub fn by_warps(
        t: Thread<1>,
        a: Plane<Aligned16<[bf16; 8]>>,
        b: Plane<Aligned16<[bf16; 8]>>,
        c: &[DeviceAtomic<f32>],
        of_a: Shared<Stages<Padded<Aligned16<[bf16; 8]>, 8, 64>, 3>>,
        of_b: Shared<Stages<Padded<Aligned16<[bf16; 8]>, 8, 64>, 3>>,
    ) {
        let (mut of_a, mut of_b) = (of_a.into_stages(), of_b.into_stages());
        let (block, across) = (t.block_idx()[0] as usize, b.height().div_ceil(64));
        let [first_row, first_column] = [block / across * 64, block % across * 64];
        let (warp, number) = (t.warp(), t.thread_rank() as usize / 32);
        let [own_row, own_column] = [number / 2 * 32, number % 2 * 32];
        // ANCHOR: warps
        let mut sums = Accumulator::<bf16, 2, 4>::zero(); // 2 x 16 rows, 4 x 8 columns
        for step in 0..a.width().div_ceil(8) + 2 {
            of_a.copy_with(&t, |[row, k]| a.get(first_row + row, step * 8 + k));
            of_b.copy_with(&t, |[row, k]| b.get(first_column + row, step * 8 + k));
            if step >= 2 {
                for k in [0, 16, 32, 48] {
                    let a = FragmentA::load(&warp, of_a.current().rows(), [own_row, k]);
                    let b = FragmentB::load_transposed(&warp, of_b.current().rows(), [own_column, k]);
                    sums.add_product(&warp, &a, &b);
                }
            }
            t.advance((&mut of_a, &mut of_b)); // the only barrier of the step
        }
        // ANCHOR_END: warps
        sums.for_each(&warp, |i, j, sum| {
            let [row, column] = [first_row + own_row + i, first_column + own_column + j];
            if row < a.height() && column < b.height() {
                c[row * b.height() + column].store(sum, Relaxed);
            }
        });
    }

    // ANCHOR: blocks
    /// c <- relu(a b^T + bias). A block multiplies every `grid_dim`-th tile of 64 x 128 sums.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn by_blocks(
        t: Thread<1>,
        a: TensorMap<bf16, 64, 64>,
        b: TensorMap<bf16, 64, 128>,
        bias: &[f32],
        c: &[DeviceAtomic<f32>],
        memory: Shared<Products<bf16, 64, 128, 2>>,
    ) {
        let (height, width) = (a.height(), b.height());
        let (down, across) = (height.div_ceil(64), width.div_ceil(128));
        let (first, step) = (t.block_idx()[0] as usize, t.grid_dim()[0] as usize);
        let tiles = (first..down * across).step_by(step).map(|tile| place(tile, [down, across], [64, 128]));
        t.multiply_tiles(memory, a, b, tiles, |[row, column], sums| {
            sums.for_each_pair(|i, j, pair| {
                for (j, sum) in (j..).zip(pair) {
                    if row + i < height && column + j < width {
                        let sum = (sum + bias[column + j]).max(0.0);
                        c[(row + i) * width + column + j].store(sum, Relaxed);
                    }
                }
            });
        });
    }
    // ANCHOR_END: blocks

    // ANCHOR: order
    /// The row and the column of a tile: in groups of 16 tiles below each other, column by column.
    pub fn place(tile: usize, [down, across]: [usize; 2], [height, width]: [usize; 2]) -> [usize; 2] {
        let (group, place) = (tile / (16 * across), tile % (16 * across));
        let together = (down - group * 16).min(16); // the last group may have fewer
        [(group * 16 + place % together) * height, place / together * width]
    }
    // ANCHOR_END: order
}

/// A matrix, and the product of each row of `a` with each of `b` in double precision.
fn exact(a: &[bf16], b: &[bf16], depth: usize) -> Vec<f64> {
    let product = |a: &[bf16], b: &[bf16]| a.iter().zip(b).map(|(a, b)| a.to_f64() * b.to_f64()).sum();
    a.chunks(depth).flat_map(|a| b.chunks(depth).map(move |b| product(a, b))).collect()
}

/// Small whole numbers, whose sums are exact.
fn numbers(len: usize) -> Vec<bf16> {
    (0..len).map(|i| bf16::from_f32((i * 7 % 11) as f32 - 5.0)).collect()
}

#[test]
fn warps_and_blocks_multiply_the_same() -> ferrogrid::Result<()> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let [rows, columns, depth] = [70, 136, 72];
    let (host_a, host_b) = (numbers(rows * depth), numbers(columns * depth));
    let expected = exact(&host_a, &host_b, depth);
    let (a, b) = (stream.upload(&host_a)?, stream.upload(&host_b)?);
    let mut c = stream.zeros::<f32>(rows * columns)?;

    let tiles = rows.div_ceil(64) * columns.div_ceil(64);
    let (of_a, of_b) = (a.view().as_aligned16::<8>()?, b.view().as_aligned16::<8>()?);
    let (of_a, of_b) = (of_a.into_2d(depth / 8, rows)?, of_b.into_2d(depth / 8, columns)?);
    kernels::by_warps(&stream, Grid::blocks(tiles), of_a, of_b, c.as_atomic())?;
    assert_eq!(stream.download(&c)?.into_iter().map(f64::from).collect::<Vec<_>>(), expected);

    let bias = stream.fill(-3.0_f32, columns)?;
    // ANCHOR: launch
    let tiles = rows.div_ceil(64) * columns.div_ceil(128);
    let blocks = tiles.min(device.properties()?.multiprocessor_count as usize);
    let (view_a, view_b) = (a.view_2d(depth, rows)?, b.view_2d(depth, columns)?);
    kernels::by_blocks(&stream, Grid::blocks(blocks), view_a, view_b, &bias, c.as_atomic())?;
    // ANCHOR_END: launch
    let expected: Vec<f64> = expected.into_iter().map(|sum| (sum - 3.0).max(0.0)).collect();
    assert_eq!(stream.download(&c)?.into_iter().map(f64::from).collect::<Vec<_>>(), expected);
    Ok(())
}

#[test]
fn every_tile_has_its_place() {
    for [down, across] in [[1, 1], [16, 3], [35, 4]] {
        let mut places: Vec<_> =
            (0..down * across).map(|tile| kernels::place(tile, [down, across], [64, 128])).collect();
        places.sort();
        let expected = (0..down).flat_map(|row| (0..across).map(move |column| [row * 64, column * 128]));
        assert!(places.into_iter().eq(expected));
    }
}
