//! Two compilers need not lay a tuple out alike.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k(_t: Thread<1>, _pairs: &[(f32, u32)]) {}

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Both {
        pub pair: (f32, u32),
    }
}

fn main() {}
