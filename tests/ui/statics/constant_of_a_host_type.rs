//! A pointer to the host's heap is invalid on a device.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[constant]
    static NAMES: Constant<Vec<u8>> = Constant::new(Vec::new());
}

fn main() {}
