//! Orders of blocks that could deadlock, or whose value cannot be published.

#[ferrogrid::module(host_only)]
mod two {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn two(t: Thread<1>, a: BlockOrder<u32>, b: BlockOrder<f32>) {
        let earlier = a.publish(&t, 1);
        b.publish(&t, earlier.wait_for(0) as f32);
    }
}

#[ferrogrid::module(host_only)]
mod cooperative {
    use ferrogrid::device::prelude::*;

    #[kernel(cooperative)]
    pub fn cooperative(t: Thread<1>, order: BlockOrder<u32>) {
        t.sync_grid();
        order.publish(&t, 1);
    }
}

#[ferrogrid::module(host_only)]
mod clusters {
    use ferrogrid::device::prelude::*;

    #[kernel(cluster = 2)]
    pub fn clusters(t: Thread<1>, order: BlockOrder<u32>) {
        order.publish(&t, 1);
    }
}

#[ferrogrid::module(host_only)]
mod plane {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn plane(_t: Thread<2>, _order: BlockOrder<u32>) {}
}

#[ferrogrid::module(host_only)]
mod without {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn without(_t: Thread<1>, _order: BlockOrder) {}
}

fn main() {}
