#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub async fn k(_t: Thread<1>) {}
}

fn main() {}
