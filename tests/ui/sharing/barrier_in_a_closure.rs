//! Who calls a closure, and how often, the text does not say.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn rounds(t: Thread<1>) {
        (0..3).for_each(|_| t.sync_threads());
    }
}

fn main() {}
