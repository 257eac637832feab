#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k(t: Thread<2>, mut y: DisjointSlice<f32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = 1.0;
        }
    }
}

fn main() {}
