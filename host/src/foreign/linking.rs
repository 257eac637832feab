//! The user's code with which kernels in Rust are linked.

use crate::backend::cuda::link_later;
use crate::error::foreign::ForeignError;
use crate::error::{LaunchError, Result};
use crate::image::LinkInput;
use crate::kernel::Kernel;

impl Kernel {
    /// Sets the code with the functions that the kernel's module declares as `unsafe extern "C"`, for all devices
    /// and all kernels that were compiled together with this one. When they are first loaded on a GPU they are linked
    /// with it, and with the files that the module names (`#[link(file = "offset.ptx")]`): by the driver's linker
    /// (`cuLinkAddData`), or by nvJitLink if there is LTO IR among it. Adds to earlier code.
    ///
    /// ```
    /// use ferrogrid::prelude::*;
    /// use ferrogrid::LinkInput;
    ///
    /// #[ferrogrid::module(host_only)] // in a crate with a build.rs: #[ferrogrid::module]
    /// mod kernels {
    ///     use ferrogrid::device::prelude::*;
    ///
    ///     unsafe extern "C" {
    ///         /// `extern "C" __device__ unsigned offset(unsigned)`; the CPU device calls the function below.
    ///         #[native(native_offset)]
    ///         fn offset(index: u32) -> u32;
    ///     }
    ///
    ///     fn native_offset(index: u32) -> u32 {
    ///         100 * index + 1
    ///     }
    ///
    ///     #[kernel]
    ///     pub fn offsets(t: Thread<1>, mut y: DisjointSlice<u32>) {
    ///         let i = t.index();
    ///         if let Some(y) = y.get_mut(i) {
    ///             // SAFETY: it asks for nothing.
    ///             *y = unsafe { offset(i.get() as u32) };
    ///         }
    ///     }
    /// }
    ///
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let device = Device::cpu();
    /// # #[cfg(any())]
    /// let device = Device::best()?;
    /// if device.is_cuda() {
    ///     kernels::offsets::kernel().link_with([LinkInput::from_file("offset.ptx")?])?;
    /// }
    /// let stream = device.new_stream()?;
    /// let mut y = stream.zeros(3)?;
    /// kernels::offsets(&stream, Grid::cover(3), &mut y)?;
    /// assert_eq!(stream.download(&y)?, [1, 101, 201]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ForeignError::AlreadyLinked`] after the first launch on a GPU; [`LaunchError::NoDeviceCode`] if the
    /// kernel has no device code. Mismatches are errors of that launch:
    /// [`ForeignError::UnresolvedFunctions`], [`ForeignError::Link`].
    pub fn link_with(&'static self, inputs: impl IntoIterator<Item = LinkInput>) -> Result<()> {
        let image = self.descriptor().image;
        let (kernel, reason) = (self.name(), image.reason());
        let id = image.id().ok_or(LaunchError::NoDeviceCode { kernel, reason })?;
        if link_later(id, inputs.into_iter().collect()) {
            return Ok(());
        }
        Err(ForeignError::AlreadyLinked { kernel }.into())
    }
}
