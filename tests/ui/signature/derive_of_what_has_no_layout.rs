//! What a union holds only its user knows, and a packed field may lie where devices cannot load from.

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
