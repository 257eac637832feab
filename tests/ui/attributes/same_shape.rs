#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(same_shape(x, a))]
    pub fn number(_t: Thread<1>, a: f32, x: &[f32]) {}

    #[kernel(same_shape(x, y))]
    pub fn ranks(_t: Thread<2>, x: &[f32], y: DisjointSlice<f32, 2>) {}

    #[kernel(same_shape(x, z))]
    pub fn unknown(_t: Thread<1>, x: &[f32], y: DisjointSlice<f32>) {}

    #[kernel(same_shape(x))]
    pub fn alone(_t: Thread<1>, x: &[f32]) {}

    #[kernel(same_shape(x, y), same_shape(z, y))]
    pub fn twice(_t: Thread<1>, x: &[f32], y: &[f32], z: &[f32]) {}
}

fn main() {}
