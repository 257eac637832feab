//! The valid field of a union is unknown, and packed fields may be unaligned, which devices cannot load.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub union Either {
        pub integer: u32,
        pub float: f32,
    }

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C, packed)]
    pub struct Packed {
        pub small: u8,
        pub large: u32,
    }

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(Rust)]
    pub struct Unordered(pub u8, pub u32);
}

fn main() {}
