//! The artifacts that the inner cargo reports, and the inputs that rustc and build scripts report for them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cache;
use crate::cargo::metadata::{is_in_cargo_home, strings};
pub(crate) use crate::compile::inputs::Inputs;
use crate::error::Error;
use crate::toolchain::DEVICE_TARGET;

impl Inputs {
    /// From cargo's messages: the dep-info of each crate, build scripts and proc macros included, and what
    /// build scripts told cargo to watch. Relative paths belong to the facade, which the build step writes.
    pub(super) fn of(messages: &str) -> Self {
        let mut inputs = Inputs::default();
        for message in read(messages) {
            match message["reason"].as_str() {
                Some("compiler-artifact") => {
                    let files = strings(&message["filenames"]);
                    files.iter().filter_map(|file| dep_info(file.as_ref())).for_each(|it| inputs.add(&it));
                }
                Some("build-script-executed") => {
                    let out = Path::new(message["out_dir"].as_str().unwrap_or_default());
                    // Of packages that are not local only the version changes.
                    let package = message["package_id"].as_str().and_then(manifest_folder);
                    let Some(package) = package else { continue };
                    let told = fs::read_to_string(out.with_file_name("output")).unwrap_or_default();
                    inputs.watch(&told, &package);
                }
                _ => {}
            }
        }
        inputs.files.retain(|file| !is_in_cargo_home(file));
        inputs
    }

    /// Adds what to watch of a crate's dep-info; cargo's own variables follow from the rest.
    fn add(&mut self, dep_info: &str) {
        let read = Inputs::from_dep_info(dep_info);
        let is_other = |name: &String| !name.starts_with("CARGO") && name != "OUT_DIR";
        self.variables.extend(read.variables.into_iter().filter(is_other));
        self.files.extend(read.files.into_iter().filter(|file| file.is_absolute()));
    }

    fn watch(&mut self, told: &str, folder: &Path) {
        for line in told.lines() {
            let Some(directive) = line.strip_prefix("cargo::").or_else(|| line.strip_prefix("cargo:")) else {
                continue;
            };
            if let Some(file) = directive.strip_prefix("rerun-if-changed=") {
                self.files.insert(folder.join(file));
            } else if let Some(name) = directive.strip_prefix("rerun-if-env-changed=") {
                self.variables.insert(name.to_owned());
            }
        }
    }
}

/// cargo's messages: a line each, among others.
fn read(messages: &str) -> impl Iterator<Item = Value> {
    messages.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// The dep-info beside the library or build script `file`.
fn dep_info(file: &Path) -> Option<String> {
    let stem = file.file_stem()?.to_str()?;
    let beside = |name: &str| fs::read_to_string(file.with_file_name(format!("{name}.d"))).ok();
    if file.file_name()? != "build-script-build" {
        return beside(stem.strip_prefix("lib").unwrap_or(stem));
    }
    // cargo reports it without the hash that its dep-info has.
    let texts = cache::entries(file.parent()?).filter(|it| it.extension().is_some_and(|it| it == "d"));
    Some(texts.filter_map(|it| fs::read_to_string(it).ok()).collect())
}

/// The folder of a package by its id, `path+file:///x/half#2.0.0`.
fn manifest_folder(id: &str) -> Option<PathBuf> {
    Some(PathBuf::from(id.strip_prefix("path+file://")?.split('#').next()?))
}

/// A crate that cargo reports.
pub(super) struct Artifact {
    id: String,
    pub(super) package: String,
    pub(super) is_macro: bool,
    files: Vec<PathBuf>,
}

/// The libraries and proc macros among cargo's messages.
pub(super) fn artifacts(messages: &str) -> Vec<Artifact> {
    let artifact = |message: Value| {
        let kinds = strings(&message["target"]["kind"]);
        let is_macro = kinds.iter().any(|kind| kind == "proc-macro");
        let is_library = is_macro || kinds.iter().any(|kind| kind == "lib" || kind == "rlib");
        let id = message["package_id"].as_str().unwrap_or_default().to_owned();
        let files = strings(&message["filenames"]).into_iter().map(PathBuf::from).collect();
        let artifact = Artifact { package: package_name(&id), id, is_macro, files };
        (message["reason"] == "compiler-artifact" && is_library).then_some(artifact)
    };
    read(messages).filter_map(artifact).collect()
}

/// The name in a package id: `path+file:///x/half#2.0.0` and `registry+https://i#half@2.0.0`.
pub(super) fn package_name(id: &str) -> String {
    let (url, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    if let Some((name, _)) = fragment.split_once('@') {
        return name.to_owned();
    }
    url.split('?').next().unwrap_or(url).rsplit('/').next().unwrap_or_default().to_owned()
}

/// The file that rustc links for the package `id`, called `package`: the library of a proc macro, or the rlib
/// for the device, since it may also be built for the host. A patch may have given it another id.
pub(super) fn built(artifacts: &[Artifact], id: &str, package: &str) -> Result<PathBuf, Error> {
    let called_so = || artifacts.iter().rev().filter(|artifact| artifact.package == package);
    let found = called_so().filter(|artifact| artifact.id == id).find_map(library);
    found
        .or_else(|| called_so().find_map(library))
        .ok_or_else(|| Error::Metadata(format!("cargo reported no library of `{package}` for the device")))
}

/// The file of an artifact that rustc links; `None` if it was built for the host.
pub(super) fn library(artifact: &Artifact) -> Option<PathBuf> {
    let is_device_rlib = |file: &&PathBuf| {
        file.extension().is_some_and(|it| it == "rlib")
            && file.components().any(|part| part.as_os_str() == DEVICE_TARGET)
    };
    let is_library =
        |file: &&PathBuf| file.extension().is_some_and(|it| it == std::env::consts::DLL_EXTENSION);
    let mut files = artifact.files.iter();
    if artifact.is_macro { files.find(is_library).cloned() } else { files.find(is_device_rlib).cloned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(id: &str, package: &str, is_macro: bool, files: &[&str]) -> Artifact {
        let files = files.iter().map(PathBuf::from).collect();
        Artifact { id: id.to_owned(), package: package.to_owned(), is_macro, files }
    }

    #[test]
    fn of_several_builds_the_library_for_the_device_is_linked() {
        let device = format!("/t/{DEVICE_TARGET}/release/liba.rlib");
        let meta = format!("/t/{DEVICE_TARGET}/release/liba.rmeta");
        let artifacts = [
            artifact("a#1", "a", false, &["/t/release/liba.rlib"]),
            artifact("a#1", "a", false, &[&meta, &device]),
            artifact("b#1", "b", false, &["/t/release/libb.rlib"]),
            artifact(
                "m#1",
                "m",
                true,
                &["/t/release/libm.rlib", &format!("/t/release/libm.{}", std::env::consts::DLL_EXTENSION)],
            ),
        ];
        assert_eq!(built(&artifacts, "a#1", "a").unwrap(), Path::new(&device));
        assert!(built(&artifacts, "b#1", "b").is_err(), "it was built for the host only");
        let library = built(&artifacts, "m#1", "m").unwrap();
        assert_eq!(library.extension().unwrap(), std::env::consts::DLL_EXTENSION);
    }

    /// Two versions, one of them patched: its id is another than was asked for.
    #[test]
    fn an_id_is_matched_before_a_name() {
        let of = |version: &str| format!("/{DEVICE_TARGET}/liba-{version}.rlib");
        let artifacts =
            ["1", "2"].map(|version| artifact(&format!("a#{version}"), "a", false, &[&of(version)]));
        assert_eq!(built(&artifacts, "a#1", "a").unwrap(), Path::new(&of("1")));
        assert_eq!(built(&artifacts, "a#2", "a").unwrap(), Path::new(&of("2")));
        assert_eq!(built(&artifacts, "a#3", "a").unwrap(), Path::new(&of("2")), "the last of that name");
        assert!(built(&artifacts, "a#1", "other").is_err());
    }
}
