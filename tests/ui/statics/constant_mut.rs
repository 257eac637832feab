//! Kernels only read constant memory.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[constant]
    static mut WEIGHTS: Constant<[f32; 3]> = Constant::new([0.0; 3]);
}

fn main() {}
