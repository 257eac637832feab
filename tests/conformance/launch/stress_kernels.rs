//! Kernels of random work.

#[ferrogrid::module]
pub mod stress {
    use ferrogrid::device::prelude::*;

    /// y <- y * factor + x
    #[kernel]
    pub fn mix(t: Thread<1>, factor: u32, x: &[u32], mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get())) {
            *y = y.wrapping_mul(factor).wrapping_add(*x);
        }
    }

    /// The same; but if `number` is not 0, one of the threads panics, and names it.
    #[kernel]
    pub fn may_fail(t: Thread<1>, factor: u32, number: u32, x: &[u32], mut y: DisjointSlice<u32>) {
        let i = t.index();
        assert!(number == 0 || i.get() != 77, "failure {number}");
        if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get())) {
            *y = y.wrapping_mul(factor).wrapping_add(*x);
        }
    }
}
