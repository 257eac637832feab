//! Only the first block of each cluster publishes.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(cluster = 2)]
    pub fn first(t: Thread<1>, mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 256]>) {
        tile.fill_with(&t, |i| i as f32);
        if t.cluster_rank() == 0 {
            let read = t.publish_cluster(tile);
            if let Some(y) = y.get_mut(t.index()) {
                *y = read[7];
            }
        }
    }
}

fn main() {}
