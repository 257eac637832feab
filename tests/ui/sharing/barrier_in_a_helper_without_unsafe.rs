//! A function cannot know whether all threads call it together.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    fn wait(t: &Thread<1>) {
        t.sync_threads();
    }

    #[kernel]
    pub fn waits(t: Thread<1>) {
        wait(&t);
    }
}

fn main() {}
