//! From the user's source files to device crates, on which rustc can be run.
//!
//! | file | holds |
//! |---|---|
//! | `scan/` | all targets of a package, and the libraries that they use |
//! | `module_tree/mod.rs`, `module_tree/` | the modules of a target: follows `mod` from its root file |
//! | `cfg.rs` | whether a `#[cfg(...)]` holds on the device |
//! | `device_crate.rs` | the mirrored sources of a target, and the options for rustc |
//! | `blank.rs` | text of which parts stay in their place and the rest becomes spaces |
//! | `included.rs` | files that kernels include, copied beside the mirror |

pub(crate) mod blank;
pub(crate) mod cfg;
pub(crate) mod device_crate;
pub(crate) mod included;
pub(crate) mod module_tree;
pub(crate) mod scan;
