//! A published region is read only.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn neighbours(t: Thread<1>, mut tile: Shared<[f32; 256]>) {
        tile.fill_with(&t, |i| i as f32);
        let mut read = t.publish(tile);
        read[3] = 1.0;
    }
}

fn main() {}
