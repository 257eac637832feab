//! A region is read while other threads write it: a race.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn neighbours(t: Thread<1>, mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 256]>) {
        let rank = t.thread_rank() as usize;
        if let Some(place) = tile.get_mut(&t) {
            *place = 1.0;
        }
        if let Some(y) = y.get_mut(t.index()) {
            *y = tile[(rank + 1) % 256];
        }
    }

    #[kernel]
    pub fn first(t: Thread<1>, mut y: DisjointSlice<f32>, tile: Shared<[[f32; 16]; 16]>, all: SharedSlice<f32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = tile[0][1] + all[0];
        }
    }
}

fn main() {}
