#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k(_t: Thread<1>, (_a, _b): (f32, f32)) {}
}

fn main() {}
