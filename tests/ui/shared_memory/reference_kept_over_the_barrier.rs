//! A reference into a region cannot outlive its `reclaim`.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn neighbours(t: Thread<1>, mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 256]>) {
        tile.fill_with(&t, |i| i as f32);
        let read = t.publish(tile);
        let kept = &read[3];
        let _tile = t.reclaim(read);
        if let Some(y) = y.get_mut(t.index()) {
            *y = *kept;
        }
    }
}

fn main() {}
