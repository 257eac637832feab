//! CUDA's `sums[blockIdx.x] = sum`: nothing says which thread of the block writes it.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn sums(t: Thread<1>, x: &[f32], mut sums: DisjointRows<f32>) {
        if t.thread_rank() == 0 {
            sums[0] = x[0];
        }
    }

    #[kernel]
    pub fn clear(t: Thread<2>, mut y: DisjointTiles<f32, 16, 16>) {
        let [x, _] = t.thread_idx();
        y[x as usize] = 0.0;
    }
}

fn main() {}
