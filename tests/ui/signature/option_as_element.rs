//! How an `Option` says that it is `None` two compilers need not agree on, but for that of a number that is not 0.

#[ferrogrid::module(host_only)]
mod kernels {
    use core::num::NonZero;

    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn agreed(_t: Thread<1>, _tickets: &[Option<NonZero<u32>>]) {}

    #[kernel]
    pub fn k(_t: Thread<1>, _limits: &[Option<f32>]) {}
}

fn main() {}
