//! CUDA's `tile[threadIdx.x] = x`: nothing says that no other thread writes there.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn load(t: Thread<1>, x: &[f32], mut tile: Shared<[f32; 256]>) {
        let rank = t.thread_rank() as usize;
        tile[rank] = x[t.index().get()];
        let _tile = t.publish(tile);
    }

    #[kernel]
    pub fn load_rows(t: Thread<2>, x: &[f32], mut tile: Shared<[[f32; 16]; 16]>) {
        let [x_in_block, y_in_block] = t.thread_idx();
        tile[y_in_block][x_in_block] += x[0];
        let _tile = t.publish(tile);
    }
}

fn main() {}
