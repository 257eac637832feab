//! A launch cannot write an array that it reads.

use ferrogrid::Sampler;
use ferrogrid::prelude::*;

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn blur(_t: Thread<2>, _from: Texture<f32, 2>, _to: Surface<f32, 2>) {}
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut array = stream.zeros_array::<f32, 2>([4, 4])?;
    kernels::blur(&stream, Grid::cover([4, 4]), array.texture(&Sampler::new())?, array.surface()?)
}
