//! The counter does not stay the same in all threads.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn varying(t: Thread<1>, x: &[u32]) {
        let mut steps = 4;
        if x[t.index().get()] > 3 {
            steps += 1;
        }
        for _ in 0..steps {
            t.sync_threads();
        }
    }
}

fn main() {}
