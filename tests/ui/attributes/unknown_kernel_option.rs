#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(threads = 256)]
    pub fn k(_t: Thread<1>) {}
}

fn main() {}
