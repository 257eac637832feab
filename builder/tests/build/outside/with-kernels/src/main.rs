//! The program of the package: users of the library do not compile it.

#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn triple(t: Thread<1>, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y *= 3;
        }
    }
}

fn main() {}
