//! 2.11 attention: y = softmax(q k^T / 8) v, for heads of 64 elements, by four threads for each query.
//!
//! Shows: the online softmax, by which no score reaches memory; tiles of keys and values in shared memory.
//! Look at: TFLOP/s. `attention_tiles` does the same by tensor cores.
//! `cargo ferrogrid run attention`

use ferrogrid::{device::half::f16, prelude::*};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::half::f16;
    use ferrogrid::device::prelude::*;

    /// Elements that are read at once.
    pub type Group = Aligned16<[f16; 8]>;
    /// What a thread has of a query, a key or a value, and of a result. Four neighbours have all of it.
    pub type Part = [Group; 2];
    pub type Mean = [[f16; 8]; 2];
    /// The queries of a block, and the keys of a tile.
    pub const TILE: usize = 64;

    /// What a thread knows of its query after some keys. The sums are its part of them.
    struct Sums {
        query: [[f32; 8]; 2],
        greatest: f32,
        total: f32,
        values: [[f32; 8]; 2],
    }

    // ANCHOR: sums
    impl Sums {
        #[inline(always)]
        fn of(q: &Part) -> Self {
            let query = q.map(|group| group.map(|q| q.to_f32() / 8.0));
            Sums { query, greatest: f32::NEG_INFINITY, total: 0.0, values: [[0.0; 8]; 2] }
        }

        /// Weights are relative to the greatest score so far: if that grows, former sums shrink.
        #[inline(always)]
        fn add(&mut self, warp: &Warp, k: &Part, v: &Part) {
            let mut score = 0.0_f32;
            for (q, k) in self.query.iter().zip(k) {
                score = (0..8).fold(score, |sum, i| q[i].mul_add(k[i].to_f32(), sum));
            }
            score += warp.shuffle_xor(score, 1);
            score += warp.shuffle_xor(score, 2);
            let greatest = self.greatest.max(score);
            let (shrunk, weight) = ((self.greatest - greatest).fast_exp(), (score - greatest).fast_exp());
            (self.greatest, self.total) = (greatest, self.total.mul_add(shrunk, weight));
            for (value, v) in self.values.iter_mut().zip(v) {
                (0..8).for_each(|i| value[i] = value[i].mul_add(shrunk, weight * v[i].to_f32()));
            }
        }

        #[inline(always)]
        fn mean(&self) -> Mean {
            self.values.map(|group| group.map(|value| f16::from_f32(value / self.total)))
        }
    }
    // ANCHOR_END: sums

    /// 1. Four threads for each query read all `n` keys and values of its head.
    #[kernel(block = 4 * TILE)]
    pub fn naive(t: Thread<1>, n: usize, q: &[Group], k: &[Group], v: &[Group], mut y: DisjointSlice<Mean>) {
        // ANCHOR: naive
        let (i, warp) = (t.index(), t.warp());
        let [q, k, v] = [q, k, v].map(|x| x.as_chunks().0);
        let (first, mut sums) = (i.get() / 4 / n * n, Sums::of(&q[i.get()]));
        for row in 0..n {
            let part = (first + row) * 4 + i.get() % 4;
            sums.add(&warp, &k[part], &v[part]);
        }
        if let Some(y) = y.get_mut(i) {
            *y = sums.mean();
        }
        // ANCHOR_END: naive
    }

    /// 2. The threads of a block read tiles of keys and values together.
    #[kernel(block = 4 * TILE)]
    pub fn tiled(
        t: Thread<1>,
        n: usize,
        q: &[Group],
        k: &[Group],
        v: &[Group],
        mut y: DisjointSlice<Mean>,
        mut keys: Shared<[[Group; 8]; TILE]>,
        mut values: Shared<[[Group; 8]; TILE]>,
    ) {
        let (i, warp) = (t.index(), t.warp());
        let (first, mut sums) = (i.get() / 4 / n * n, Sums::of(&q.as_chunks().0[i.get()]));
        // ANCHOR: tiled
        for start in (0..n).step_by(TILE) {
            keys.fill_with(&t, |[row, group]| k[(first + start + row) * 8 + group]);
            values.fill_with(&t, |[row, group]| v[(first + start + row) * 8 + group]);
            let (tile_k, tile_v) = t.publish((keys, values));
            for row in 0..TILE {
                let [k, v] = [&tile_k[row], &tile_v[row]].map(|row| row.as_chunks().0);
                sums.add(&warp, &k[i.get() % 4], &v[i.get() % 4]);
            }
            (keys, values) = t.reclaim((tile_k, tile_v));
        }
        // ANCHOR_END: tiled
        if let Some(y) = y.get_mut(i) {
            *y = sums.mean();
        }
    }
}

fn main() -> ferrogrid::Result<()> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let (heads, rows) = if device.is_cuda() { (32, 4096) } else { (2, 128) };
    let mut random = fastrand::Rng::with_seed(12);
    let mut number = || f16::from_f32(4.0 * random.f32() - 2.0);
    let [q, k, v]: [Vec<f16>; 3] = [(); 3].map(|()| (0..heads * rows * 64).map(|_| number()).collect());
    let inputs = [stream.upload(&q)?, stream.upload(&k)?, stream.upload(&v)?];
    println!("device   {}, {heads} heads of {rows} queries and keys", device.name());
    println!("kernel  {:>9}  {:>7}  {:>9}", "ms", "TFLOP/s", "max error");
    for name in ["naive", "tiled"] {
        let mut y = stream.fill(f16::NAN, q.len())?;
        let timing = stream.time(3, |stream| {
            let [q, k, v] = inputs.each_ref().map(|x| x.view().as_aligned16());
            let (grid, y) = (Grid::cover(heads * rows * 4), y.view_mut().cast()?);
            if name == "naive" {
                return kernels::naive(stream, grid, rows, q?, k?, v?, y);
            }
            kernels::tiled(stream, grid, rows, q?, k?, v?, y)
        })?;
        let seconds = timing.median().as_secs_f64();
        let rate = (4 * heads * rows * rows * 64) as f64 / seconds / 1e12;
        let error = max_error(rows, [&q, &k, &v], &stream.download(&y)?);
        println!("{name:<6}  {:9.3}  {rate:7.2}  {error:9.2e}", seconds * 1e3);
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
