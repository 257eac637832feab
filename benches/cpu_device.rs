//! Kernels on the CPU device beside rayon loops over the same arithmetic, on all cores: saxpy, Mandelbrot and
//! Black-Scholes over 2^24 elements, without waits; and with waits a tiled product of 512 x 512 matrices and
//! sums of blocks over 2^22 elements.
//!
//! `cargo bench --bench cpu_device`; the bars are at most twice rayon's time in the same run, and 20 million
//! crossings of a barrier by a thread per second and core. Unix only, for the processor's time.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ferrogrid::CpuOptions;
use ferrogrid::prelude::*;
use rayon::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y.
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }

    /// The number of steps for which z <- z^2 + c stays within 2, at most 64 times, for pixel `i` of a plane 4096 wide.
    pub fn escape(i: usize) -> u8 {
        let (x, y) = ((i % 4096) as f32, (i / 4096) as f32);
        let (re, im) = (x * (3.0 / 4096.0) - 2.25, y * (2.0 / 4096.0) - 1.0);
        let (mut a, mut b, mut count) = (0.0_f32, 0.0_f32, 0);
        while a * a + b * b <= 4.0 && count < 64 {
            (a, b) = (a * a - b * b + re, 2.0 * a * b + im);
            count += 1;
        }
        count
    }

    /// One pixel per thread.
    #[kernel]
    pub fn mandelbrot(t: Thread<1>, mut picture: DisjointSlice<u8>) {
        let i = t.index();
        if let Some(pixel) = picture.get_mut(i) {
            *pixel = escape(i.get());
        }
    }

    /// The normal distribution function (Abramowitz and Stegun, 26.2.17).
    fn normal(x: f32) -> f32 {
        let k = 1.0 / (1.0 + 0.231_641_9 * x.abs());
        let sum =
            ((((1.330_274_5 * k - 1.821_256) * k + 1.781_478) * k - 0.356_563_8) * k + 0.319_381_54) * k;
        let tail = 0.398_942_3 * (-0.5 * x * x).exp() * sum;
        if x > 0.0 { 1.0 - tail } else { tail }
    }

    /// Black-Scholes: the value of a call option on `price` with this strike and time in years, at an
    /// interest rate of 2 % and a volatility of 30 %.
    pub fn call(price: f32, strike: f32, years: f32) -> f32 {
        let deviation = 0.3 * years.sqrt();
        let d1 = ((price / strike).ln() + (0.02 + 0.045) * years) / deviation;
        price * normal(d1) - strike * (-0.02 * years).exp() * normal(d1 - deviation)
    }

    /// One option per thread.
    #[kernel]
    pub fn black_scholes(
        t: Thread<1>,
        prices: &[f32],
        strikes: &[f32],
        years: &[f32],
        mut calls: DisjointSlice<f32>,
    ) {
        let i = t.index();
        if let Some(value) = calls.get_mut(i) {
            let i = i.get();
            *value = call(prices[i], strikes[i], years[i]);
        }
    }

    /// C = A * B with tiles of 16 x 16; n is a multiple of 16. Two barriers for each tile.
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
        let ([x, y], [column, row]) = (t.thread_idx().map(|it| it as usize), t.index().position());
        let (first_row, first_column) = (row - y, column - x);
        let mut sum = 0.0;
        for step in 0..n / 16 {
            tile_a.fill_with(&t, |[i, k]| a[(first_row + i) * n + step * 16 + k]);
            tile_b.fill_with(&t, |[k, j]| b[(step * 16 + k) * n + first_column + j]);
            let (read_a, read_b) = t.publish((tile_a, tile_b));
            for k in 0..16 {
                sum += read_a[y][k] * read_b[k][x];
            }
            (tile_a, tile_b) = t.reclaim((read_a, read_b));
        }
        if let Some(c) = c.get_mut(t.index()) {
            *c = sum;
        }
    }

    /// One sum for each block of 256, by a tree in shared memory: 17 barriers.
    #[kernel(block = 256)]
    pub fn sums(t: Thread<1>, x: &[u32], mut sums: DisjointRows<u32>, mut tile: Shared<[u32; 256]>) {
        let rank = t.thread_rank() as usize;
        tile.fill_with(&t, |_| x[t.index().get()]);
        let mut half = 128;
        while half > 0 {
            let read = t.publish(tile);
            let other = if rank < half { read[rank + half] } else { 0 };
            tile = t.reclaim(read);
            tile.iter_mut(&t).for_each(|(_, value)| *value += other);
            half /= 2;
        }
        let total = t.publish(tile)[0];
        sums.fill_with(&t, |_| total);
    }
}

const N: usize = 1 << 24;

/// Elements per task of the rayon loops.
const CHUNK: usize = 4096;

fn saxpy(c: &mut Criterion) {
    let stream = Device::cpu().new_stream().unwrap();
    let (xs, mut ys) = (vec![1.0_f32; N], vec![2.0_f32; N]);
    let (x, mut y) = (stream.upload(&xs).unwrap(), stream.upload(&ys).unwrap());
    let mut group = c.benchmark_group("saxpy");
    group.throughput(Throughput::Elements(N as u64)).sample_size(20);
    group.bench_function("kernel", |b| {
        b.iter(|| {
            kernels::saxpy(&stream, Grid::cover(N), 0.5, &x, &mut y).unwrap();
            stream.synchronize().unwrap();
        });
    });
    group.bench_function("rayon", |b| {
        b.iter(|| {
            let chunks = ys.par_chunks_mut(CHUNK).zip(xs.par_chunks(CHUNK));
            chunks.for_each(|(y, x)| y.iter_mut().zip(x).for_each(|(y, x)| *y += 0.5 * x));
        });
    });
}

fn mandelbrot(c: &mut Criterion) {
    let stream = Device::cpu().new_stream().unwrap();
    let mut picture = stream.zeros::<u8>(N).unwrap();
    let mut pixels = vec![0_u8; N];
    let mut group = c.benchmark_group("mandelbrot");
    group.throughput(Throughput::Elements(N as u64)).sample_size(10);
    group.bench_function("kernel", |b| {
        b.iter(|| {
            kernels::mandelbrot(&stream, Grid::cover(N), &mut picture).unwrap();
            stream.synchronize().unwrap();
        });
    });
    group.bench_function("rayon", |b| {
        b.iter(|| {
            pixels.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, pixels)| {
                let places = chunk * CHUNK..;
                pixels.iter_mut().zip(places).for_each(|(pixel, i)| *pixel = kernels::escape(i));
            });
        });
    });
    assert!(stream.download(&picture).unwrap() == pixels, "both count the same");
}

fn black_scholes(c: &mut Criterion) {
    let stream = Device::cpu().new_stream().unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut between =
        |low: f32, high: f32| (0..N).map(|_| low + (high - low) * random.f32()).collect::<Vec<_>>();
    let (prices, strikes, years) = (between(5.0, 30.0), between(1.0, 100.0), between(0.25, 10.0));
    let inputs = [&prices, &strikes, &years].map(|values| stream.upload(values).unwrap());
    let [device_prices, device_strikes, device_years] = &inputs;
    let mut device_calls = stream.zeros::<f32>(N).unwrap();
    let mut calls = vec![0.0_f32; N];
    let mut group = c.benchmark_group("black_scholes");
    group.throughput(Throughput::Elements(N as u64)).sample_size(10);
    group.bench_function("kernel", |b| {
        b.iter(|| {
            let (grid, out) = (Grid::cover(N), &mut device_calls);
            kernels::black_scholes(&stream, grid, device_prices, device_strikes, device_years, out).unwrap();
            stream.synchronize().unwrap();
        });
    });
    group.bench_function("rayon", |b| {
        b.iter(|| {
            calls.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, calls)| {
                let places = chunk * CHUNK..;
                for (value, i) in calls.iter_mut().zip(places) {
                    *value = kernels::call(prices[i], strikes[i], years[i]);
                }
            });
        });
    });
    assert!(stream.download(&device_calls).unwrap() == calls, "both compute the same bits");
}

/// Crossings of a barrier by a thread, on one core: one worker, in processor time, so that other work on the
/// machine counts little.
fn waiting(c: &mut Criterion) {
    let stream = Device::cpu_with(CpuOptions::new().workers(1)).unwrap().new_stream().unwrap();
    let mut group = c.benchmark_group("waiting");
    let side = 512_usize;
    let a = stream.upload(&vec![1.0_f32; side * side]).unwrap();
    let mut product = stream.zeros::<f32>(side * side).unwrap();
    let mut multiply = || {
        let c = product.view_2d_mut(side, side).unwrap();
        kernels::matmul(&stream, Grid::cover([side, side]), side, &a, &a, c).unwrap();
        stream.synchronize().unwrap();
    };
    multiply();
    group.throughput(Throughput::Elements((side * side * (side / 16) * 2) as u64)).sample_size(10);
    group.bench_function("matmul_512", |b| b.iter_custom(|rounds| processor_time(rounds, &mut multiply)));
    assert!(stream.download(&product).unwrap().iter().all(|&sum| sum == 512.0));
    let length = 1_usize << 22;
    let x = stream.upload(&vec![1_u32; length]).unwrap();
    let mut sums = stream.zeros::<u32>(length / 256).unwrap();
    let mut add = || {
        let rows = sums.view_2d_mut(1, length / 256).unwrap();
        kernels::sums(&stream, Grid::cover(length), &x, rows).unwrap();
        stream.synchronize().unwrap();
    };
    add();
    group.throughput(Throughput::Elements((length * 17) as u64));
    group.bench_function("block_sums_2_22", |b| b.iter_custom(|rounds| processor_time(rounds, &mut add)));
    assert!(stream.download(&sums).unwrap().iter().all(|&sum| sum == 256));
}

/// The processor time of `rounds` calls of `work` (`clock_gettime`).
fn processor_time(rounds: u64, work: &mut dyn FnMut()) -> Duration {
    let now = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is valid for the call.
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let start = now();
    (0..rounds).for_each(|_| work());
    now() - start
}

criterion_group!(benches, saxpy, mandelbrot, black_scholes, waiting);
criterion_main!(benches);
