//! Lenses, for the chapter "Build options".

// ANCHOR: lenses
/// Device code for other packages.
#[ferrogrid::module]
pub mod lenses {
    use ferrogrid::device::prelude::*;

    /// A thin lens.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Lens {
        /// In dioptres.
        pub power: f32,
    }

    impl Lens {
        /// The slope of a ray behind the lens.
        pub fn bend(self, slope: f32, height: f32) -> f32 {
            slope - self.power * height
        }
    }
}
// ANCHOR_END: lenses
