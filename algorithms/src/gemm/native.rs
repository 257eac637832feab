//! The native bodies of products: rows of the result by the threads of the device, each sum in the order of the kernels.

use ferrogrid_device::Aligned16;
use ferrogrid_device::atomic::{AtomicLoadStore, DeviceAtomic, Ordering::Relaxed};
#[cfg(feature = "half")]
use ferrogrid_device::half::HalfFloat;
use ferrogrid_device::math::Float;
use ferrogrid_device::matrix::ResultTile;

use super::kernels::kernels::{Form, Sizes, scaled};
use crate::native::in_parallel;

/// Rows and columns of the result that are computed together: their sums stay in the first cache.
const TILE: [usize; 2] = [4, 256];

pub(super) fn multiply_singles(
    _: [u32; 1],
    s: Sizes,
    scales: [f32; 2],
    offsets: &[u32],
    a: &[Aligned16<[f32; 4]>],
    b: &[Aligned16<[f32; 4]>],
    c: &[DeviceAtomic<f32>],
) {
    multiply::<true, _, _, _, _>(
        Form { sizes: s, scales, offsets },
        [a, b],
        c,
        |group| **group,
        (|it| it, |it| it),
    );
}

pub(super) fn multiply_doubles(
    _: [u32; 1],
    s: Sizes,
    scales: [f64; 2],
    offsets: &[u32],
    a: &[Aligned16<[f64; 2]>],
    b: &[Aligned16<[f64; 2]>],
    c: &[DeviceAtomic<f64>],
) {
    multiply::<false, _, _, _, _>(
        Form { sizes: s, scales, offsets },
        [a, b],
        c,
        |group| **group,
        (|it| it, |it| it),
    );
}

#[cfg(feature = "half")]
pub(super) fn multiply_halves<T: AtomicLoadStore + HalfFloat>(
    _: [u32; 1],
    s: Sizes,
    scales: [f32; 2],
    offsets: &[u32],
    a: &[Aligned16<[T; 8]>],
    b: &[Aligned16<[T; 8]>],
    c: &[DeviceAtomic<T>],
) {
    multiply::<false, _, _, _, _>(
        Form { sizes: s, scales, offsets },
        [a, b],
        c,
        |group| group.map(T::to_f32),
        (T::to_f32, T::from_f32),
    );
}

/// As the kernel of that name, with the processor's fused multiplications where it has them. `BY_K` says whether `a` has a row for each `k`.
fn multiply<const BY_K: bool, T: AtomicLoadStore, A: Float, U: Sync, const G: usize>(
    form: Form<A>,
    factors: [&[U]; 2],
    c: &[DeviceAtomic<T>],
    split: impl Fn(&U) -> [A; G] + Sync,
    (widen, narrow): (impl Fn(T) -> A + Sync, impl Fn(A) -> T + Sync),
) {
    let tiles = form.tiles(TILE);
    tiles.groups.check_all(tiles.extent[0]);
    let multiply = |number: usize| {
        if let Some(tile) = tiles.get(number) {
            multiply_tile::<BY_K, _, _, _, _>(&form, factors, c, tile, &split, (&widen, &narrow));
        }
    };
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has these.
        in_parallel(tiles.count(), &|number| unsafe { with_fma(|| multiply(number)) });
        return;
    }
    in_parallel(tiles.count(), &multiply);
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

/// A tile of the result.
#[inline(always)]
fn multiply_tile<const BY_K: bool, T: AtomicLoadStore, A: Float, U, const G: usize>(
    Form { sizes: s, scales, offsets }: &Form<A>,
    [a, b]: [&[U]; 2],
    c: &[DeviceAtomic<T>],
    ResultTile { matrix, rows: [first_row, end], column: first_column }: ResultTile,
    split: impl Fn(&U) -> [A; G],
    (widen, narrow): (impl Fn(T) -> A, impl Fn(A) -> T),
) {
    let (columns, depth) = (s.result[1] as usize, s.depth as usize);
    let [pitch_a, pitch_b, pitch_c] = s.pitches.map(|it| it as usize);
    let (of_left, row_of_left) = if !offsets.is_empty() {
        (0, first_row)
    } else {
        (matrix, first_row - matrix * s.result[0] as usize)
    };
    let (rows_here, width) = ((end - first_row).min(TILE[0]), (columns - first_column).min(TILE[1]));
    let mut sums = [[[A::ZERO; G]; 256]; 4];
    for k in 0..depth {
        let line = &b[(matrix * depth + k) * pitch_b + first_column / G..][..width.div_ceil(G)];
        for (row, sums) in sums.iter_mut().enumerate().take(rows_here) {
            let left = if BY_K {
                let row = row_of_left + row;
                split(&a[(of_left * depth + k) * pitch_a + row / G])[row % G]
            } else {
                split(&a[(first_row + row) * pitch_a + k / G])[k % G]
            };
            for (sums, group) in sums.iter_mut().zip(line) {
                let right = split(group);
                for j in 0..G {
                    sums[j] = left.mul_add(right[j], sums[j]);
                }
            }
        }
    }
    for (row, sums) in sums.iter().enumerate().take(rows_here) {
        let line = &c[(first_row + row) * pitch_c + first_column..][..width];
        for (c, sum) in line.iter().zip(sums.as_flattened()) {
            c.store(narrow(scaled(*scales, *sum, || widen(c.load(Relaxed)))), Relaxed);
        }
    }
}
