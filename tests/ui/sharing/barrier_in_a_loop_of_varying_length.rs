//! Each thread would go round another number of times.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn varying(t: Thread<1>, counts: &[u32]) {
        for _ in 0..counts[t.index().get()] {
            t.sync_threads();
        }
    }
}

fn main() {}
