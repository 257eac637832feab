#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::matrix::{ProductElement, Products};
    use ferrogrid::device::prelude::*;

    pub fn multiply<T: ProductElement>(
        t: &Thread<1>,
        a: TensorMap<T, 64, 64>,
        memory: Shared<Products<T, 128, 64, 2>>,
    ) {
        t.multiply_tiles(memory, a, a, [[0, 0]], |_, _| ());
    }
}

fn main() {}
