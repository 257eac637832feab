#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::TileStages;

    #[kernel(block = 32)]
    pub fn copy(t: Thread<1>, x: TensorMap<f32, 32, 16>, tiles: Shared<TileStages<f32, 32, 8, 2>>) {
        let mut tiles = tiles.into_stages();
        tiles.copy(&t, x, [0, 0]);
        t.advance(&mut tiles);
    }
}

fn main() {}
