//! 1.1 saxpy: y <- a*x + y, the first kernel.
//!
//! Shows: a kernel beside the code that launches it, upload, typed launch, download, and the time of a launch
//! on the device (`stream.time`).
//! Look at: the bandwidth. The kernel moves 12 bytes per element and computes almost nothing, so on
//! a GPU it should come close to the memory's speed.
//!
//! `cargo ferrogrid run saxpy [ELEMENTS]` (by default 2^26 on a GPU, 2^19 on the CPU)

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
}

const LAUNCHES: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let n = match std::env::args().nth(1) {
        Some(text) => text.parse().map_err(|error| format!("ELEMENTS is a number, not {text:?}: {error}"))?,
        None if device.is_cuda() => 1_usize << 26,
        None => 1 << 19,
    };
    let a = 2.5_f32;
    let mut random = fastrand::Rng::new();
    let x: Vec<f32> = (0..n).map(|_| random.f32() - 0.5).collect();
    let y: Vec<f32> = (0..n).map(|_| random.f32() - 0.5).collect();

    let device_x = stream.upload(&x)?;
    let mut device_y = stream.upload(&y)?;
    kernels::saxpy(&stream, Grid::cover(n), a, &device_x, &mut device_y)?;
    let result = stream.download(&device_y)?;

    let timing = stream
        .time(LAUNCHES, |stream| kernels::saxpy(stream, Grid::cover(n), a, &device_x, &mut device_y))?;
    let seconds = timing.median().as_secs_f64();

    let error = max_error(a, &x, &y, &result);
    println!("device     {}", device.name());
    println!("elements   {n}");
    println!("time       {:.3} ms, the median of {LAUNCHES} launches", seconds * 1e3);
    println!("bandwidth  {:.1} GB/s", 12.0 * n as f64 / seconds / 1e9);
    println!("max error  {error:.2e}");
    // Two roundings of values below 2: at most one unit in the last place of 2 in all.
    if error.is_nan() || error > f64::from(f32::EPSILON) {
        return Err(format!("the result is wrong: error {error:e}").into());
    }
    println!("PASS");
    Ok(())
}

/// The largest difference from the same computed in double precision. A NaN counts as the largest.
fn max_error(a: f32, x: &[f32], y: &[f32], result: &[f32]) -> f64 {
    let expected = x.iter().zip(y).map(|(&x, &y)| f64::from(a) * f64::from(x) + f64::from(y));
    let errors = expected.zip(result).map(|(expected, &got)| (expected - f64::from(got)).abs());
    errors.max_by(f64::total_cmp).unwrap_or(0.0)
}
