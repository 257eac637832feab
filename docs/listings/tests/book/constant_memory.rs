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

    // ANCHOR: static
    /// The number of clipped elements, in all launches together.
    #[device]
    pub static CUT: DeviceAtomic<u64> = DeviceAtomic::new(0);

    /// Clips elements greater than `most`.
    #[kernel]
    pub fn cut_off(t: Thread<1>, most: f32, mut x: DisjointSlice<f32>) {
        if let Some(x) = x.get_mut(t.index())
            && *x > most
        {
            *x = most;
            CUT.fetch_add(1, Ordering::Relaxed);
        }
    }
    // ANCHOR_END: static
}

#[test]
fn the_host_sets_constants_that_kernels_read() -> ferrogrid::Result<()> {
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

#[test]
fn the_host_reads_counters_of_kernels() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let mut x = stream.upload(&[1.0, 5.0, 3.0])?;
    // ANCHOR: static_set
    kernels::CUT.set(&stream, &0)?;
    kernels::cut_off(&stream, Grid::cover(x.len()), 4.0, &mut x)?;
    kernels::cut_off(&stream, Grid::cover(x.len()), 2.0, &mut x)?;
    assert_eq!(kernels::CUT.get(&stream)?, 3); // after both
    // ANCHOR_END: static_set
    assert_eq!(stream.download(&x)?, [1.0, 2.0, 2.0]);
    Ok(())
}
