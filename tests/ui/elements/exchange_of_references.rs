//! A thread cannot pass another thread a reference to its own memory.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn lent(t: Thread<1>, mut y: DisjointSlice<f32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = *t.warp().shuffle_xor(&*y, 1);
        }
    }
}

fn main() {}
