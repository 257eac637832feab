use ferrogrid::prelude::*;

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::OutputTile;

    #[kernel(block = 32)]
    pub fn clear(t: Thread<1>, y: TensorMapMut<f32, 32, 1>, mut tile: Shared<OutputTile<f32, 32, 1>>) {
        tile.fill_with(&t, |_| 0.0);
        y.store(&t, &t.publish(tile), [0, 0]);
    }
}

fn launch(stream: &Stream, y: &DeviceBuffer<f32>) -> ferrogrid::Result<()> {
    kernels::clear(stream, Grid::blocks(1), y.view_2d(32, 1)?)
}

fn main() {}
