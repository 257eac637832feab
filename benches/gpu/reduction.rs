//! Reductions: sums by block and by warp, the histogram, softmax.

use ferrogrid::prelude::*;

use crate::Outcome;
use crate::duel::{Arena, near, near_sampled, random};

#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    /// One sum for the grid: threads stride over it, then each block adds its part.
    #[kernel(block = 256)]
    pub fn block_sum(t: Thread<1>, x: &[f32], sum: &[DeviceAtomic<f32>], mut scratch: Shared<Scratch<f32>>) {
        let mut own = 0.0;
        for i in t.grid_stride(x.len()) {
            own += x[i.get()];
        }
        let total = t.block_reduce(&mut scratch, own, |a, b| a + b);
        if t.thread_rank() == 0 {
            sum[0].fetch_add(total, atomic::Ordering::Relaxed);
        }
    }

    /// One sum for each warp's 32 elements.
    #[kernel(block = 256)]
    pub fn warp_sums(t: Thread<1>, x: &[f32], sums: &[DeviceAtomic<f32>]) {
        let i = t.index().get();
        let total = t.warp().reduce(x.get(i).copied().unwrap_or(0.0), |a, b| a + b);
        if let (0, Some(sum)) = (t.warp().lane(), sums.get(i / 32)) {
            sum.store(total, atomic::Ordering::Relaxed);
        }
    }

    #[kernel(block = 256)]
    pub fn histogram(
        t: Thread<1>,
        data: &[u8],
        counts: &[DeviceAtomic<u32>],
        mut bins: Shared<[DeviceAtomic<u32, atomic::Block>; 256]>,
    ) {
        bins.fill_with(&t, |_| DeviceAtomic::new(0));
        let bins = t.publish(bins);
        for i in t.grid_stride(data.len()) {
            bins[data[i.get()] as usize].fetch_add(1, atomic::Ordering::Relaxed);
        }
        t.sync_threads();
        let bin = t.thread_rank() as usize;
        counts[bin].fetch_add(bins[bin].load(atomic::Ordering::Relaxed), atomic::Ordering::Relaxed);
    }

    /// exp(x - max) / sum of each row, one block a row.
    #[kernel(block = 256, same_shape(x, rows))]
    pub fn softmax(
        t: Thread<1>,
        x: Plane<f32>,
        mut rows: DisjointRows<f32>,
        mut scratch: Shared<Scratch<f32>>,
    ) {
        let x = &x[t.block_idx()[0] as usize];
        let greatest = t.block_stride(x.len()).fold(f32::NEG_INFINITY, |greatest, i| greatest.max(x[i]));
        let greatest = t.block_reduce(&mut scratch, greatest, f32::max);
        let sum = t.block_stride(x.len()).fold(0.0, |sum, i| sum + (x[i] - greatest).exp());
        let factor = 1.0 / t.block_reduce(&mut scratch, sum, |a, b| a + b);
        rows.fill_with(&t, |column| (x[column] - greatest).exp() * factor);
    }

    /// The same with the hardware's exponential.
    #[kernel(block = 256, same_shape(x, rows))]
    pub fn softmax_fast(
        t: Thread<1>,
        x: Plane<f32>,
        mut rows: DisjointRows<f32>,
        mut scratch: Shared<Scratch<f32>>,
    ) {
        let x = &x[t.block_idx()[0] as usize];
        let greatest = t.block_stride(x.len()).fold(f32::NEG_INFINITY, |greatest, i| greatest.max(x[i]));
        let greatest = t.block_reduce(&mut scratch, greatest, f32::max);
        let sum = t.block_stride(x.len()).fold(0.0, |sum, i| sum + (x[i] - greatest).fast_exp());
        let factor = 1.0 / t.block_reduce(&mut scratch, sum, |a, b| a + b);
        rows.fill_with(&t, |column| (x[column] - greatest).fast_exp() * factor);
    }
}

pub fn block_sum(arena: &Arena) -> Outcome<()> {
    let n = 1 << 27;
    let x = random(n, 0.0..1.0);
    let input = arena.stream.upload(&x)?;
    let cpp = arena.cpp("block_sum")?;
    let grid = Grid::new(132 * 8, 256);
    let exact: f64 = x.iter().map(|&x| f64::from(x)).sum();
    arena.duel(
        "block_sum",
        &[0.0_f32],
        |out| kernels::block_sum(arena.stream, grid, &input, out.as_atomic()),
        // SAFETY: `block_sum(int n, const float* x, float* sum)`; it adds to one element.
        |out| unsafe { cpp.launch(arena.stream, grid, (n as i32, &input, out)) },
        |found| near(found, |_| exact, exact * 1e-5),
    )
}

pub fn warp_sums(arena: &Arena) -> Outcome<()> {
    let n = 1 << 27;
    let x = random(n, -1.0..1.0);
    let input = arena.stream.upload(&x)?;
    let cpp = arena.cpp("warp_sums")?;
    let grid = Grid::new(n as u32 / 256, 256);
    arena.duel(
        "warp_sums",
        &vec![f32::NAN; n / 32],
        |out| kernels::warp_sums(arena.stream, grid, &input, out.as_atomic()),
        // SAFETY: `warp_sums(int n, const float* x, float* sums)`; there is a sum for each 32 elements.
        |out| unsafe { cpp.launch(arena.stream, grid, (n as i32, &input, out)) },
        |found| near(found, |i| x[32 * i..][..32].iter().map(|&x| f64::from(x)).sum(), 1e-5),
    )
}

pub fn histogram(arena: &Arena) -> Outcome<()> {
    let n = 1 << 28;
    let mut bytes = vec![0_u8; n];
    fastrand::Rng::new().fill(&mut bytes);
    let input = arena.stream.upload(&bytes)?;
    let cpp = arena.cpp("histogram")?;
    let grid = Grid::new(132 * 8, 256);
    let mut exact = vec![0_u32; 256];
    bytes.iter().for_each(|&byte| exact[usize::from(byte)] += 1);
    arena.duel(
        "histogram_shared",
        &[0_u32; 256],
        |out| kernels::histogram(arena.stream, grid, &input, out.as_atomic()),
        // SAFETY: `histogram(int n, const unsigned char* data, unsigned* counts)`; 256 counts.
        |out| unsafe { cpp.launch(arena.stream, grid, (n as i32, &input, out)) },
        |found| if found == exact { Ok(()) } else { Err("counts differ".into()) },
    )
}

type Softmax =
    for<'a> fn(&Stream, Grid<1>, DeviceView<'a, f32, 2>, DeviceViewMut<'a, f32, 2>) -> ferrogrid::Result<()>;

pub fn softmax(arena: &Arena) -> Outcome<()> {
    rows(arena, "softmax", |stream, grid, x, rows| kernels::softmax(stream, grid, x, rows), 1e-6)?;
    rows(arena, "softmax_fast", |stream, grid, x, rows| kernels::softmax_fast(stream, grid, x, rows), 1e-5)
}

/// With a relative error of at most `error`.
fn rows(arena: &Arena, name: &str, rust: Softmax, error: f64) -> Outcome<()> {
    const WIDTH: usize = 4096;
    const HEIGHT: usize = 16_384;
    let x = random(WIDTH * HEIGHT, -5.0..5.0);
    let input = arena.stream.upload(&x)?;
    let cpp = arena.cpp(name)?;
    let grid = Grid::new(HEIGHT as u32, 256);
    let exact = |i: usize| {
        let row = &x[i / WIDTH * WIDTH..][..WIDTH];
        f64::from(x[i]).exp() / row.iter().map(|&x| f64::from(x).exp()).sum::<f64>()
    };
    arena.duel(
        name,
        &vec![f32::NAN; WIDTH * HEIGHT],
        |out| rust(arena.stream, grid, input.view_2d(WIDTH, HEIGHT)?, out.view_2d_mut(WIDTH, HEIGHT)?),
        // SAFETY: `(int width, const float* x, float* y)`, both of 16384 rows of that width.
        |out| unsafe { cpp.launch(arena.stream, grid, (WIDTH as i32, &input, out)) },
        // The greatest results are about 0.004.
        |found| near_sampled(found, exact, error * 0.01),
    )
}
