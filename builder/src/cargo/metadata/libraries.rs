//! Dependencies with device code: libraries whose annotated modules the kernels of this package can use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Dependency, Graph, Target, TargetKind, dependencies, list, strings, text};
use crate::error::Error;
use crate::options::Options;
use crate::options::settings::Settings;

/// A package whose library has device code, reduced to what compiling it needs.
#[derive(Debug)]
pub(crate) struct LibraryPackage {
    /// The folder of its Cargo.toml.
    pub(crate) folder: PathBuf,
    pub(crate) target: Target,
    /// Its version, which tells it from others of its name.
    pub(crate) version: String,
    /// The features that are on in this build.
    pub(crate) features: Vec<String>,
    /// `package.metadata.ferrogrid`, not read yet: an error in it concerns only users of the library.
    /// Choices of its build script are not known here.
    settings: Value,
    /// The variables that cargo sets for its crates, without `OUT_DIR`.
    pub(crate) variables: Vec<(String, String)>,
    /// Its dependencies, by their names in its code.
    pub(crate) dependencies: BTreeMap<String, Dependency>,
}

impl LibraryPackage {
    /// Its Cargo.toml.
    pub(crate) fn manifest(&self) -> PathBuf {
        self.folder.join("Cargo.toml")
    }

    /// The options in its Cargo.toml.
    ///
    /// # Errors
    /// For an unknown setting, or a value that is not allowed.
    pub(crate) fn options(&self) -> Result<Options, Error> {
        Ok(Settings::read(&self.settings, &self.manifest())?.options)
    }
}

/// Whether a package that cargo lists depends on Ferrogrid's macros, and so can have annotated modules.
pub(super) fn has_device_code(package: &Value) -> bool {
    let is_own = ["ferrogrid", "ferrogrid-macros", "ferrogrid-device", "ferrogrid-host"];
    let depends = |name: &str| {
        let declared = list(package, "dependencies").iter();
        declared.filter(|it| it["kind"].is_null()).any(|it| it["name"] == name)
    };
    !is_own.iter().any(|name| package["name"] == *name)
        && (depends("ferrogrid") || depends("ferrogrid-macros"))
}

/// The libraries with device code among all dependencies of `id`, those of tests included, by their ids.
pub(super) fn libraries(graph: &Graph<'_>, id: &str) -> Result<BTreeMap<String, LibraryPackage>, Error> {
    let mut libraries = BTreeMap::new();
    for found in graph.edges(id).flat_map(|edge| graph.closure(edge.package)).filter(|found| *found != id) {
        let Some(package) = graph.packages.get(found).filter(|package| has_device_code(package)) else {
            continue;
        };
        if let Some(library) = library(graph, found, package)? {
            libraries.insert(found.to_owned(), library);
        }
    }
    Ok(libraries)
}

fn library(graph: &Graph<'_>, id: &str, package: &Value) -> Result<Option<LibraryPackage>, Error> {
    let features = graph.features.get(id).cloned().unwrap_or_default();
    let Some(target) = list(package, "targets").iter().find_map(Target::read) else { return Ok(None) };
    if target.kind != TargetKind::Lib {
        return Ok(None);
    }
    let manifest = Path::new(text(package, "manifest_path")?);
    Ok(Some(LibraryPackage {
        folder: manifest.parent().unwrap_or(Path::new("")).to_owned(),
        target,
        version: text(package, "version")?.to_owned(),
        settings: package["metadata"]["ferrogrid"].clone(),
        variables: variables(package, manifest),
        dependencies: dependencies(package, &features, graph),
        features,
    }))
}

/// The fields of a package that its crates see as variables, and the variables.
pub(super) const FIELDS: [(&str, &str); 9] = [
    ("name", "CARGO_PKG_NAME"),
    ("version", "CARGO_PKG_VERSION"),
    ("description", "CARGO_PKG_DESCRIPTION"),
    ("homepage", "CARGO_PKG_HOMEPAGE"),
    ("repository", "CARGO_PKG_REPOSITORY"),
    ("license", "CARGO_PKG_LICENSE"),
    ("license_file", "CARGO_PKG_LICENSE_FILE"),
    ("rust_version", "CARGO_PKG_RUST_VERSION"),
    ("readme", "CARGO_PKG_README"),
];

fn variables(package: &Value, manifest: &Path) -> Vec<(String, String)> {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let field = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
    let mut variables: Vec<(String, String)> =
        FIELDS.iter().map(|(name, variable)| ((*variable).to_owned(), field(name))).collect();
    let mut set = |name: &str, value: String| variables.push((name.to_owned(), value));
    set("CARGO_PKG_AUTHORS", strings(&package["authors"]).join(":"));
    set("CARGO_MANIFEST_PATH", path(manifest));
    set("CARGO_MANIFEST_DIR", path(manifest.parent().unwrap_or(Path::new(""))));
    let version = field("version");
    let without_build = version.split('+').next().unwrap_or_default();
    let (numbers, pre) = without_build.split_once('-').unwrap_or((without_build, ""));
    for (part, number) in ["MAJOR", "MINOR", "PATCH"].iter().zip(numbers.split('.')) {
        set(&format!("CARGO_PKG_VERSION_{part}"), number.to_owned());
    }
    set("CARGO_PKG_VERSION_PRE", pre.to_owned());
    variables
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn packages_that_depend_on_ferrogrid_have_device_code() {
        let with = |name: &str, dependency: Value| {
            has_device_code(&json!({"name": name, "dependencies": [dependency]}))
        };
        assert!(with("a", json!({"name": "ferrogrid", "kind": null})));
        assert!(with("a", json!({"name": "ferrogrid-macros", "kind": null})));
        assert!(!with("a", json!({"name": "ferrogrid", "kind": "dev"})), "for its tests only");
        assert!(!with("a", json!({"name": "ferrogrid-build", "kind": null})));
        for own in ["ferrogrid", "ferrogrid-macros", "ferrogrid-device", "ferrogrid-host"] {
            assert!(!with(own, json!({"name": "ferrogrid-macros", "kind": null})), "{own}");
        }
    }

    #[test]
    fn the_variables_of_a_package_are_those_of_cargo() {
        let package =
            json!({"name": "a", "version": "1.2.3-rc.1+5", "license": "MIT", "authors": ["x", "y"]});
        let found: BTreeMap<String, String> =
            variables(&package, Path::new("/a/Cargo.toml")).into_iter().collect();
        for (name, value) in [
            ("CARGO_PKG_NAME", "a"),
            ("CARGO_PKG_VERSION", "1.2.3-rc.1+5"),
            ("CARGO_PKG_VERSION_MAJOR", "1"),
            ("CARGO_PKG_VERSION_MINOR", "2"),
            ("CARGO_PKG_VERSION_PATCH", "3"),
            ("CARGO_PKG_VERSION_PRE", "rc.1"),
            ("CARGO_PKG_LICENSE", "MIT"),
            ("CARGO_PKG_HOMEPAGE", ""),
            ("CARGO_PKG_AUTHORS", "x:y"),
            ("CARGO_MANIFEST_DIR", "/a"),
            ("CARGO_MANIFEST_PATH", "/a/Cargo.toml"),
        ] {
            assert_eq!(found[name], value, "{name}");
        }
        assert_eq!(found.len(), 16);
    }
}
