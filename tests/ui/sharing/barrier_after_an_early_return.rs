//! Threads that have returned do not come to the barrier.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn early(t: Thread<1>, x: &[f32], mut tile: Shared<[f32; 256]>) {
        if t.index().get() >= x.len() {
            return;
        }
        tile.fill_with(&t, |i| x[i]);
        let read = t.publish(tile);
        let _tile = t.reclaim(read);
    }
}

fn main() {}
