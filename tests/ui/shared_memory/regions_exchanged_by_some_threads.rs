//! Two regions of the same shape have distinct types.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn exchanged(t: Thread<1>, mut a: Shared<[f32; 64]>, mut b: Shared<[f32; 64]>) {
        if t.thread_rank() == 0 {
            core::mem::swap(&mut a, &mut b);
        }
        let _read = t.publish((a, b));
    }
}

fn main() {}
