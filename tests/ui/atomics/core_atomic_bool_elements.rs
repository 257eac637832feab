#[ferrogrid::module(host_only)]
mod kernels {
    use core::sync::atomic::AtomicBool;
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k(_t: Thread<1>, _counts: &[AtomicBool]) {}
}

fn main() {}
