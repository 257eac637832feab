//! A kernel with barriers is checked like any other safe function.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn careless(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        t.sync_threads();
        if let Some(y) = y.get_mut(t.index()) {
            *y = x.get_unchecked(0) + 1;
        }
    }
}

fn main() {}
