//! Kernels that panic depending on their data, and kernels that cannot panic.

#[ferrogrid::module]
pub mod work {
    //! Kernels that work on the results of others.

    use ferrogrid::device::prelude::*;

    /// Panics where an element is 13.
    #[kernel]
    pub fn unlucky(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            assert!(*y != 13, "element {} is 13", i.get() as u32);
        }
    }

    /// y <- y + 1
    #[kernel]
    pub fn increment(t: Thread<1>, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = y.wrapping_add(1);
        }
    }

    /// y <- y + x
    #[kernel]
    pub fn add(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let (Some(y), Some(x)) = (y.get_mut(i), x.get(i.get())) {
            *y = y.wrapping_add(*x);
        }
    }
}
