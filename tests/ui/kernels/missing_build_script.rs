#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k(_t: Thread<1>) {}
}

fn main() {}
