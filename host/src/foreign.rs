//! Code that this program did not compile: PTX, cubins and fatbins from CUDA C++ and other compilers, loaded
//! on a GPU and launched.
//!
//! `image` recognises and checks bytes, `linking` links them, `jit` has the driver's compiler options, `load`
//! loads. `module` is what was loaded, with its kernels (`function`, and `kernel` with stated types), their
//! parameters (`parameter`, `argument`) and variables (`global`).
//!
//! A [`ForeignModule`] is loaded by [`Device`](crate::Device) and gives a [`ForeignFunction`] by its name.
//! Its parameters are known by count and size only, so a launch with arguments of any types is `unsafe`;
//! their count and sizes are checked. Stated once, the types make it a [`ForeignKernel`], which is safe to
//! launch.

pub(crate) mod argument;
mod function;
mod global;
mod image;
mod jit;
mod kernel;
mod linking;
mod load;
mod module;
mod parameter;

pub use crate::error::foreign::ForeignError;
pub use argument::{ForeignArguments, LaunchArgument};
pub use function::ForeignFunction;
pub use global::ForeignGlobal;
pub use image::code_type::CodeType;
pub use jit::{JitCacheMode, JitOptions};
pub use kernel::{
    Array, ArrayMut, ForeignKernel, ForeignParameter, ForeignParameters, Slice, SliceMut, TypedArgument,
    TypedArguments,
};
pub use linking::input::LinkInput;
pub use linking::linker::{LinkedImage, Linker};
pub use module::ForeignModule;
pub use parameter::Parameter;

pub(crate) use image::Image;
pub(crate) use linking::linked;
#[cfg(feature = "jit")]
pub(crate) use linking::unresolved;
