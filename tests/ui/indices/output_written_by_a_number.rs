//! CUDA's `y[i] = x`: a plain number does not prove ownership.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn copy(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        y[i.get()] = x[i.get()];
    }

    #[kernel]
    pub fn copy_by_index(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        y[i] += x[i.get()];
    }
}

fn main() {}
