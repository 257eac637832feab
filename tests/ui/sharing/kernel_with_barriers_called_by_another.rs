//! Some threads of a block would call it.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn inner(t: Thread<1>) {
        t.sync_threads();
    }

    #[kernel]
    pub fn outer(t: Thread<1>) {
        if t.index().get() < 7 {
            inner(t);
        }
    }
}

fn main() {}
