//! The package that is being built, from `cargo metadata`: its targets, its dependencies, and the location of
//! Ferrogrid's own crates.
//!
//! | file | holds |
//! |---|---|
//! | `query.rs` | runs `cargo metadata`, and caches the result |
//! | `libraries.rs` | dependencies with device code |
//! | `patches.rs` | the `[patch]` tables that apply |
//! | `program.rs` | the package of a program that is given as text |

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cargo::Environment;
use crate::cargo::build_root::BuildRoot;
use crate::error::Error;
use crate::options::Options;
use crate::options::settings::Settings;

mod libraries;
mod patches;
mod program;
pub(crate) mod query;
#[cfg(test)]
mod tests;

pub(crate) use libraries::LibraryPackage;
pub(crate) use patches::Patches;
pub(crate) use query::is_in_cargo_home;

/// The package that is being built.
#[derive(Debug)]
pub(crate) struct Package {
    /// Its id in the metadata.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) workspace_root: PathBuf,
    /// The Cargo.lock with the versions of this build.
    pub(crate) lock: PathBuf,
    pub(crate) targets: Vec<Target>,
    /// Its dependencies, by their names in its code.
    pub(crate) dependencies: BTreeMap<String, Dependency>,
    /// Its dependencies with device code, direct and indirect, by their ids.
    pub(crate) libraries: BTreeMap<String, LibraryPackage>,
    /// The crates that every kernel uses: `ferrogrid-device` and `ferrogrid-macros`.
    pub(crate) ferrogrid: Option<[Dependency; 2]>,
    /// `package.metadata.ferrogrid.arch`.
    pub(crate) archs: Vec<String>,
    /// The rest of `package.metadata.ferrogrid`.
    pub(crate) options: Options,
    /// The files and folders in which cargo discovers targets: a new file there is a new target.
    pub(crate) discovered: Vec<PathBuf>,
    /// The patches that apply to dependencies of kernels.
    pub(crate) patches: Patches,
    /// The folders of the path dependencies of each package, itself included, by package id.
    local: BTreeMap<String, BTreeSet<PathBuf>>,
    /// The ids of each package that kernels may name and of all its dependencies, by its id.
    made_of: BTreeMap<String, BTreeSet<String>>,
}

/// A cargo target that can hold kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: TargetKind,
    pub(crate) name: String,
    pub(crate) source: PathBuf,
    pub(crate) edition: String,
}

impl Target {
    /// Its kind and name: `example-saxpy`.
    pub(crate) fn slug(&self) -> String {
        format!("{}-{}", self.kind.name(), self.name)
    }

    /// Reads a target; `None` if it cannot have kernels.
    fn read(target: &Value) -> Option<Self> {
        Some(Target {
            kind: TargetKind::parse(&target["kind"])?,
            name: target["name"].as_str()?.to_owned(),
            source: PathBuf::from(target["src_path"].as_str()?),
            edition: target["edition"].as_str().unwrap_or("2021").to_owned(),
        })
    }
}

/// The kinds of cargo targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetKind {
    Lib,
    Bin,
    Example,
    Test,
    Bench,
    /// Not a cargo target: a text that is compiled at run time.
    Program,
}

impl TargetKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            TargetKind::Lib => "lib",
            TargetKind::Bin => "bin",
            TargetKind::Example => "example",
            TargetKind::Test => "test",
            TargetKind::Bench => "bench",
            TargetKind::Program => "program",
        }
    }

    fn parse(kinds: &Value) -> Option<Self> {
        let kinds: Vec<&str> = kinds.as_array()?.iter().filter_map(Value::as_str).collect();
        let library = ["lib", "rlib", "dylib", "cdylib", "staticlib"];
        match kinds.as_slice() {
            ["bin"] => Some(TargetKind::Bin),
            ["example"] => Some(TargetKind::Example),
            ["test"] => Some(TargetKind::Test),
            ["bench"] => Some(TargetKind::Bench),
            kinds if kinds.iter().any(|kind| library.contains(kind)) => Some(TargetKind::Lib),
            _ => None,
        }
    }
}

/// A dependency, in the terms of a Cargo.toml.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// Its package's name.
    pub(crate) package: String,
    /// Its package's id in the metadata.
    pub(crate) id: String,
    pub(crate) source: Source,
    pub(crate) default_features: bool,
    pub(crate) features: Vec<String>,
}

/// Where a dependency comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Path(PathBuf),
    /// `index` is none for crates.io.
    Registry {
        version: String,
        index: Option<String>,
    },
    /// `reference` is `branch`, `tag` or `rev` with its value.
    Git {
        url: String,
        reference: Option<(String, String)>,
    },
}

impl Dependency {
    /// Whether it is one of Ferrogrid's crates, which a facade replaces on the device.
    pub(crate) fn is_ferrogrid(&self) -> bool {
        ["ferrogrid", "ferrogrid-macros"].contains(&self.package.as_str())
    }
}

impl Package {
    /// Runs `cargo metadata`, or reads the cached result if nothing that it depends on has changed.
    pub(crate) fn load(environment: &Environment) -> Result<Self, Error> {
        let metadata = query::metadata(environment)?;
        Self::from_metadata(&metadata, environment)
    }

    /// Whether it has a library, with kernels or without.
    pub(crate) fn has_library(&self) -> bool {
        self.targets.iter().any(|target| target.kind == TargetKind::Lib)
    }

    /// Whether `name` is a crate besides Ferrogrid.
    pub(crate) fn names_crate(&self, name: &str) -> bool {
        self.dependencies.get(name).is_some_and(|dependency| !dependency.is_ferrogrid())
    }

    fn from_metadata(metadata: &Value, environment: &Environment) -> Result<Self, Error> {
        let manifest = environment.manifest_dir.join("Cargo.toml");
        let own = own_package(metadata, &manifest).ok_or_else(|| {
            Error::Metadata(format!("cargo does not list a package at {}", manifest.display()))
        })?;
        let id = text(own, "id")?;
        let members = list(metadata, "workspace_members");
        let workspace_root = PathBuf::from(text(metadata, "workspace_root")?);
        // With a target folder outside, a package may be asked about its own workspace while another is
        // being built.
        let is_own_build = !query::fetched(&environment.manifest_dir)
            && BuildRoot::of(environment).can_be(&workspace_root, environment);
        let is_member = is_own_build && members.iter().any(|member| member.as_str() == Some(id));
        let built = match is_member {
            true => Built::All,
            false if metadata["is_installed"] == true => Built::Programs,
            false => Built::Library,
        };
        let graph = Graph::new(metadata);
        let settings = Settings::read(&own["metadata"]["ferrogrid"], &manifest)?;
        let dependencies = dependencies(own, &environment.features, &graph);
        let ferrogrid = graph.ferrogrid(id);
        let libraries = libraries::libraries(&graph, id)?;
        let beneath = libraries.values().flat_map(|library| library.dependencies.values());
        let made_of = dependencies.values().chain(beneath).chain(ferrogrid.iter().flatten());
        let made_of: BTreeMap<_, _> = made_of.map(|it| (it.id.clone(), graph.made_of(&it.id))).collect();
        let within: BTreeSet<&str> = made_of.values().flatten().map(String::as_str).collect();
        let root = std::fs::read_to_string(workspace_root.join("Cargo.toml")).unwrap_or_default();
        let within = graph.nodes.keys().copied().filter(|id| within.contains(id));
        let patches = patches::patches(&graph, within, &root);
        Ok(Package {
            id: id.to_owned(),
            name: text(own, "name")?.to_owned(),
            lock: metadata["lock"].as_str().map_or_else(|| workspace_root.join("Cargo.lock"), PathBuf::from),
            workspace_root,
            targets: targets(own, &environment.features, built),
            dependencies,
            libraries,
            ferrogrid,
            made_of,
            patches,
            archs: settings.archs,
            options: settings.options,
            discovered: discovered(&environment.manifest_dir),
            local: graph.local_folders(),
        })
    }

    /// The package's name for `ferrogrid`, if it is another one.
    pub(crate) fn facade_name(&self) -> Option<&str> {
        let mut names = self
            .dependencies
            .iter()
            .filter(|(_, it)| it.package == "ferrogrid")
            .map(|(name, _)| name.as_str());
        names.clone().all(|name| name != "ferrogrid").then(|| names.next()).flatten()
    }

    /// The folders of all path dependencies of `dependency`, its own included.
    pub(crate) fn local_folders(&self, dependency: &Dependency) -> impl Iterator<Item = &PathBuf> {
        self.local.get(&dependency.id).into_iter().flatten()
    }

    /// The ids of `dependency` and of all its dependencies; version and source are part of an id.
    pub(crate) fn made_of(&self, dependency: &Dependency) -> impl Iterator<Item = &String> {
        self.made_of.get(&dependency.id).into_iter().flatten()
    }
}

fn own_package<'a>(metadata: &'a Value, manifest: &Path) -> Option<&'a Value> {
    let wanted = manifest.canonicalize().unwrap_or_else(|_| manifest.to_owned());
    list(metadata, "packages").iter().find(|package| {
        let path = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        path == manifest || path.canonicalize().is_ok_and(|path| path == wanted)
    })
}

/// The targets of a package that cargo compiles.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Built {
    /// All: a member of the workspace.
    All,
    /// Programs, or examples if there are none: an installed package.
    Programs,
    /// A dependency.
    Library,
}

/// The targets whose required features are on.
fn targets(package: &Value, features: &[String], built: Built) -> Vec<Target> {
    let mut targets = Vec::new();
    let has_programs = list(package, "targets").iter().any(|it| it["kind"][0] == "bin");
    let is_built = |kind| match (built, kind) {
        (Built::All, _) | (_, TargetKind::Lib) | (Built::Programs, TargetKind::Bin) => true,
        (Built::Programs, TargetKind::Example) => !has_programs,
        _ => false,
    };
    for target in list(package, "targets") {
        let Some(kind) = TargetKind::parse(&target["kind"]) else { continue };
        let required = strings(&target["required-features"]);
        if !required.iter().all(|feature| features.contains(feature)) {
            continue;
        }
        targets.extend(is_built(kind).then(|| Target::read(target)).flatten());
    }
    targets
}

/// The folders in which cargo looks for targets. `autotests = false` and the like in Cargo.toml switch a
/// folder off; then the build step does not run again after every edit there.
fn discovered(folder: &Path) -> Vec<PathBuf> {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    let is_off = |key: &str| {
        let value = manifest.lines().find_map(|line| line.trim().strip_prefix(key)?.trim().strip_prefix('='));
        value.is_some_and(|value| value.trim().starts_with("false"))
    };
    let places = [
        ("autolib", "src/lib.rs"),
        ("autobins", "src/main.rs"),
        ("autobins", "src/bin"),
        ("autoexamples", "examples"),
        ("autotests", "tests"),
        ("autobenches", "benches"),
    ];
    places.into_iter().filter(|(key, _)| !is_off(key)).map(|(_, place)| folder.join(place)).collect()
}

/// The dependencies, with the features that the package and its own features request. Features that others
/// request do not count: a program in the workspace may enable the `std` of a crate.
fn dependencies(package: &Value, active: &[String], graph: &Graph<'_>) -> BTreeMap<String, Dependency> {
    let mut found = BTreeMap::new();
    let id = package["id"].as_str().unwrap_or_default();
    for &Edge { name, package: dependency_id, .. } in graph.edges(id) {
        let Some(resolved) = graph.packages.get(dependency_id) else { continue };
        let declared = list(package, "dependencies").iter().filter(|declared| {
            declared["name"] == resolved["name"] && declared["kind"].as_str() != Some("build")
        });
        // A package may be declared several times (also for tests, or for a platform); features add up.
        let mut features = BTreeSet::new();
        let mut default_features = false;
        let mut is_declared = false;
        let mut called = BTreeSet::new();
        for declaration in declared {
            if let Some(rename) = declaration["rename"].as_str()
                && rename.replace('-', "_") != name
            {
                continue;
            }
            is_declared = true;
            called.extend(declaration["rename"].as_str().or(declaration["name"].as_str()));
            default_features |= declaration["uses_default_features"].as_bool().unwrap_or(true);
            features.extend(strings(&declaration["features"]));
        }
        if !is_declared {
            continue;
        }
        let Some(mut dependency) = graph.dependency(dependency_id) else { continue };
        features.extend(called.iter().flat_map(|called| passed_on(package, active, called)));
        dependency.default_features = default_features;
        dependency.features = features.into_iter().collect();
        found.insert(name.to_owned(), dependency);
    }
    found
}

/// The features of the dependency `called` that the package's active features switch on: those of `fast =
/// ["called/simd", "called?/x"]`.
fn passed_on(package: &Value, active: &[String], called: &str) -> Vec<String> {
    let entries = active.iter().flat_map(|feature| strings(&package["features"][feature]));
    let of_dependency = |entry: String| {
        let (dependency, feature) = entry.split_once('/')?;
        (dependency.trim_end_matches('?') == called).then(|| feature.to_owned())
    };
    entries.filter_map(of_dependency).collect()
}

/// A dependency of a package.
struct Edge<'a> {
    /// Its name in the package's code.
    name: &'a str,
    /// Its id.
    package: &'a str,
    /// Whether only tests, examples and benches use it.
    for_tests: bool,
}

impl<'a> Edge<'a> {
    fn read(edge: &'a Value) -> Option<Self> {
        let kinds = list(edge, "dep_kinds");
        let for_tests = !kinds.is_empty() && kinds.iter().all(|it| it["kind"] == "dev");
        Some(Edge { name: edge["name"].as_str()?, package: edge["pkg"].as_str()?, for_tests })
    }
}

/// The resolved packages and the edges between them.
struct Graph<'a> {
    packages: BTreeMap<&'a str, &'a Value>,
    nodes: BTreeMap<&'a str, Vec<Edge<'a>>>,
    /// The features that are on in this build, by package id.
    features: BTreeMap<&'a str, Vec<String>>,
}

impl<'a> Graph<'a> {
    fn new(metadata: &'a Value) -> Self {
        let packages = list(metadata, "packages")
            .iter()
            .filter_map(|package| Some((package["id"].as_str()?, package)))
            .collect();
        let nodes = list(&metadata["resolve"], "nodes")
            .iter()
            .filter_map(|node| {
                Some((node["id"].as_str()?, list(node, "deps").iter().filter_map(Edge::read).collect()))
            })
            .collect();
        let features = list(&metadata["resolve"], "nodes")
            .iter()
            .filter_map(|node| Some((node["id"].as_str()?, strings(&node["features"]))))
            .collect();
        Graph { packages, nodes, features }
    }

    fn edges(&self, id: &str) -> impl Iterator<Item = &Edge<'a>> {
        self.nodes.get(id).into_iter().flatten()
    }

    /// `id` and all its dependencies, without those of tests.
    fn closure(&self, id: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if found.insert(id) {
                open.extend(self.edges(id).filter(|edge| !edge.for_tests).map(|edge| edge.package));
            }
        }
        found
    }

    /// The crates that every kernel uses, among the dependencies of `id`, with their features in this build.
    /// The host compiles kernels with these features, whichever package enabled them.
    fn ferrogrid(&self, id: &'a str) -> Option<[Dependency; 2]> {
        let closure: BTreeSet<&str> = self.edges(id).flat_map(|edge| self.closure(edge.package)).collect();
        let named = |name: &str| {
            let id = closure.iter().find(|id| self.packages.get(*id).is_some_and(|it| it["name"] == name))?;
            let mut dependency = self.dependency(id)?;
            let mut features = self.features.get(id).cloned().unwrap_or_default();
            dependency.default_features = features.iter().any(|feature| feature == "default");
            features.retain(|feature| feature != "default");
            dependency.features = features;
            Some(dependency)
        };
        Some([named("ferrogrid-device")?, named("ferrogrid-macros")?])
    }

    fn dependency(&self, id: &str) -> Option<Dependency> {
        let package = self.packages.get(id)?;
        Some(Dependency {
            package: package["name"].as_str()?.to_owned(),
            id: id.to_owned(),
            source: source(package)?,
            default_features: true,
            features: Vec::new(),
        })
    }

    /// The ids of `id` and of all its dependencies.
    fn made_of(&self, id: &str) -> BTreeSet<String> {
        let known = self.nodes.get_key_value(id);
        known.into_iter().flat_map(|(id, _)| self.closure(id)).map(str::to_owned).collect()
    }

    fn local_folders(&self) -> BTreeMap<String, BTreeSet<PathBuf>> {
        let folder = |id: &&str| {
            let package = self.packages.get(*id)?;
            if !package["source"].is_null() {
                return None;
            }
            Some(Path::new(package["manifest_path"].as_str()?).parent()?.to_owned())
        };
        let folders = |id: &'a str| self.closure(id).iter().filter_map(folder).collect();
        self.packages.keys().map(|&id| (id.to_owned(), folders(id))).collect()
    }
}

/// The source of a resolved package, in the terms of Cargo.toml.
fn source(package: &Value) -> Option<Source> {
    let Some(source) = package["source"].as_str() else {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        return Some(Source::Path(manifest.parent()?.to_owned()));
    };
    if let Some(git) = source.strip_prefix("git+") {
        let git = git.split('#').next()?;
        let (url, query) = git.split_once('?').unwrap_or((git, ""));
        let reference = query.split_once('=').map(|(kind, value)| (kind.to_owned(), value.to_owned()));
        return Some(Source::Git { url: url.to_owned(), reference });
    }
    let version = package["version"].as_str()?.to_owned();
    let index =
        (!is_crates_io(source)).then(|| source.strip_prefix("registry+").unwrap_or(source).to_owned());
    Some(Source::Registry { version, index })
}

fn is_crates_io(source: &str) -> bool {
    source.contains("github.com/rust-lang/crates.io-index") || source.contains("index.crates.io")
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, Error> {
    value[field].as_str().ok_or_else(|| Error::Metadata(format!("it has no `{field}`")))
}

/// The items of a list; none if there is no such field.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// The texts of a list.
pub(crate) fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}
