//! `ferrogrid::algorithms` on the CPU device beside plain rayon loops, on all cores, over 2^24 elements: a sum, the least
//! element, running sums, and sorts.
//!
//! `cargo bench --bench cpu_algorithms`; the bars are 1.5 times rayon's time for sums and running sums, and twice for sorts.

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use ferrogrid::prelude::*;
use ferrogrid_algorithms as algorithms;
use rayon::prelude::*;

const N: usize = 1 << 24;

fn numbers() -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(1);
    std::iter::repeat_with(|| random.u32(..)).take(N).collect()
}

fn floats() -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(2);
    std::iter::repeat_with(|| random.f32()).take(N).collect()
}

fn group<'c>(c: &'c mut Criterion, name: &str) -> BenchmarkGroup<'c, WallTime> {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(N as u64)).sample_size(20);
    group
}

/// Times `work` and the end of what it enqueues.
fn on_device(group: &mut BenchmarkGroup<'_, WallTime>, stream: &Stream, mut work: impl FnMut()) {
    group.bench_function("algorithms", |b| {
        b.iter(|| {
            work();
            stream.synchronize().unwrap();
        });
    });
}

fn reductions(c: &mut Criterion) {
    let (x, n, stream) = (floats(), numbers(), Device::cpu().new_stream().unwrap());
    let (device_x, device_n) = (stream.upload(&x).unwrap(), stream.upload(&n).unwrap());
    let mut sum = stream.zeros::<f32>(1).unwrap();
    let mut group_of = group(c, "sum_f32");
    on_device(&mut group_of, &stream, || algorithms::sum_into(&stream, &device_x, &mut sum).unwrap());
    group_of.bench_function("rayon", |b| b.iter(|| x.par_iter().sum::<f32>()));
    drop(group_of);
    let mut sum = stream.zeros::<u64>(1).unwrap();
    let mut group_of = group(c, "sum_u32");
    on_device(&mut group_of, &stream, || algorithms::sum_into(&stream, &device_n, &mut sum).unwrap());
    group_of.bench_function("rayon", |b| b.iter(|| n.par_iter().map(|&x| u64::from(x)).sum::<u64>()));
    drop(group_of);
    let mut least = stream.zeros::<f32>(1).unwrap();
    let mut group_of = group(c, "min_f32");
    on_device(&mut group_of, &stream, || algorithms::min_into(&stream, &device_x, &mut least).unwrap());
    let least = || x.par_iter().copied().reduce(|| f32::INFINITY, f32::min);
    group_of.bench_function("rayon", |b| b.iter(least));
}

fn scans(c: &mut Criterion) {
    let stream = Device::cpu().new_stream().unwrap();
    scan(c, "inclusive_sum_u32", &stream, &numbers(), u32::wrapping_add);
    scan(c, "inclusive_sum_f32", &stream, &floats(), |a, b| a + b);
}

fn scan<T: algorithms::Number + Default>(
    c: &mut Criterion,
    name: &str,
    stream: &Stream,
    x: &[T],
    add: impl Fn(T, T) -> T + Copy + Sync,
) {
    let (device_x, mut device_y) = (stream.upload(x).unwrap(), stream.upload(x).unwrap());
    let mut group = group(c, name);
    on_device(&mut group, stream, || algorithms::inclusive_sum(stream, &device_x, &mut device_y).unwrap());
    let mut y = x.to_vec();
    group.bench_function("rayon", |b| b.iter(|| running_sums(x, &mut y, add)));
}

/// In two passes: sums of the parts, then running sums of each.
fn running_sums<T: Copy + Default + Send + Sync>(
    x: &[T],
    y: &mut [T],
    add: impl Fn(T, T) -> T + Copy + Sync,
) {
    let part = N.div_ceil(4 * rayon::current_num_threads());
    let sums: Vec<T> = x.par_chunks(part).map(|x| x.iter().copied().fold(T::default(), add)).collect();
    let starts = sums.iter().scan(T::default(), |sum, own| Some(std::mem::replace(sum, add(*sum, *own))));
    let starts: Vec<T> = starts.collect();
    x.par_chunks(part).zip(y.par_chunks_mut(part)).zip(starts).for_each(|((x, y), mut sum)| {
        for (x, y) in x.iter().zip(y) {
            sum = add(sum, *x);
            *y = sum;
        }
    });
}

fn sorts(c: &mut Criterion) {
    let (x, stream) = (numbers(), Device::cpu().new_stream().unwrap());
    let device_x = stream.upload(&x).unwrap();
    let mut sorted = stream.zeros::<u32>(N).unwrap();
    let mut group_of = group(c, "sort_u32");
    group_of.sample_size(10);
    on_device(&mut group_of, &stream, || algorithms::sort(&stream, &device_x, &mut sorted).unwrap());
    group_of.bench_function("rayon", |b| {
        b.iter_batched_ref(|| x.clone(), |x| x.par_sort_unstable(), BatchSize::LargeInput);
    });
    drop(group_of);
    let mut indices = stream.zeros::<u32>(N).unwrap();
    let mut group_of = group(c, "argsort_u32");
    group_of.sample_size(10);
    on_device(&mut group_of, &stream, || algorithms::argsort(&stream, &device_x, &mut indices).unwrap());
    group_of.bench_function("rayon", |b| {
        let numbered = || x.iter().copied().zip(0_u32..).collect::<Vec<_>>();
        b.iter_batched_ref(numbered, |x| x.par_sort_by_key(|(x, _)| *x), BatchSize::LargeInput);
    });
}

criterion_group!(benches, reductions, scans, sorts);
criterion_main!(benches);
