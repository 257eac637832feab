#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn texture(_t: Thread<1>, _x: Texture<f32, 4>) {}
}

fn main() {}
