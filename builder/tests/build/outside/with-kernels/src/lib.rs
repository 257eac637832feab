//! A library with a kernel and with device code for other crates, beside a program with another kernel.

#[ferrogrid::module]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    /// How far a number moves.
    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Step {
        pub by: u32,
    }

    impl Step {
        pub fn from(self, x: u32) -> u32 {
            x + self.by
        }
    }

    #[kernel]
    pub fn double(t: Thread<1>, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y *= 2;
        }
    }
}
