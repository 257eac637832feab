//! Memory-bound and compute-bound kernels on every device: `cargo ferrogrid bench kernels`. A template for your
//! own benches; the examples and the conformance suite check results.

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y, one element per thread.
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }

    /// The same with 16 bytes per thread.
    #[kernel]
    pub fn saxpy_16(
        t: Thread<1>,
        a: f32,
        x: &[Aligned16<[f32; 4]>],
        mut y: DisjointSlice<Aligned16<[f32; 4]>>,
    ) {
        let i = t.index();
        if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get())) {
            for (y, x) in y.iter_mut().zip(x.iter()) {
                *y += a * x;
            }
        }
    }

    /// The square root of each x, by eight steps of Newton's method.
    #[kernel]
    pub fn square_roots(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let x = x[i.get()];
        let mut root = 0.5 * (1.0 + x);
        for _ in 0..8 {
            root = 0.5 * (root + x / root);
        }
        *y = root;
    }

    /// The sum of each block of 256 elements.
    #[kernel(block = 256)]
    pub fn sums(t: Thread<1>, x: &[f32], mut sums: DisjointRows<f32>, mut scratch: Shared<Scratch<f32>>) {
        let value = x.get(t.index().get()).copied().unwrap_or(0.0);
        let total = t.block_reduce(&mut scratch, value, |a, b| a + b);
        sums.fill_with(&t, |_| total);
    }

    /// C = A*B with tiles of 16x16 in shared memory; n is a multiple of 16.
    #[kernel(block = [16, 16])]
    pub fn matmul(
        t: Thread<2>,
        n: usize,
        a: &[f32],
        b: &[f32],
        mut c: DisjointSlice<f32, 2>,
        mut tile_a: Shared<[[f32; 16]; 16]>,
        mut tile_b: Shared<[[f32; 16]; 16]>,
    ) {
        let at = |x: &[f32], place: usize| x.get(place).copied().unwrap_or(0.0);
        let [x, y] = t.thread_idx().map(|it| it as usize);
        let [column, row] = t.index().position();
        let mut sum = 0.0_f32;
        for step in 0..n / 16 {
            tile_a.fill_with(&t, |[i, k]| at(a, (row - y + i) * n + step * 16 + k));
            tile_b.fill_with(&t, |[k, j]| at(b, (step * 16 + k) * n + column - x + j));
            let (a, b) = t.publish((tile_a, tile_b));
            for k in 0..16 {
                sum += a[y][k] * b[k][x];
            }
            (tile_a, tile_b) = t.reclaim((a, b));
        }
        if let Some(c) = c.get_mut(t.index()) {
            *c = sum;
        }
    }
}

fn main() -> std::process::ExitCode {
    ferrogrid_bench::main("kernels", |bench| {
        let stream = bench.stream();
        let n = bench.size(1 << 26, 1 << 20) & !255;
        let x = stream.fill(1.5_f32, n)?;
        let mut y = stream.fill(2.0_f32, n)?;
        let blocks = [32, 64, 128, 256, 512, 1024];
        bench
            .case("saxpy")
            .bytes(12 * n)
            .flops(2 * n)
            .sweep(&blocks)
            .run(|launch| kernels::saxpy(launch.stream(), launch.cover(n), 1e-6, &x, &mut y))?;
        bench.case("saxpy_16").bytes(12 * n).flops(2 * n).sweep(&blocks).run(|launch| {
            let (x, y) = (x.view().as_aligned16::<4>()?, y.view_mut().as_aligned16::<4>()?);
            kernels::saxpy_16(launch.stream(), launch.cover(n / 4), 1e-6, x, y)
        })?;
        bench
            .case("square_roots")
            .bytes(8 * n)
            .flops(8 * 3 * n)
            .sweep(&blocks)
            .run(|launch| kernels::square_roots(launch.stream(), launch.cover(n), &x, &mut y))?;
        let mut sums = stream.zeros::<f32>(n / 256)?;
        bench.case("sums").bytes(4 * n).flops(n).run(|launch| {
            kernels::sums(launch.stream(), Grid::cover(n), &x, sums.view_2d_mut(1, n / 256)?)
        })?;

        let n = (bench.size(2048, 256) & !15).max(16);
        let (a, b) = (stream.fill(1.0_f32, n * n)?, stream.fill(0.5_f32, n * n)?);
        let mut c = stream.zeros::<f32>(n * n)?;
        bench.case("matmul").bytes(12 * n * n).flops(2 * n * n * n).run(|launch| {
            kernels::matmul(launch.stream(), Grid::cover([n, n]), n, &a, &b, c.view_2d_mut(n, n)?)
        })?;
        Ok(())
    })
}
