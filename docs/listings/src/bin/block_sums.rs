//! The second program of the chapter "The first kernel": a reduction in each block.

// ANCHOR: all
use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// sums[block] <- the sum of the elements of x that the block's threads read.
    #[kernel]
    pub fn block_sums(
        t: Thread<1>,
        x: &[f32],
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

fn sum(stream: &Stream, x: &[f32]) -> ferrogrid::Result<f32> {
    const BLOCKS: usize = 64;
    let x = stream.upload(x)?;
    let mut sums = stream.zeros::<f32>(BLOCKS)?;
    let mut total = stream.zeros::<f32>(1)?;
    // A row of one element for each block: first 64 sums, then the sum of these.
    kernels::block_sums(stream, Grid::new(BLOCKS as u32, 256), &x, sums.view_2d_mut(1, BLOCKS)?)?;
    kernels::block_sums(stream, Grid::new(1, 256), &sums, total.view_2d_mut(1, 1)?)?;
    Ok(stream.download(&total)?[0])
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let x: Vec<f32> = (1..=1000).map(|i| i as f32).collect();
    println!("the sum is {}", sum(&stream, &x)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_right_on_every_device() -> ferrogrid::Result<()> {
        for device in Device::all() {
            let stream = device.new_stream()?;
            assert_eq!(sum(&stream, &[1.0; 100_000])?, 100_000.0);
            assert_eq!(sum(&stream, &[])?, 0.0);
        }
        Ok(())
    }
}
// ANCHOR_END: all
