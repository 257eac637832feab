//! The table of settings in the book agrees with what the code reads.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ferrogrid_build::{manifest_keys, variables};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The first words in backquotes of the table's rows.
fn rows() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/src/settings.md")).unwrap();
    let name = |line: &str| line.strip_prefix("| `")?.split('`').next().map(str::to_owned);
    page.lines().filter_map(name).collect()
}

#[test]
fn the_table_has_every_variable_and_every_key_once() {
    let mut expected: Vec<String> = variables::KNOWN.map(str::to_owned).to_vec();
    expected.extend(manifest_keys().into_iter().map(str::to_owned));
    let mut rows = rows();
    rows.sort();
    expected.sort();
    assert_eq!(rows, expected);
}

/// Whoever reads a new variable adds it to the list, and so to the table.
#[test]
fn every_variable_in_the_sources_is_known() {
    let mut found = BTreeSet::new();
    for folder in
        ["src", "builder/src", "host/src", "device/src", "macros/src", "syntax/src", "cli/src", "bench/src"]
    {
        collect(&root().join(folder), &mut found);
    }
    let unknown: Vec<&String> = found.iter().filter(|name| !variables::is_known(name)).collect();
    assert!(unknown.is_empty(), "neither in variables::KNOWN nor internal: {unknown:?}");
    let unread: Vec<&str> = variables::KNOWN.into_iter().filter(|name| !found.contains(*name)).collect();
    assert!(unread.is_empty(), "nobody reads {unread:?}");
}

/// The names of variables in string literals of the sources, but those of tests.
fn collect(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        // The list itself is what is checked.
        if path.ends_with("builder/src/variables.rs") || path.file_name().unwrap() == "tests.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for part in code.split("\"FERROGRID_").skip(1) {
            let end = part.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(part.len());
            found.insert(format!("FERROGRID_{}", &part[..end]));
        }
    }
}
