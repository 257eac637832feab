//! Kernels for bodies of loops in graphs.

/// Steps of loops.
#[ferrogrid::module]
pub mod loops {
    use ferrogrid::device::prelude::*;

    /// Counts itself in `runs`, and one down in `left`; panics between the two after the first `good` runs.
    #[kernel]
    pub fn step(t: Thread<1>, good: u32, mut left: DisjointSlice<u32>, mut runs: DisjointSlice<u32>) {
        if let (Some(left), Some(run)) = (left.get_mut(t.index()), runs.get_mut(t.index())) {
            *run += 1;
            assert!(*run <= good, "in run {}", *run);
            *left -= 1;
        }
    }

    /// Copies a number.
    ///
    /// # Safety
    /// `from` points to one that is not written.
    #[kernel]
    pub unsafe fn peek(t: Thread<1>, from: *const u32, mut to: DisjointSlice<u32>) {
        if let Some(to) = to.get_mut(t.index()) {
            // SAFETY: the caller vouches for it.
            *to = unsafe { *from };
        }
    }

    /// Takes about a millisecond.
    #[kernel]
    pub fn linger(t: Thread<1>, mut data: DisjointSlice<u32>) {
        if let Some(value) = data.get_mut(t.index()) {
            for _ in 0..100_000 {
                *value = value.rotate_left(5).wrapping_mul(2_654_435_761) ^ 1;
            }
        }
    }
}
