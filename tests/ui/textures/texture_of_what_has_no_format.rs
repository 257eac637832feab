//! CUDA arrays do not support these elements.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn double(_t: Thread<1>, _x: Texture<f64, 2>) {}

    #[kernel]
    pub fn three(_t: Thread<1>, _x: Surface<[f32; 3]>) {}
}

fn main() {}
