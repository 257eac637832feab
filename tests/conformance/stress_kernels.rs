//! The kernel of random work. It must not know what is expected of it.

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
}
