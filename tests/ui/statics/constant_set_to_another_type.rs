//! The host sets what the kernels read.

use ferrogrid::prelude::*;

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[constant]
    pub static WEIGHTS: Constant<[f32; 3]> = Constant::new([0.0; 3]);
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    kernels::WEIGHTS.set(&stream, &[0.0_f64; 3])
}
