#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k<T>(_t: Thread<1>, _x: &[T]) {}
}

fn main() {}
