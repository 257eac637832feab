//! Finds what there is to compile: walks the module trees of all targets, and lays out a device crate for each
//! that has annotated modules. It must not know how it is compiled.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::cfg::Cfgs;
use crate::device_crate::{self, DeviceCrate};
use crate::environment::Environment;
use crate::error::Error;
use crate::metadata::{Package, TargetKind};
use crate::module_tree::{self, Sources};
use crate::options::Options;

/// A device crate, and which of its modules take their code from it.
pub(crate) struct Unit {
    pub(crate) device_crate: DeviceCrate,
    pub(crate) kind: TargetKind,
    /// Indices into the crate's modules.
    pub(crate) provides: Vec<usize>,
}

#[derive(Default)]
pub(crate) struct Scan {
    pub(crate) units: Vec<Unit>,
    pub(crate) visited: BTreeSet<PathBuf>,
    pub(crate) warnings: Vec<String>,
}

impl Unit {
    /// Whether its modules use the package's own library, called `library`.
    pub(crate) fn names_library(&self, library: &str) -> bool {
        self.kind != TargetKind::Lib
            && self.device_crate.modules.iter().any(|module| module.names.contains(library))
    }

    /// Whether it is the package's library as other targets see it.
    pub(crate) fn is_library(&self) -> bool {
        self.kind == TargetKind::Lib && !self.device_crate.cfgs.iter().any(|cfg| cfg == "test")
    }
}

/// Walks the trees of all targets and lays out their device crates.
pub(crate) fn scan(
    environment: &Environment,
    package: &Package,
    chosen: &Options,
    device: &Cfgs,
) -> Result<Scan, Error> {
    let folder = environment.out_dir.join("ferrogrid");
    let mut options: Vec<String> =
        environment.features.iter().map(|feature| format!("feature=\"{feature}\"")).collect();
    options.extend(environment.cfgs.iter().chain(&chosen.cfgs).cloned());
    let device = device.with(options.iter().map(String::as_str));
    let mut scan = Scan::default();
    let mut sources = Sources::default();
    let mut known = BTreeSet::new();
    for target in &package.targets {
        // `cargo test` compiles these with `cfg(test)`, and nothing compiles them without.
        let only_test = matches!(target.kind, TargetKind::Test | TargetKind::Bench);
        for test in [false, true] {
            if only_test && !test {
                continue;
            }
            let mut cfgs = options.clone();
            let held = if test {
                cfgs.push("test".to_owned());
                device.with(["test"])
            } else {
                device.clone()
            };
            let mut tree = module_tree::walk(&target.source, &held, &mut sources)?;
            scan.visited.append(&mut tree.visited);
            for warning in tree.unreadable.drain(..) {
                if !scan.warnings.contains(&warning) {
                    scan.warnings.push(warning);
                }
            }
            let tested = test && !only_test;
            let provides: Vec<usize> = tree
                .modules
                .iter()
                .enumerate()
                .filter(|(_, module)| tested || !module.depends_on_test || only_test)
                .filter(|(_, module)| !known.contains(&module.fingerprint))
                .map(|(at, _)| at)
                .collect();
            if provides.is_empty() && (test || tree.modules.is_empty()) {
                continue;
            }
            known.extend(provides.iter().map(|&at| tree.modules[at].fingerprint));
            let root = &package.workspace_root;
            let made = device_crate::lay_out(target, tested, tree, cfgs, root, &folder)?;
            scan.units.extend(made.map(|device_crate| Unit { device_crate, kind: target.kind, provides }));
        }
    }
    Ok(scan)
}
