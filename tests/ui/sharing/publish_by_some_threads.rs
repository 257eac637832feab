//! A view is published early, by some threads of a block only.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn early(t: Thread<1>, mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 256]>) {
        tile.fill_with(&t, |i| i as f32);
        if t.thread_rank() < 32 {
            let read = t.publish(tile);
            if let Some(y) = y.get_mut(t.index()) {
                *y = read[7];
            }
        }
    }
}

fn main() {}
