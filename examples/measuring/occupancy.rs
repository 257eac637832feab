//! 3.5 occupancy: what a device is, what a kernel needs of it, and the block size that follows.
//!
//! Shows: device properties, kernel attributes, occupancy with its limit, a suggested block size and grid,
//! and the same computation for architectures that this machine does not have.
//! Look at: the launch takes as many blocks as the device runs at a time, and each thread strides over the
//! elements, so that no block waits for another.
//!
//! `cargo ferrogrid run occupancy`

use ferrogrid::prelude::*;
use ferrogrid::{BlockResources, MultiprocessorLimits};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// x[i] = sin(x[i]) + cos(x[i]), for as many elements as there are.
    #[kernel]
    pub fn waves(t: Thread<1>, mut x: DisjointSlice<f64>) {
        for i in t.grid_stride(x.len()) {
            if let Some(x) = x.get_mut(i) {
                *x = x.sin() + x.cos();
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let properties = device.properties()?;
    println!("device            {}", properties.name);
    println!("multiprocessors   {}", properties.multiprocessor_count);
    println!("shared memory     {} bytes in a block at most", properties.shared_memory_per_block_optin);

    let kernel = kernels::waves::kernel();
    let attributes = device.attributes(kernel)?;
    println!(
        "kernel            {}, {} registers, {} bytes of stack",
        kernel.name(),
        attributes.num_regs,
        attributes.local_size_bytes
    );

    println!("\nthreads  a multiprocessor runs");
    let launchable = |threads: &u32| *threads <= attributes.max_threads_per_block;
    for threads in [32, 64, 128, 256, 512, 1024].into_iter().filter(launchable) {
        let occupancy = device.occupancy(kernel, threads, 0)?;
        println!("{threads:7}  {occupancy}");
        if occupancy.active_blocks != device.max_active_blocks_per_multiprocessor(kernel, threads, 0)? {
            return Err(format!("the driver does not agree about {threads} threads").into());
        }
    }

    let best = device.max_potential_block_size(kernel, |_| 0, None)?;
    println!("\nsuggested: {} blocks of {} threads", best.min_grid_size, best.block_size);
    let stream = device.new_stream()?;
    let input: Vec<f64> = (0..1_000_003).map(|i| f64::from(i) * 0.001).collect();
    let mut x = stream.upload(&input)?;
    kernels::waves(&stream, Grid::new(best.min_grid_size, best.block_size), &mut x)?;
    for (input, output) in input.iter().zip(stream.download(&x)?) {
        if (output - (input.sin() + input.cos())).abs() > 1e-12 {
            return Err(format!("x = {input}: {output}").into());
        }
    }

    println!("\n256 threads with 72 registers each, on other architectures");
    for architecture in ["sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"] {
        let limits = MultiprocessorLimits::for_architecture(architecture).ok_or("unknown")?;
        println!("{architecture:7}  {}", limits.occupancy(&BlockResources::new(256).with_registers(72)));
    }
    println!("PASS");
    Ok(())
}
