//! The threads of a block would come to the barrier in the function a different number of times.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    fn wait(t: &Thread<1>, rounds: u32) {
        for _ in 0..rounds {
            t.sync_threads();
        }
    }

    #[kernel]
    pub fn waits(t: Thread<1>, rounds: &[u32]) {
        wait(&t, rounds[t.index().get()]);
    }
}

fn main() {}
