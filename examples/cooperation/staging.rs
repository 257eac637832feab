//! 2.1 staging: a block loads what all its threads need into shared memory, once.
//!
//! Shows: shared memory in two phases. While it is written, each thread reaches its own elements;
//! `t.publish` waits for the block, and then all may read all of it.
//! Look at: without staging every element is read 33 times. On a GPU the cache serves most of these reads;
//! compare the times there and on the CPU, whose shared memory is only a part of its cache.
//!
//! `cargo ferrogrid run staging`

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// How far the window reaches to each side.
    pub const RADIUS: usize = 16;

    /// y[i] = the sum of x[i - RADIUS] to x[i + RADIUS], from global memory; 0 counts beyond the ends.
    #[kernel]
    pub fn window_direct(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        let Some(y) = y.get_mut(i) else { return };
        let mut sum = 0.0;
        for k in i.get()..i.get() + 2 * RADIUS + 1 {
            sum += if k < RADIUS { 0.0 } else { x.get(k - RADIUS).copied().unwrap_or(0.0) };
        }
        *y = sum;
    }

    /// The same, through a tile of the block's 256 elements and RADIUS more to each side.
    #[kernel(block = 256)]
    pub fn window_staged(
        t: Thread<1>,
        x: &[f32],
        mut y: DisjointSlice<f32>,
        mut tile: Shared<[f32; 256 + 2 * RADIUS]>,
    ) {
        let first = t.block_idx()[0] as usize * 256;
        tile.fill_with(&t, |k| match first + k {
            before if before < RADIUS => 0.0,
            k => x.get(k - RADIUS).copied().unwrap_or(0.0),
        });
        let tile = t.publish(tile);
        let rank = t.thread_rank() as usize;
        let mut sum = 0.0;
        for k in 0..2 * RADIUS + 1 {
            sum += tile[rank + k];
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = sum;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let n = if device.is_cuda() { (1 << 22) + 77 } else { (1 << 16) + 77 };
    let mut random = fastrand::Rng::with_seed(3);
    let x: Vec<f32> = (0..n).map(|_| random.f32()).collect();
    println!("device    {}", device.name());
    println!("elements  {n}");

    let device_x = stream.upload(&x)?;
    let mut y = stream.fill(f32::NAN, n)?;
    let direct =
        stream.time(3, |stream| kernels::window_direct(stream, Grid::cover(n), &device_x, &mut y))?;
    check("direct", &x, &stream.download(&y)?)?;
    stream.fill_into(f32::NAN, &mut y)?;
    let staged =
        stream.time(3, |stream| kernels::window_staged(stream, Grid::cover(n), &device_x, &mut y))?;
    check("staged", &x, &stream.download(&y)?)?;
    println!("direct    {:.3} ms", direct.median().as_secs_f64() * 1e3);
    println!("staged    {:.3} ms", staged.median().as_secs_f64() * 1e3);
    println!("PASS");
    Ok(())
}

/// Compares with a running sum in double precision, which adds the entering element and subtracts the leaving one.
fn check(name: &str, x: &[f32], y: &[f32]) -> Result<(), Box<dyn std::error::Error>> {
    let at = |i: usize| f64::from(x.get(i).copied().unwrap_or(0.0));
    let mut sum: f64 = (0..kernels::RADIUS).map(at).sum();
    for (i, &y) in y.iter().enumerate() {
        sum += at(i + kernels::RADIUS);
        if i > kernels::RADIUS {
            sum -= at(i - kernels::RADIUS - 1);
        }
        // 33 additions of numbers below 1: each sum is below 33, and rounded to 2^-19 at worst.
        if (f64::from(y) - sum).abs() > 33.0 / f64::from(1 << 19) || y.is_nan() {
            return Err(format!("{name}: element {i} is {y}, expected {sum}").into());
        }
    }
    Ok(())
}
