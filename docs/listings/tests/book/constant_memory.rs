//! Listings of the chapter "Constant memory".

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    // ANCHOR: kernel
    /// The weights of a filter.
    #[constant]
    pub static WEIGHTS: Constant<[f32; 3]> = Constant::new([0.25, 0.5, 0.25]);

    #[kernel]
    pub fn filter(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index().get();
        if let Some(y) = y.get_mut(t.index()) {
            *y = WEIGHTS.iter().zip(&x[i..]).map(|(weight, x)| weight * x).sum();
        }
    }
    // ANCHOR_END: kernel
}

#[test]
fn the_host_sets_what_kernels_read() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let x = stream.upload(&[0.0, 0.0, 8.0, 0.0, 0.0])?;
    let (mut y, mut edges) = (stream.zeros::<f32>(3)?, stream.zeros::<f32>(3)?);
    let n = 3;
    // ANCHOR: set
    kernels::filter(&stream, Grid::cover(n), &x, &mut y)?; // as the source says
    kernels::WEIGHTS.set(&stream, &[-1.0, 2.0, -1.0])?;
    kernels::filter(&stream, Grid::cover(n), &x, &mut edges)?;
    assert_eq!(kernels::WEIGHTS.get(&stream)?, [-1.0, 2.0, -1.0]);
    // ANCHOR_END: set
    assert_eq!(stream.download(&y)?, [2.0, 4.0, 2.0]);
    assert_eq!(stream.download(&edges)?, [-8.0, 16.0, -8.0]);
    Ok(())
}
