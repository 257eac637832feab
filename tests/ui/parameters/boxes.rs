#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    pub type Halo = [[[f32; 16]; 10]; 6];

    #[kernel]
    pub fn named(_t: Thread<1>, _x: BoxMap<Halo>) {}

    #[kernel]
    pub fn of_a_plane(_t: Thread<1>, _x: BoxMap<[[f32; 16]; 10]>) {}

    #[kernel]
    pub fn to_a_plane(_t: Thread<1>, _y: BoxMapMut<[[f32; 16]; 10]>) {}

    #[kernel]
    pub fn of_six_axes(_t: Thread<1>, _x: BoxMap<[[[[[[f32; 4]; 1]; 1]; 1]; 1]; 1]>) {}
}

fn main() {}
