#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(block = [16, 16])]
    pub fn k(_t: Thread<1>) {}
}

fn main() {}
