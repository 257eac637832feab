//! Kernels in Rust compiled at run time: from text to a module with checked launches, by
//! the build step that compiles a package's kernels.
//!
//! A [`KernelSource`] is compiled for a device and gives a [`SourceModule`], and that a [`SourceKernel`] by its name. What
//! a build checks by types is checked here at each launch, against what the device compiler says of the kernel's types.
//!
//! `text` compiles, `compiled` is the result, `module` loads it, `kernel` launches; `argument` holds the arguments of a
//! launch, each checked by its `slot`.

pub(crate) mod argument;
mod compiled;
mod kernel;
mod module;
pub(crate) mod slot;
mod text;

pub use argument::{SourceArgument, SourceArguments};
pub use compiled::CompiledSource;
pub use kernel::SourceKernel;
pub use module::SourceModule;
pub use text::KernelSource;
