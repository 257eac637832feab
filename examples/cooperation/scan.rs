//! 2.5 scan: running sums, y[i] = x[0] + ... + x[i].
//!
//! Shows: a scan of each block (`block_inclusive_scan`), and how to join blocks: a recursive scan of the
//! blocks' totals; then each block adds the total before it.
//! Look at: no launch waits for the one before it on the host. The stream keeps them in order, and
//! buffers that go out of scope on the way are freed after their last use.
//!
//! `cargo ferrogrid run scan`

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// x <- the running sums within each block; totals[block] <- the sum of the block.
    #[kernel(block = 256)]
    pub fn scan_blocks(
        t: Thread<1>,
        mut x: DisjointSlice<u64>,
        mut totals: DisjointRows<u64>,
        mut scratch: Shared<Scratch<u64>>,
        mut last: Shared<[u64; 256]>,
    ) {
        let own = x.get_mut(t.index()).map_or(0, |x| *x);
        let sum = t.block_inclusive_scan(&mut scratch, own, |a, b| a + b);
        if let Some(x) = x.get_mut(t.index()) {
            *x = sum;
        }
        // The last thread has the block's total; another thread writes it.
        last.fill_with(&t, |_| sum);
        let total = t.publish(last)[255];
        totals.fill_with(&t, |_| total);
    }

    /// Adds to each block of x the running sum up to the block before it.
    #[kernel(block = 256)]
    pub fn add_before(t: Thread<1>, sums: &[u64], mut x: DisjointSlice<u64>) {
        let block = t.block_idx()[0] as usize;
        if let Some(x) = x.get_mut(t.index()) {
            *x += if block == 0 { 0 } else { sums[block - 1] };
        }
    }
}

/// Replaces the elements of `x` by their running sums.
fn scan(stream: &Stream, x: &mut DeviceBuffer<u64>) -> ferrogrid::Result<()> {
    let blocks = x.len().div_ceil(256);
    let mut totals = stream.zeros::<u64>(blocks)?;
    let grid = Grid::cover(x.len());
    kernels::scan_blocks(stream, grid, &mut *x, totals.view_2d_mut(1, blocks)?)?;
    if blocks <= 1 {
        return Ok(());
    }
    scan(stream, &mut totals)?;
    kernels::add_before(stream, grid, &totals, x)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    println!("device  {}", device.name());
    println!("{:>9}  {:>9}", "elements", "ms");
    // The first launches load the kernels and are not measured.
    scan(&stream, &mut stream.zeros(1000)?)?;
    let mut random = fastrand::Rng::with_seed(6);
    let large = if device.is_cuda() { 1 << 24 } else { 300_000 };
    for n in [0, 1, 255, 257, 70_000, large] {
        let x: Vec<u64> = (0..n).map(|_| random.u64(..1 << 32)).collect();
        let mut device_x = stream.upload(&x)?;
        let start = stream.record()?;
        scan(&stream, &mut device_x)?;
        let time = stream.record()?.elapsed_since(&start)?;

        let expected: Vec<u64> = x
            .iter()
            .scan(0, |sum, x| {
                *sum += x;
                Some(*sum)
            })
            .collect();
        if stream.download(&device_x)? != expected {
            return Err(format!("the running sums of {n} elements are wrong").into());
        }
        println!("{n:>9}  {:9.3}", time.as_secs_f64() * 1e3);
    }
    println!("PASS");
    Ok(())
}
