//! A region is written while other threads read it: a race.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn neighbours(t: Thread<1>, mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 256]>) {
        tile.fill_with(&t, |i| i as f32);
        let read = t.publish(tile);
        if let Some(y) = y.get_mut(t.index()) {
            *y = read[3];
        }
        tile.fill_with(&t, |i| i as f32);
    }
}

fn main() {}
