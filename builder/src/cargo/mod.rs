//! The interface to cargo: the build script's [`Environment`], package metadata, and inner builds.
//!
//! | file | holds |
//! |---|---|
//! | `environment.rs` | the variables that cargo sets for a build script |
//! | `build_root.rs` | which workspace is being built |
//! | `metadata/mod.rs`, `metadata/` | `cargo metadata`: the package, its targets, libraries and patches |
//! | `inner_cargo.rs` | the command line of an inner `cargo build` for the device |
//! | `dependencies/mod.rs`, `dependencies/` | the crates that device code links: the facade and no_std dependencies |

pub(crate) mod build_root;
pub(crate) mod dependencies;
mod environment;
pub(crate) mod inner_cargo;
pub(crate) mod metadata;

pub use environment::{Environment, ONLY};
