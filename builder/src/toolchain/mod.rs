//! Finds a rustc that can compile device code, and records why the others cannot.
//!
//! A rustc qualifies if it is new enough and `core` for `nvptx64-nvidia-cuda` is available: as sources of
//! its standard library, prebuilt in its sysroot, or in our cache. The candidates, in order:
//!
//! 1. `FERROGRID_DEVICE_RUSTC`, if set: then no other is tried;
//! 2. the active toolchain: the `RUSTC` or the cargo that runs us, or what `PATH` leads to;
//! 3. the other installed rustup toolchains (none is ever installed by looking);
//! 4. the distribution's `/usr/bin/rustc`.
//!
//! Stable compilers qualify, too: inner compilers run with `RUSTC_BOOTSTRAP=1`.
//!
//! | file | holds |
//! |---|---|
//! | `candidates.rs`, `probe.rs`, `report.rs` | the search: where a rustc may be, its version, why it is rejected |
//! | `setup.rs` | installs a toolchain if there is none |
//! | `core_cache.rs` | `core` for the device, built once |
//! | `message_layout.rs` | whether a compiler's messages can be decoded |
//! | `cuda_toolkit.rs`, `libdevice.rs` | NVIDIA's programs and files |
//! | `process.rs` | inner compilers and cargos with a clean environment |

mod candidates;
pub mod core_cache;
pub mod cuda_toolkit;
pub mod libdevice;
pub(crate) mod message_layout;
mod probe;
pub(crate) mod process;
mod report;
pub mod setup;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cache;
use crate::error::Error;
use crate::options::{Arch, variables};
use candidates::Search;

pub use report::{BY_HAND, Rejection};

/// The rustc target of device code.
pub const DEVICE_TARGET: &str = "nvptx64-nvidia-cuda";

/// The oldest rustc whose device code Ferrogrid supports.
pub const MINIMUM_RUSTC: (u32, u32) = (1, 96);

/// A rustc that can compile device code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler itself, not a rustup proxy.
    pub rustc: PathBuf,
    /// How it was found.
    pub origin: Origin,
    /// Its sysroot.
    pub sysroot: PathBuf,
    /// The first line of `rustc -vV`: `rustc 1.96.0 (ac68faa20 2026-05-25)`.
    pub version: String,
    /// The machine it runs on: `x86_64-unknown-linux-gnu`.
    pub host: String,
    /// Where `core` for the device comes from.
    pub core: CoreOrigin,
    /// Identifies the compiler in the cache: a hash of `rustc -vV`.
    pub key: String,
}

/// How a candidate was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Named by `FERROGRID_DEVICE_RUSTC`.
    Variable,
    /// The toolchain of the cargo that runs us.
    Active,
    /// An installed rustup toolchain, by name.
    Rustup(String),
    /// Installed by the distribution.
    Distribution,
}

/// Where `core` for the device comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoreOrigin {
    /// Built once into the cache from these sources (the folder that holds `core`).
    Sources(PathBuf),
    /// The sysroot has it, as after `rustup target add nvptx64-nvidia-cuda`.
    Prebuilt,
    /// The cache has it for every architecture that is needed; the sources are gone.
    Cached,
}

/// A rustc that was considered.
#[derive(Debug)]
pub struct Candidate {
    /// How it was found.
    pub origin: Origin,
    /// Where it is, or would be.
    pub rustc: PathBuf,
    /// The toolchain, or why it cannot be used.
    pub verdict: Result<Toolchain, Rejection>,
}

/// All candidates, in order.
#[derive(Debug)]
pub struct Discovery {
    /// The candidates, best first.
    pub candidates: Vec<Candidate>,
}

impl Discovery {
    /// The toolchain to use: the first that qualifies.
    ///
    /// # Errors
    /// [`Error::NoToolchain`], with the reason of each rejection and what to do.
    pub fn toolchain(self) -> Result<Toolchain, Error> {
        match self.best().cloned() {
            Some(toolchain) => Ok(toolchain),
            None => Err(Error::NoToolchain(Box::new(self))),
        }
    }

    /// The same by reference, without an error.
    pub fn best(&self) -> Option<&Toolchain> {
        self.candidates.iter().find_map(|candidate| candidate.verdict.as_ref().ok())
    }
}

/// The value of `FERROGRID_DEVICE_RUSTC` for builds without device code, even where a toolchain exists.
pub(crate) const NO_DEVICE_CODE: &str = "none";

/// The value of `FERROGRID_DEVICE_RUSTC`. On docs.rs, which sets `DOCS_RS`, it is [`NO_DEVICE_CODE`]: nothing runs there, and compiling
/// `core` would take the limits of time and disk that a crate has.
pub(crate) fn named() -> Option<OsString> {
    let of_docs_rs = || variables::value("DOCS_RS").map(|_| OsString::from(NO_DEVICE_CODE));
    variables::value("FERROGRID_DEVICE_RUSTC").or_else(of_docs_rs)
}

/// Judges every candidate, for reports such as `cargo ferrogrid doctor`.
pub fn discover(archs: &[Arch]) -> Discovery {
    let root = cache::root();
    let search = Search::from_process();
    Discovery { candidates: search.list().map(|candidate| judge(candidate, &root, archs)).collect() }
}

/// The first rustc that qualifies for `archs`.
///
/// # Errors
/// [`Error::NoToolchain`], with the reason of each rejection and what to do.
pub fn find(archs: &[Arch]) -> Result<Toolchain, Error> {
    find_in(&Search::from_process(), &cache::root(), archs)
}

fn find_in(search: &Search, root: &Path, archs: &[Arch]) -> Result<Toolchain, Error> {
    let mut candidates = Vec::new();
    for found in search.list() {
        let candidate = judge(found, root, archs);
        match candidate.verdict {
            Ok(toolchain) => return Ok(toolchain),
            Err(_) => candidates.push(candidate),
        }
    }
    Err(Error::NoToolchain(Box::new(Discovery { candidates })))
}

fn judge(found: candidates::Found, root: &Path, archs: &[Arch]) -> Candidate {
    let verdict = qualify(&found, root, archs);
    Candidate { origin: found.origin, rustc: found.rustc, verdict }
}

fn qualify(found: &candidates::Found, root: &Path, archs: &[Arch]) -> Result<Toolchain, Rejection> {
    if !found.rustc.is_file() {
        return Err(Rejection::Missing);
    }
    let probe = probe::probe(&found.rustc, root)?;
    if probe.release < MINIMUM_RUSTC {
        return Err(Rejection::TooOld { found: probe.release });
    }
    let core = core_origin(&probe, root, archs)?;
    Ok(Toolchain {
        rustc: found.rustc.clone(),
        origin: found.origin.clone(),
        version: probe.version().to_owned(),
        host: probe.host.clone(),
        key: probe.key(),
        sysroot: probe.sysroot,
        core,
    })
}

fn core_origin(probe: &probe::Probe, root: &Path, archs: &[Arch]) -> Result<CoreOrigin, Rejection> {
    let libraries = probe.sysroot.join("lib/rustlib").join(DEVICE_TARGET).join("lib");
    if has_core(&libraries) {
        return Ok(CoreOrigin::Prebuilt);
    }
    let library = probe.sysroot.join("lib/rustlib/src/rust/library");
    if library.join("core/src/lib.rs").is_file() && library.join("Cargo.lock").is_file() {
        return Ok(CoreOrigin::Sources(library));
    }
    let key = probe.key();
    let cached = |arch: &Arch| core_cache::is_whole(&core_cache::location(root, &key, arch.as_str()));
    if !archs.is_empty() && archs.iter().all(cached) {
        return Ok(CoreOrigin::Cached);
    }
    Err(Rejection::NoCore { library })
}

fn has_core(libraries: &Path) -> bool {
    let is_core =
        |file: PathBuf| file.file_name().is_some_and(|it| it.to_string_lossy().starts_with("libcore-"));
    cache::entries(libraries).any(is_core)
}

#[cfg(test)]
mod tests;
