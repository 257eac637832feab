//! The build step of Ferrogrid, called from a crate's `build.rs`. It finds the annotated modules of the
//! crate, compiles them to PTX with rustc, proves and checks the PTX, and passes it to the macros in a file
//! for each target.
//!
//! ```no_run
//! // in `fn main` of build.rs
//! ferrogrid_build::compile()
//! ```
//!
//! The step needs a rustc that can compile for `nvptx64-nvidia-cuda`; [`toolchain`] finds one and [`setup`]
//! installs one. See [`Build`] for options and [`cache`] for the files that are kept.

#![deny(missing_docs)]

pub mod cache;
mod cargo;
mod compile;
mod error;
pub mod inspect;
mod options;
mod output;
mod passes;
mod program;
mod proof;
pub mod ptx;
mod source;
mod step;
pub mod toolchain;

pub use cache::size as cache_size;
pub use cargo::{Environment, ONLY};
pub use error::Error;
pub use options::settings::{architectures, manifest_keys};
pub use options::{Arch, Math, PanicStrategy, variables};
pub use program::{CompiledProgram, Facts, Program, ProgramKernel, ProgramParameter, Travels};
pub use step::{Build, CompiledModule, Output, compile};
pub use toolchain::{core_cache, cuda_toolkit, libdevice, setup};
