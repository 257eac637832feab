//! A launch that is not cooperative need not have all blocks on the device at once.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    fn wait(t: &Thread<1>) {
        t.sync_grid();
    }

    #[kernel]
    pub fn waits(t: Thread<1>) {
        wait(&t);
    }
}

fn main() {}
