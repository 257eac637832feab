#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(cluster = 2, cooperative)]
    pub fn both(t: Thread<1>) {
        t.sync_grid();
    }

    #[kernel]
    pub fn neither(t: Thread<1>) {
        t.sync_cluster();
    }

    #[kernel(cluster = [4, 8])]
    pub fn large(_t: Thread<2>) {}
}

fn main() {}
