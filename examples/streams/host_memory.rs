//! 4.4 host_memory: four kinds of memory that both sides can reach.
//!
//! Shows: ordinary memory, page-locked memory, a `Vec` that is page-locked in place, and managed memory.
//! Look at: the types. A background copy takes page-locked memory and returns it by `wait`, so nothing can
//! touch it in between; while the host holds a slice of managed memory, kernels cannot use it.
//!
//! `cargo ferrogrid run host_memory`

use std::time::Instant;

use ferrogrid::{Location, prelude::*};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// x[i] <- 2 x[i] + 1.
    #[kernel]
    pub fn double_plus_one(t: Thread<1>, mut x: DisjointSlice<u32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x = x.wrapping_mul(2).wrapping_add(1);
        }
    }
}

/// Uploads `data`, runs the kernel, and downloads the result.
type Way = fn(&Stream, Vec<u32>) -> ferrogrid::Result<Vec<u32>>;

fn ordinary(stream: &Stream, mut data: Vec<u32>) -> ferrogrid::Result<Vec<u32>> {
    let mut x = stream.upload(&data)?;
    kernels::double_plus_one(stream, Grid::cover(x.len()), &mut x)?;
    stream.download_into(&x, &mut data)?;
    Ok(data)
}

fn page_locked(stream: &Stream, data: Vec<u32>) -> ferrogrid::Result<Vec<u32>> {
    let host = stream.device().pinned_copy(&data)?;
    let mut x = stream.zeros::<u32>(data.len())?;
    // The host could do something else before each `wait`.
    let host = stream.upload_async(host, &mut x)?.wait()?;
    kernels::double_plus_one(stream, Grid::cover(x.len()), &mut x)?;
    let host = stream.download_async(&x, host)?.wait()?;
    Ok(host.to_vec())
}

fn page_locked_in_place(stream: &Stream, data: Vec<u32>) -> ferrogrid::Result<Vec<u32>> {
    let host = stream.device().pin(data)?;
    let mut x = stream.zeros::<u32>(host.len())?;
    let host = stream.upload_async(host, &mut x)?.wait()?;
    kernels::double_plus_one(stream, Grid::cover(x.len()), &mut x)?;
    Ok(stream.download_async(&x, host)?.wait()?.into_vec())
}

fn managed(stream: &Stream, data: Vec<u32>) -> ferrogrid::Result<Vec<u32>> {
    let mut x = stream.managed_copy(&data)?;
    // One address on both sides: pages move when they are touched, or here, before.
    stream.prefetch(&x, Location::Device)?;
    kernels::double_plus_one(stream, Grid::cover(x.len()), &mut x)?;
    Ok(x.read()?.to_vec())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let n: usize = if device.is_cuda() { 1 << 24 } else { 1 << 18 };
    println!("device                {}", device.name());
    println!("elements              {n}");
    let ways: [(&str, Way); 4] = [
        ("ordinary", ordinary),
        ("page-locked", page_locked),
        ("page-locked in place", page_locked_in_place),
        ("managed", managed),
    ];
    for (name, way) in ways {
        // The first time loads the kernel and fills the memory pool.
        let first = way(&stream, vec![0; n]);
        if let Err(error @ Error::Unsupported { .. }) = first {
            // Managed memory that the host may touch while a GPU works is not on every system.
            println!("{name:<20}  {error}");
            continue;
        }
        first?;
        let data: Vec<u32> = (0..n as u32).collect();
        let start = Instant::now();
        let result = way(&stream, data)?;
        println!("{name:<20}  {:9.3} ms, allocation included", start.elapsed().as_secs_f64() * 1e3);
        if !result.into_iter().eq((0..n as u32).map(|i| 2 * i + 1)) {
            return Err(format!("{name}: the result is wrong").into());
        }
    }
    println!("PASS");
    Ok(())
}
