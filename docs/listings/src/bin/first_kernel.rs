//! The program of the chapter "The first kernel".

// ANCHOR: all
use ferrogrid::prelude::*;

// ANCHOR: kernel
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
// ANCHOR_END: kernel

// ANCHOR: main
fn main() -> ferrogrid::Result<()> {
    let device = Device::best()?; // the first CUDA GPU, else the CPU
    let stream = device.new_stream()?;

    let x = stream.upload(&[1.0_f32, 2.0, 3.0])?;
    let mut y = stream.upload(&[10.0_f32, 20.0, 30.0])?;
    kernels::saxpy(&stream, Grid::cover(y.len()), 2.0, &x, &mut y)?;

    println!("on {device}: {:?}", stream.download(&y)?);
    Ok(())
}
// ANCHOR_END: main
// ANCHOR_END: all
