//! Builds a package that is a single file, and extracts parts of the PTX.

#![allow(dead_code, reason = "each test program uses its part")]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use ferrogrid_build::{Build, Environment};

/// The result of the build step for a package with one file.
pub struct Built {
    /// The PTX, for the only architecture.
    pub ptx: String,
    /// The directives for cargo.
    pub directives: Vec<String>,
}

/// A package of one file, with these settings in its Cargo.toml.
pub fn built(main: &str, settings: &str, build: Build) -> Result<Built, String> {
    built_with(main, settings, build, None)
}

/// The same, with this file named as libdevice.
pub fn built_with(
    main: &str,
    settings: &str,
    build: Build,
    libdevice: Option<&Path>,
) -> Result<Built, String> {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    // A crate more to build, for those that need it.
    let half = if main.contains("device::half") { "features = [\"half\"]\n" } else { "" };
    let manifest = format!(
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{settings}\n[workspace]\n\
         [dependencies.ferrogrid-device]\npath = {:?}\n{half}[dependencies.ferrogrid-macros]\npath = {:?}\n",
        repository.join("device"),
        repository.join("macros"),
    );
    fs::create_dir_all(root.join("src")).unwrap();
    fs::write(root.join("Cargo.toml"), manifest).unwrap();
    fs::copy(repository.join("Cargo.lock"), root.join("Cargo.lock")).unwrap();
    fs::write(root.join("src/main.rs"), main).unwrap();
    let mut environment = Environment::new(&root, root.join("out"));
    environment.libdevice = libdevice.map(Path::to_owned);
    let output = build.try_run(&environment).map_err(|error| error.to_string())?;
    let ptx = fs::read_to_string(&output.ptx[0]).unwrap();
    keep(&ptx);
    Ok(Built { ptx, directives: output.directives })
}

/// Leaves the PTX in the folder that `FERROGRID_KEEP_PTX` names, for .ci/ptxas, which assembles it.
fn keep(ptx: &str) {
    let Some(folder) = std::env::var_os("FERROGRID_KEEP_PTX") else { return };
    static KEPT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("{}-{}.ptx", std::process::id(), KEPT.fetch_add(1, Ordering::Relaxed));
    fs::create_dir_all(&folder).unwrap();
    fs::write(Path::new(&folder).join(name), ptx).unwrap();
}

/// The code of an entry point.
pub fn entry<'a>(ptx: &'a str, name: &str) -> &'a str {
    let start = ptx.find(&format!(".visible .entry {name}_")).unwrap();
    &ptx[start..start + ptx[start..].find("\n}").unwrap()]
}
