//! Errors of the host runtime: [`Error`], each variant with the names, values and limits at fault.
//!
//! `runtime` has [`Error`] itself. The errors of one subject are separate enums: `launch` (refused launches), `kernel`
//! (what the CPU device finds in a running kernel), `graph`, `foreign`, `ipc`, `nccl`, `source` and `dlpack`. `axis`, `launched` and
//! `divergence` are parts of errors that users can read; `display` formats parts for messages.

mod axis;
mod display;
pub(crate) mod divergence;
pub(crate) mod dlpack;
pub(crate) mod foreign;
pub(crate) mod graph;
pub(crate) mod ipc;
mod kernel;
mod launch;
mod launched;
pub(crate) mod nccl;
mod runtime;
#[cfg(feature = "jit")]
pub(crate) mod source;
#[cfg(test)]
mod tests;

use std::fmt::Display;

pub use axis::Axis;
pub use kernel::KernelError;
pub use launch::LaunchError;
pub use launched::{LaunchSites, LaunchedKernel};
pub use runtime::Error;

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The oldest CUDA driver API version (major, minor) that works.
pub const NEEDED_DRIVER: (u32, u32) = (12, 0);

impl Error {
    /// That `device`, of the user or of a backend, cannot do `operation`.
    #[cold]
    pub(crate) fn unsupported(operation: &'static str, device: &impl Display, reason: &'static str) -> Self {
        Error::Unsupported { operation, device: device.to_string().into(), reason }
    }
}
