//! `[package.metadata.ferrogrid]` of a Cargo.toml: its keys, and the architectures that it requests. An
//! unknown key is an error, because it would silently have no effect.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cargo::metadata::{list, query};
use crate::error::Error;
use crate::options::{Arch, Options, variables};

/// The settings of a package's Cargo.toml.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// `arch`, unparsed.
    pub(crate) archs: Vec<String>,
    /// The rest.
    pub(crate) options: Options,
}

/// The settings that are tables, with their keys.
const TABLES: [(&str, &[&str]); 1] = [("bundle", &["skip"])];

/// The similarity from which a name counts as misspelt; 1 is equal.
const ALIKE: f64 = 0.7;

impl Settings {
    /// Reads the table `ferrogrid` of the metadata in the Cargo.toml at `manifest`; null if there is none.
    pub(crate) fn read(table: &Value, manifest: &Path) -> Result<Self, Error> {
        if table.is_null() {
            return Ok(Settings::default());
        }
        let known = manifest_keys();
        check_keys(table, "", &known, manifest)?;
        for (name, keys) in TABLES {
            if !table[name].is_null() {
                check_keys(&table[name], name, keys, manifest)?;
            }
        }
        Ok(Settings { archs: archs(&table["arch"])?, options: Options::from_metadata(table)? })
    }
}

/// The keys of `[package.metadata.ferrogrid]`, tables among them.
pub fn manifest_keys() -> Vec<&'static str> {
    ["arch"].into_iter().chain(Options::KEYS).chain(TABLES.map(|(name, _)| name)).collect()
}

fn check_keys(
    table: &Value,
    inside: &'static str,
    known: &[&'static str],
    manifest: &Path,
) -> Result<(), Error> {
    let Some(object) = table.as_object() else {
        let key = if inside.is_empty() { "*" } else { inside };
        return Err(Error::Setting { key, value: table.to_string(), expected: "a table" });
    };
    let Some(unknown) = object.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
    let dot = if inside.is_empty() { "" } else { "." };
    Err(Error::UnknownSetting {
        manifest: manifest.to_owned(),
        key: format!("{inside}{dot}{unknown}"),
        near: nearest(unknown, known),
        known: known.to_vec(),
    })
}

/// The known name most similar to the written one: `max-registers` for `max_register`.
pub(crate) fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let best =
        known.iter().copied().max_by(|a, b| similarity(written, a).total_cmp(&similarity(written, b)))?;
    (similarity(written, best) >= ALIKE).then_some(best)
}

/// Sorts names by their similarity to the written one, most similar first.
pub(crate) fn sort_by_similarity(written: &str, known: &mut [&str]) {
    known.sort_by(|a, b| similarity(written, b).total_cmp(&similarity(written, a)));
}

/// 1 for the same name, 0 for nothing in common.
fn similarity(written: &str, name: &str) -> f64 {
    let plain = |name: &str| name.replace('_', "-").to_lowercase();
    strsim::normalized_damerau_levenshtein(&plain(written), &plain(name))
}

fn archs(value: &Value) -> Result<Vec<String>, Error> {
    let wrong = || Error::Setting {
        key: "arch",
        value: value.to_string(),
        expected: "a list such as [\"sm_75\", \"sm_90\"]",
    };
    if value.is_null() {
        return Ok(Vec::new());
    }
    let list = value.as_array().filter(|list| !list.is_empty()).ok_or_else(wrong)?;
    list.iter().map(|name| name.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

/// The architectures that builds in `folder` are for, in ascending order: those of `FERROGRID_ARCH`, else
/// those in `[package.metadata.ferrogrid]` of the workspace's members. It is `sm_75` if none is set, and
/// outside packages. A build script's choice (`Build::arch`) is unknown before it runs.
///
/// # Errors
/// For names that are no architectures, unknown settings, and a Cargo.toml that cargo cannot read.
pub fn architectures(folder: &Path) -> Result<Vec<Arch>, Error> {
    if let Some(list) = variables::text("FERROGRID_ARCH") {
        return Arch::parse_list(&list);
    }
    let Some(manifest) = folder.ancestors().map(|it| it.join("Cargo.toml")).find(|it| it.is_file()) else {
        return Ok(vec![Arch::baseline()]);
    };
    of_workspace(&query::members(&manifest)?)
}

fn of_workspace(metadata: &Value) -> Result<Vec<Arch>, Error> {
    let mut archs = Vec::new();
    for package in list(metadata, "packages") {
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap_or_default());
        let settings = Settings::read(&package["metadata"]["ferrogrid"], &manifest)?;
        if !settings.archs.is_empty() {
            archs.extend(Arch::parse_list(&settings.archs.join(","))?);
        } else if compiles_kernels(package) {
            archs.push(Arch::baseline());
        }
    }
    if archs.is_empty() {
        archs.push(Arch::baseline());
    }
    archs.sort_by_key(Arch::order);
    archs.dedup();
    Ok(archs)
}

/// Whether the package's build script can call the build step.
fn compiles_kernels(package: &Value) -> bool {
    list(package, "dependencies").iter().any(|it| it["name"] == "ferrogrid-build" && it["kind"] == "build")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(table: &Value) -> String {
        Settings::read(table, Path::new("w/Cargo.toml")).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelt_key_is_an_error_that_names_it_and_the_near_one() {
        for (written, meant) in [
            ("max_registers", "max-registers"),
            ("line-infos", "line-info"),
            ("fastmath", "fast-math"),
            ("archs", "arch"),
            ("Panic", "panic"),
            ("cfgs", "cfg"),
        ] {
            let text = message(&json!({ (written): true }));
            let expected = format!(
                "`package.metadata.ferrogrid.{written}` in w/Cargo.toml is not a setting of Ferrogrid; did you mean `{meant}`?"
            );
            assert_eq!(text, expected);
        }
        let text = message(&json!({ "bundle": { "skips": ["ui"] } }));
        assert!(text.contains("ferrogrid.bundle.skips") && text.contains("did you mean `skip`?"), "{text}");
    }

    #[test]
    fn a_key_like_no_other_is_an_error_that_names_them_all() {
        let text = message(&json!({ "colour": "red" }));
        assert!(text.contains("`package.metadata.ferrogrid.colour`"), "{text}");
        assert!(text.contains("there are: arch, panic, overflow-checks,"), "{text}");
    }

    #[test]
    fn every_key_that_is_known_is_read() {
        for key in Options::KEYS.into_iter().chain(["arch", "bundle"]) {
            let text = message(&json!({ (key): [{ "no": "sense" }] }));
            assert!(text.contains(&format!("ferrogrid.{key}` in Cargo.toml is")), "{text}");
        }
    }

    #[test]
    fn architectures_are_a_list_of_names() {
        for wrong in [json!("sm_90"), json!([]), json!([90])] {
            let text = message(&json!({ "arch": wrong }));
            assert!(text.contains("expected a list such as [\"sm_75\", \"sm_90\"]"), "{text}");
        }
    }

    fn workspace(packages: &[(Value, bool)]) -> Result<Vec<String>, String> {
        let build = json!([{ "name": "ferrogrid-build", "kind": "build" }]);
        let package = |(settings, builds): &(Value, bool)| {
            json!({ "manifest_path": "w/Cargo.toml", "metadata": { "ferrogrid": settings },
                    "dependencies": if *builds { build.clone() } else { json!([]) } })
        };
        let packages: Vec<Value> = packages.iter().map(package).collect();
        let archs = of_workspace(&json!({ "packages": packages })).map_err(|error| error.to_string())?;
        Ok(archs.iter().map(Arch::to_string).collect())
    }

    #[test]
    fn a_workspace_needs_the_architectures_of_all_packages() {
        let asks = |archs: &[&str]| json!({ "arch": archs });
        let members = [(asks(&["sm_100", "sm_90"]), true), (json!(null), true), (asks(&["sm_90"]), true)];
        assert_eq!(workspace(&members).unwrap(), ["sm_75", "sm_90", "sm_100"]);
        assert_eq!(workspace(&members[..1]).unwrap(), ["sm_90", "sm_100"]);
        assert_eq!(workspace(&[(json!(null), false)]).unwrap(), ["sm_75"]);
        assert_eq!(workspace(&[]).unwrap(), ["sm_75"]);
        assert!(workspace(&[(json!({ "arhc": [] }), true)]).unwrap_err().contains("did you mean `arch`?"));
        assert!(workspace(&[(asks(&["sm_12"]), true)]).unwrap_err().contains("sm_12"));
    }

    #[test]
    fn outside_of_packages_it_is_the_baseline() {
        let folder = tempfile::tempdir().unwrap();
        if std::env::var_os("FERROGRID_ARCH").is_none() {
            assert_eq!(architectures(folder.path()).unwrap(), [Arch::baseline()]);
        }
    }
}
