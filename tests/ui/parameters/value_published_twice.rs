//! A block publishes two values, so others could see either.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn twice(t: Thread<1>, order: BlockOrder<u32>) {
        let _ = order.publish(&t, 1);
        let _ = order.publish(&t, 2);
    }

    #[kernel]
    pub fn total_twice(t: Thread<1>, order: BlockOrder<u32>) {
        let earlier = order.publish(&t, 1);
        earlier.publish_total(&t, 2);
        earlier.publish_total(&t, 3);
    }
}

fn main() {}
