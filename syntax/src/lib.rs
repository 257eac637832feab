//! The grammar of a `#[ferrogrid::module]`: the signatures of kernels, and the fingerprint that ties a
//! compiled module to its source. The macros, which expand a module, and the build step, which compiles it,
//! share it, so both accept the same modules.

#![deny(missing_docs)]

mod architecture;
pub mod compiled;
mod kernel;
mod module;
mod template;

pub use architecture::{ARCHITECTURE_NAMES, OLDEST_ARCHITECTURE, architecture_number};
pub use kernel::{
    Argument, Arithmetic, Division, Instance, Kernel, LaunchBounds, Members, Parameter, ParameterKind,
    Shapes, is_kernel_attribute,
};
pub use module::{
    Constant, ExternFunction, Externs, Fingerprint, Module, ModuleOptions, Part,
    SYMBOL_PREFIX as CONSTANT_PREFIX, WITHOUT_ENTRIES, fingerprint, is_module_attribute, is_placed_attribute,
    mention,
};
pub use template::{Argument as TemplateArgument, Comparison, Elements, Matmul, Reduction, Role, Several};
