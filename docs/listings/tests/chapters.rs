//! Checks the book's text: every block of Rust is compiled and run somewhere, every link resolves, every
//! chapter is in the summary.

mod markdown;
mod tables;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use markdown::{Block, chapter, docs, files, listing, pages, parse, renewed};

/// Why a block in `folder` is not tested; `None` if it is.
fn fault(block: &Block, folder: &Path) -> Option<String> {
    let (language, words) = block.words();
    match (language, words.as_slice()) {
        ("rust", ["ignore"]) => listing_fault(block, folder),
        ("rust", words) => {
            let runs = |word: &&str| ["compile_fail", "should_panic"].contains(word) || word.starts_with('E');
            words
                .iter()
                .find(|word| !runs(word))
                .map(|word| format!("`{word}`: it would not be compiled and run"))
        }
        // `tests/commands.rs` runs them.
        ("sh", [] | ["gpu"]) | ("toml", []) => None,
        ("text", []) if block.text.starts_with("$ ") => None,
        ("text", ["form"]) if !block.text.contains("$ ") => None,
        ("text", _) => {
            Some("what a command prints begins with `$ COMMAND`; what shows a form is `text,form`".into())
        }
        ("" | "indented", _) => Some("it says no language, so rustdoc takes it for Rust".into()),
        _ => Some(format!("no test runs {:?}", block.info)),
    }
}

/// Why a block that rustdoc skips does not show a tested listing.
fn listing_fault(block: &Block, folder: &Path) -> Option<String> {
    let Some(name) = &block.listing else {
        return Some("it is not compiled, and has no `<!-- listing: FILE:ANCHOR -->` before it".into());
    };
    match listing(name, folder) {
        Ok(text) if text == block.text => None,
        Ok(_) => {
            Some(format!("it differs from {name}; FERROGRID_RENEW_LISTINGS=1 makes this test rewrite it"))
        }
        Err(error) => Some(error),
    }
}

#[test]
fn every_block_is_compiled_and_run() {
    let library = fs::read_to_string(docs().join("listings/src/lib.rs")).unwrap();
    let mut shown = 0;
    for path in pages() {
        let folder = path.parent().unwrap();
        let name = path.strip_prefix(docs().join("src")).unwrap_or(Path::new("README.md"));
        if std::env::var_os("FERROGRID_RENEW_LISTINGS").is_some() {
            let text = renewed(&fs::read_to_string(&path).unwrap(), folder);
            fs::write(&path, text.unwrap_or_else(|error| panic!("{}: {error}", name.display()))).unwrap();
        }
        let blocks = chapter(&path).blocks;
        for block in &blocks {
            if let Some(fault) = fault(block, folder) {
                panic!("{}: {fault}:\n{}", name.display(), block.text);
            }
            shown += usize::from(block.listing.is_some());
        }
        let doctests = |block: &Block| block.info.starts_with("rust") && block.info != "rust,ignore";
        // The facade includes the README.
        let documented =
            name == Path::new("README.md") || library.contains(&format!("= \"{}\"", name.display()));
        assert!(
            documented || !blocks.iter().any(doctests),
            "{} is not in listings/src/lib.rs",
            name.display()
        );
    }
    assert!(shown > 20, "only {shown} listings are shown");
}

#[test]
fn every_file_of_listings_is_compiled() {
    let folder = docs().join("listings/tests/book");
    let main = fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_module = main.lines().any(|line| line == format!("mod {name};"));
        // Files that listings link are beside them.
        let is_linked = path.extension().is_some_and(|it| it == "ptx");
        assert!(name == "main" || is_module || is_linked, "{} is no module of the tests", path.display());
    }
}

/// Every marked part is shown; others can be removed.
#[test]
fn every_anchor_is_shown() {
    let shown: String = pages().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    for folder in ["tests/book", "src/bin"] {
        for entry in fs::read_dir(docs().join("listings").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            for anchor in text.lines().filter_map(|line| line.trim().strip_prefix("// ANCHOR: ")) {
                assert!(shown.contains(&format!("/{name}:{anchor} -->")), "{name}: `{anchor}` is not shown");
            }
        }
    }
}

#[test]
fn every_chapter_is_in_the_summary_once() {
    let source = docs().join("src");
    let listed = chapter(&source.join("SUMMARY.md")).links;
    let mut expected: Vec<String> =
        files().iter().map(|path| path.strip_prefix(&source).unwrap().display().to_string()).collect();
    expected.retain(|name| name != "SUMMARY.md");
    expected.sort();
    let mut sorted = listed.clone();
    sorted.sort();
    assert_eq!(sorted, expected);
    for name in listed {
        assert_eq!(chapter(&source.join(&name)).titles, 1, "{name} has one title");
    }
}

/// The order is that of `cargo ferrogrid run --list`: by the numbers in the first lines of the examples.
#[test]
fn the_gallery_has_every_example_in_learning_order() {
    let number = |text: &str| text.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>();
    let root = docs().parent().unwrap().to_owned();
    let entries = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    // Each chapter has a folder. `candle` is a package: beside its manifest it has only a build.rs.
    let files = entries(&root.join("examples")).filter(|path| path.is_dir()).flat_map(|it| entries(&it));
    let is_example =
        |path: &PathBuf| path.extension().is_some_and(|it| it == "rs") && !path.ends_with("build.rs");
    let sources = files.filter(is_example);
    let mut examples: Vec<(Vec<u32>, String)> = sources
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let place = number(text.split(' ').nth(1).unwrap());
            (place.unwrap(), path.strip_prefix(&root).unwrap().display().to_string())
        })
        .collect();
    examples.sort();
    let page = fs::read_to_string(docs().join("src/first-steps/gallery.md")).unwrap();
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [place, example, shows, look] = cells.as_slice() else { return None };
        let (name, link) = example.strip_prefix('[')?.strip_suffix(')')?.split_once("](")?;
        let source = link.strip_prefix("https://github.com/ferrogrid/ferrogrid/blob/main/")?;
        assert!(source.ends_with(&format!("/{name}.rs")), "{line}");
        assert!(shows.len() > 10 && look.len() > 10, "{line}");
        Some((number(place)?, source.to_owned()))
    });
    assert_eq!(rows.collect::<Vec<_>>(), examples);
}

#[test]
fn every_link_has_a_target() {
    let root = docs().parent().unwrap().to_owned();
    let others = ["README.md", "CHANGELOG.md", "benches/README.md"].map(|name| root.join(name));
    let mut followed = 0;
    for path in files().into_iter().chain(others) {
        let in_book = path.starts_with(docs());
        for link in chapter(&path).links {
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let place = path.strip_prefix(&root).unwrap().display();
            assert!(target.exists(), "{place}: {link} leads nowhere");
            let resolved = target.canonicalize().unwrap();
            let inside = resolved.starts_with(docs().join("src").canonicalize().unwrap());
            assert!(
                !in_book || inside,
                "{place}: {link} leads out of the book; link to the repository instead"
            );
            let known = anchor.is_empty() || chapter(&target).anchors.contains(anchor);
            assert!(known, "{place}: there is no heading for {link}");
            followed += 1;
        }
    }
    assert!(followed > 30, "only {followed} links were followed");
}

/// The examples in the documentation of macros are tests of another crate, which lists them.
#[test]
fn every_documentation_of_a_macro_is_tested() {
    let root = docs().parent().unwrap().to_owned();
    let tested = fs::read_to_string(root.join("src/macro_examples.rs")).unwrap();
    for entry in fs::read_dir(root.join("macros/src/docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(tested.contains(&format!("docs/{name}\"")), "src/macro_examples.rs lacks {name}");
    }
}

/// Links to files of this repository, as the site has them.
#[test]
fn every_link_to_the_repository_has_a_target() {
    let root = docs().parent().unwrap().to_owned();
    let mut followed = 0;
    for path in files() {
        for link in chapter(&path).links {
            let Some(inside) = link.strip_prefix("https://github.com/ferrogrid/ferrogrid/") else { continue };
            let file = ["blob/main/", "tree/main/"].iter().find_map(|start| inside.strip_prefix(start));
            let file = file.and_then(|it| it.split('#').next()).unwrap_or_default();
            assert!(root.join(file).exists(), "{}: {link} leads nowhere", path.display());
            followed += 1;
        }
    }
    assert!(followed > 40, "only {followed} links were followed");
}

/// The check itself: untested blocks are found.
#[test]
fn untested_blocks_are_found() {
    let folder = docs().join("src");
    let found = |text: &str| {
        let chapter = parse(text);
        assert_eq!(chapter.blocks.len(), 1);
        fault(&chapter.blocks[0], &folder)
    };
    assert_eq!(found("```rust\nassert!(true);\n```"), None);
    assert_eq!(found("```rust,compile_fail,E0502\nx\n```"), None);
    assert_eq!(found("```sh\nls\n```").or(found("```text\n$ ls\na\n```")), None);
    let kernel = listing("../listings/src/bin/first_kernel.rs:kernel", &folder).unwrap();
    assert!(kernel.starts_with("#[ferrogrid::module]\nmod kernels {\n    use"), "{kernel}");
    let shown = |name: &str, text: &str| {
        format!("<!-- listing: ../listings/src/bin/{name} -->\n```rust,ignore\n{text}```\n")
    };
    assert_eq!(found(&shown("first_kernel.rs:kernel", &kernel)), None);
    for escaping in [
        "```\nfn main() {}\n```",
        "    fn main() {}",
        "```rust,ignore\nfn main() {}\n```",
        "```rust,no_run\nfn main() {}\n```",
        "```Rust\nfn main() {}\n```",
        "- in a list\n\n  ```rust, ignore\n  fn main() {}\n  ```",
        "```sh,ignore\nls\n```",
        "```console\n$ ls\n```",
        "```text\nwhat some command printed\n```",
        "```text,form\n$ ls\n```",
        &shown("first_kernel.rs:kernel", &kernel.replace("saxpy", "saxpi")),
        &shown("first_kernel.rs", &kernel),
        &shown("first_kernel.rs:absent", &kernel),
        &shown("absent.rs:kernel", &kernel),
        &shown("../lib.rs:kernel", &kernel),
        &format!(
            "{}\n\nA word between.\n\n```rust,ignore\n{kernel}```",
            "<!-- listing: ../listings/src/bin/first_kernel.rs:kernel -->"
        ),
    ] {
        assert!(found(escaping).is_some(), "no test runs {escaping:?}");
    }
}

/// Each supported row of the table of features names tests that exist.
#[test]
fn every_supported_feature_names_its_tests() {
    let root = docs().parent().unwrap().to_owned();
    let mut sources = String::new();
    for folder in
        ["tests", "host", "builder/tests", "cli", "bench", "docs/listings/tests", "nccl", "ptx/tests"]
    {
        collect(&root.join(folder), &mut sources);
    }
    let listed: BTreeSet<&str> = sources.lines().map(str::trim).collect();
    let is_test = |name: &str| {
        listed.contains(name)
            || sources.contains(&format!("fn {name}()"))
            || sources.contains(&format!("\"{name}\","))
    };
    let page = fs::read_to_string(docs().join("src/reference/features.md")).unwrap();
    let mut rows = 0;
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", row, _, there, tests, ""] = cells.as_slice() else { continue };
        if !row.ends_with(|last: char| last.is_ascii_digit()) {
            continue;
        }
        rows += 1;
        let names: Vec<&str> =
            tests.split(',').map(|name| name.trim().trim_matches('`')).filter(|it| !it.is_empty()).collect();
        assert!(there.starts_with("no") || !names.is_empty(), "row {row} names no test");
        for name in names {
            assert!(is_test(name), "row {row}: there is no test `{name}`");
        }
    }
    assert!(rows > 80, "only {rows} rows were read");
}

/// Source files that a chapter names by path, or the end of it, exist.
#[test]
fn every_source_that_is_named_exists() {
    let root = docs().parent().unwrap().to_owned();
    let mut sources = Vec::new();
    for folder in [
        "src", "abi", "host", "device", "builder", "macros", "syntax", "ptx", "bench", "cli", "nccl",
        "tests", "docs",
    ] {
        paths(&root.join(folder), &mut sources);
    }
    let named_in = |text: &str| -> Vec<String> {
        let spans = text.split('`').skip(1).step_by(2);
        let names =
            spans.filter(|span| span.contains('/') && span.ends_with(".rs") && !span.contains("NAME"));
        names.filter(|span| !span.contains(char::is_whitespace)).map(str::to_owned).collect()
    };
    let mut checked = 0;
    let others = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"].map(|file| root.join(file));
    for page in files().into_iter().chain(others) {
        for name in named_in(&fs::read_to_string(&page).unwrap()) {
            checked += 1;
            let is_there = sources.iter().any(|path| path.ends_with(&name));
            assert!(is_there || root.join(&name).is_file(), "{}: there is no `{name}`", page.display());
        }
    }
    assert!(checked > 100, "only {checked} names were read");
}

/// All files below `folder`.
fn paths(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true if path.ends_with("target") => {}
            true => paths(&path, found),
            false => found.push(path),
        }
    }
}

fn collect(folder: &Path, text: &mut String) {
    let mut files = Vec::new();
    paths(folder, &mut files);
    for file in files.iter().filter(|file| file.extension().is_some_and(|it| it == "rs")) {
        text.push_str(&fs::read_to_string(file).unwrap());
    }
}

/// Renewing keeps the rest of a chapter, and its result passes the check.
#[test]
fn listings_are_renewed_in_their_place() {
    let folder = docs().join("src");
    let comment = "<!-- listing: ../listings/src/bin/first_kernel.rs:kernel -->";
    let old = format!("# A\n\n{comment}\n```rust,ignore\nold\n```\n\n```sh\nls\n```\n");
    let new = renewed(&old, &folder).unwrap();
    assert!(new.starts_with("# A\n\n<!--") && new.ends_with("```\n\n```sh\nls\n```\n"), "{new}");
    assert!(parse(&new).blocks.iter().all(|block| fault(block, &folder).is_none()), "{new}");
    assert!(renewed(&format!("{comment}\n"), &folder).is_err());
}

/// A crate that is new is explained in the chapter on dependencies, and one that has gone is no longer.
#[test]
fn every_dependency_is_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = |folder: &Path| -> toml::Table {
        fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap()
    };
    let workspace = manifest(&root);
    let members = workspace["workspace"]["members"].as_array().unwrap().iter();
    let mut folders: Vec<_> = members.map(|member| root.join(member.as_str().unwrap())).collect();
    folders.push(root.clone());
    let mut used = BTreeSet::new();
    for manifest in folders.iter().map(|folder| manifest(folder)) {
        let targets =
            manifest.get("target").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::values);
        let targets: Vec<_> = targets.filter_map(toml::Value::as_table).collect();
        for table in targets.into_iter().chain([&manifest]) {
            for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
                used.extend(
                    table
                        .get(kind)
                        .and_then(toml::Value::as_table)
                        .into_iter()
                        .flat_map(toml::Table::keys)
                        .cloned(),
                );
            }
        }
    }
    used.retain(|name| !name.starts_with("ferrogrid") && name != "cargo-ferrogrid" && name != "optics");
    let chapter = fs::read_to_string(docs().join("src/reference/dependencies.md")).unwrap();
    let rows = chapter.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let explained: BTreeSet<String> = rows
        .flat_map(|names| {
            names.trim_end_matches(" (feature)").split(", ").map(|name| name.trim_matches('`').to_owned())
        })
        .collect();
    assert_eq!(used, explained);
}
