//! Any bits must be a valid value of a type that lanes exchange.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(u8)]
    pub enum Colour {
        Red,
        Green,
    }

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Pixel {
        pub value: f32,
        pub colour: Colour,
    }

    #[kernel]
    pub fn k(t: Thread<1>, mut x: DisjointSlice<Pixel>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x = t.warp().shuffle_xor(*x, 1);
        }
    }
}

fn main() {}
