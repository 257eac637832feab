#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::matrix::Products;
    use ferrogrid::device::prelude::*;

    #[kernel(block = 256)]
    pub fn multiply(
        t: Thread<1>,
        a: TensorMap<i8, 128, 128>,
        memory: Shared<Products<i8, 64, 128, 2>>,
    ) {
        t.multiply_tiles(memory, a, a.transposed(), [[0, 0]], |_, _| ());
    }
}

fn main() {}
