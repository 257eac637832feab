//! 2.10 tensor_cores: a layer of a neural network, y = gelu(x w^T + bias), by tensor cores.
//!
//! Shows: `#[matmul]`, a product whose sums pass through a function before anything is written; and the same by hand, with
//! products of whole blocks (`multiply_tiles`): `wgmma` and tensor maps on GPUs of compute capability 9.0, `mma.sync` from
//! 8.0 on, plain sums elsewhere. Shapes are any.
//! Look at: TFLOP/s. `#[matmul]` takes tiles of 128 x 256 for large shapes, which read each element half as often.
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

    /// One sum of the layer.
    #[matmul(factors = bf16, transpose_b)]
    pub fn layer(sum: f32, #[column] bias: &f32) -> bf16 {
        bf16::from_f32(gelu(sum + bias))
    }

    /// The tiles below each other that are multiplied at the same time: they read the same rows of `w`.
    const TOGETHER: usize = 16;

    /// By hand, with tiles of 64 x 128: two stages of them fit into the shared memory of every GPU. An element of `y` has
    /// four numbers.
    #[inline(always)]
    #[kernel(block = 256)]
    pub fn by_hand(
        t: Thread<1>,
        x: TensorMap<bf16, 64, 64>,
        w: TensorMap<bf16, 64, 128>,
        bias: &[f32],
        y: &[DeviceAtomic<u64>],
        memory: Shared<Products<bf16, 64, 128, 2>>,
    ) {
        let (down, across) = (x.height().div_ceil(64), w.height().div_ceil(128));
        let place = |tile: usize| {
            let (group, place) = (tile / (TOGETHER * across), tile % (TOGETHER * across));
            let together = (down - group * TOGETHER).min(TOGETHER);
            [(group * TOGETHER + place % together) * 64, place / together * 128]
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
    let processors = device.properties()?.multiprocessor_count as usize;
    println!("device  {}", device.name());
    println!("rows  outputs  inputs         how        ms  TFLOP/s  error / bound");
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
        for how in ["by hand", "#[matmul]"] {
            let mut y = stream.fill(bf16::NAN, m * n)?;
            // Each block multiplies one tile after the other: while it writes sums, the next tiles arrive.
            let grid = Grid::blocks((m.div_ceil(64) * n.div_ceil(128)).min(processors));
            let timing = stream.time(3, |stream| {
                let (x, w, bias) = (device_x.view_2d(k, m)?, device_w.view_2d(k, n)?, &device_bias);
                match how {
                    "by hand" => {
                        let y = y.view_mut().cast()?.into_atomic();
                        kernels::by_hand(stream, grid, x, w, bias, y)
                    }
                    _ => kernels::layer(stream, x, w, bias, y.view_2d_mut(n, m)?),
                }
            })?;
            let ms = timing.median().as_secs_f64() * 1e3;
            let error = max_error([m, n, k], &x, &w, &bias, &stream.download(&y)?);
            let rate = 2.0 * (m * n * k) as f64 / ms / 1e9;
            println!("{m:4}  {n:7}  {k:6}  {how:>10}  {ms:8.3}  {rate:7.3}  {error:13.2}");
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
