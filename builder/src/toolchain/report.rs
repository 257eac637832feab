//! Why a rustc cannot be used, and what to do if none can, as text.

use std::fmt;
use std::path::PathBuf;

use super::{Candidate, Discovery, MINIMUM_RUSTC, Origin};

/// How to get a device toolchain without `cargo ferrogrid setup`.
pub const BY_HAND: &str = "  rustup component add rust-src --toolchain nightly
  apt-get install --no-install-recommends rustc-web rust-web-src   (Debian and Ubuntu, as root)
or set FERROGRID_DEVICE_RUSTC to a rustc that has the sources of its standard library.";

/// Why a rustc cannot compile device code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// There is no such file.
    Missing,
    /// It does not run, or does not answer like a rustc.
    CannotRun {
        /// Its output, or the system's error.
        reason: String,
    },
    /// Its version is below [`MINIMUM_RUSTC`].
    TooOld {
        /// Its version.
        found: (u32, u32),
    },
    /// Neither sources of `core` nor a prebuilt one for the device.
    NoCore {
        /// Where the sources would be.
        library: PathBuf,
    },
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::Missing => write!(f, "there is no such file"),
            Rejection::CannotRun { reason } => write!(f, "it does not run: {reason}"),
            Rejection::TooOld { found: (major, minor) } => {
                let (needed_major, needed_minor) = MINIMUM_RUSTC;
                write!(
                    f,
                    "version {major}.{minor} is too old: {needed_major}.{needed_minor} or newer is required"
                )
            }
            Rejection::NoCore { library } => {
                write!(f, "it has no sources of `core` (component rust-src) in {}", library.display())
            }
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Variable => write!(f, "FERROGRID_DEVICE_RUSTC"),
            Origin::Active => write!(f, "the active toolchain"),
            Origin::Rustup(name) => write!(f, "rustup toolchain {name}"),
            Origin::Distribution => write!(f, "the distribution"),
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): ", self.rustc.display(), self.origin)?;
        match &self.verdict {
            Ok(toolchain) => write!(f, "usable, {}", toolchain.version),
            Err(rejection) => write!(f, "{rejection}"),
        }
    }
}

impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no rustc on this machine can compile device code:")?;
        if self.candidates.is_empty() {
            writeln!(f, "  - none was found")?;
        }
        for candidate in &self.candidates {
            writeln!(f, "  - {candidate}")?;
        }
        write!(f, "To provide one, run\n  cargo ferrogrid setup\nor do one of its steps by hand:\n{BY_HAND}")
    }
}
