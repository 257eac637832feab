#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn k(t: Thread<1>, y: &mut [f32]) {
        y[t.index().get()] = 1.0;
    }
}

fn main() {}
