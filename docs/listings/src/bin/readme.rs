//! The program of the README.

// ANCHOR: all
use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y, one element per thread.
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }
}

fn main() -> ferrogrid::Result<()> {
    let device = Device::best()?; // the first CUDA GPU, else the CPU
    let stream = device.new_stream()?;
    let x = stream.upload(&vec![1.0_f32; 1 << 20])?;
    let mut y = stream.upload(&vec![2.0_f32; 1 << 20])?;
    kernels::saxpy(&stream, Grid::cover(x.len()), 3.0, &x, &mut y)?;
    assert_eq!(stream.download(&y)?[0], 5.0);
    Ok(())
}
// ANCHOR_END: all
