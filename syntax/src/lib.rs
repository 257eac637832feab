//! The grammar of a `#[ferrogrid::module]`: what a kernel's signature may say, and the fingerprint
//! that ties a compiled module to its source. Shared by the macros (which expand a module) and the
//! build step (which compiles it), so that both read the same thing. It knows nothing of paths,
//! toolchains, or the run time.

#![deny(missing_docs)]

mod arithmetic;
mod bounds;
pub mod compiled;
mod constant;
mod externs;
mod fingerprint;
mod instance;
mod kernel;
mod members;
mod module;
mod options;
mod parameter;
mod same_shape;
mod waiting;

pub use arithmetic::Arithmetic;
pub use bounds::LaunchBounds;
pub use constant::{Constant, SYMBOL_PREFIX as CONSTANT_PREFIX, is_placed_attribute};
pub use externs::{ExternFunction, Externs};
pub use fingerprint::{Fingerprint, fingerprint};
pub use instance::{Argument, Instance};
pub use kernel::{Kernel, is_kernel_attribute};
pub use members::Members;
pub use module::{Module, ModuleOptions, Part, is_module_attribute};
pub use parameter::{Division, Parameter, ParameterKind};
pub use same_shape::Shapes;
