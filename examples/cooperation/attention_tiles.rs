//! 2.12 attention_tiles: what `attention` computes, by tensor cores.
//!
//! Shows: fragments of a warp, whose sums become weights (`OnlineSoftmax`), and these the left factor of the next product, in
//! registers; the same by a whole block (`multiply_twice`), with `wgmma` on GPUs of compute capability 9.0.
//! Look at: TFLOP/s. `algorithms::attention` is made of the same parts, with masks and for any number of rows.
//!
//! `cargo ferrogrid run attention_tiles`

use ferrogrid::device::half::f16;
use ferrogrid::prelude::*;

#[ferrogrid::module(arch = ["sm_80", "sm_90a"])]
mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{HalfFloat, f16};
    use ferrogrid::device::matrix::{
        Accumulator, FragmentA, FragmentB, OnlineSoftmax, ProductSums, RowValues, TwoProducts,
    };
    use ferrogrid::device::prelude::*;

    /// Elements that are read at once.
    pub type Group = Aligned16<[f16; 8]>;
    /// The queries of a block, and the keys of a tile.
    pub const TILE: usize = 64;

    /// Each of four warps multiplies 16 queries.
    #[kernel(block = 128)]
    pub fn warps(
        t: Thread<1>,
        rows: usize,
        q: &[Group],
        k: &[Group],
        v: &[Group],
        y: &[DeviceAtomic<u32>],
        mut queries: Shared<Padded<Group, 8, TILE>>,
        mut keys: Shared<Padded<Group, 8, TILE>>,
        mut values: Shared<Padded<Group, 8, TILE>>,
    ) {
        let (warp, own) = (t.warp(), t.thread_rank() as usize / 32 * 16);
        let block = t.block_idx()[0] as usize * TILE;
        queries.fill_with(&t, |[row, group]| q[(block + row) * 8 + group]);
        let queries = t.publish(queries);
        let (mut softmax, mut sums) = (OnlineSoftmax::new(0.125), Accumulator::<f16, 1, 8>::zero());
        let first = block / rows * rows;
        for start in (first..first + rows).step_by(TILE) {
            keys.fill_with(&t, |[row, group]| k[(start + row) * 8 + group]);
            values.fill_with(&t, |[row, group]| v[(start + row) * 8 + group]);
            let (tile_k, tile_v) = t.publish((keys, values));
            // ANCHOR: warps
            let mut scores = Accumulator::<f16, 1, 8>::zero();
            for depth in (0..64).step_by(16) {
                let q = FragmentA::load(&warp, queries.rows(), [own, depth]);
                scores.add_product(&warp, &q, &FragmentB::load_transposed(&warp, tile_k.rows(), [0, depth]));
            }
            let shrunk = softmax.step(&warp, &mut scores); // scores are weights now
            sums.map_rows(&shrunk, |sum, shrunk| sum * shrunk);
            let weights = FragmentA::from_sums::<8, 4>(&scores);
            sums.add_products(&warp, &weights, |i| FragmentB::load(&warp, tile_v.rows(), [16 * i, 0]));
            // ANCHOR_END: warps
            (keys, values) = t.reclaim((tile_k, tile_v));
        }
        sums.map_rows(&softmax.factors(), |sum, factor| sum * factor);
        sums.for_each_pair(&warp, |row, column, pair| {
            y[(block + own + row) * 32 + column / 2].store(f16::pair_to_bits(pair), Relaxed);
        });
    }

    /// A block multiplies 128 queries by 128 keys; 128 more threads copy. An element of `y` has four numbers.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn blocks(
        t: Thread<1>,
        rows: usize,
        q: TensorMap<f16, 64, 64>,
        k: TensorMap<f16, 64, 64>,
        v: TensorMap<f16, 64, 64>,
        y: &[DeviceAtomic<u64>],
        memory: Shared<TwoProducts<f16, 128, 128, 64, 4>>,
    ) {
        let (warp, block) = (t.warp(), t.block_idx()[0] as usize * 128);
        // ANCHOR: blocks
        let weigh = |(softmax, shrunk): &mut (OnlineSoftmax, _), _, scores: &mut ProductSums<128>| {
            *shrunk = softmax.step(&warp, scores);
        };
        let shrink = |(_, shrunk): &mut (_, RowValues<f32>), sums: &mut ProductSums<64>| {
            sums.map_rows(shrunk, |sum, shrunk| sum * shrunk);
        };
        let finish = |(softmax, _): (OnlineSoftmax, _), mut sums: ProductSums<64>| {
            sums.map_rows(&softmax.factors(), |sum, factor| sum * factor);
            sums.for_each_four(&warp, |row| {
                let y = &y[(block + row) * 16..][..16];
                (|_, pair| f16::pair_to_bits(pair), move |four: usize, bits| y[four].store(bits, Relaxed))
            });
        };
        let (places, kept) =
            ([block, block / rows * rows], (OnlineSoftmax::new(0.125), RowValues::splat(1.0)));
        t.multiply_twice(memory, [q, k, v], places, rows / 128, kept, weigh, shrink, finish);
        // ANCHOR_END: blocks
    }
}

fn main() -> ferrogrid::Result<()> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let (heads, rows) = if device.is_cuda() { (32, 4096) } else { (2, 128) };
    let mut random = fastrand::Rng::with_seed(13);
    let mut number = || f16::from_f32(4.0 * random.f32() - 2.0);
    let [q, k, v]: [Vec<f16>; 3] = [(); 3].map(|()| (0..heads * rows * 64).map(|_| number()).collect());
    let inputs = [stream.upload(&q)?, stream.upload(&k)?, stream.upload(&v)?];
    println!("device   {}, {heads} heads of {rows} queries and keys", device.name());
    println!("kernel   {:>9}  {:>7}  {:>9}", "ms", "TFLOP/s", "max error");
    for name in ["warps", "blocks"] {
        let mut y = stream.fill(f16::NAN, q.len())?;
        let timing = stream.time(3, |stream| {
            let (queries, y) = (heads * rows, y.view_mut());
            if name == "warps" {
                let [q, k, v] = inputs.each_ref().map(|x| x.view().as_aligned16());
                let grid = Grid::blocks(queries / 64);
                return kernels::warps(stream, grid, rows, q?, k?, v?, y.cast()?.into_atomic());
            }
            let grid = Grid::blocks(queries / 128);
            let [q, k, v] = inputs.each_ref().map(|x| x.view_2d(64, queries));
            kernels::blocks(stream, grid, rows, q?, k?, v?, y.cast()?.into_atomic())
        })?;
        let seconds = timing.median().as_secs_f64();
        let rate = (4 * heads * rows * rows * 64) as f64 / seconds / 1e12;
        let error = max_error(rows, [&q, &k, &v], &stream.download(&y)?);
        println!("{name:<7}  {:9.3}  {rate:7.2}  {error:9.2e}", seconds * 1e3);
        assert!(error < 2e-3, "a weighted mean is wrong");
    }
    println!("PASS");
    Ok(())
}

/// The greatest error of some 100 queries.
fn max_error(rows: usize, [q, k, v]: [&[f16]; 3], y: &[f16]) -> f64 {
    let queries = q.len() / 64;
    let error = |i: usize| {
        let (mut total, mut sums) = (0.0, [0.0; 64]);
        for key in (i / rows * rows..).take(rows) {
            let score: f64 = (0..64).map(|j| q[i * 64 + j].to_f64() * k[key * 64 + j].to_f64()).sum();
            let weight = (score / 8.0).exp();
            total += weight;
            sums.iter_mut().zip(&v[key * 64..]).for_each(|(sum, v)| *sum += weight * v.to_f64());
        }
        sums.iter().zip(&y[i * 64..]).map(|(sum, y)| (y.to_f64() - sum / total).abs()).fold(0.0, f64::max)
    };
    (0..queries).step_by(queries / 100 + 1).map(error).max_by(f64::total_cmp).unwrap_or(0.0)
}
