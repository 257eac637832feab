#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[derive(Clone, Copy, DeviceCopy)]
    pub struct Parameters {
        pub scale: f32,
    }
}

fn main() {}
