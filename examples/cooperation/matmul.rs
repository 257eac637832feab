//! 2.3 matmul: C = A B of any shape, naive and with tiles in shared memory.
//!
//! Shows: a loop of phases: load a tile (`fill_with`), wait (`publish`), use it, wait (`reclaim`), load the
//! next. Each barrier takes the tiles by value, so a read too early or a write too late does not compile.
//! Look at: GFLOP/s. A tile of 16 x 16 is loaded once and used 16 times.
//!
//! `cargo ferrogrid run matmul`

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// c = a * b, of m x n and n x p: each thread reads its row of a and its column of b from global memory.
    #[kernel(block = [16, 16])]
    pub fn naive(t: Thread<2>, n: usize, a: &[f32], b: &[f32], mut c: DisjointSlice<f32, 2>) {
        let (i, p) = (t.index(), c.width());
        let Some(c) = c.get_mut(i) else { return };
        let mut sum = 0.0_f32;
        for k in 0..n {
            sum = a[i.y() * n + k].mul_add(b[k * p + i.x()], sum);
        }
        *c = sum;
    }

    /// The same, by tiles of 16 x 16 that the block loads together.
    #[kernel(block = [16, 16])]
    pub fn tiled(
        t: Thread<2>,
        n: usize,
        a: &[f32],
        b: &[f32],
        mut c: DisjointSlice<f32, 2>,
        mut tile_a: Shared<[[f32; 16]; 16]>,
        mut tile_b: Shared<[[f32; 16]; 16]>,
    ) {
        let (m, p) = (c.height(), c.width());
        let [x, y] = t.thread_idx().map(|it| it as usize);
        let [first_column, first_row] = t.block_idx().map(|block| block as usize * 16);
        let mut sum = 0.0_f32;
        for step in 0..n.div_ceil(16) {
            // Elements outside the matrices count as 0.
            tile_a.fill_with(&t, |[i, k]| {
                let (row, column) = (first_row + i, step * 16 + k);
                if row < m && column < n { a[row * n + column] } else { 0.0 }
            });
            tile_b.fill_with(&t, |[k, j]| {
                let (row, column) = (step * 16 + k, first_column + j);
                if row < n && column < p { b[row * p + column] } else { 0.0 }
            });
            let (a, b) = t.publish((tile_a, tile_b));
            for k in 0..16 {
                sum = a[y][k].mul_add(b[k][x], sum);
            }
            (tile_a, tile_b) = t.reclaim((a, b));
        }
        if let Some(c) = c.get_mut(t.index()) {
            *c = sum;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let [m, n, p] = if device.is_cuda() { [1000, 900, 1100] } else { [150, 130, 170] };
    let mut random = fastrand::Rng::with_seed(4);
    let mut numbers = |count| -> Vec<f32> { (0..count).map(|_| random.f32() - 0.5).collect() };
    let (a, b) = (numbers(m * n), numbers(n * p));
    println!("device    {}", device.name());
    println!("matrices  {m} x {n} and {n} x {p}");
    println!("kernel  {:>9}  {:>8}  {:>9}", "ms", "GFLOP/s", "max error");

    let (device_a, device_b) = (stream.upload(&a)?, stream.upload(&b)?);
    for kernel in ["naive", "tiled"] {
        let mut c = stream.fill(f32::NAN, m * p)?;
        let timing = stream.time(3, |stream| {
            let (grid, c) = (Grid::cover([p, m]), c.view_2d_mut(p, m)?);
            match kernel {
                "naive" => kernels::naive(stream, grid, n, &device_a, &device_b, c),
                _ => kernels::tiled(stream, grid, n, &device_a, &device_b, c),
            }
        })?;
        let seconds = timing.median().as_secs_f64();
        let error = max_error([m, n, p], &a, &b, &stream.download(&c)?);
        let rate = 2.0 * (m * n * p) as f64 / seconds / 1e9;
        println!("{kernel:<6}  {:9.3}  {rate:8.3}  {error:9.1e}", seconds * 1e3);
        // n roundings of sums that stay below n / 4.
        if error.is_nan() || error > n as f64 * n as f64 / 4.0 * f64::from(f32::EPSILON) / 2.0 {
            return Err(format!("{kernel}: the product is wrong").into());
        }
    }
    println!("PASS");
    Ok(())
}

/// The largest difference from the product in double precision, in every 61st row and in the last.
fn max_error([m, n, p]: [usize; 3], a: &[f32], b: &[f32], c: &[f32]) -> f64 {
    let mut errors = Vec::new();
    for row in (0..m).step_by(61).chain([m - 1]) {
        let mut expected = vec![0.0; p];
        for k in 0..n {
            let factor = f64::from(a[row * n + k]);
            for (sum, &b) in expected.iter_mut().zip(&b[k * p..(k + 1) * p]) {
                *sum += factor * f64::from(b);
            }
        }
        errors.extend(expected.iter().zip(&c[row * p..]).map(|(sum, &c)| (sum - f64::from(c)).abs()));
    }
    // By this order a NaN (an element that no thread has written) is the largest.
    errors.into_iter().max_by(f64::total_cmp).unwrap_or(0.0)
}
