//! Listings of the chapter "The CPU device".

use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y.
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }
}

// ANCHOR: unit_test
#[test]
fn each_element_is_scaled_and_added() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let (x, mut y) = (stream.upload(&[1.0, 2.0])?, stream.upload(&[10.0, 20.0])?);
    kernels::saxpy(&stream, Grid::cover(2), 3.0, &x, &mut y)?;
    assert_eq!(stream.download(&y)?, [13.0, 26.0]);
    Ok(())
}
// ANCHOR_END: unit_test
