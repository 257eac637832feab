//! Errors of kernels compiled from text.

/// An error about kernels that are compiled at run time.
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{KernelSource, SourceError};
///
/// let source = KernelSource::new("#[kernel] pub fn f(t: Thread<1>) { let x: u32 = 1.5; }");
/// match source.compile_for("sm_75") {
///     Err(Error::Source(SourceError::Compile { diagnostics, .. })) => println!("{diagnostics}"), // rustc's, with lines
///     Err(Error::Source(error @ SourceError::NoToolchain { .. })) => println!("{error}"), // and how to get one
///     other => println!("{other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A file could not be read.
    #[error("cannot read `{path}`: {reason}")]
    Read {
        /// The file.
        path: Box<str>,
        /// The system's message.
        reason: Box<str>,
    },
    /// No rustc on this machine compiles device code.
    #[error("kernels cannot be compiled on this machine: {reason}")]
    NoToolchain {
        /// The compilers that were tried, why each was rejected, and how to get a suitable one.
        reason: Box<str>,
    },
    /// The text is no Rust, or its kernels do not compile for the device.
    #[error("{diagnostics}\nerror: `{source_name}` does not compile for {architecture}")]
    Compile {
        /// The name of the source.
        source_name: Box<str>,
        /// The architecture.
        architecture: Box<str>,
        /// What the compiler says, with lines of the text.
        diagnostics: Box<str>,
    },
    /// The text has `unsafe` code, or includes a file that may have some.
    #[error("`{source_name}` {finding}; if the code is sound, allow it by `KernelSource::allow_unsafe`")]
    Unsafe {
        /// The name of the source.
        source_name: Box<str>,
        /// What it has, and where.
        finding: Box<str>,
    },
    /// The build step failed otherwise.
    #[error("`{source_name}` cannot be compiled: {reason}")]
    Build {
        /// The name of the source.
        source_name: Box<str>,
        /// What went wrong.
        reason: Box<str>,
    },
    /// A module has no such kernel.
    #[error("`{source_name}` has no kernel `{name}`; it has `{}`", known.join("`, `"))]
    NoKernel {
        /// The name of the source.
        source_name: Box<str>,
        /// The requested name.
        name: Box<str>,
        /// The kernels that it has.
        known: Vec<Box<str>>,
    },
    /// A launch has a grid of another rank than the kernel.
    #[error("kernel `{kernel}` has a grid of rank {expected}, but this launch one of rank {found}")]
    Rank {
        /// The kernel's name.
        kernel: &'static str,
        /// The rank of its `Thread` parameter.
        expected: usize,
        /// The rank of the grid.
        found: usize,
    },
    /// A launch has another number of arguments than the kernel takes.
    #[error("kernel `{kernel}` takes {expected} arguments, but this launch has {found}")]
    ArgumentCount {
        /// The kernel's name.
        kernel: &'static str,
        /// How many it takes: parameters but for `Thread` and `Shared`.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// An argument is not of the type of its parameter.
    #[error("kernel `{kernel}`: `{parameter}: {expected}` cannot be {found}")]
    ArgumentType {
        /// The kernel's name.
        kernel: &'static str,
        /// The name of the parameter.
        parameter: &'static str,
        /// Its type as written.
        expected: &'static str,
        /// The argument, described.
        found: Box<str>,
    },
    /// A kernel cannot be launched in a checked way.
    #[error(
        "kernel `{kernel}` {reason}: launch it by `Device::load_ptx` of `SourceModule::ptx` and `ForeignFunction::launch`, which is `unsafe`"
    )]
    Unchecked {
        /// The kernel's name.
        kernel: &'static str,
        /// Why not.
        reason: Box<str>,
    },
}
