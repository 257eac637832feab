//! Integers of 32 bits cannot be read as normalised `f32`.

use ferrogrid::Sampler;
use ferrogrid::prelude::*;

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn read(_t: Thread<1>, _x: Texture<f32>) {}
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let array = stream.upload_array(&[1_u32, 2], [2])?;
    kernels::read(&stream, Grid::cover(1), array.texture(&Sampler::new())?)
}
