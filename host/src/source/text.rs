//! The source text of kernels, with its compile options.

use std::path::Path;

use ferrogrid_build::{Arch, Build, Program};

use super::compiled::CompiledSource;
use super::module::SourceModule;
use crate::device::Device;
use crate::error::Result;
use crate::error::source::SourceError;

/// Kernels in Rust as text, compiled at run time: the contents of a `#[ferrogrid::module]`, with
/// `ferrogrid::device::prelude` imported; or whole annotated modules. A text that has no `unsafe` code is as safe as a
/// module of this program.
///
/// The compiler is the one of the build step, the rustc of a device toolchain on the machine that runs the program
/// (`cargo ferrogrid setup` provides one); with the first program for an architecture it compiles `core`, some 30 s once.
/// The results are kept in the user's cache by content, for later processes, too. The text may use `core` and
/// `ferrogrid::device`, no other crates, and no files.
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::KernelSource;
///
/// let operation = "x.sqrt() * 0.5"; // known at run time only
/// let text = format!(
///     "#[kernel]
///     pub fn apply(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {{
///         let i = t.index();
///         if let Some(y) = y.get_mut(i) {{
///             let x = x[i.get()];
///             *y = {operation};
///         }}
///     }}"
/// );
/// let device = Device::cuda(0)?;
/// let module = KernelSource::new(text).with_name("apply.rs").with_fast_math(true).compile(&device)?;
/// let apply = module.kernel("apply")?;
///
/// let stream = device.new_stream()?;
/// let x = stream.upload(&[4.0_f32, 16.0])?;
/// let mut y = stream.zeros::<f32>(2)?;
/// apply.launch(&stream, Grid::cover(2), (&x, &mut y))?; // no `unsafe`: the arguments are checked
/// assert_eq!(stream.download(&y)?, [1.0, 2.0]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct KernelSource {
    program: Program,
    build: Build,
}

impl KernelSource {
    /// Kernels in `text`, called `program.rs` in messages, with the options of a build: no debug assertions or overflow
    /// checks, no approximations, lines of the source in the PTX.
    pub fn new(text: impl Into<String>) -> Self {
        let mut program = Program::new("program.rs", text);
        program.features.extend(cfg!(feature = "half").then(|| "half".to_owned()));
        KernelSource { program, build: Build::new().debug_assertions(false) }
    }

    /// Kernels in the file `path`, under its name.
    ///
    /// # Errors
    /// [`SourceError::Read`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |error: std::io::Error| SourceError::Read {
            path: path.to_string_lossy().into(),
            reason: error.to_string().into(),
        };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        Ok(KernelSource::new(text).with_name(path.file_name().unwrap_or_default().to_string_lossy()))
    }

    /// The same, which may have `unsafe` code and include files.
    ///
    /// # Safety
    /// The text and what it includes would be sound as a module of this program: what its `unsafe` code asks for holds,
    /// whatever safe launches it gets.
    #[must_use]
    pub unsafe fn allow_unsafe(mut self) -> Self {
        self.program.allows_unsafe = true;
        self
    }

    /// The same under this name in messages, such as `filter.rs`.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.program.name = name.into();
        self
    }

    fn with(mut self, change: impl FnOnce(Build) -> Build) -> Self {
        self.build = change(self.build);
        self
    }

    /// Compiles for `device`, and loads: PyCUDA's `SourceModule`.
    ///
    /// # Errors
    /// As [`KernelSource::compile_for`] and [`CompiledSource::load`].
    pub fn compile(&self, device: &Device) -> Result<SourceModule> {
        let Some(architecture) = device.arch() else { return Err(super::module::no_native_code(device)) };
        self.compile_for(&architecture)?.load(device)
    }

    /// Compiles for `architecture`, such as `sm_90` or `sm_90a`; needs neither a GPU nor a driver. What was compiled before
    /// with the same options is found again.
    ///
    /// ```no_run
    /// # fn main() -> ferrogrid::Result<()> {
    /// let source = ferrogrid::KernelSource::from_file("kernels/blur.rs")?;
    /// let compiled = source.compile_for("sm_90")?;
    /// println!("{:?}: {} bytes of PTX", compiled.kernel_names(), compiled.ptx().len());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`SourceError::NoToolchain`], [`SourceError::Compile`] with rustc's diagnostics, [`SourceError::Unsafe`],
    /// [`SourceError::Build`].
    pub fn compile_for(&self, architecture: &str) -> Result<CompiledSource> {
        let failed = |error| failed(&self.program.name, architecture, error);
        let arch: Arch = architecture.parse().map_err(failed)?;
        let program = self.build.compile_program(&self.program, &arch).map_err(failed)?;
        Ok(CompiledSource::new(&self.program.name, program))
    }
}

/// Options of the build, as methods that pass them on.
macro_rules! build_options {
    (KernelSource: $( $(#[$doc:meta])* pub fn $method:ident($($argument:ident: $ty:ty),*) by $option:ident; )*) => {
        impl KernelSource {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $method(self, $($argument: $ty),*) -> Self {
                    self.with(|build| build.$option($($argument),*))
                }
            )*
        }
    };
}

build_options! { KernelSource:
    /// The same with or without approximate arithmetic: subnormals are zero, division and square root are approximate,
    /// multiplication and addition may fuse (nvcc's `-use_fast_math` without its functions).
    pub fn with_fast_math(on: bool) by fast_math;

    /// The same with at most so many registers for a thread, from 24 to 255 (nvcc's `-maxrregcount`).
    pub fn with_max_registers(count: u32) by max_registers;

    /// The same, in which integer overflow panics or not.
    pub fn with_overflow_checks(on: bool) by overflow_checks;

    /// The same, in which `debug_assert!` asserts or not.
    pub fn with_debug_assertions(on: bool) by debug_assertions;

    /// The same with or without lines of the source in the PTX (nvcc's `-lineinfo`).
    pub fn with_line_info(on: bool) by line_info;

    /// The same with or without variables and types for debuggers.
    pub fn with_debug_info(on: bool) by debug_info;

    /// The same with a `cfg`, as after rustc's `--cfg`: `name` or `name="value"`. Adds to those before.
    pub fn with_cfg(cfg: impl Into<String>) by cfg;

    /// The same with a variable for `env!`: a way to pass numbers to a text (`env!("TILE")`). Adds to those before.
    pub fn with_env(name: impl Into<String>, value: impl Into<String>) by env;
}

fn failed(source_name: &str, architecture: &str, error: ferrogrid_build::Error) -> SourceError {
    use ferrogrid_build::Error::{Device, NoToolchain, Syntax, UnsafeProgram};
    let (source_name, reason) = (source_name.into(), error.to_string().into());
    match error {
        NoToolchain(_) => SourceError::NoToolchain { reason },
        UnsafeProgram { finding, .. } => SourceError::Unsafe { source_name, finding: finding.into() },
        Syntax { .. } => {
            SourceError::Compile { source_name, architecture: architecture.into(), diagnostics: reason }
        }
        Device { diagnostics, hint, .. } => SourceError::Compile {
            source_name,
            architecture: architecture.into(),
            diagnostics: format!("{diagnostics}{hint}").into(),
        },
        _ => SourceError::Build { source_name, reason },
    }
}
