#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k(_t: Thread<1>) -> f32 {
        1.0
    }
}

fn main() {}
