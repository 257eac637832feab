//! Benches of the CPU device itself: the cost of a launch, of a barrier or a warp exchange, of a
//! thread costs that never waits, and saxpy beside a rayon loop over the same arithmetic.
//!
//! `cargo bench --bench cpu_executor`; results are in `benches/results`. Unix only, for the
//! processor's time; figures of one core are in that, the others in time on the clock.

#[path = "../host/tests/kernels/mod.rs"]
mod kernels;
#[path = "../host/tests/waiting/mod.rs"]
mod waiting;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ferrogrid_host::{Device, DeviceBuffer, Grid, Stream};
use rayon::prelude::*;
use waiting::{Body, device, enqueue, enqueue_never_waiting, resources};

/// Waits of each thread in one launch.
const WAITS: u32 = 64;

struct Rig {
    stream: Stream,
    out: DeviceBuffer<u32>,
}

impl Rig {
    /// One worker thread, so that figures are those of one core.
    fn new() -> Self {
        let stream = device(1).new_stream().unwrap();
        let out = stream.zeros(1 << 16).unwrap();
        Rig { stream, out }
    }

    /// Processor time, so that other work on the machine counts little.
    fn time(&mut self, rounds: u64, blocks: u32, threads: u32, body: Body) -> Duration {
        let grid = Grid::new([blocks, 1, 1], [threads, 1, 1]);
        let start = processor_time();
        for _ in 0..rounds {
            enqueue(&self.stream, grid, resources(4096, false), &mut self.out, body).unwrap();
        }
        self.stream.synchronize().unwrap();
        processor_time() - start
    }

    fn time_never_waiting(&mut self, rounds: u64, blocks: u32, threads: u32, body: Body) -> Duration {
        let grid = Grid::new([blocks, 1, 1], [threads, 1, 1]);
        let start = Instant::now();
        for _ in 0..rounds {
            enqueue_never_waiting(&self.stream, grid, &mut self.out, body).unwrap();
        }
        self.stream.synchronize().unwrap();
        start.elapsed()
    }
}

/// What this process has used of the processor so far (`clock_gettime`).
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Crossings of a barrier by one thread, on one core.
fn barriers(c: &mut Criterion) {
    let mut group = c.benchmark_group("barrier_crossings");
    let mut rig = Rig::new();
    for threads in [32, 128, 256, 1024] {
        let blocks = 4096 / threads;
        group.throughput(Throughput::Elements(u64::from(4096 * WAITS)));
        group.bench_function(BenchmarkId::from_parameter(threads), |b| {
            b.iter_custom(|rounds| {
                rig.time(rounds, blocks, threads, |t| (0..WAITS).for_each(|_| t.barrier()))
            });
        });
    }
}

/// Exchanges by one lane, on one core.
fn exchanges(c: &mut Criterion) {
    let mut group = c.benchmark_group("warp_exchanges");
    let mut rig = Rig::new();
    for threads in [32, 256] {
        let blocks = 4096 / threads;
        group.throughput(Throughput::Elements(u64::from(4096 * WAITS)));
        group.bench_function(BenchmarkId::from_parameter(threads), |b| {
            b.iter_custom(|rounds| {
                rig.time(rounds, blocks, threads, |t| {
                    (0..WAITS).for_each(|i| {
                        black_box(t.exchange(u32::MAX, u128::from(i))[5]);
                    });
                })
            });
        });
    }
}

/// A cooperative launch of 32 blocks of 256 threads on two workers: alone, and with 64 barriers of the grid.
fn grids(c: &mut Criterion) {
    let mut group = c.benchmark_group("cooperative_launch");
    let stream = device(2).new_stream().unwrap();
    let mut out = stream.zeros::<u32>(1).unwrap();
    let mut time = |rounds: u64, body: Body| {
        let start = Instant::now();
        for _ in 0..rounds {
            let grid = Grid::new([32, 1, 1], [256, 1, 1]);
            enqueue(&stream, grid, resources(0, true), &mut out, body).unwrap();
        }
        stream.synchronize().unwrap();
        start.elapsed()
    };
    group.bench_function("no_barrier", |b| b.iter_custom(|rounds| time(rounds, |_| ())));
    group.bench_function("1_barrier", |b| b.iter_custom(|rounds| time(rounds, |t| t.grid_barrier())));
    group.throughput(Throughput::Elements(u64::from(32 * 256 * WAITS)));
    group.bench_function("64_barriers", |b| {
        b.iter_custom(|rounds| time(rounds, |t| (0..WAITS).for_each(|_| t.grid_barrier())));
    });
}

/// Threads, on one core: of kernels that never wait, that could wait and do not, and that wait once.
fn threads(c: &mut Criterion) {
    let mut group = c.benchmark_group("threads");
    let mut rig = Rig::new();
    group.throughput(Throughput::Elements(1 << 16));
    let write: Body = |t| t.set(t.global(), t.number);
    group.bench_function("never_waiting", |b| b.iter_custom(|r| rig.time_never_waiting(r, 256, 256, write)));
    group.bench_function("not_waiting", |b| b.iter_custom(|r| rig.time(r, 256, 256, write)));
    group.bench_function("waiting_once", |b| b.iter_custom(|r| rig.time(r, 256, 256, |t| t.barrier())));
}

/// A launch of one block of one thread that does nothing: in a row, and each waited for.
fn launches(c: &mut Criterion) {
    let mut group = c.benchmark_group("empty_launch");
    let mut rig = Rig::new();
    group.bench_function("in_a_row", |b| b.iter_custom(|r| rig.time_never_waiting(r, 1, 1, |_| ())));
    group.bench_function("waited_for", |b| {
        b.iter_custom(|rounds| (0..rounds).map(|_| rig.time_never_waiting(1, 1, 1, |_| ())).sum());
    });
}

/// saxpy on all cores, in cache and in memory, and the same loop by rayon alone.
fn saxpy(c: &mut Criterion) {
    let mut group = c.benchmark_group("saxpy");
    let stream = Device::cpu().new_stream().unwrap();
    for bits in [16, 24] {
        let n = 1 << bits;
        let (xs, mut ys) = (vec![1.0_f32; n], vec![2.0_f32; n]);
        let (x, mut y) = (stream.upload(&xs).unwrap(), stream.upload(&ys).unwrap());
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::new("kernel", bits), |b| {
            b.iter(|| {
                kernels::saxpy(&stream, Grid::cover(n), 0.5, &x, &mut y).unwrap();
                stream.synchronize().unwrap();
            });
        });
        group.bench_function(BenchmarkId::new("rayon", bits), |b| {
            b.iter(|| {
                let blocks = ys.par_chunks_mut(4096).zip(xs.par_chunks(4096));
                blocks.for_each(|(y, x)| y.iter_mut().zip(x).for_each(|(y, x)| *y += 0.5 * x));
            });
        });
    }
}

criterion_group!(benches, barriers, exchanges, grids, threads, launches, saxpy);
criterion_main!(benches);
