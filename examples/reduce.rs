//! 2.4 reduce: the sum of many numbers.
//!
//! Shows: three scopes of work: a thread adds the elements of its grid-stride loop, a block adds its threads'
//! sums (`block_reduce`: shuffles in each warp, then shared memory), and a second launch of one block adds
//! the blocks' sums.
//! Look at: the error. Sums of parts are more exact than one long sum in the same precision, which is printed
//! beside it; and the result is the same in every run, because it does not depend on timing.
//!
//! `cargo ferrogrid run reduce`

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// sums[block] <- the sum of the elements that the block's threads read.
    #[kernel]
    pub fn sum(
        t: Thread<1>,
        x: &[f32],
        // A row of one element for each block.
        mut sums: DisjointRows<f32>,
        mut scratch: Shared<Scratch<f32>>,
    ) {
        let mut own = 0.0;
        for i in t.grid_stride(x.len()) {
            own += x[i.get()];
        }
        let total = t.block_reduce(&mut scratch, own, |a, b| a + b);
        sums.fill_with(&t, |_| total);
    }
}

const BLOCKS: u32 = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let n: usize = if device.is_cuda() { (1 << 25) + 3 } else { (1 << 20) + 3 };
    let mut random = fastrand::Rng::with_seed(5);
    let x: Vec<f32> = (0..n).map(|_| random.f32()).collect();

    let device_x = stream.upload(&x)?;
    let mut sums = stream.zeros::<f32>(BLOCKS as usize)?;
    let mut total = stream.zeros::<f32>(1)?;
    let timing = stream.time(5, |stream| {
        let blocks = sums.view_2d_mut(1, BLOCKS as usize)?;
        kernels::sum(stream, Grid::new(BLOCKS, 256), &device_x, blocks)?;
        kernels::sum(stream, Grid::new(1, 256), &sums, total.view_2d_mut(1, 1)?)
    })?;
    let result = f64::from(stream.download(&total)?[0]);

    let expected: f64 = x.iter().map(|&x| f64::from(x)).sum();
    let one_by_one: f32 = x.iter().sum();
    let relative = |sum: f64| (sum - expected).abs() / expected;
    let seconds = timing.median().as_secs_f64();
    println!("device      {}", device.name());
    println!("elements    {n}");
    println!("time        {:.3} ms, {:.3} GB/s", seconds * 1e3, 4.0 * n as f64 / seconds / 1e9);
    println!("sum         {result}, relative error {:.1e}", relative(result));
    println!("one by one  {one_by_one}, relative error {:.1e}", relative(one_by_one.into()));
    // The longest chain of additions: a thread's elements, then the warp, the block, the blocks.
    let additions = n.div_ceil(BLOCKS as usize * 256) + 32;
    if result.is_nan() || relative(result) > additions as f64 * f64::from(f32::EPSILON) / 2.0 {
        return Err("the sum is wrong".into());
    }
    println!("PASS");
    Ok(())
}
