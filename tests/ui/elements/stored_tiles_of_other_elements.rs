#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::OutputTile;

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Point([f32; 2]);

    #[kernel(block = 32)]
    pub fn store(t: Thread<1>, y: TensorMapMut<Point, 32, 1>, mut tile: Shared<OutputTile<Point, 32, 1>>) {
        tile.fill_with(&t, |_| Point([0.0; 2]));
        y.store(&t, &t.publish(tile), [0, 0]);
    }

    #[kernel(block = 32)]
    pub fn add(t: Thread<1>, y: TensorMapMut<u16, 32, 1>, mut tile: Shared<OutputTile<u16, 32, 1>>) {
        tile.fill_with(&t, |_| 1);
        y.add(&t, &t.publish(tile), [0, 0]);
    }
}

fn main() {}
