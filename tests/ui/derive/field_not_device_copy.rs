#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Parameters {
        pub scale: f32,
        pub name: &'static str,
    }
}

fn main() {}
