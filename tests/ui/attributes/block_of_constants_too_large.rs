//! Constants are checked when they are evaluated.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    const TILE: usize = 64;

    #[kernel(block = [TILE, TILE / 2])]
    pub fn k(_t: Thread<2>) {}
}

fn main() {}
