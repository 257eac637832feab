#[ferrogrid::module(host_only)]
mod kernels {
    use core::sync::atomic::AtomicU32;
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k(_t: Thread<1>, _counts: &[AtomicU32]) {}
}

fn main() {}
