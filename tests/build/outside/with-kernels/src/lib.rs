//! A library with a kernel, beside a program with another one.

#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn double(t: Thread<1>, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y *= 2;
        }
    }
}
