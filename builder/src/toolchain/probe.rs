//! The version and sysroot of a rustc. The answers are cached while the file is unchanged.

use std::fs;
use std::path::{Path, PathBuf};

use super::report::Rejection;
use crate::cache;
use crate::toolchain::process;

/// Must change with the layout of the cache, and with the flags that its contents were built with.
const CACHE_FORMAT: &str = "ferrogrid cache 1\n";

/// The answers of one rustc.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    /// The whole of `rustc -vV`.
    verbose: String,
    pub(super) release: (u32, u32),
    pub(super) host: String,
    pub(super) sysroot: PathBuf,
}

impl Probe {
    pub(super) fn version(&self) -> &str {
        self.verbose.lines().next().unwrap_or_default()
    }

    pub(super) fn key(&self) -> String {
        cache::key(format!("{CACHE_FORMAT}{}", self.verbose).as_bytes())
    }

    /// Reads the output of `rustc -vV --print sysroot`, or its copy in the cache.
    fn parse(sysroot: &str, verbose: &str) -> Option<Self> {
        let field = |name: &str| {
            verbose.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::trim))
        };
        let mut numbers = field("release")?.split(['.', '-']);
        let release = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        let host = field("host")?.to_owned();
        let sysroot = PathBuf::from(sysroot.trim());
        Some(Probe { verbose: verbose.trim().to_owned(), release, host, sysroot })
    }
}

/// Asks `rustc` for its version and sysroot.
pub(super) fn probe(rustc: &Path, cache_root: &Path) -> Result<Probe, Rejection> {
    let remembered = cache_root.join("probes").join(stamp(rustc));
    if let Ok(text) = fs::read_to_string(&remembered)
        && let Some((sysroot, verbose)) = text.split_once('\n')
        && let Some(probe) = Probe::parse(sysroot, verbose)
        && probe.sysroot.is_dir()
    {
        return Ok(probe);
    }
    let verbose = ask(rustc, &["-vV"])?;
    let sysroot = ask(rustc, &["--print", "sysroot"])?;
    let probe = Probe::parse(&sysroot, &verbose)
        .ok_or_else(|| Rejection::CannotRun { reason: format!("`rustc -vV` said: {}", verbose.trim()) })?;
    // A cache that cannot be written costs time, not correctness.
    let _ = cache::write(&remembered, &format!("{}\n{verbose}", sysroot.trim()));
    Ok(probe)
}

fn ask(rustc: &Path, arguments: &[&str]) -> Result<String, Rejection> {
    let output = process::run(process::command(rustc).args(arguments))
        .map_err(|error| Rejection::CannotRun { reason: error.to_string() })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let reason = said.lines().next().unwrap_or("it failed without output").to_owned();
        return Err(Rejection::CannotRun { reason });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A name that changes with the file.
fn stamp(rustc: &Path) -> String {
    cache::key(process::identity(rustc).as_bytes())
}
