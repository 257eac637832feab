#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k(_t: Thread<1>, _counts: DisjointSlice<DeviceAtomic<u32>>) {}
}

fn main() {}
