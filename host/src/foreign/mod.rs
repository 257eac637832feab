//! Code that this program did not compile: PTX, cubins and fatbins from CUDA C++ and other compilers, loaded
//! on a GPU and launched.
//!
//! `load` loads images (`crate::image`), `linker` links them, `linking` is for kernels in Rust that call such code. `module` is what was loaded, with its kernels (`function`,
//! and `kernel` with stated types), their arguments (`argument`) and variables (`global`).
//!
//! A [`ForeignModule`] is loaded by [`Device`](crate::Device) and gives a [`ForeignFunction`] by its name.
//! Its parameters are known by count and size only, so a launch with arguments of any types is `unsafe`;
//! their count and sizes are checked. Stated once, the types make it a [`ForeignKernel`], which is safe to
//! launch.

pub(crate) mod argument;
mod function;
mod global;
mod kernel;
mod linker;
mod linking;
mod load;
mod module;

pub use argument::{ForeignArguments, LaunchArgument};
pub use function::ForeignFunction;
pub use global::ForeignGlobal;
pub use kernel::{
    Array, ArrayMut, ForeignKernel, ForeignParameter, ForeignParameters, Slice, SliceMut, TypedArgument,
    TypedArguments,
};
pub use linker::Linker;
pub use module::ForeignModule;
