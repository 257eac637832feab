//! Shared memory is an array.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn single(t: Thread<1>, mut tile: Shared<f32>) {
        let _ = (t, &mut tile);
    }
}

fn main() {}
