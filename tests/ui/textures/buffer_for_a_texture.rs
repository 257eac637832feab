//! A buffer does not have the layout of a texture.

use ferrogrid::prelude::*;

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn read(_t: Thread<1>, _x: Texture<f32>) {}
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let buffer = stream.zeros::<f32>(4)?;
    kernels::read(&stream, Grid::cover(1), &buffer)
}
