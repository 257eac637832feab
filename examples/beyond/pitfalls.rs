//! 5.2 pitfalls: the four classic mistakes of CUDA programs, and their results here.
//!
//! Shows: leaks (memory is freed after its last use, on every path), missing synchronisation (results come
//! only by calls that wait), wrong dimensions (typed errors with value and limit), and misused resources
//! (failures that name the cause, and leave the device usable).
//! Look at: the error texts. Other mistakes do not compile: a kernel with the wrong arguments, a buffer as
//! input and output at once, host memory that is read while a copy writes it.
//!
//! `cargo ferrogrid run pitfalls`

use ferrogrid::prelude::*;
use ferrogrid::{CpuOptions, LaunchError};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// x[i] <- x[i] + 1.
    #[kernel]
    pub fn increment(t: Thread<1>, mut x: DisjointSlice<u32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x += 1;
        }
    }

    /// y[i] = x[i + offset], without a check of the bounds.
    #[kernel]
    pub fn shifted(t: Thread<1>, offset: usize, x: &[u32], mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get() + offset];
        }
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    println!("device  {}", device.name());
    leak(&stream)?;
    missing_synchronisation(&stream)?;
    wrong_dimensions(&stream)?;
    resources(&stream)?;
    println!("PASS");
    Ok(())
}

/// Mistake 1: an early return skips the call that frees.
fn leak(stream: &Stream) -> Outcome {
    let pool = stream.device().memory_pool();
    stream.synchronize()?;
    let before = pool.statistics()?.used;
    for _ in 0..100 {
        // It returns early, with an error, while a kernel may still use the buffer.
        early_return(stream).expect_err("the lengths differ");
    }
    stream.synchronize()?;
    let after = pool.statistics()?.used;
    println!("\n1. leak: {before} bytes in use before, {after} after 100 early returns");
    demand(before == after, "memory has leaked")
}

fn early_return(stream: &Stream) -> ferrogrid::Result<()> {
    let mut x = stream.zeros::<u32>(1 << 16)?;
    kernels::increment(stream, Grid::cover(x.len()), &mut x)?;
    stream.upload_into(&[1, 2, 3], &mut x)
}

/// Mistake 2: the result is read before the kernel has run.
fn missing_synchronisation(stream: &Stream) -> Outcome {
    let (other, mut x) = (stream.device().new_stream()?, stream.zeros::<u32>(1 << 16)?);
    for _ in 0..50 {
        kernels::increment(stream, Grid::cover(x.len()), &mut x)?;
        // On another stream, without an explicit order: the buffer orders the work.
        kernels::increment(&other, Grid::cover(x.len()), &mut x)?;
    }
    let result = other.download(&x)?;
    println!("\n2. missing synchronisation: all {} elements are {}", result.len(), result[0]);
    demand(result.iter().all(|&x| x == 100), "a launch was overtaken")
}

/// Mistake 3: the launch has another shape than the kernel or the data.
fn wrong_dimensions(stream: &Stream) -> Outcome {
    println!("\n3. wrong dimensions");
    let mut x = stream.zeros::<u32>(1000)?;
    let error = kernels::increment(stream, Grid::new(1, 2048), &mut x).unwrap_err();
    println!("   {error}");
    demand(
        matches!(error, Error::Launch(LaunchError::BlockTooLarge { value: 2048, .. })),
        "2048 threads are too many",
    )?;
    let error = x.view_2d_mut(100, 11).unwrap_err();
    println!("   {error}");
    demand(matches!(error, Error::ViewTooLarge { .. }), "11 rows are too many")?;
    // More threads than elements: the others do nothing.
    kernels::increment(stream, Grid::new(64, 64), &mut x)?;
    demand(stream.download(&x)? == [1; 1000], "a thread without an element did something")?;

    let mut y = stream.zeros::<u32>(1000)?;
    kernels::shifted(stream, Grid::cover(1000_usize), 1, &x, &mut y)?;
    let error = stream.download(&y).unwrap_err();
    println!("   {error}");
    demand(matches!(error, Error::KernelPanic { .. }), "an index is out of bounds")?;
    kernels::increment(stream, Grid::cover(x.len()), &mut x)?;
    demand(stream.download(&x)? == [2; 1000], "the device remains usable")
}

/// Mistake 4: resources that are exhausted, confused, or used after they were dropped.
fn resources(stream: &Stream) -> Outcome {
    println!("\n4. resources");
    let error = stream.zeros::<u64>(1 << 46).unwrap_err();
    println!("   {error}");
    demand(matches!(error, Error::OutOfMemory { .. }), "512 TiB are too much")?;

    let elsewhere = Device::cpu_with(CpuOptions::new().workers(1))?.new_stream()?;
    let mut x = elsewhere.zeros::<u32>(10)?;
    let error = kernels::increment(stream, Grid::cover(x.len()), &mut x).unwrap_err();
    println!("   {error}");
    demand(matches!(error, Error::DeviceMismatch { .. }), "the buffer is of another device")?;

    // The stream is dropped first; its work and the buffer stay valid.
    let short_lived = stream.device().new_stream()?;
    let mut x = short_lived.zeros::<u32>(10)?;
    kernels::increment(&short_lived, Grid::cover(x.len()), &mut x)?;
    drop(short_lived);
    demand(stream.download(&x)? == [1; 10], "the work of a dropped stream was lost")
}

fn demand(holds: bool, otherwise: &str) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}
