//! Asks cargo for the metadata that holds for this build, and remembers the answer. It must not
//! interpret more of the answer than it needs to keep it short and fresh.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::list;
use crate::build_root::BuildRoot;
use crate::cache;
use crate::environment::Environment;
use crate::error::Error;
use crate::{inner, inner_cargo};

/// The metadata, reduced to what is used: from the memory in `OUT_DIR` while it is fresh (cargo
/// takes a tenth of a second), else from cargo.
pub(super) fn metadata(environment: &Environment) -> Result<Value, Error> {
    let memory = environment.out_dir.join("ferrogrid/metadata.json");
    if let Ok(text) = cache::read(&memory)
        && let Ok(remembered) = serde_json::from_str::<Value>(&text)
        && remembered["stamp"].as_str() == Some(&stamp(environment, &manifests(&remembered)))
    {
        return Ok(remembered);
    }
    let mut metadata = reduce(&ask_for_build(environment)?, &environment.manifest_dir.join("Cargo.toml"));
    metadata["stamp"] = Value::String(stamp(environment, &manifests(&metadata)));
    cache::write(&memory, &metadata.to_string())?;
    Ok(metadata)
}

/// The answer for the workspace whose build this is: where the package itself says, unless it is a
/// dependency in another workspace's build; then the versions of that one count.
fn ask_for_build(environment: &Environment) -> Result<Value, Error> {
    let own = environment.manifest_dir.join("Cargo.toml");
    let root = BuildRoot::of(environment);
    let outer = match &root {
        BuildRoot::At(root) => Some(root.clone()),
        _ => outer_workspace(&environment.out_dir),
    };
    let outer = outer.map(|root| root.join("Cargo.toml"));
    let Some(outer) = outer.filter(|outer| *outer != own) else { return ask(&own, &environment.features) };
    if downloaded(&environment.manifest_dir) {
        return ask(&outer, &[]);
    }
    let metadata = ask(&own, &environment.features)?;
    if is_of_own_workspace(&root, &metadata, environment) {
        return Ok(metadata);
    }
    let Ok(of_outer) = ask(&outer, &[]) else { return Ok(metadata) };
    let listed = super::own_package(&of_outer, &own).is_some();
    Ok(if listed { of_outer } else { metadata })
}

/// Whether the build is that of the workspace which the package says that it is in.
fn is_of_own_workspace(root: &BuildRoot, metadata: &Value, environment: &Environment) -> bool {
    let path = |field: &str| Path::new(metadata[field].as_str().unwrap_or_default());
    let in_its_target = || environment.out_dir.starts_with(path("target_directory"));
    root.can_be(path("workspace_root"), environment) && (matches!(root, BuildRoot::At(_)) || in_its_target())
}

/// The nearest folder above `OUT_DIR` with a Cargo.lock: the workspace that is being built, where
/// its target folder is in the usual place.
fn outer_workspace(out_dir: &Path) -> Option<PathBuf> {
    let mut above = out_dir.ancestors();
    above
        .find(|folder| folder.join("Cargo.lock").is_file() && folder.join("Cargo.toml").is_file())
        .map(Path::to_owned)
}

/// Whether the package is one that cargo has fetched.
pub(super) fn downloaded(folder: &Path) -> bool {
    let home = cargo_home();
    home.is_some_and(|home| folder.starts_with(home.join("registry")) || folder.starts_with(home.join("git")))
}

pub(super) fn cargo_home() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| dirs::home_dir().map(|home| home.join(".cargo")))
}

/// Runs `cargo metadata`; without the network first, since the build around us has just resolved
/// and fetched what it needs.
fn ask(manifest: &Path, features: &[String]) -> Result<Value, Error> {
    let run = |extra: &[&str]| {
        let mut command = inner::command(&inner_cargo::cargo());
        // These two decide where the build writes, which tells whose build this is.
        for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if let Some(rustc) = std::env::var_os("RUSTC") {
            command.env("RUSTC", rustc);
        }
        command.args(["metadata", "--format-version", "1", "--color=never"]).args(extra);
        // What only other platforms need may never have been fetched. Outside of a build, it is for this machine.
        let platform = std::env::var_os("TARGET").unwrap_or_else(|| "host-tuple".into());
        command.arg("--filter-platform").arg(platform);
        if !features.is_empty() {
            command.arg("--features").arg(features.join(","));
        }
        command.arg("--manifest-path").arg(manifest);
        if let Some(folder) = manifest.parent() {
            command.current_dir(folder);
        }
        inner::run_checked("cargo metadata", &mut command)
    };
    let text = run(&["--offline"]).or_else(|_| run(&[]))?;
    serde_json::from_str(&text).map_err(|error| Error::Metadata(error.to_string()))
}

/// The packages of the workspace of `manifest`, without what they depend on.
pub(crate) fn members(manifest: &Path) -> Result<Value, Error> {
    let mut command = inner::command(&inner_cargo::cargo());
    command.args(["metadata", "--no-deps", "--format-version", "1", "--color=never", "--manifest-path"]);
    let text = inner::run_checked("cargo metadata", command.arg(manifest))?;
    serde_json::from_str(&text).map_err(|error| Error::Metadata(error.to_string()))
}

/// Leaves out what is not used: most of what cargo says is about packages that kernels never see.
fn reduce(metadata: &Value, own: &Path) -> Value {
    let own = super::own_package(metadata, own).map(|package| &package["id"]);
    let pick = |value: &Value, fields: &[&str]| {
        let picked = fields.iter().filter(|field| !value[**field].is_null());
        picked.map(|field| ((*field).to_owned(), value[*field].clone())).collect::<serde_json::Map<_, _>>()
    };
    let packages: Vec<Value> = list(metadata, "packages")
        .iter()
        .map(|package| {
            let mut fields = vec!["id", "name", "version", "source", "manifest_path"];
            if package["source"].is_null() || Some(&package["id"]) == own {
                fields.extend(["targets", "dependencies", "features", "metadata"]);
            }
            Value::Object(pick(package, &fields))
        })
        .collect();
    let nodes: Vec<Value> = list(&metadata["resolve"], "nodes")
        .iter()
        .map(|node| {
            let edges = list(node, "deps").iter().map(|edge| Value::Object(pick(edge, &["name", "pkg"])));
            json!({ "id": node["id"], "deps": edges.collect::<Vec<_>>(), "features": node["features"] })
        })
        .collect();
    json!({
        "packages": packages,
        "resolve": { "nodes": nodes },
        "workspace_members": metadata["workspace_members"],
        "workspace_root": metadata["workspace_root"],
        "target_directory": metadata["target_directory"],
    })
}

/// The manifests that the answer depends on.
fn manifests(metadata: &Value) -> BTreeSet<PathBuf> {
    let local = list(metadata, "packages").iter().filter(|package| package["source"].is_null());
    let paths = local.filter_map(|package| package["manifest_path"].as_str());
    let mut manifests: BTreeSet<PathBuf> = paths.map(PathBuf::from).collect();
    if let Some(root) = metadata["workspace_root"].as_str() {
        manifests.insert(Path::new(root).join("Cargo.toml"));
        manifests.insert(Path::new(root).join("Cargo.lock"));
    }
    manifests
}

/// Changes when cargo could answer otherwise: with the content of manifests, the features, and the
/// files from which cargo infers targets.
fn stamp(environment: &Environment, manifests: &BTreeSet<PathBuf>) -> String {
    // A target folder may have been copied from another checkout.
    let own = environment.manifest_dir.display();
    let caller = environment.caller.as_deref().unwrap_or(Path::new(""));
    let mut content = format!("4\n{own}\n{}\n{}\n", caller.display(), environment.features.join(","));
    for manifest in manifests {
        content.push_str(&format!("{}\n", manifest.display()));
        content.push_str(&std::fs::read_to_string(manifest).unwrap_or_default());
    }
    for folder in ["src", "src/bin", "examples", "tests", "benches"] {
        let mut names: Vec<_> = environment
            .manifest_dir
            .join(folder)
            .read_dir()
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        content.push_str(&format!("{folder}: {}\n", names.join(" ")));
    }
    cache::key(content.as_bytes())
}
