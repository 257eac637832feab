//! Kernels two files deep.

/// Used by kernels of another module.
#[ferrogrid::module]
pub mod constants {
    /// Nothing.
    pub const ZERO: u32 = 0;
}

#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    #[cfg(feature = "double")]
    const STRENGTH: f32 = 2.0;
    #[cfg(not(feature = "double"))]
    const STRENGTH: f32 = 1.0;

    #[kernel]
    pub fn fill(t: Thread<1>, mut field: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(value) = field.get_mut(i) {
            *value = STRENGTH * (i.get() as f32 + 0.5);
        }
    }
}
