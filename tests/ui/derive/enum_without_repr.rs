#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[derive(Clone, Copy, DeviceCopy)]
    pub enum Mode {
        Fast,
        Slow,
    }
}

fn main() {}
