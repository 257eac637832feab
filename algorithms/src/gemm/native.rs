//! The native bodies of products: rows of the result by the threads of the device, each sum in the order of the kernels.

use ferrogrid_device::Aligned16;
use ferrogrid_device::atomic::{AtomicLoadStore, DeviceAtomic, Ordering::Relaxed};
#[cfg(feature = "half")]
use ferrogrid_device::half::HalfFloat;
use ferrogrid_device::math::Float;

use super::kernels::kernels::{Sizes, scaled};
use crate::native::in_parallel;

/// Rows and columns of the result that are computed together: their sums stay in the first cache.
const TILE: [usize; 2] = [4, 256];

pub(super) fn multiply_singles(
    _: [u32; 1],
    s: Sizes,
    alpha: f32,
    beta: f32,
    a: &[Aligned16<[f32; 4]>],
    b: &[Aligned16<[f32; 4]>],
    c: &[DeviceAtomic<f32>],
) {
    multiply(s, [alpha, beta], [a, b], c, |group| **group, (|it| it, |it| it));
}

pub(super) fn multiply_doubles(
    _: [u32; 1],
    s: Sizes,
    alpha: f64,
    beta: f64,
    a: &[Aligned16<[f64; 2]>],
    b: &[Aligned16<[f64; 2]>],
    c: &[DeviceAtomic<f64>],
) {
    multiply(s, [alpha, beta], [a, b], c, |group| **group, (|it| it, |it| it));
}

#[cfg(feature = "half")]
pub(super) fn multiply_halves<T: AtomicLoadStore + HalfFloat>(
    _: [u32; 1],
    s: Sizes,
    alpha: f32,
    beta: f32,
    a: &[Aligned16<[T; 8]>],
    b: &[Aligned16<[T; 8]>],
    c: &[DeviceAtomic<T>],
) {
    multiply(s, [alpha, beta], [a, b], c, |group| group.map(T::to_f32), (T::to_f32, T::from_f32));
}

/// As the kernel of that name, with the processor's fused multiplications where it has them.
fn multiply<T: AtomicLoadStore, A: Float, U: Sync, const G: usize>(
    s: Sizes,
    scales: [A; 2],
    factors: [&[U]; 2],
    c: &[DeviceAtomic<T>],
    split: impl Fn(&U) -> [A; G] + Sync,
    (widen, narrow): (impl Fn(T) -> A + Sync, impl Fn(A) -> T + Sync),
) {
    let [rows, columns] = s.result.map(|it| it as usize);
    let (down, across) = (rows.div_ceil(TILE[0]), columns.div_ceil(TILE[1]));
    let multiply = |number: usize| {
        let place = [number / across % down * TILE[0], number % across * TILE[1]];
        multiply_tile(s, scales, factors, c, (number / across / down, place), &split, (&widen, &narrow));
    };
    let tiles = s.batches as usize * down * across;
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has these.
        in_parallel(tiles, &|number| unsafe { with_fma(|| multiply(number)) });
        return;
    }
    in_parallel(tiles, &multiply);
}

/// Runs `work`, compiled for processors with fused multiplications.
///
/// # Safety
/// The processor has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn with_fma(work: impl FnOnce()) {
    work();
}

/// A tile of the result of a batch.
#[inline(always)]
fn multiply_tile<T: AtomicLoadStore, A: Float, U, const G: usize>(
    s: Sizes,
    scales: [A; 2],
    [a, b]: [&[U]; 2],
    c: &[DeviceAtomic<T>],
    (batch, [first_row, first_column]): (usize, [usize; 2]),
    split: impl Fn(&U) -> [A; G],
    (widen, narrow): (impl Fn(T) -> A, impl Fn(A) -> T),
) {
    let ([rows, columns], depth) = (s.result.map(|it| it as usize), s.depth as usize);
    let [pitch_a, pitch_b, pitch_c] = s.pitches.map(|it| it as usize);
    let (rows_here, width) = ((rows - first_row).min(TILE[0]), (columns - first_column).min(TILE[1]));
    let mut sums = [[[A::ZERO; G]; 256]; 4];
    for k in 0..depth {
        let line = &b[(batch * depth + k) * pitch_b + first_column / G..][..width.div_ceil(G)];
        for (row, sums) in sums.iter_mut().enumerate().take(rows_here) {
            let left = split(&a[(batch * rows + first_row + row) * pitch_a + k / G])[k % G];
            for (sums, group) in sums.iter_mut().zip(line) {
                let right = split(group);
                for j in 0..G {
                    sums[j] = left.mul_add(right[j], sums[j]);
                }
            }
        }
    }
    for (row, sums) in sums.iter().enumerate().take(rows_here) {
        let line = &c[(batch * rows + first_row + row) * pitch_c + first_column..][..width];
        for (c, sum) in line.iter().zip(sums.as_flattened()) {
            c.store(narrow(scaled(scales, *sum, || widen(c.load(Relaxed)))), Relaxed);
        }
    }
}
