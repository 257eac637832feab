#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::matrix::Products;
    use ferrogrid::device::prelude::*;

    #[kernel(block = 256)]
    pub fn multiply(
        t: Thread<1>,
        a: TensorMap<i8, 128, 64>,
        memory: Shared<Products<i8, 64, 64, 2>>,
    ) {
        t.multiply_tiles(memory, a, a, [[0, 0]], |_, _| ());
    }
}

fn main() {}
