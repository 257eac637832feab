//! Another module's kernels are not seen with the function: nothing is shown of this call.

#[ferrogrid::module(host_only)]
mod blocks {
    use ferrogrid::device::prelude::*;

    /// Waits for the block.
    pub fn wait(t: &Thread<1>) {
        t.sync_threads();
    }
}

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn waits(t: Thread<1>) {
        if t.thread_rank() < 16 {
            super::blocks::wait(&t);
        }
    }
}

fn main() {}
