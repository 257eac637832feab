//! 2.6 histogram: how often each byte occurs, with atomic counters.
//!
//! Shows: atomics that all threads change (`&[DeviceAtomic<u32>]`, `buffer.as_atomic()`), and a grid-stride
//! loop, by which a grid that just fills the device covers any number of bytes, 16 of them at a time
//! (`Aligned16`).
//! Look at: the throughput for random bytes, and for equal bytes, where all threads change the same counter.
//!
//! `cargo ferrogrid run histogram [BYTES]` (by default 2^26 on a GPU, 2^20 on the CPU; rounded up to a
//! multiple of 16)

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::atomic::Ordering;
    use ferrogrid::device::prelude::*;

    /// Adds the number of bytes `b` in `data` to `counts[b]`.
    #[kernel]
    pub fn histogram(t: Thread<1>, data: &[Aligned16<[u8; 16]>], counts: &[DeviceAtomic<u32>]) {
        for i in t.grid_stride(data.len()) {
            let bytes = data[i.get()];
            for k in 0..16 {
                counts[bytes[k] as usize].fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

const LAUNCHES: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let n = match std::env::args().nth(1) {
        Some(text) => text.parse().map_err(|error| format!("BYTES is a number, not {text:?}: {error}"))?,
        None if device.is_cuda() => 1_usize << 26,
        None => 1 << 20,
    };
    let n = n.next_multiple_of(16);
    let mut random = vec![0; n];
    fastrand::Rng::new().fill(&mut random);

    println!("device     {}", device.name());
    println!("bytes      {n}");
    measure(&stream, "random", &random)?;
    measure(&stream, "equal", &vec![7; n])?;
    println!("PASS");
    Ok(())
}

/// Counts the bytes of `data` on the device, checks the counts, and prints the throughput.
fn measure(stream: &Stream, name: &str, data: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    let device_data = stream.upload(data)?;
    let groups = device_data.view().as_aligned16::<16>()?;
    // Enough threads to fill any GPU of today; the loop does the rest.
    let grid = Grid::new(1024, 256);

    let mut counts = stream.zeros::<u32>(256)?;
    kernels::histogram(stream, grid, groups, counts.as_atomic())?;
    let result = stream.download(&counts)?;
    let timing =
        stream.time(LAUNCHES, |stream| kernels::histogram(stream, grid, groups, counts.as_atomic()))?;
    let seconds = timing.median().as_secs_f64();
    println!("{name:<10} {:.3} ms per launch, {:.2} GB/s", seconds * 1e3, data.len() as f64 / seconds / 1e9);

    let mut expected = vec![0_u32; 256];
    data.iter().for_each(|&byte| expected[usize::from(byte)] += 1);
    if result != expected {
        return Err(format!("the counts of {name} bytes are wrong: {result:?}, expected {expected:?}").into());
    }
    Ok(())
}
