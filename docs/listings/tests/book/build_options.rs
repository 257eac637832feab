//! Listings of the chapter "Build options".

use ferrogrid::prelude::*;

// ANCHOR: kernels
#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;
    use optics::lenses::Lens;

    #[kernel]
    pub fn refract(t: Thread<1>, lens: Lens, height: &[f32], mut slope: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(slope) = slope.get_mut(i) {
            *slope = lens.bend(*slope, height[i.get()]);
        }
    }
}
// ANCHOR_END: kernels

#[test]
fn kernels_use_the_device_code_of_another_package() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let height = stream.upload(&[0.0, 1.0, 2.0])?;
    let mut slope = stream.upload(&[0.5_f32; 3])?;
    let lens = optics::lenses::Lens { power: 0.25 };
    kernels::refract(&stream, Grid::cover(3), lens, &height, &mut slope)?;
    assert_eq!(stream.download(&slope)?, [0.5, 0.25, 0.0]);
    Ok(())
}
