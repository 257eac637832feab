#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::matrix::Products;
    use ferrogrid::device::prelude::*;

    #[kernel(block = 256)]
    pub fn multiply(
        t: Thread<1>,
        a: TensorMap<f64, 16, 64>,
        memory: Shared<Products<f64, 64, 64, 2>>,
    ) {
        t.multiply_tiles(memory, a, a, [[0, 0]], |_, _| ());
    }
}

fn main() {}
