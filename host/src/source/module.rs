//! Loaded kernels from text, which the runtime treats like those of the program.

use std::collections::HashMap;
use std::sync::Mutex;

use derive_where::derive_where;
use ferrogrid_build::{CompiledProgram, ProgramKernel};

use super::compiled::CompiledSource;
use super::kernel::{SourceEntry, SourceKernel};
use super::text::KernelSource;
use crate::device::Device;
use crate::error::source::SourceError;
use crate::error::{Error, Result};
use crate::image::ptx::unresolved;
use crate::kernel::image::{EmbeddedImage, ModuleImage};
use crate::kernel::{Kernel, KernelDescriptor, no_native_body};
use crate::sync::lock;

/// Kernels from text, loaded on a GPU: PyCUDA's `SourceModule`, in Rust and with checked launches. A cheap handle.
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::SourceModule;
///
/// let device = Device::cuda(0)?;
/// let module = SourceModule::new(
///     &device,
///     "#[kernel]
///     pub fn multiply_them(t: Thread<1>, a: &[f32], b: &[f32], mut dest: DisjointSlice<f32>) {
///         let i = t.index();
///         if let Some(dest) = dest.get_mut(i) {
///             *dest = a[i.get()] * b[i.get()];
///         }
///     }",
/// )?;
/// let multiply_them = module.kernel("multiply_them")?;
/// let (a, b, mut dest) = ([1.0_f32; 400], [2.0_f32; 400], [0.0_f32; 400]);
/// # use ferrogrid::{In, Out};
/// multiply_them.launch(&device.new_stream()?, Grid::new(1, 400), (In(&a), In(&b), Out(&mut dest)))?;
/// assert_eq!(dest, [2.0; 400]);
/// # Ok(()) }
/// ```
///
/// A `#[constant]` of the text has the value that it has there.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct SourceModule {
    compiled: CompiledSource,
    device: Device,
    #[derive_where(skip)]
    entries: &'static [SourceEntry],
}

impl SourceModule {
    /// Compiles the kernels in `text` for `device` and loads them. [`KernelSource`] has options.
    ///
    /// # Errors
    /// As [`KernelSource::compile`].
    pub fn new(device: &Device, text: impl Into<String>) -> Result<Self> {
        KernelSource::new(text).compile(device)
    }

    pub(super) fn load(compiled: &CompiledSource, device: &Device) -> Result<Self> {
        if !device.is_cuda() {
            return Err(no_native_code(device));
        }
        let entries = entries(compiled.name(), &compiled.inner().program);
        // `Kernel::link_with` may add what is missing, before the first launch.
        let is_whole = unresolved(compiled.ptx()).is_empty();
        if let Some(first) = entries.first().filter(|_| is_whole) {
            first.kernel.as_raw(device)?;
        }
        Ok(SourceModule { compiled: compiled.clone(), device: device.clone(), entries })
    }

    /// The kernel `name`: its path in the text (`kernels::scale`, `kernels::scale::<f32>`), or the end of that, if no
    /// other kernel ends so (`scale`, `scale::<f32>`).
    ///
    /// # Errors
    /// [`SourceError::NoKernel`], with the names that there are.
    pub fn kernel(&self, name: &str) -> Result<SourceKernel> {
        let ends = |entry: &&SourceEntry| {
            entry.kernel.name().strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
        };
        let mut found = self.entries.iter().filter(ends);
        let exact = self.entries.iter().find(|entry| entry.kernel.name() == name);
        match (exact, found.next(), found.next()) {
            (Some(entry), _, _) | (None, Some(entry), None) => Ok(SourceKernel::new(entry)),
            _ => Err(SourceError::NoKernel {
                source_name: self.compiled.name().into(),
                name: name.into(),
                known: self.entries.iter().map(|entry| entry.kernel.name().into()).collect(),
            }
            .into()),
        }
    }

    /// The kernels, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = SourceKernel> {
        self.entries.iter().map(SourceKernel::new)
    }

    /// The kind of code that it was loaded from.
    pub fn compiled(&self) -> &CompiledSource {
        &self.compiled
    }

    /// The PTX, for [`Device::load_ptx`] and tools.
    pub fn ptx(&self) -> &str {
        self.compiled.ptx()
    }

    /// The device that it was loaded on. Its kernels can be launched on others that run its architecture, too.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// The error of a device that has no PTX.
pub(super) fn no_native_code(device: &Device) -> Error {
    Error::unsupported(
        "compiling kernels from text",
        device,
        "it runs native code, which is part of this program: none is made at run time; annotated modules of the program run on both",
    )
}

/// The kernels of `program`, made once for the process: kernels live as long as it does.
fn entries(name: &str, program: &CompiledProgram) -> &'static [SourceEntry] {
    static ENTRIES: Mutex<Option<HashMap<u128, &'static [SourceEntry]>>> = Mutex::new(None);
    let mut known = lock(&ENTRIES);
    known.get_or_insert_default().entry(program.id).or_insert_with(|| made(name, program))
}

fn made(name: &str, program: &CompiledProgram) -> &'static [SourceEntry] {
    let (major, minor) = program.version;
    let arch: &'static str = leaked(program.arch.as_str());
    let codes = vec![(arch, major, minor, leaked(&program.ptx), &[][..])].leak();
    let images = vec![EmbeddedImage { id: program.id, codes, links: &[] }].leak();
    let image: &'static ModuleImage = Box::leak(Box::new(ModuleImage::embedded(images, 0)));
    let file = leaked(name);
    program.kernels.iter().map(|described| entry(described, image, file)).collect::<Vec<_>>().leak()
}

fn entry(described: &ProgramKernel, image: &'static ModuleImage, file: &'static str) -> SourceEntry {
    let kernel = Kernel::new(KernelDescriptor {
        constants: &[],
        block: described.block,
        cluster: described.cluster,
        cluster_at_launch: described.cluster_at_launch,
        dependent_launch: described.dependent_launch,
        in_order: false,
        max_threads: described.max_threads,
        name: leaked(&described.name),
        entry: leaked(&described.entry),
        rank: described.rank,
        shared_bytes: usize::try_from(described.shared_bytes).unwrap_or(usize::MAX),
        uses_shared_memory: described.uses_shared_memory(),
        params: described.sizes.clone().leak(),
        image,
        cpu: no_native_body,
        file,
        line: described.line,
    });
    let names = described.parameters.iter().map(|it| (leaked(&it.name), leaked(&it.ty))).collect();
    SourceEntry { kernel, described: described.clone(), names }
}

fn leaked(text: &str) -> &'static str {
    String::from(text).leak()
}
