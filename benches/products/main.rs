//! Times products of matrices of 16-bit floats on a GPU against cuBLAS's (benches/cuda/cublas.cu, compiled to a shared library that
//! `FERROGRID_BENCH_LIBRARY` names): alternating in one process, on the same buffers, with results checked. It prints one JSON line per
//! figure, for benches/runtime.py. Built with `FERROGRID_ARCH=sm_90a`, blocks multiply by `wgmma`.

#[path = "../setting.rs"]
mod setting;
#[path = "../timed.rs"]
mod timed;
#[path = "../runtime/turns.rs"]
mod turns;

use std::cell::RefCell;
use std::ffi::c_void;
use std::time::Duration;

use ferrogrid::device::half::{HalfFloat, bf16, f16};
use ferrogrid::prelude::*;
use libloading::Library;
use timed::time;

#[ferrogrid::module]
mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{HalfFloat, bf16, f16};
    use ferrogrid::device::matrix::{Accumulator, FragmentA, FragmentB, MatrixElement};
    use ferrogrid::device::prelude::*;

    /// The tile of a block, of 8 warps with 64 x 64 sums each.
    pub const HEIGHT: usize = 128;
    /// See [`HEIGHT`].
    pub const WIDTH: usize = 256;
    /// The tiles below each other whose blocks follow each other: they read the same rows of `b`.
    const TOGETHER: usize = 8;

    /// c <- a b^T, of as many rows of `a` as of tiles and 64 elements a step. `c` has pairs.
    #[inline(always)]
    #[kernel(block = 256, min_blocks = 1, T = [bf16, f16])]
    pub fn product<T: MatrixElement<Sum = f32> + HalfFloat>(
        t: Thread<1>,
        a: Plane<Aligned16<[T; 8]>>,
        b: Plane<Aligned16<[T; 8]>>,
        c: &[DeviceAtomic<u32>],
        of_a: Shared<Stages<Padded<Aligned16<[T; 8]>, 8, HEIGHT>, 4>>,
        of_b: Shared<Stages<Padded<Aligned16<[T; 8]>, 8, WIDTH>, 4>>,
    ) {
        let (mut of_a, mut of_b) = (of_a.into_stages(), of_b.into_stages());
        let (block, columns) = (t.block_idx()[0] as usize, b.height() / WIDTH);
        let (group, place) = (block / (TOGETHER * columns), block % (TOGETHER * columns));
        let together = (a.height() / HEIGHT - group * TOGETHER).min(TOGETHER);
        let first_row = (group * TOGETHER + place % together) * HEIGHT;
        let first_column = place / together * WIDTH;
        let (warp, number) = (t.warp(), t.thread_rank() as usize / 32);
        let [own_row, own_column] = [number % 2 * 64, number / 2 * 64];

        for step in 0..3 {
            of_a.copy_with(&t, |[row, k]| a.get(first_row + row, step * 8 + k));
            of_b.copy_with(&t, |[row, k]| b.get(first_column + row, step * 8 + k));
            t.advance((&mut of_a, &mut of_b));
        }
        let mut sums = Accumulator::<T, 4, 8>::zero();
        // Each part is loaded before the last one is multiplied, and the next stages are copied between products.
        macro_rules! load {
            ($k:literal) => {
                (
                    FragmentA::load(&warp, of_a.current().rows(), [own_row, $k]),
                    FragmentB::load_transposed(&warp, of_b.current().rows(), [own_column, $k]),
                )
            };
        }
        let mut first = load!(0);
        for step in 3..a.width() / 8 + 3 {
            let second = load!(16);
            sums.add_product(&warp, &first.0, &first.1);
            of_a.copy_with(&t, |[row, k]| a.get(first_row + row, step * 8 + k));
            let third = load!(32);
            sums.add_product(&warp, &second.0, &second.1);
            of_b.copy_with(&t, |[row, k]| b.get(first_column + row, step * 8 + k));
            let fourth = load!(48);
            sums.add_product(&warp, &third.0, &third.1);
            t.advance((&mut of_a, &mut of_b));
            first = load!(0);
            sums.add_product(&warp, &fourth.0, &fourth.1);
        }
        sums.for_each_pair(&warp, |row, column, [left, right]| {
            let place = (first_row + own_row + row) * b.height() + first_column + own_column + column;
            if let Some(c) = c.get(place / 2) {
                let [left, right] = [left, right].map(|sum| u32::from(T::from_f32(sum).to_bits()));
                c.store(left | right << 16, Relaxed);
            }
        });
    }
}

/// By whole blocks. Code for `sm_90a` multiplies by `wgmma`.
#[ferrogrid::module]
mod tiles {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{HalfFloat, bf16, f16};
    use ferrogrid::device::matrix::{ProductElement, Products};
    use ferrogrid::device::prelude::*;

    /// The tiles below each other that are multiplied at the same time: they read the same rows of `b`.
    const TOGETHER: usize = 16;

    /// c <- a b^T, of multiples of 128 and `N` rows. `c` has four elements each.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1, T = [bf16, f16], N = [128, 256])]
    pub fn product<T: ProductElement + HalfFloat, const N: usize>(
        t: Thread<1>,
        a: TensorMap<T, 64, 128>,
        b: TensorMap<T, 64, N>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, 128, N, 4>>,
    ) {
        multiply(&t, a, b, c, memory);
    }

    /// As `product`, of multiples of 64 and 128 rows.
    #[inline(always)]
    #[kernel(block = 256, T = [bf16, f16])]
    pub fn small_product<T: ProductElement + HalfFloat>(
        t: Thread<1>,
        a: TensorMap<T, 64, 64>,
        b: TensorMap<T, 64, 128>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, 64, 128, 4>>,
    ) {
        multiply(&t, a, b, c, memory);
    }

    #[inline(always)]
    fn multiply<
        T: ProductElement + HalfFloat,
        const M: usize,
        const N: usize,
        const S: usize,
        const ID: usize,
    >(
        t: &Thread<1>,
        a: TensorMap<T, 64, M>,
        b: TensorMap<T, 64, N>,
        c: &[DeviceAtomic<u64>],
        memory: Shared<Products<T, M, N, S>, ID>,
    ) {
        let (down, across) = (a.height() / M, b.height() / N);
        let place = |tile: usize| {
            let (group, place) = (tile / (TOGETHER * across), tile % (TOGETHER * across));
            let together = (down - group * TOGETHER).min(TOGETHER);
            [(group * TOGETHER + place % together) * M, place / together * N]
        };
        let (first, step) = (t.block_idx()[0] as usize, t.grid_dim()[0] as usize);
        let tiles = (first..down * across).step_by(step).map(place);
        let width = b.height();
        t.multiply_tiles(memory, a, b, tiles, |[row, column], sums| {
            sums.for_each_four(&t.warp(), |i, four, [s0, s1, s2, s3]| {
                if let Some(c) = c.get((row + i) * (width / 4) + column / 4 + four) {
                    let [low, high] = [[s0, s1], [s2, s3]].map(|pair| u64::from(T::pair_to_bits(pair)));
                    c.store(low | high << 32, Relaxed);
                }
            });
        });
    }
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// (a, b, c, rows of a, rows of b, depth, stream) -> `cublasStatus_t`
type Product =
    unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, i32, i32, i32, *mut c_void) -> i32;

/// Rows of `a`, rows of `b`, and their length.
const SHAPES: [[usize; 3]; 8] = [
    [1024, 1024, 1024],
    [2048, 2048, 2048],
    [4096, 4096, 4096],
    [8192, 8192, 8192],
    [16384, 16384, 16384],
    [8192, 8192, 1024],
    [4096, 14336, 4096],
    [64, 8192, 8192],
];
const ROUNDS: usize = 11;
/// What a round takes, at least.
const ROUND: Duration = Duration::from_millis(5);

/// Who multiplies together.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Warps,
    Blocks,
}

/// Times a product of this shape by both sides, and checks places of both results.
fn duel<T>(name: &str, by: By, stream: &Stream, cublas: &Library, [m, n, k]: [usize; 3]) -> Outcome<()>
where
    T: HalfFloat
        + bytemuck::Pod
        + kernels::product::Instance
        + tiles::product::Instance<256>
        + tiles::product::Instance<128>
        + tiles::small_product::Instance,
{
    // SAFETY: benches/cuda/cublas.cu declares it so.
    let theirs: Product = unsafe { *cublas.get(format!("product_{name}").as_bytes())? };
    let mut random = fastrand::Rng::new();
    let mut numbers =
        |len: usize| -> Vec<T> { (0..len).map(|_| T::from_f32(random.f32() * 2.0 - 1.0)).collect() };
    let (a, b) = (numbers(m * k), numbers(n * k));
    let (device_a, device_b) = (stream.upload(&a)?, stream.upload(&b)?);
    let mut c = [stream.fill(T::from_f32(f32::NAN), m * n)?, stream.fill(T::from_f32(f32::NAN), m * n)?];
    let [ours_c, theirs_c] = c.each_mut().map(RefCell::new);
    let blocks = stream.device().properties()?.multiprocessor_count as usize;
    let ours = || -> ferrogrid::Result<()> {
        if by == By::Blocks {
            let (a, b, mut c) = (device_a.view_2d(k, m)?, device_b.view_2d(k, n)?, ours_c.borrow_mut());
            let c = c.view_mut().cast()?.into_atomic();
            // The tiles that are multiplied one after the other, as a multiple of the smallest, and what more the smaller ones take.
            let time = |[height, width]: [usize; 2], cost: f64| {
                let rounds = (m / height * (n / width)).div_ceil(blocks);
                if m % height == 0 { rounds as f64 * (height * width) as f64 * cost } else { f64::INFINITY }
            };
            let times = [time([128, 256], 1.0), time([128, 128], 1.1), time([64, 128], 1.3)];
            let grid = |height: usize, width: usize| Grid::blocks(blocks.min(m / height * (n / width)));
            return if times[0] <= times[1].min(times[2]) {
                tiles::product::<T, 256>(stream, grid(128, 256), a, b, c)
            } else if times[1] <= times[2] {
                tiles::product::<T, 128>(stream, grid(128, 128), a, b, c)
            } else {
                tiles::small_product::<T>(stream, grid(64, 128), a, b, c)
            };
        }
        let (a, b) = (device_a.view().as_aligned16::<8>()?, device_b.view().as_aligned16::<8>()?);
        let blocks = Grid::blocks(m / kernels::HEIGHT * (n / kernels::WIDTH));
        let mut c = ours_c.borrow_mut();
        let c = c.view_mut().cast()?.into_atomic();
        kernels::product::<T>(stream, blocks, a.into_2d(k / 8, m)?, b.into_2d(k / 8, n)?, c)
    };
    let raw = stream.as_raw().ok_or("a stream of a GPU")?;
    let theirs = || -> Outcome<()> {
        let [a, b] = [&device_a, &device_b].map(|it| it.view().as_device_ptr().as_raw().cast());
        let c = theirs_c.borrow_mut().as_device_ptr_mut().as_raw().cast();
        // SAFETY: the buffers have these elements, and outlive the calls.
        match unsafe { theirs(a, b, c, m as i32, n as i32, k as i32, raw) } {
            0 => Ok(()),
            status => Err(format!("cuBLAS: status {status}").into()),
        }
    };
    let calls = (ROUND.as_secs_f64() / time(stream, 1, theirs)?).ceil().clamp(1.0, 500.0) as u32;
    let by = if by == By::Warps { "product" } else { "tiles" };
    let figure = format!("{by}_{name}_{m}_{n}_{k}");
    turns::duel(&figure, ROUNDS, 1.0, || time(stream, calls, ours), || time(stream, calls, theirs))?;
    let found = c.iter().map(|c| stream.download(c)).collect::<ferrogrid::Result<Vec<_>>>()?;
    let mut random = fastrand::Rng::new();
    for place in (0..2000).map(|_| random.usize(..m * n)) {
        let (row, column) = (&a[place / n * k..][..k], &b[place % n * k..][..k]);
        let terms = row.iter().zip(column).map(|(a, b)| f64::from(a.to_f32()) * f64::from(b.to_f32()));
        let exact: f64 = terms.sum();
        for (side, c) in ["Rust", "cuBLAS"].into_iter().zip(&found) {
            let found = f64::from(c[place].to_f32());
            // The rounding of the result, and sums with 24 bits.
            if (found - exact).abs() > exact.abs() / 128.0 + k as f64 / f64::from(1 << 20) || found.is_nan() {
                return Err(format!("{figure}, {side}: {found} at {place}, expected {exact}").into());
            }
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let Some((device, path)) = setting::gpu_and_file("FERROGRID_BENCH_LIBRARY", "cuBLAS") else {
        return Ok(());
    };
    // SAFETY: the library of benches/cuda/cublas.cu, which runs nothing when it is loaded except the CUDA runtime's own initialisation.
    let cublas = unsafe { Library::new(path)? };
    let stream = device.new_stream()?;
    for shape @ [m, ..] in SHAPES {
        // Warps multiply 128 rows at a time.
        for by in [By::Warps, By::Blocks].into_iter().filter(|by| *by == By::Blocks || m % 128 == 0) {
            duel::<bf16>("bf16", by, &stream, &cublas, shape)?;
            duel::<f16>("f16", by, &stream, &cublas, shape)?;
        }
    }
    Ok(())
}
