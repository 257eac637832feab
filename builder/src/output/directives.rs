//! The directives for cargo: when to rerun the build step, and what to print.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::cargo::metadata::Package;
use crate::cargo::{Environment, ONLY};
use crate::compile::cubin;
use crate::error::Error;
use crate::options::{Options, variables};
use crate::output::watch;
use crate::source::scan::Scan;
use crate::toolchain::libdevice;

/// When cargo must rerun the step, whatever is compiled, and what it prints.
pub(crate) fn directives(
    environment: &Environment,
    package: &Package,
    options: &Options,
    scan: &Scan,
) -> Result<Vec<String>, Error> {
    let mut files: BTreeSet<PathBuf> = scan.visited.clone();
    files.extend(["build.rs", "Cargo.toml"].map(|name| environment.manifest_dir.join(name)));
    files.extend(["Cargo.toml", "Cargo.lock"].map(|name| package.workspace_root.join(name)));
    files.retain(|file| scan.visited.contains(file) || file.exists());
    let (there, missing): (Vec<PathBuf>, _) = package.discovered.iter().cloned().partition(|it| it.exists());
    files.extend(there);
    let folder = environment.out_dir.join("ferrogrid/watch");
    if watch::watch_missing(&missing, &folder)? {
        files.insert(folder);
    }
    let mut directives: Vec<String> = files.iter().map(|file| rerun_if_changed(file)).collect();
    // cargo already reruns the script for another compiler. Its variables differ between a shell and an
    // editor, so each would undo the other's work.
    let variables =
        ["FERROGRID_ARCH", "FERROGRID_CACHE", "FERROGRID_DEVICE_RUSTC", cubin::VARIABLE, "FERROGRID_PTXAS"];
    let only = (!package.has_library()).then_some(ONLY);
    let variables = variables.into_iter().chain(["DOCS_RS"]).chain(only).chain(libdevice::variables());
    directives.extend(variables.map(|name| format!("cargo::rerun-if-env-changed={name}")));
    directives.extend(variables::unknown().iter().map(|text| format!("cargo::warning={text}")));
    for cfg in &options.cfgs {
        directives.push(format!("cargo::rustc-check-cfg={}", check_cfg(cfg)));
        directives.push(format!("cargo::rustc-cfg={cfg}"));
    }
    directives
        .extend(options.variables.iter().map(|(name, value)| format!("cargo::rustc-env={name}={value}")));
    directives.extend(package.facade_name().map(|name| format!("cargo::rustc-env=FERROGRID_CRATE={name}")));
    let warning = |text: &String| format!("cargo::warning=its kernels are not built: {text}");
    directives.extend(scan.warnings.iter().map(warning));
    Ok(directives)
}

/// `cfg(name, values("value"))` for `name="value"`.
fn check_cfg(cfg: &str) -> String {
    match cfg.split_once('=') {
        Some((name, value)) => format!("cfg({name}, values({value}))"),
        None => format!("cfg({cfg})"),
    }
}

pub(crate) fn rerun_if_changed(file: &Path) -> String {
    format!("cargo::rerun-if-changed={}", file.display())
}
