//! The result of a linker.

/// A program that a linker made.
///
/// ```no_run
/// use ferrogrid::{Device, ForeignModule, LinkedImage, Result};
///
/// /// The module of what a linker made, which may have had warnings.
/// fn load(device: &Device, linked: &LinkedImage) -> Result<ForeignModule> {
///     eprint!("{}", linked.log);
///     device.load_cubin(&linked.cubin)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkedImage {
    /// Machine code for the device, for [`Device::load_cubin`](crate::Device::load_cubin).
    pub cubin: Vec<u8>,
    /// The log of the linker.
    pub log: String,
}

impl LinkedImage {
    pub(crate) fn new(cubin: Vec<u8>, log: String) -> Self {
        LinkedImage { cubin, log }
    }
}
