//! The texture would be read before the work that writes it has ended.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(dependent_launch)]
    pub fn read(_t: Thread<1>, _x: Texture<f32, 2>) {}
}

fn main() {}
