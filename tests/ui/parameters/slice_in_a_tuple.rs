//! A tuple is passed by value, and a slice is not; and a member must be `DeviceCopy`.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k(_t: Thread<1>, _pair: (u32, &[f32])) {}
}

#[ferrogrid::module(host_only)]
mod members {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k(_t: Thread<1>, _pair: (u32, (f32, &'static str))) {}
}

#[ferrogrid::module(host_only)]
mod strings {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k(_t: Thread<1>, _pair: (u32, (f32, String))) {}
}

fn main() {}
