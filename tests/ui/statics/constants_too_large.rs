//! Constant memory has 64 KiB.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[constant]
    static SMALL: Constant<u8> = Constant::new(1);

    #[constant]
    static TABLE: Constant<[f32; 16384]> = Constant::new([0.0; 16384]);
}

fn main() {}
