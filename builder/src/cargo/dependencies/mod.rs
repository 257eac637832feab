//! The crates that device code links: a facade called `ferrogrid`, and the no_std dependencies that annotated
//! modules name. An inner cargo builds them in the cache, where packages share them.
//!
//! | file | holds |
//! |---|---|
//! | `artifacts.rs` | what the inner cargo has built, and from what |
//! | `memory.rs` | stamps of earlier builds, to skip unchanged ones |

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::cache;
use crate::cargo::inner_cargo;
use crate::cargo::metadata::{Dependency, Package, Patches, Source};
use crate::error::Error;
use crate::options::{Arch, PanicStrategy};
use crate::toolchain::core_cache::CoreEntry;
use crate::toolchain::{Toolchain, libdevice, process};

mod artifacts;
mod memory;
#[cfg(test)]
mod tests;

pub(crate) use artifacts::Inputs;
use artifacts::{artifacts, built, library};
use memory::{
    Libraries, find_or_build, indicates_damage, kept, memory_of, note_made, remembered, remove_damaged,
};

/// The crates that device crates are compiled against.
#[derive(Debug)]
pub(crate) struct Externs {
    /// By the package's id: the extern name and the rlib of each crate that its device crates see.
    pub(crate) crates: BTreeMap<String, Vec<(String, PathBuf)>>,
    /// The folder with these crates and their dependencies.
    pub(crate) folder: PathBuf,
    /// A hash of the rlibs.
    pub(crate) key: String,
    /// The files and variables that they were built from, for cargo to watch.
    pub(crate) inputs: Inputs,
}

/// What to build as externs of one package and of the libraries with device code that it uses.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) package: &'a Package,
    pub(crate) toolchain: &'a Toolchain,
    pub(crate) panic: PanicStrategy,
    /// libdevice, if mathematical functions come from it.
    pub(crate) libdevice: Option<&'a Path>,
    /// The dependencies that kernels name, by their names in the inner cargo's manifest.
    pub(crate) named: BTreeMap<String, Dependency>,
    /// By the package's id: the extern names that its device crates see, each with the name in `named` or
    /// that of the facade.
    pub(crate) seen: BTreeMap<String, BTreeMap<String, String>>,
}

impl<'a> Plan<'a> {
    /// `names` are the names that may be crates in the device crates of each package, by its id.
    pub(crate) fn new(
        package: &'a Package,
        toolchain: &'a Toolchain,
        panic: PanicStrategy,
        libdevice: Option<&'a Path>,
        names: &BTreeMap<String, BTreeSet<String>>,
    ) -> Self {
        let (named, seen) = Default::default();
        let mut plan = Plan { package, toolchain, panic, libdevice, named, seen };
        plan.see(&package.id, &package.dependencies, names);
        for (id, library) in &package.libraries {
            plan.see(id, &library.dependencies, names);
        }
        plan
    }

    /// Adds what the package `id` with these `dependencies` sees. Libraries with device code are compiled on
    /// their own.
    fn see(
        &mut self,
        id: &str,
        dependencies: &BTreeMap<String, Dependency>,
        names: &BTreeMap<String, BTreeSet<String>>,
    ) {
        let Some(names) = names.get(id) else { return };
        let mut seen = BTreeMap::from([(FACADE_CRATE.to_owned(), FACADE_CRATE.to_owned())]);
        for (name, dependency) in dependencies {
            if dependency.package == "ferrogrid" {
                seen.insert(name.clone(), FACADE_CRATE.to_owned());
            } else if names.contains(name)
                && !dependency.is_ferrogrid()
                && !self.package.libraries.contains_key(&dependency.id)
            {
                seen.insert(name.clone(), self.name(name, dependency));
            }
        }
        self.seen.insert(id.to_owned(), seen);
    }

    /// The name of a dependency in the manifest. cargo knows each by one name only, with the features that
    /// all users ask for.
    fn name(&mut self, wanted: &str, dependency: &Dependency) -> String {
        if let Some((name, known)) = self.named.iter_mut().find(|(_, known)| known.id == dependency.id) {
            known.default_features |= dependency.default_features;
            let features: BTreeSet<String> =
                known.features.drain(..).chain(dependency.features.iter().cloned()).collect();
            known.features = features.into_iter().collect();
            return name.clone();
        }
        let numbered = (2..).map(|number| format!("{wanted}-{number}"));
        let mut free = std::iter::once(wanted.to_owned()).chain(numbered);
        let name = free.find(|name| !self.named.contains_key(name)).expect("numbers are unbounded");
        self.named.insert(name.clone(), dependency.clone());
        name
    }

    /// The folders whose content the externs depend on.
    pub(crate) fn local_folders(&self) -> impl Iterator<Item = &PathBuf> {
        let ferrogrid = self.package.ferrogrid.iter().flatten();
        ferrogrid.chain(self.named.values()).flat_map(|it| self.package.local_folders(it))
    }

    /// The manifests that decide how local packages among the externs are compiled: their own, and those of
    /// enclosing workspaces.
    pub(crate) fn manifests(&self) -> BTreeSet<PathBuf> {
        let above = self.local_folders().flat_map(|folder| folder.ancestors());
        let manifests = above.map(|folder| folder.join("Cargo.toml"));
        manifests.filter(|file| file.is_file()).collect()
    }

    /// Builds the externs for `arch` unless nothing has changed, and puts them into `place`, where later
    /// builds of the cache do not change them.
    pub(crate) fn build(
        &self,
        arch: &Arch,
        core: &CoreEntry,
        cache_root: &Path,
        place: &Path,
    ) -> Result<Externs, Error> {
        let manifest = self.manifest()?;
        let versions = self.versions();
        // All architectures share proc macros and what these need; cargo tells crates for devices apart by their flags.
        let shared = cache_root.join("crates").join(&self.toolchain.key).join("all");
        let package = cache::key(format!("{manifest}{versions}").as_bytes());
        let folder = shared.join("packages").join(arch.as_str()).join(package);
        let inputs = self.inputs_key(&manifest, &versions, core);
        let stamp = folder.join("stamp");
        let as_last_time = || remembered(&stamp, &inputs);
        let (memory, _reading) = find_or_build(&shared.join("lock"), as_last_time, || {
            cache::write(&folder.join("Cargo.toml"), &manifest)?;
            cache::write(&folder.join("lib.rs"), FACADE)?;
            let target = shared.join("target");
            cache::check_writable(&target)?;
            remove_damaged(&stamp, &inputs)?;
            let begun = SystemTime::now();
            self.keep_versions(&folder)?;
            let build = || self.run_cargo(arch, core, &folder, &target);
            let libraries = match build() {
                Err(Error::Dependencies { diagnostics, .. }) if indicates_damage(&diagnostics) => {
                    cache::remove(&target)?;
                    cache::remove(&folder.join("Cargo.lock"))?;
                    self.keep_versions(&folder)?;
                    build()?
                }
                other => other?,
            };
            note_made(&libraries)?;
            cache::write(&stamp, &memory_of(&inputs, &libraries, begun))
        })?;
        memory.keep(place)?;
        let crates = memory.libraries.crates.into_iter();
        let crates: BTreeMap<_, _> = crates.map(|(name, file)| (name, kept(&file, place))).collect();
        let files = |seen: &BTreeMap<String, String>| {
            seen.iter().filter_map(|(name, of)| Some((name.clone(), crates.get(of)?.clone()))).collect()
        };
        let crates = self.seen.iter().map(|(id, seen)| (id.clone(), files(seen))).collect();
        Ok(Externs { crates, folder: place.to_owned(), key: memory.key, inputs: memory.libraries.inputs })
    }

    fn manifest(&self) -> Result<String, Error> {
        let Some(ferrogrid) = &self.package.ferrogrid else {
            return Err(Error::NoFerrogrid { package: self.package.name.clone() });
        };
        let mut text = String::from(FACADE_PACKAGE);
        for dependency in ferrogrid {
            let mut dependency = dependency.clone();
            if self.panic == PanicStrategy::Trap && dependency.package == "ferrogrid-device" {
                dependency.features.push("panic-trap".to_owned());
            }
            if self.libdevice.is_some() && dependency.package == "ferrogrid-device" {
                dependency.features.push("libdevice".to_owned());
            }
            text.push_str(&dependency_line(&dependency.package, &dependency));
        }
        for (name, dependency) in &self.named {
            if !ferrogrid.iter().any(|it| it.id == dependency.id) {
                text.push_str(&dependency_line(name, dependency));
            }
        }
        text.push_str(&patch_tables(&self.package.patches));
        Ok(text)
    }

    /// The resolved versions of the crates that are built, one package a line. The rest of Cargo.lock does
    /// not matter: packages that agree in these share one build.
    fn versions(&self) -> String {
        let ferrogrid = self.package.ferrogrid.iter().flatten();
        let all = ferrogrid.chain(self.named.values()).flat_map(|it| self.package.made_of(it));
        let all: BTreeSet<&str> = all.map(String::as_str).collect();
        all.iter().map(|id| format!("{id}\n")).collect()
    }

    /// Seeds the inner cargo's lock file with the versions resolved here; it drops what it does not need.
    fn keep_versions(&self, folder: &Path) -> Result<(), Error> {
        let lock_file = folder.join("Cargo.lock");
        let Ok(lock_text) = fs::read_to_string(&self.package.lock) else {
            return Ok(());
        };
        if lock_file.is_file() { Ok(()) } else { cache::write(&lock_file, &lock_text) }
    }

    /// A hash of all inputs of the inner cargo.
    fn inputs_key(&self, manifest: &str, versions: &str, core: &CoreEntry) -> String {
        let mut content = format!("2\n{manifest}\n{versions}\n{}\n", core.sysroot.display());
        if let Some(file) = self.libdevice {
            content.push_str(&format!("{} {}\n", file.display(), cache::file_key(file)));
        }
        for file in self.manifests() {
            content.push_str(&format!("{} {}\n", file.display(), cache::file_key(&file)));
        }
        cache::key(content.as_bytes())
    }

    fn run_cargo(
        &self,
        arch: &Arch,
        core: &CoreEntry,
        folder: &Path,
        target_dir: &Path,
    ) -> Result<Libraries, Error> {
        let cargo = |extra: &[&str]| {
            let mut command = inner_cargo::build(self.toolchain, &folder.join("Cargo.toml"), target_dir);
            let flags = [
                "--sysroot".to_owned(),
                core.sysroot.display().to_string(),
                "-Cdebuginfo=line-directives-only".to_owned(),
            ];
            inner_cargo::device_flags(&mut command, arch, &flags);
            command.args(["--quiet", "--message-format=json-render-diagnostics"]).args(extra);
            // The user's cargo configuration (vendored or private sources) is found from here.
            command.current_dir(&self.package.workspace_root);
            process::run(&mut command)
        };
        let mut output = cargo(&["--offline"])?;
        if !output.status.success() && wants_network(&output.stderr) {
            output = cargo(&[])?;
        }
        if !output.status.success() {
            let mut crates = vec!["ferrogrid"];
            crates.extend(self.named.keys().map(String::as_str));
            return Err(Error::Dependencies {
                crates: crates.join(", "),
                diagnostics: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
            });
        }
        let messages = String::from_utf8_lossy(&output.stdout);
        let artifacts = artifacts(&messages);
        let mut crates = Vec::new();
        let facade = built(&artifacts, "", FACADE_NAME)?;
        let own = folder.join("libferrogrid.rlib");
        // A new file: builds hold links to the old one.
        cache::remove(&own)?;
        fs::copy(&facade, &own).map_err(Error::io("copy", &facade))?;
        if let Some(file) = self.libdevice {
            libdevice::add_to(&own, file)?;
        }
        crates.push((FACADE_CRATE.to_owned(), own));
        for (name, dependency) in &self.named {
            crates.push((name.clone(), built(&artifacts, &dependency.id, &dependency.package)?));
        }
        // cargo's own file of the facade belongs to the package that was built last; the copy is above.
        let others = artifacts.iter().filter(|artifact| artifact.package != FACADE_NAME);
        let mut inputs = Inputs::of(&messages);
        inputs.files.remove(&folder.join("lib.rs"));
        Ok(Libraries { crates, beneath: others.filter_map(library).collect(), inputs })
    }
}

const FACADE_NAME: &str = "ferrogrid-device-facade";

/// Its crate.
const FACADE_CRATE: &str = "ferrogrid";

const FACADE_PACKAGE: &str = "\
[package]
name = \"ferrogrid-device-facade\"
version = \"0.0.0\"
edition = \"2024\"

[lib]
name = \"ferrogrid\"
path = \"lib.rs\"

[workspace]

[profile.release]
debug = \"line-directives-only\"
codegen-units = 1

[dependencies]
";

/// The crate `ferrogrid` on the device: the part of the host's facade that kernels can use, under the same
/// paths and under no others. rustc suggests imports of what it finds here, and the host half must compile
/// with them, too.
const FACADE: &str = "\
#![no_std]
pub use ferrogrid_device as device;
pub use ferrogrid_device::__derive;
pub use ferrogrid_device::{DeviceCopy, bytemuck};
pub use ferrogrid_macros::{constant, kernel, module};
";

fn dependency_line(name: &str, dependency: &Dependency) -> String {
    let mut fields = vec![format!("package = {:?}", dependency.package)];
    match &dependency.source {
        Source::Path(folder) => fields.push(format!("path = {:?}", folder.to_string_lossy())),
        Source::Registry { version, index } => {
            fields.push(format!("version = \"={version}\""));
            fields.extend(index.as_ref().map(|index| format!("registry-index = {index:?}")));
        }
        Source::Git { url, reference } => {
            fields.push(format!("git = {url:?}"));
            fields.extend(reference.as_ref().map(|(kind, value)| format!("{kind} = {value:?}")));
        }
    }
    if !dependency.default_features {
        fields.push("default-features = false".to_owned());
    }
    if !dependency.features.is_empty() {
        fields.push(format!("features = {:?}", dependency.features));
    }
    format!("{name} = {{ {} }}\n", fields.join(", "))
}

/// The `[patch]` tables of the user's workspace. Versions of a package side by side need names of their own.
fn patch_tables(patches: &Patches) -> String {
    let mut text = String::new();
    for (source, packages) in patches {
        text.push_str(&format!("\n[patch.{source:?}]\n"));
        for (number, package) in packages.iter().enumerate() {
            text.push_str(&dependency_line(&format!("{}-{number}", package.package), package));
        }
    }
    text
}

/// Whether cargo failed only because it was offline.
fn wants_network(stderr: &[u8]) -> bool {
    String::from_utf8_lossy(stderr).contains("offline")
}
