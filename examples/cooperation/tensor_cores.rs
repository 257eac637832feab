//! 2.10 tensor_cores: a layer of a neural network, y = gelu(x w^T + bias), by tensor cores.
//!
//! Shows: products by whole blocks (`multiply_tiles`): `wgmma` and tensor maps on GPUs of compute capability 9.0,
//! `mma.sync` from 8.0 on, plain sums elsewhere. The closure that gets the sums adds the bias and applies GELU before
//! anything is written. Tiles need not divide the shape.
//! Look at: TFLOP/s. A tile of 128 x 256 reads each element half as often as two of 64 x 128.
//!
//! `cargo ferrogrid run tensor_cores`; for an H100 or H200 `FERROGRID_ARCH=sm_90a cargo ferrogrid run tensor_cores`

use ferrogrid::device::half::bf16;
use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use atomic::Ordering::Relaxed;
    use ferrogrid::device::half::{HalfFloat, bf16};
    use ferrogrid::device::matrix::Products;
    use ferrogrid::device::prelude::*;

    /// By tiles of 64 x 128: two stages of them fit into the shared memory of every GPU.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn small(
        t: Thread<1>,
        x: TensorMap<bf16, 64, 64>,
        w: TensorMap<bf16, 64, 128>,
        bias: &[f32],
        y: &[DeviceAtomic<u64>],
        memory: Shared<Products<bf16, 64, 128, 2>>,
    ) {
        layer(&t, x, w, bias, y, memory);
    }

    /// By tiles of 128 x 256: 193 KiB of shared memory.
    #[inline(always)]
    #[kernel(block = 384, min_blocks = 1)]
    pub fn large(
        t: Thread<1>,
        x: TensorMap<bf16, 64, 128>,
        w: TensorMap<bf16, 64, 256>,
        bias: &[f32],
        y: &[DeviceAtomic<u64>],
        memory: Shared<Products<bf16, 128, 256, 4>>,
    ) {
        layer(&t, x, w, bias, y, memory);
    }

    /// The tiles below each other that are multiplied at the same time: they read the same rows of `w`.
    const TOGETHER: usize = 16;

    /// What both do. An element of `y` has four numbers.
    #[inline(always)]
    fn layer<const M: usize, const N: usize, const S: usize, const ID: usize>(
        t: &Thread<1>,
        x: TensorMap<bf16, 64, M>,
        w: TensorMap<bf16, 64, N>,
        bias: &[f32],
        y: &[DeviceAtomic<u64>],
        memory: Shared<Products<bf16, M, N, S>, ID>,
    ) {
        let (down, across) = (x.height().div_ceil(M), w.height().div_ceil(N));
        let place = |tile: usize| {
            let (group, place) = (tile / (TOGETHER * across), tile % (TOGETHER * across));
            let together = (down - group * TOGETHER).min(TOGETHER);
            [(group * TOGETHER + place % together) * M, place / together * N]
        };
        let (first, step) = (t.block_idx()[0] as usize, t.grid_dim()[0] as usize);
        let tiles = (first..down * across).step_by(step).map(place);
        t.multiply_tiles(memory, x, w, tiles, |[row, column], sums| {
            let row_of_y = w.height() / 4;
            sums.for_each_four(&t.warp(), |i| {
                let y = y.get((row + i) * row_of_y..(row + i + 1) * row_of_y).unwrap_or_default();
                // Beyond the edges there is no bias, or no element of `y`.
                let bits = move |j: usize, [left, right]: [f32; 2]| {
                    let bias = |j: usize| bias.get(column + j).copied().unwrap_or(0.0);
                    bf16::pair_to_bits([gelu(left + bias(j)), gelu(right + bias(j + 1))])
                };
                let element = move |four: usize| y.get(column / 4 + four);
                (bits, move |four, bits| element(four).into_iter().for_each(|y| y.store(bits, Relaxed)))
            });
        });
    }

    /// The usual approximation, x / 2 (1 + tanh(u / 2)), as x / (1 + exp(-u)).
    #[inline(always)]
    fn gelu(x: f32) -> f32 {
        let u = x * (0.071_354_816 * x * x + 1.595_769);
        x.fast_div(1.0 + (-u).fast_exp())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let properties = device.properties()?;
    let has_large = properties.shared_memory_per_block_optin >= 200 << 10;
    println!("device  {}", device.name());
    println!("rows  outputs  inputs     tiles        ms  TFLOP/s  error / bound");
    // Rows of all matrices have multiples of 8 elements, 16 bytes.
    let shapes: &[[usize; 3]] =
        if device.is_cuda() { &[[1000, 2008, 520], [8192; 3]] } else { &[[70, 136, 72]] };
    for &[m, n, k] in shapes {
        let mut random = fastrand::Rng::with_seed(6);
        let mut number = |most: f32| (random.f32() * 2.0 - 1.0) * most;
        let x: Vec<bf16> = (0..m * k).map(|_| bf16::from_f32(number(1.0))).collect();
        let w: Vec<bf16> = (0..n * k).map(|_| bf16::from_f32(number((k as f32).powf(-0.5)))).collect();
        let bias: Vec<f32> = (0..n).map(|_| number(1.0)).collect();
        let (device_x, device_w, device_bias) =
            (stream.upload(&x)?, stream.upload(&w)?, stream.upload(&bias)?);
        for [height, width] in [[64, 128], [128, 256]].into_iter().take(if has_large { 2 } else { 1 }) {
            let mut y = stream.fill(bf16::NAN, m * n)?;
            // Each block multiplies one tile after the other: while it writes sums, the next tiles arrive.
            let tiles = m.div_ceil(height) * n.div_ceil(width);
            let grid = Grid::blocks(tiles.min(properties.multiprocessor_count as usize));
            let timing = stream.time(3, |stream| {
                let (x, w) = (device_x.view_2d(k, m)?, device_w.view_2d(k, n)?);
                let (bias, y) = (&device_bias, y.view_mut().cast()?.into_atomic());
                match height {
                    64 => kernels::small(stream, grid, x, w, bias, y),
                    _ => kernels::large(stream, grid, x, w, bias, y),
                }
            })?;
            let ms = timing.median().as_secs_f64() * 1e3;
            let error = max_error([m, n, k], &x, &w, &bias, &stream.download(&y)?);
            let rate = 2.0 * (m * n * k) as f64 / ms / 1e9;
            println!("{m:4}  {n:7}  {k:6}  {height:3} x {width}  {ms:8.3}  {rate:7.3}  {error:13.2}");
            if error.is_nan() || error > 1.0 {
                return Err("the layer's results are wrong".into());
            }
        }
    }
    println!("PASS");
    Ok(())
}

/// The largest error at some 20,000 places, as a part of its bound.
fn max_error([m, n, k]: [usize; 3], x: &[bf16], w: &[bf16], bias: &[f32], y: &[bf16]) -> f64 {
    let error = |place: usize| {
        let (row, column) = (&x[place / n * k..][..k], &w[place % n * k..][..k]);
        let sum: f64 = row.iter().zip(column).map(|(x, w)| x.to_f64() * w.to_f64()).sum();
        let sum = sum + f64::from(bias[place % n]);
        let exact = sum / 2.0 * (1.0 + (0.797_884_560_8 * (sum + 0.044_715 * sum.powi(3))).tanh());
        // The rounding to 8 bits, and k sums below 4 that each lose less than 2^-22.
        (y[place].to_f64() - exact).abs() / (exact.abs() / 256.0 + k as f64 / f64::from(1 << 22))
    };
    let step = (m * n).div_ceil(20_000) | 1;
    (0..m * n).step_by(step).chain([m * n - 1]).map(error).max_by(f64::total_cmp).unwrap_or(0.0)
}
