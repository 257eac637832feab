//! Kernels from text, compiled but not loaded.

use std::sync::Arc;

use ferrogrid_build::CompiledProgram;

use super::module::SourceModule;
use crate::device::Device;
use crate::error::Result;

/// Kernels from text, compiled for one architecture; from [`KernelSource::compile_for`](super::KernelSource::compile_for).
/// A cheap handle.
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let text = "#[kernel] pub fn ones(t: Thread<1>, mut y: DisjointSlice<u32>) {
///     if let Some(y) = y.get_mut(t.index()) { *y = 1; }
/// }";
/// let compiled = ferrogrid::KernelSource::new(text).compile_for("sm_75")?; // for all GPUs since Turing
/// assert_eq!((compiled.architecture(), compiled.kernel_names()), ("sm_75", vec!["program::ones"]));
/// for number in 0..2 {
///     let device = Device::cuda(number)?;
///     let stream = device.new_stream()?;
///     let mut y = stream.zeros::<u32>(8)?;
///     compiled.load(&device)?.kernel("ones")?.launch(&stream, Grid::cover(8), (&mut y,))?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct CompiledSource {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) name: Box<str>,
    pub(super) program: CompiledProgram,
}

impl CompiledSource {
    pub(super) fn new(name: &str, program: CompiledProgram) -> Self {
        CompiledSource { inner: Arc::new(Inner { name: name.into(), program }) }
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The name of the source.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The architecture that it was compiled for: `sm_90`.
    pub fn architecture(&self) -> &str {
        self.inner.program.arch.as_str()
    }

    /// The PTX.
    pub fn ptx(&self) -> &str {
        &self.inner.program.ptx
    }

    /// The paths of the kernels in the text, in its order: `program::scale`, where the text is not in a module;
    /// `kernels::scale::<f32>`, of a generic one.
    pub fn kernel_names(&self) -> Vec<&str> {
        self.inner.program.kernels.iter().map(|kernel| &*kernel.name).collect()
    }

    /// Loads it on a GPU. Its kernels' data are kept until the process ends, once per compiled text.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) on the CPU device;
    /// [`LaunchError::NoImageForDevice`](crate::LaunchError::NoImageForDevice) if it was compiled for newer
    /// devices; or the driver's error.
    pub fn load(&self, device: &Device) -> Result<SourceModule> {
        SourceModule::load(self, device)
    }
}

debug_by_methods!(CompiledSource { name, architecture, kernel_names });
