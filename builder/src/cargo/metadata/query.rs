//! Runs `cargo metadata` for this build, and caches the result, reduced to what is used.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::libraries::{FIELDS, has_device_code};
use super::list;
use crate::cache;
use crate::cargo::Environment;
use crate::cargo::build_root::BuildRoot;
use crate::cargo::inner_cargo;
use crate::error::Error;
use crate::toolchain::process;

/// The metadata, reduced to what is used: from the cached file in `OUT_DIR` while that is fresh (cargo takes
/// a tenth of a second), else from cargo.
pub(super) fn metadata(environment: &Environment) -> Result<Value, Error> {
    let memory = environment.out_dir.join("ferrogrid/metadata.json");
    if let Ok(text) = cache::read(&memory)
        && let Ok(remembered) = serde_json::from_str::<Value>(&text)
        && remembered["stamp"].as_str() == Some(&stamp(environment, &manifests(&remembered)))
    {
        return Ok(remembered);
    }
    let answer = ask_for_build(environment)?;
    let mut metadata = reduce(&answer.metadata, &environment.manifest_dir.join("Cargo.toml"));
    metadata["is_installed"] = Value::Bool(answer.is_installed);
    metadata["lock"] = json!(answer.lock);
    metadata["stamp"] = Value::String(stamp(environment, &manifests(&metadata)));
    cache::write(&memory, &metadata.to_string())?;
    Ok(metadata)
}

/// cargo's answer.
struct Answer {
    metadata: Value,
    /// The Cargo.lock with the versions.
    lock: PathBuf,
    /// Whether a fetched package is the root of the build, not a dependency: by `cargo install`, or by a build
    /// with another target folder.
    is_installed: bool,
}

/// The answer for the workspace that is being built: the package's own, unless it is a dependency in the
/// build of another workspace, whose versions then count.
fn ask_for_build(environment: &Environment) -> Result<Answer, Error> {
    let own = environment.manifest_dir.join("Cargo.toml");
    let is_fetched = fetched(&environment.manifest_dir);
    let root = BuildRoot::of(environment);
    if !is_fetched && is_of_own_workspace(&root, environment) {
        return Question::of_package(environment).answer();
    }
    for outer in outer_workspaces(&root, &environment.out_dir) {
        let outer = outer.join("Cargo.toml");
        if outer == own {
            continue;
        }
        let question = Question { manifest: outer, features: &[], environment };
        if let Ok(answer) = question.answer()
            && super::own_package(&answer.metadata, &own).is_some()
        {
            return Ok(answer);
        }
    }
    if !is_fetched {
        return Question::of_package(environment).answer();
    }
    let answer = Question::of_package(environment).answer_as_installed()?;
    Ok(Answer { is_installed: true, ..answer })
}

/// Whether the package's own workspace is being built.
fn is_of_own_workspace(root: &BuildRoot, environment: &Environment) -> bool {
    let own = &environment.manifest_dir;
    if *root == BuildRoot::At(own.clone()) {
        return true;
    }
    // This resolves nothing, so no Cargo.lock is written.
    let Ok(metadata) = members(&own.join("Cargo.toml")) else { return false };
    let path = |field: &str| Path::new(metadata[field].as_str().unwrap_or_default());
    let in_its_target = || environment.out_dir.starts_with(path("target_directory"));
    root.can_be(path("workspace_root"), environment) && (matches!(root, BuildRoot::At(_)) || in_its_target())
}

/// The workspaces that may be the one that is being built: the one named by the build script's path; else
/// those above `OUT_DIR`, where the target folder is in its usual place, and above the working directory of
/// the outer cargo.
fn outer_workspaces(root: &BuildRoot, out_dir: &Path) -> Vec<PathBuf> {
    if let BuildRoot::At(root) = root {
        return vec![root.clone()];
    }
    let called_in = std::env::var_os("PWD").map(PathBuf::from);
    let places = [Some(out_dir.to_owned()), called_in].into_iter().flatten();
    let is_root = |folder: &&Path| folder.join("Cargo.lock").is_file() && folder.join("Cargo.toml").is_file();
    let mut roots: Vec<PathBuf> =
        places.filter_map(|place| Some(place.ancestors().find(is_root)?.to_owned())).collect();
    roots.dedup();
    roots
}

/// Whether cargo has fetched the package into its own folders, or the package is vendored.
pub(super) fn fetched(folder: &Path) -> bool {
    folder.join(".cargo-checksum.json").is_file() || is_in_cargo_home(folder)
}

/// Whether a file or folder is in a folder of fetched packages, whose files do not change.
pub(crate) fn is_in_cargo_home(file: &Path) -> bool {
    let is_below = |place: PathBuf| {
        file.starts_with(&place) || place.canonicalize().is_ok_and(|place| file.starts_with(place))
    };
    cargo_home().is_some_and(|home| ["registry", "git"].iter().any(|name| is_below(home.join(name))))
}

pub(super) fn cargo_home() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| dirs::home_dir().map(|home| home.join(".cargo")))
}

/// A `cargo metadata` call for a manifest.
struct Question<'a> {
    manifest: PathBuf,
    features: &'a [String],
    environment: &'a Environment,
}

/// The source of the versions.
#[derive(Clone, Copy)]
enum Versions {
    /// Cargo.lock as it is.
    Locked,
    /// Cargo.lock where it has them; nothing is written into the workspace.
    Seeded,
    /// The newest, as `cargo install` takes them without `--locked`.
    Newest,
}

impl<'a> Question<'a> {
    fn of_package(environment: &'a Environment) -> Self {
        let manifest = environment.manifest_dir.join("Cargo.toml");
        Question { manifest, features: &environment.features, environment }
    }

    /// Without the network first, since the build around us has just fetched what it needs. Nothing is
    /// written into the workspace: its sources may be read-only.
    fn answer(&self) -> Result<Answer, Error> {
        let offline = ["--offline"].as_slice();
        let newest = || self.ask(Versions::Newest, offline);
        let locked = self.ask(Versions::Locked, offline).or_else(|_| self.ask(Versions::Seeded, offline));
        let agreed = match locked {
            Ok(answer) if is_in_use(&answer.metadata) => return Ok(answer),
            // `cargo install` without `--locked` takes other versions than Cargo.lock has.
            Ok(answer) => Ok(newest().ok().filter(|newest| is_in_use(&newest.metadata)).unwrap_or(answer)),
            Err(error) => newest().map_err(|_| error),
        };
        agreed.or_else(|_| self.ask(Versions::Seeded, &[]))
    }

    /// The same for a package that was fetched to be installed; dependencies of its tests may be missing.
    fn answer_as_installed(&self) -> Result<Answer, Error> {
        let offline = [Versions::Locked, Versions::Seeded, Versions::Newest];
        for versions in offline {
            if let Ok(answer) = self.ask(versions, &["--offline"])
                && is_in_use(&answer.metadata)
            {
                return Ok(answer);
            }
        }
        self.ask_as_dependency(&["--offline"]).or_else(|_| self.answer())
    }

    /// Queries a package that has this one as its only dependency, since cargo then ignores its tests. The
    /// dependency is given by version, which means the source that cargo knows, or by folder.
    fn ask_as_dependency(&self, extra: &[&str]) -> Result<Answer, Error> {
        let own = &self.environment.manifest_dir;
        let (package, version) = identity_of(own)?;
        let by_version = format!("version = \"={version}\"");
        let by_folder = format!("path = {own:?}");
        let ways = [(&by_version, false), (&by_version, true), (&by_folder, false), (&by_folder, true)];
        let mut last = None;
        for (source, as_program) in ways {
            let answer = self.ask_for_dependent(&package, source, as_program, extra);
            let is_listed = |answer: &Answer| super::own_package(&answer.metadata, &self.manifest).is_some();
            match answer {
                Ok(answer) if is_listed(&answer) => return Ok(answer),
                other => last = other.err().or(last),
            }
        }
        Err(last.unwrap_or_else(|| {
            Error::Metadata(format!("cargo does not list a package at {}", own.display()))
        }))
    }

    /// The same for one form of the dependency. A package without a library can only be an artifact
    /// dependency, which stable cargos accept with an unstable flag.
    fn ask_for_dependent(
        &self,
        package: &str,
        source: &str,
        as_program: bool,
        extra: &[&str],
    ) -> Result<Answer, Error> {
        let folder = self.environment.out_dir.join("ferrogrid/resolved");
        let features: Vec<&String> = self.features.iter().filter(|name| *name != "default").collect();
        let manifest = format!(
            "[package]\nname = \"ferrogrid-resolved\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n\
             [dependencies.installed]\npackage = {package:?}\n{source}\nfeatures = {features:?}\n\
             default-features = {}\n{}",
            features.len() < self.features.len(),
            if as_program { "artifact = \"bin\"\n" } else { "" },
        );
        cache::write(&folder.join("Cargo.toml"), &manifest)?;
        cache::write(&folder.join("src/lib.rs"), "")?;
        let question = Question { manifest: folder.join("Cargo.toml"), features: &[], ..*self };
        let unstable: &[&str] = if as_program { &["-Zbindeps"] } else { &[] };
        let mut answer = question.ask(Versions::Newest, &[extra, unstable].concat())?;
        answer.metadata["workspace_root"] = json!(self.environment.manifest_dir);
        Ok(answer)
    }

    /// Runs `cargo metadata`.
    fn ask(&self, versions: Versions, extra: &[&str]) -> Result<Answer, Error> {
        let mut command = inner_cargo::command();
        // The first two determine the output folder, by which the build is recognised.
        for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "RUSTC"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.args(["metadata", "--format-version", "1", "--color=never"]).args(extra);
        // Dependencies of other platforms may never have been fetched. Outside of a build the platform is
        // this machine's.
        let platform = std::env::var_os("TARGET").unwrap_or_else(|| "host-tuple".into());
        command.arg("--filter-platform").arg(platform);
        if !self.features.is_empty() {
            command.arg("--features").arg(self.features.join(","));
        }
        command.arg("--manifest-path").arg(&self.manifest);
        if let Some(folder) = self.manifest.parent() {
            command.current_dir(folder);
        }
        let elsewhere = match versions {
            Versions::Locked => {
                command.arg("--locked");
                None
            }
            Versions::Seeded | Versions::Newest => Some(self.lock_in_out_dir(versions, &mut command)?),
        };
        let text = process::run_checked("cargo metadata", &mut command)?;
        let metadata: Value =
            serde_json::from_str(&text).map_err(|error| Error::Metadata(error.to_string()))?;
        let root = Path::new(metadata["workspace_root"].as_str().unwrap_or_default());
        let lock = elsewhere.unwrap_or_else(|| root.join("Cargo.lock"));
        Ok(Answer { metadata, lock, is_installed: false })
    }

    /// Lets cargo, also a stable one, keep its Cargo.lock in `OUT_DIR`.
    fn lock_in_out_dir(&self, versions: Versions, command: &mut Command) -> Result<PathBuf, Error> {
        let lock = self.environment.out_dir.join("ferrogrid/Cargo.lock");
        cache::remove(&lock)?;
        let folders = self.manifest.ancestors().skip(1);
        let seed = folders.map(|folder| folder.join("Cargo.lock")).find(|lock| lock.is_file());
        match seed {
            Some(seed) if matches!(versions, Versions::Seeded) => cache::write(&lock, &cache::read(&seed)?)?,
            _ => cache::create_dir(&self.environment.out_dir.join("ferrogrid"))?,
        }
        command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_UNSTABLE_LOCKFILE_PATH", "true");
        command.env("CARGO_RESOLVER_LOCKFILE_PATH", &lock);
        Ok(lock)
    }
}

/// Name and version of the package in `folder`. cargo tells build scripts; vendored packages may be roots of
/// workspaces whose members are missing.
fn identity_of(folder: &Path) -> Result<(String, String), Error> {
    let is_running =
        std::env::var_os("CARGO_MANIFEST_DIR").is_some_and(|running| running == folder.as_os_str());
    let variable = |name: &str| std::env::var(name).ok().filter(|_| is_running);
    if let (Some(name), Some(version)) = (variable("CARGO_PKG_NAME"), variable("CARGO_PKG_VERSION")) {
        return Ok((name, version));
    }
    let metadata = members(&folder.join("Cargo.toml"))?;
    let field = |name: &str| super::text(&metadata["packages"][0], name).map(str::to_owned);
    Ok((field("name")?, field("version")?))
}

/// Whether the answer has the `ferrogrid-build` that runs here, or none: otherwise this build uses other
/// versions.
fn is_in_use(metadata: &Value) -> bool {
    let mut steps =
        list(metadata, "packages").iter().filter(|it| it["name"] == env!("CARGO_PKG_NAME")).peekable();
    steps.peek().is_none()
        || steps.any(|step| step["version"] == env!("CARGO_PKG_VERSION") && has_sources(step))
}

/// Whether its sources are those that this crate was compiled from, unless these are gone.
fn has_sources(step: &Value) -> bool {
    let compiled = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let Ok(compiled) = compiled.canonicalize() else { return true };
    let listed = Path::new(step["manifest_path"].as_str().unwrap_or_default());
    listed.canonicalize().is_ok_and(|listed| listed == compiled)
}

/// The packages of the workspace of `manifest`, without what they depend on.
pub(crate) fn members(manifest: &Path) -> Result<Value, Error> {
    let mut command = inner_cargo::command();
    command.args(["metadata", "--no-deps", "--format-version", "1", "--color=never", "--manifest-path"]);
    let text = process::run_checked("cargo metadata", command.arg(manifest))?;
    serde_json::from_str(&text).map_err(|error| Error::Metadata(error.to_string()))
}

/// The metadata without what is not used: most of it is about packages that kernels never see.
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
            if package["source"].is_null() || Some(&package["id"]) == own || has_device_code(package) {
                fields.extend(["targets", "dependencies", "features", "metadata", "authors"]);
                fields.extend(FIELDS.map(|(field, _)| field));
                return Value::Object(pick(package, &fields));
            }
            // Enough to see which are patched.
            let declared = list(package, "dependencies").iter().filter(|it| it["kind"].is_null());
            let declared = declared.map(|it| Value::Object(pick(it, &["name", "source"])));
            let mut picked = pick(package, &fields);
            picked.insert("dependencies".to_owned(), declared.collect());
            Value::Object(picked)
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
    manifests.extend(metadata["lock"].as_str().map(PathBuf::from));
    if let Some(root) = metadata["workspace_root"].as_str() {
        manifests.insert(Path::new(root).join("Cargo.toml"));
        manifests.insert(Path::new(root).join("Cargo.lock"));
    }
    manifests
}

/// A hash of everything that the result depends on: the content of manifests, the features, and the files
/// from which cargo infers targets.
fn stamp(environment: &Environment, manifests: &BTreeSet<PathBuf>) -> String {
    // A target folder may be a copy of another checkout's.
    let own = environment.manifest_dir.display();
    let caller = environment.caller.as_deref().unwrap_or(Path::new(""));
    let mut content = format!("7\n{own}\n{}\n{}\n", caller.display(), environment.features.join(","));
    for manifest in manifests {
        content.push_str(&format!("{}\n", manifest.display()));
        content.push_str(&std::fs::read_to_string(manifest).unwrap_or_default());
    }
    for folder in ["src", "src/bin", "examples", "tests", "benches"] {
        let mut files: Vec<PathBuf> = cache::entries(&environment.manifest_dir.join(folder)).collect();
        files.sort();
        content.push_str(&format!("{folder}: {files:?}\n"));
    }
    cache::key(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_build_is_ours_if_it_has_this_very_step_or_none() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let step = |version: &str, manifest: &Path| json!({"name": env!("CARGO_PKG_NAME"), "version": version, "manifest_path": manifest});
        let with = |packages: &[Value]| is_in_use(&json!({ "packages": packages }));
        let (version, elsewhere) = (env!("CARGO_PKG_VERSION"), Path::new("/nowhere/Cargo.toml"));
        assert!(with(&[]) && with(&[json!({"name": "other"})]));
        assert!(with(&[step(version, &own)]));
        assert!(!with(&[step("0.0.0", &own)]), "of another version");
        assert!(!with(&[step(version, elsewhere)]), "of other sources");
        assert!(with(&[step("0.0.0", elsewhere), step(version, &own)]), "two, of which one is ours");
    }

    #[test]
    fn a_package_has_its_name_and_version_from_cargo() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(
            identity_of(own).unwrap(),
            ("ferrogrid-build".to_owned(), env!("CARGO_PKG_VERSION").to_owned())
        );
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/lib.rs"), "").unwrap();
        std::fs::write(
            folder.path().join("Cargo.toml"),
            "[package]\nname = \"other\"\nversion = \"3.2.1\"\n",
        )
        .unwrap();
        assert_eq!(identity_of(folder.path()).unwrap(), ("other".to_owned(), "3.2.1".to_owned()));
    }
}
