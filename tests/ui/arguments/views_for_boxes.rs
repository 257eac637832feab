use ferrogrid::prelude::*;

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn copy(_t: Thread<1>, _x: BoxMap<[[[f32; 16]; 10]; 6]>, _y: BoxMapMut<[f32; 16]>) {}
}

fn launch(stream: &Stream, x: &DeviceBuffer<f32>, y: &DeviceBuffer<f32>) -> ferrogrid::Result<()> {
    kernels::copy(stream, Grid::blocks(1), x.view_2d(32, 1)?, y)
}

fn main() {}
