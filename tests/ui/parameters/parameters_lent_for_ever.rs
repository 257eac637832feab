//! Types that only look like those of the prelude: a launch still lends its arguments for the launch only.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude as device;

    type Plane<T> = device::Plane<'static, T>;
    type DisjointSlice<T> = device::DisjointSlice<'static, T>;
    type DisjointRows<T> = device::DisjointRows<'static, T>;
    type DisjointTiles<T, const W: usize, const H: usize> = device::DisjointTiles<'static, T, W, H>;
    type Shared<A, const ID: usize> = device::Shared<'static, A, ID>;
    type SharedSlice<A, const ID: usize> = device::SharedSlice<'static, A, ID>;
    type Thread<const R: usize> = device::Thread<'static, R>;

    #[kernel]
    pub fn plane(_t: device::Thread<1>, _x: Plane<u32>) {}

    #[kernel]
    pub fn slice(_t: device::Thread<1>, _x: DisjointSlice<u32>) {}

    #[kernel]
    pub fn rows(_t: device::Thread<1>, _x: DisjointRows<u32>) {}

    #[kernel]
    pub fn tiles(_t: device::Thread<2>, _x: DisjointTiles<u32, 16, 16>) {}

    #[kernel]
    pub fn shared(_t: device::Thread<1>, _x: Shared<[u32; 64]>) {}

    #[kernel]
    pub fn shared_slice(_t: device::Thread<1>, _x: SharedSlice<u32>) {}

    #[kernel]
    pub fn thread(_t: Thread<1>) {}
}

fn main() {}
