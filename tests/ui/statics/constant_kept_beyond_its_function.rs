//! The value of a constant may change after the kernel has run.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[constant]
    static WEIGHTS: Constant<[f32; 3]> = Constant::new([0.0; 3]);

    fn all() -> &'static [f32; 3] {
        WEIGHTS
    }

    #[kernel]
    pub fn first(t: Thread<1>, mut y: DisjointSlice<f32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = all()[0];
        }
    }
}

fn main() {}
