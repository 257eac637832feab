//! 2.4 reduce: the sum of many numbers.
//!
//! Shows: `#[reduction]`, which needs the contribution of one element and how two are combined; and the kernel that one
//! would write by hand, with three scopes of work: a thread adds the elements of its grid-stride loop, a block adds its threads'
//! sums (`block_reduce`: shuffles in each warp, then shared memory), and a second launch of one block adds
//! the blocks' sums.
//! Look at: the error. Sums of parts are more exact than one long sum in the same precision, which is printed
//! beside it; and the result is the same in every run, because it does not depend on timing.
//! That of `#[reduction]` is the same on every device, too.
//!
//! `cargo ferrogrid run reduce`

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// The sum of all elements.
    #[reduction(identity = 0.0, combine = |a, b| a + b)]
    pub fn sum(x: &f32) -> f32 {
        *x
    }

    /// By hand: sums[block] <- the sum of the elements that the block's threads read.
    #[kernel]
    pub fn sum_by_hand(
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
        kernels::sum_by_hand(stream, Grid::new(BLOCKS, 256), &device_x, blocks)?;
        kernels::sum_by_hand(stream, Grid::new(1, 256), &sums, total.view_2d_mut(1, 1)?)
    })?;
    let by_hand = f64::from(stream.download(&total)?[0]);
    let timing_of_reduction = stream.time(5, |stream| kernels::sum_into(stream, &device_x, &mut total))?;
    let result = f64::from(stream.download(&total)?[0]);

    let expected: f64 = x.iter().map(|&x| f64::from(x)).sum();
    let one_by_one: f32 = x.iter().sum();
    let relative = |sum: f64| (sum - expected).abs() / expected;
    println!("device      {}", device.name());
    println!("elements    {n}");
    for (name, sum, timing) in [("sum", result, timing_of_reduction), ("by hand", by_hand, timing)] {
        let seconds = timing.median().as_secs_f64();
        println!("{name:<11} {sum}, relative error {:.1e}", relative(sum));
        println!("time        {:.3} ms, {:.3} GB/s", seconds * 1e3, 4.0 * n as f64 / seconds / 1e9);
    }
    println!("one by one  {one_by_one}, relative error {:.1e}", relative(one_by_one.into()));
    // The longest chain of additions: a thread's elements, then the warp, the block, the blocks.
    let additions = n.div_ceil(BLOCKS as usize * 256) + 32;
    for sum in [result, by_hand] {
        if sum.is_nan() || relative(sum) > additions as f64 * f64::from(f32::EPSILON) / 2.0 {
            return Err(format!("the sum is not {sum}").into());
        }
    }
    println!("PASS");
    Ok(())
}
