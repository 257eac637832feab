//! Whole packages in separate folders: architectures of modules, edits, interrupted builds, and device code of
//! other packages. It uses the device toolchain of this machine.

mod architectures;
mod interrupted;
#[path = "../package/mod.rs"]
mod package;
mod shared_code;
mod stale;
