//! What must hold for the book's text: every block of Rust is compiled and run somewhere, every link leads somewhere,
//! every chapter is in the summary. It must not judge what chapters say.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A block of code: what stands behind the fence, and the text.
struct Block {
    info: String,
    text: String,
}

/// A chapter's file, read as mdBook reads it.
#[derive(Default)]
struct Chapter {
    blocks: Vec<Block>,
    links: Vec<String>,
    /// The anchors of its headings.
    anchors: BTreeSet<String>,
    titles: usize,
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All Markdown files below `docs/src`, by their path from there.
fn files() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&docs().join("src"), &mut found);
    found.sort();
    assert!(found.len() > 15, "these are too few to be the book: {found:?}");
    found
}

fn chapter(path: &Path) -> Chapter {
    parse(&std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn parse(text: &str) -> Chapter {
    let mut chapter = Chapter::default();
    let mut heading: Option<String> = None;
    let mut seen: HashMap<String, usize> = HashMap::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => "indented".to_owned(),
                };
                chapter.blocks.push(Block { info, text: String::new() });
            }
            Event::Text(part) if heading.is_none() => {
                // Only blocks keep text; what stands between them adds to none that is asked for.
                if let Some(block) = chapter.blocks.last_mut() {
                    block.text.push_str(&part);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                chapter.blocks.push(Block { info: "-".into(), text: String::new() })
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                chapter.links.push(dest_url.to_string());
            }
            Event::Start(Tag::Heading { level, .. }) => {
                chapter.titles += usize::from(level == HeadingLevel::H1);
                heading = Some(String::new());
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = slug(&heading.take().unwrap_or_default());
                let count = seen.entry(anchor.clone()).or_insert(0);
                chapter.anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
                *count += 1;
            }
            _ => {}
        }
    }
    chapter.blocks.retain(|block| block.info != "-");
    chapter
}

/// A heading's anchor, as mdBook and GitHub make it.
fn slug(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Why a block of Rust in `folder` is not known to compile and run; `None` if it is.
fn fault(block: &Block, folder: &Path) -> Option<String> {
    let mut words = block.info.split(',').map(str::trim);
    match words.next().unwrap_or_default() {
        "rust" => {}
        "" | "indented" => return Some("it says no language, so rustdoc takes it for Rust".into()),
        "sh" | "toml" | "text" | "cpp" | "python" | "json" | "ptx" => return None,
        other => return Some(format!("unknown language {other:?}")),
    }
    let rest: Vec<&str> = words.collect();
    if block.text.contains("{{#") {
        if rest != ["ignore"] {
            return Some(
                "a block that includes a listing is `rust,ignore`: rustdoc does not see the listing".into(),
            );
        }
        return block.text.lines().find_map(|line| include_fault(line, folder));
    }
    let runs = |word: &&str| *word == "compile_fail" || *word == "should_panic" || word.starts_with('E');
    rest.iter().find(|word| !runs(word)).map(|word| format!("`{word}`: it would not be compiled and run"))
}

/// Why a line of a block is no include of a listing that is run.
fn include_fault(line: &str, folder: &Path) -> Option<String> {
    let target = line.trim().strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}"));
    let Some((file, anchor)) = target.and_then(|target| target.rsplit_once(':')) else {
        return Some(format!("{line:?} is not `{{{{#include FILE:ANCHOR}}}}`"));
    };
    let Ok(path) = folder.join(file).canonicalize() else { return Some(format!("there is no {file}")) };
    let listings = docs().join("listings").canonicalize().unwrap();
    if !path.starts_with(listings.join("tests/book")) && !path.starts_with(listings.join("src/bin")) {
        return Some(format!("{file} is not among the listings that tests run"));
    }
    let text = std::fs::read_to_string(path).unwrap();
    let marks =
        |mark: &str| text.lines().filter(|line| line.trim() == format!("// {mark}: {anchor}")).count();
    match (marks("ANCHOR"), marks("ANCHOR_END")) {
        (1, 1) => None,
        (starts, ends) => Some(format!("`{anchor}` starts {starts} times and ends {ends} times in {file}")),
    }
}

#[test]
fn every_block_of_rust_is_compiled_and_run() {
    let library = std::fs::read_to_string(docs().join("listings/src/lib.rs")).unwrap();
    let mut included = 0;
    for path in files() {
        let (folder, name) = (path.parent().unwrap(), path.strip_prefix(docs().join("src")).unwrap());
        let blocks = chapter(&path).blocks;
        for block in &blocks {
            if let Some(fault) = fault(block, folder) {
                panic!("{}: {fault}:\n{}", name.display(), block.text);
            }
            included += usize::from(block.text.contains("{{#include"));
        }
        let doctests = |block: &Block| block.info.starts_with("rust") && !block.text.contains("{{#");
        let documented = library.contains(&format!("= \"{}\"", name.display()));
        assert!(
            documented || !blocks.iter().any(doctests),
            "{} is not in listings/src/lib.rs",
            name.display()
        );
    }
    assert!(included > 20, "only {included} listings are shown");
}

#[test]
fn every_file_of_listings_is_compiled() {
    let folder = docs().join("listings/tests/book");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_module = main.lines().any(|line| line == format!("mod {name};"));
        assert!(name == "main" || is_module, "{} is no module of the tests", path.display());
    }
}

/// Every part that is marked is shown: what is not may go.
#[test]
fn every_anchor_is_shown() {
    let shown: String = files().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for folder in ["tests/book", "src/bin"] {
        for entry in std::fs::read_dir(docs().join("listings").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            for anchor in text.lines().filter_map(|line| line.trim().strip_prefix("// ANCHOR: ")) {
                assert!(shown.contains(&format!("/{name}:{anchor}}}}}")), "{name}: `{anchor}` is not shown");
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

#[test]
fn every_link_leads_somewhere() {
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

/// The check itself: what would escape is found.
#[test]
fn blocks_that_nobody_runs_are_found() {
    let folder = docs().join("src");
    let found = |text: &str| {
        let chapter = parse(text);
        assert_eq!(chapter.blocks.len(), 1);
        fault(&chapter.blocks[0], &folder)
    };
    assert_eq!(found("```rust\nassert!(true);\n```"), None);
    assert_eq!(found("```rust,compile_fail,E0502\nx\n```"), None);
    assert_eq!(found("```rust,ignore\n{{#include ../listings/src/bin/first_kernel.rs:kernel}}\n```"), None);
    for escaping in [
        "```\nfn main() {}\n```",
        "    fn main() {}",
        "```rust,ignore\nfn main() {}\n```",
        "```rust,no_run\nfn main() {}\n```",
        "```Rust\nfn main() {}\n```",
        "- in a list\n\n  ```rust, ignore\n  fn main() {}\n  ```",
        "```rust\n{{#include ../listings/src/bin/first_kernel.rs:kernel}}\n```",
        "```rust,ignore\n{{#include ../listings/src/bin/first_kernel.rs}}\n```",
        "```rust,ignore\n{{#include ../listings/src/bin/first_kernel.rs:absent}}\n```",
        "```rust,ignore\n{{#include ../listings/src/bin/absent.rs:kernel}}\n```",
        "```rust,ignore\n{{#include ../../build.rs:kernel}}\n```",
        "```rust,ignore\n{{#include ../listings/src/bin/first_kernel.rs:kernel}}\nlet more = 1;\n```",
        "```rust,ignore\n{{#rustdoc_include ../listings/src/bin/first_kernel.rs:kernel}}\n```",
    ] {
        assert!(found(escaping).is_some(), "nobody would run {escaping:?}");
    }
}

/// The names that tables say Ferrogrid has are those of functions and types in its sources, or of Rust's own.
#[test]
fn every_name_in_the_tables_exists() {
    const RUSTS: &[&str] = &[
        "sin",
        "exp",
        "mul_add",
        "count_ones",
        "leading_zeros",
        "reverse_bits",
        "fetch_add",
        "derive",
        "repr",
        "kernel",
        "kernels",
        "k",
        "f",
        "t",
        "assert",
        "println",
        "print",
        "pub",
        "Err",
        "Ok",
        "Result",
        "Relaxed",
        "Unsupported",
        "OutOfMemory",
        "LaunchFailed",
        "no_std",
    ];
    let root = docs().parent().unwrap().to_owned();
    let mut sources = String::new();
    for folder in ["src", "host/src", "device/src", "builder/src", "macros/src"] {
        collect(&root.join(folder), &mut sources);
    }
    let defined = defined(&sources);
    let mut checked = BTreeSet::new();
    for path in files() {
        if !path.parent().unwrap().ends_with("migration") {
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines().filter(|line| line.starts_with("| ")) {
            let cell = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
            for code in cell.split('`').skip(1).step_by(2) {
                for name in names(code) {
                    let known =
                        defined.contains(name.as_str()) || RUSTS.contains(&name.as_str()) || generated(&name);
                    assert!(known, "{}: there is no `{name}`: {line}", path.display());
                    checked.insert(name);
                }
            }
        }
    }
    assert!(checked.len() > 100, "only {} names were found", checked.len());
}

/// The names of functions and types that are defined in `sources`.
fn defined(sources: &str) -> BTreeSet<&str> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '(' | '<' | '{' | ':' | ';' | '=');
    let words = sources.split(ends).filter(|word| !word.is_empty());
    let kinds = ["fn", "struct", "enum", "trait", "type", "mod", "macro_rules!"];
    let pairs = words.clone().zip(words.skip(1));
    pairs.filter(|(kind, _)| kinds.contains(kind)).map(|(_, name)| name).collect()
}

/// What macros write.
fn generated(name: &str) -> bool {
    ["fast_sin", "fast_exp", "fast_div", "block", "device", "system", "DevicePtr", "DevicePtrMut"]
        .contains(&name)
}

/// What is called in a piece of code, and the types in it.
fn names(code: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(is_word) {
        let word = &rest[start..];
        let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
        let (name, after) = word.split_at(end);
        let is_call = after.starts_with('(')
            || after.starts_with("::<")
            || (rest.len() == code.len() && after.is_empty());
        let is_type = name.len() > 1 && name.starts_with(char::is_uppercase);
        if (is_call && name.starts_with(char::is_lowercase)) || is_type {
            names.push(name.to_owned());
        }
        rest = after;
    }
    names
}

fn collect(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}
