//! 2.7 cooperative: heat spreads along a ring, all steps in one launch.
//!
//! Shows: a kernel whose blocks wait for each other (`#[kernel(cooperative)]`, `t.sync_grid()`), and numbers
//! that other blocks read (`DeviceAtomic`).
//! Look at: one launch for all steps, compared with one launch for each. All blocks must be resident on the
//! device at the same time: a launch of more is an error, not a hang.
//!
//! `cargo ferrogrid run cooperative`

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::atomic::Ordering::Relaxed;
    use ferrogrid::device::prelude::*;

    /// The value of element i after one step: half of it stays, a quarter comes from each side.
    fn step(from: &[DeviceAtomic<f32>], i: usize) -> f32 {
        let n = from.len();
        let at = |i: usize| from[i % n].load(Relaxed);
        0.5 * at(i) + 0.25 * (at(i + n - 1) + at(i + 1))
    }

    /// `steps` steps, from a to b, from b to a, and so on.
    #[kernel(cooperative)]
    pub fn spread(t: Thread<1>, steps: u32, a: &[DeviceAtomic<f32>], b: &[DeviceAtomic<f32>]) {
        for number in 0..steps {
            let (from, to) = if number % 2 == 0 { (a, b) } else { (b, a) };
            for i in t.grid_stride(from.len()) {
                to[i.get()].store(step(from, i.get()), Relaxed);
            }
            // No block continues before all blocks have written.
            t.sync_grid();
        }
    }

    /// One step.
    #[kernel]
    pub fn spread_once(t: Thread<1>, from: &[DeviceAtomic<f32>], to: &[DeviceAtomic<f32>]) {
        for i in t.grid_stride(from.len()) {
            to[i.get()].store(step(from, i.get()), Relaxed);
        }
    }
}

/// Even, so that the result is in the first buffer.
const STEPS: u32 = 100;
const PLACES: usize = 4099;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let ring: Vec<f32> = (0..PLACES).map(|i| if i % 1000 < 10 { 100.0 } else { 0.0 }).collect();
    let grid = Grid::new(8, 128);

    let (mut a, mut b) = (stream.upload(&ring)?, stream.zeros::<f32>(PLACES)?);
    // The first launches load the kernels: not measured. They leave `a` unchanged.
    kernels::spread(&stream, grid, 0, a.as_atomic(), b.as_atomic())?;
    kernels::spread_once(&stream, grid, a.as_atomic(), b.as_atomic())?;
    let start = stream.record()?;
    kernels::spread(&stream, grid, STEPS, a.as_atomic(), b.as_atomic())?;
    let one_launch = stream.record()?.elapsed_since(&start)?;
    let together = stream.download(&a)?;

    stream.upload_into(&ring, &mut a)?;
    let start = stream.record()?;
    for _ in 0..STEPS {
        kernels::spread_once(&stream, grid, a.as_atomic(), b.as_atomic())?;
        std::mem::swap(&mut a, &mut b);
    }
    let many_launches = stream.record()?.elapsed_since(&start)?;
    let separate = stream.download(&a)?;

    println!("device           {}", device.name());
    println!("steps            {STEPS} of {PLACES} places");
    println!("one launch       {:.3} ms", one_launch.as_secs_f64() * 1e3);
    println!("a launch a step  {:.3} ms", many_launches.as_secs_f64() * 1e3);
    check(&ring, &together)?;
    check(&ring, &separate)?;
    println!("PASS");
    Ok(())
}

/// Compares with the same steps in double precision, on the host.
fn check(ring: &[f32], result: &[f32]) -> Result<(), Box<dyn std::error::Error>> {
    let mut expected: Vec<f64> = ring.iter().map(|&x| x.into()).collect();
    for _ in 0..STEPS {
        let from = expected.clone();
        for (i, to) in expected.iter_mut().enumerate() {
            let (left, right) = (from[(i + PLACES - 1) % PLACES], from[(i + 1) % PLACES]);
            *to = 0.5 * from[i] + 0.25 * (left + right);
        }
    }
    for (i, (expected, &got)) in expected.iter().zip(result).enumerate() {
        let error = (expected - f64::from(got)).abs();
        // Two roundings a step, of values of at most 100.
        if error.is_nan() || error > 200.0 * f64::from(STEPS) * f64::from(f32::EPSILON) / 2.0 {
            return Err(format!("place {i} holds {got}, expected {expected}").into());
        }
    }
    Ok(())
}
