//! Tables of the book agree with the code: its settings, and the tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ferrogrid_build::{manifest_keys, variables};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The first words in backquotes of the table's rows.
fn rows() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/src/tools/settings.md")).unwrap();
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

/// New variables must be in the list, and so in the table.
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
    assert!(unread.is_empty(), "no code reads {unread:?}");
}

/// The book's names of tests exist.
#[test]
fn the_tests_named_in_the_book_exist() {
    let page = fs::read_to_string(root().join("docs/src/internals/tests.md")).unwrap();
    let mut sources = String::new();
    for folder in ["host", "tests", "builder", "device/src", "syntax/src", "ptx", "macros/src"] {
        read_all(&root().join(folder), &mut sources);
    }
    for section in ["Boundaries", "Misuse"] {
        let (_, section) = page.split_once(&format!("\n## {section}\n")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let mut named = 0;
        for tests in section.lines().filter_map(|row| row.strip_suffix('|')?.rsplit('|').next()) {
            let is_name = |word: &&str| {
                word.contains('_')
                    && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            };
            for name in tests.split('`').filter(is_name) {
                named += 1;
                let is_there =
                    [format!("fn {name}("), format!("\"{name}\"")].iter().any(|it| sources.contains(it));
                assert!(is_there, "no test is called {name}");
            }
        }
        assert!(named > 15, "{named} tests");
    }
}

/// The text of all sources below, with the names of the files: a test of `tests/ui` is named by its file.
fn read_all(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, text);
        } else if path.extension().is_some_and(|it| it == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
            text.push_str(&format!("{:?}\n", path.file_stem().unwrap()));
        }
    }
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
        if path.ends_with("builder/src/options/variables.rs") || path.file_name().unwrap() == "tests.rs" {
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
