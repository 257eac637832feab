//! A region that other blocks read is reclaimed by a barrier of one block.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(cluster = 2)]
    pub fn early(t: Thread<1>, mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 256]>) {
        tile.fill_with(&t, |i| i as f32);
        let read = t.publish_cluster(tile);
        if let Some(y) = y.get_mut(t.index()) {
            *y = read.block(&t, 1)[7];
        }
        let mut tile = t.reclaim(read);
        tile.fill_with(&t, |_| 0.0);
    }
}

fn main() {}
