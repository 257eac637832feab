//! An `Index` cannot outlive its thread.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    fn leak(t: Thread<1>) -> Index<'static, 1> {
        t.index()
    }
}

fn main() {}
