//! Half of the threads would come to the barrier, whoever calls the function.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    fn wait(t: &Thread<1>) {
        if t.thread_rank() < 16 {
            t.sync_threads();
        }
    }

    #[kernel]
    pub fn waits(t: Thread<1>) {
        wait(&t);
    }
}

fn main() {}
