//! An `Option` of a type with invalid bit patterns represents `None` by one of these, and rustc does not guarantee which.

#[ferrogrid::module(host_only)]
mod kernels {
    use core::num::NonZero;

    use ferrogrid::device::prelude::*;

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(u8)]
    pub enum Walls {
        Open,
        Closed,
    }

    #[kernel]
    pub fn agreed(_t: Thread<1>, _tickets: &[Option<NonZero<u32>>], _limits: &[Option<f32>]) {}

    #[kernel]
    pub fn k(_t: Thread<1>, _walls: &[Option<Walls>]) {}
}

fn main() {}
