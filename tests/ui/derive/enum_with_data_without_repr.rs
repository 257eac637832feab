#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[derive(Clone, Copy, DeviceCopy)]
    pub enum Shape {
        Circle { radius: f32 },
        Square(f32),
    }

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(u8)]
    pub enum Name {
        Known(&'static str),
        Unknown,
    }
}

fn main() {}
