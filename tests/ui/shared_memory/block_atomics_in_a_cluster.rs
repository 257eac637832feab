//! Counters with block scope are shared with all blocks of a cluster.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel(cluster = 2)]
    pub fn count(t: Thread<1>, mut bins: Shared<[DeviceAtomic<u32, atomic::Block>; 64]>) {
        bins.fill_with(&t, |_| DeviceAtomic::new(0));
        let bins = t.publish_cluster(bins);
        bins.block(&t, 1)[0].fetch_add(1, atomic::Ordering::Relaxed);
    }
}

fn main() {}
