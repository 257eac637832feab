//! Threads leave the loop at different times.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn varying(t: Thread<1>, n: u32, x: &[u32]) {
        for i in 0..n {
            t.sync_threads();
            if x[t.index().get()] == i {
                break;
            }
        }
    }
}

fn main() {}
