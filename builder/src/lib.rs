//! The build step of Ferrogrid, called from a crate's `build.rs`: finds the annotated modules of the
//! crate, compiles them to PTX with rustc, checks the PTX and hands it to the macros through a
//! manifest. It knows nothing of the run time: no driver, no device, no launch.
//!
//! ```no_run
//! // in `fn main` of build.rs
//! ferrogrid_build::compile()
//! ```
//!
//! What the step needs is a rustc that can compile for `nvptx64-nvidia-cuda`; [`toolchain`] finds
//! one and [`setup`] provides one. See [`Build`] for options and [`cache`] for where things are kept.

#![deny(missing_docs)]

mod arch;
mod blank;
mod build_root;
pub mod cache;
pub mod cache_size;
mod cfg;
mod compile;
pub mod core_cache;
mod cubin;
pub mod cuda_toolkit;
mod dependencies;
mod device_crate;
mod diagnostics;
mod directives;
mod environment;
mod error;
mod included;
mod inner;
mod inner_cargo;
mod inputs;
pub mod inspect;
mod kept;
mod layout;
pub mod libdevice;
mod manifest;
mod math;
mod message_layout;
mod metadata;
mod module_tree;
mod options;
mod panic_strategy;
mod passes;
mod program;
mod proof;
pub mod ptx;
mod record;
mod scan;
mod settings;
pub mod setup;
mod step;
pub mod toolchain;
pub mod variables;
mod watch;

pub use arch::Arch;
pub use environment::Environment;
pub use error::Error;
pub use math::Math;
pub use panic_strategy::PanicStrategy;
pub use program::{CompiledProgram, Facts, Program, ProgramKernel, ProgramParameter, Travels};
pub use settings::{architectures, manifest_keys};
pub use step::{Build, CompiledModule, Output, compile};
