#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::half::bf16;
    use ferrogrid::device::matrix::Products;
    use ferrogrid::device::prelude::*;

    #[kernel(block = 256)]
    pub fn in_each(t: Thread<1>, a: TensorMap<bf16, 64, 64>, memory: Shared<Products<bf16, 64, 64, 2>>) {
        t.multiply_tiles(memory, a, a, [[0, 0]], |_, _| {
            t.sync_threads(); //~ block
        });
    }
    #[kernel(block = 256)]
    pub fn in_tiles(t: Thread<1>, a: TensorMap<bf16, 64, 64>, memory: Shared<Products<bf16, 64, 64, 2>>) {
        let tiles = (0..2).map(|tile| {
            t.sync_threads(); //~ block
            [tile * 64, 0]
        });
        t.multiply_tiles(memory, a, a, tiles, |_, _| ());
    }
    #[kernel(block = 256)]
    pub fn by_some(t: Thread<1>, a: TensorMap<bf16, 64, 64>, memory: Shared<Products<bf16, 64, 64, 2>>) {
        if t.thread_rank() > 7 {
            t.multiply_tiles(memory, a, a, [[0, 0]], |_, _| ()); //~ block
        }
    }
    #[kernel(block = 256)]
    pub fn by_all(t: Thread<1>, n: u32, a: TensorMap<bf16, 64, 64>, memory: Shared<Products<bf16, 64, 64, 2>>) {
        if n > 7 {
            t.multiply_tiles(memory, a, a, [[0, 0]], |_, _| ());
        }
        t.sync_threads();
    }
}

fn main() {}
