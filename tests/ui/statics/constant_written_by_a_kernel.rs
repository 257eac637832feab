//! Kernels only read constant memory.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[constant]
    static WEIGHTS: Constant<[f32; 3]> = Constant::new([0.0; 3]);

    #[kernel]
    pub fn spoil(_t: Thread<1>) {
        WEIGHTS[1] = 2.0;
    }
}

fn main() {}
