//! Each thread writes the element of its own index: a plain number does not prove ownership.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn write(t: Thread<2>, mut out: Surface<f32, 2>) {
        let i = t.index();
        out.set([i.x(), i.y() + 1], 1.0);
    }

    #[kernel]
    pub fn anywhere(_t: Thread<1>, out: Surface<f32>) {
        out.write::<ferrogrid::device::surface::Zero>([3], 1.0);
    }
}

fn main() {}
