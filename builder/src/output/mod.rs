//! The output of a build step, by reader.
//!
//! | file | reader |
//! |---|---|
//! | `directives.rs`, `watch.rs` | cargo: when to run the step again, and what to print |
//! | `manifest.rs` | the macros: the images and errors of each target |
//! | `record.rs` | tools: the kernels, and how to compile them again |

pub(crate) mod directives;
pub(crate) mod manifest;
pub(crate) mod record;
pub(crate) mod watch;
