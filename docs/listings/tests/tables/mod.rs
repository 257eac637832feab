//! Names in the book's tables, which the compiler does not see, are those of the sources.

use std::collections::BTreeSet;
use std::fs;

use super::collect;
use super::markdown::{docs, files};

/// Names in tables of Ferrogrid's API are functions and types in its sources, or Rust's own.
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
    for folder in ["src", "algorithms/src", "nccl/src", "host/src", "device/src", "builder/src", "macros/src"]
    {
        collect(&root.join(folder), &mut sources);
    }
    let defined = defined(&sources);
    let mut checked = BTreeSet::new();
    for path in files() {
        if !path.parent().unwrap().ends_with("migration") {
            continue;
        }
        for line in fs::read_to_string(&path).unwrap().lines().filter(|line| line.starts_with("| ")) {
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

/// Methods called on `device` in a table are those of `Device`, and so on.
#[test]
fn methods_in_the_tables_belong_to_their_receivers() {
    const RECEIVERS: &[(&str, &[&str])] = &[
        ("device", &["Device"]),
        ("stream", &["Stream"]),
        ("capture", &["Capture", "Stream"]),
        ("graph", &["Graph", "ExecutableGraph"]),
        ("event", &["Event"]),
        ("end", &["Event"]),
        ("pool", &["MemoryPool"]),
        ("buffer", &["DeviceBuffer", "IpcBuffer"]),
        ("view", &["DeviceView", "DeviceViewMut"]),
        ("data", &["ManagedBuffer"]),
        ("host", &["GraphBuffer"]),
        ("array", &["TextureArray"]),
        ("module", &["ForeignModule", "SourceModule"]),
        ("function", &["ForeignFunction"]),
        ("kernel", &["Kernel"]),
        ("t", &["Thread"]),
    ];
    let root = docs().parent().unwrap().to_owned();
    let mut sources = String::new();
    for folder in ["host/src", "device/src"] {
        collect(&root.join(folder), &mut sources);
    }
    let methods = methods(&sources);
    let mut checked = 0;
    for path in files().iter().filter(|path| path.parent().unwrap().ends_with("migration")) {
        for line in fs::read_to_string(path).unwrap().lines().filter(|line| line.starts_with("| ")) {
            let cell = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
            for (receiver, method) in cell.split('`').skip(1).step_by(2).flat_map(calls) {
                let Some((_, types)) = RECEIVERS.iter().find(|(known, _)| *known == receiver) else {
                    continue;
                };
                let has = types.iter().any(|owner| methods.contains(&(*owner, method)));
                assert!(has, "{}: `{receiver}` has no method `{method}`: {line}", path.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 300, "only {checked} methods were found");
}

/// The public functions in `sources`, with the types that have them. Those of an `impl` in a macro belong to all types that the
/// macro is called with, and those in a call of a macro to the type that the call begins with.
fn methods(sources: &str) -> BTreeSet<(&str, &str)> {
    let (mut of_types, mut of_macros) = (BTreeSet::new(), BTreeSet::new());
    // (called, with a type or in a macro)
    let mut calls = BTreeSet::new();
    let (mut owner, mut within) = (None, None);
    for line in sources.lines() {
        let code = line.trim_start();
        if let Some(name) = line.strip_prefix("macro_rules! ") {
            within = Some(first_word(name));
        } else if line.starts_with("impl") || line.starts_with("unsafe impl") {
            owner = Some(owner_of(line));
        } else if let Some((_, listed)) = line.split_once("! { ") {
            // A macro lists the methods of a type: `setters! { PoolOptions:`
            owner = Some(first_word(listed));
        } else if line.starts_with('}') {
            (owner, within) = (None, None);
        } else if let (Some(owner), Some(rest)) = (owner.or(within), code.strip_prefix("pub ")) {
            let name = rest.split_once("fn ").map(|(_, name)| first_word(name));
            let found = if within.is_some() { &mut of_macros } else { &mut of_types };
            found.extend(name.map(|name| (owner, name)));
        } else if let Some((called, arguments)) = code.split_once("!(")
            && called == first_word(called)
        {
            let types = words(arguments).filter(|it| it.starts_with(char::is_uppercase));
            calls.extend(types.chain(within).map(|by| (called, by)));
        }
    }
    // Macros call each other one level deep.
    for _ in 0..2 {
        for (called, by) in &calls {
            let names: Vec<_> =
                of_macros.iter().filter(|(owner, _)| owner == called).map(|(_, name)| *name).collect();
            of_types.extend(names.iter().map(|name| (*by, *name)));
            of_macros.extend(names.into_iter().map(|name| (*by, name)));
        }
    }
    of_types
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The type of an `impl`, by its first line.
fn owner_of(line: &str) -> &str {
    if let Some((_, owner)) = line.split_once(" for ") {
        return first_word(owner.trim_start_matches('&'));
    }
    let rest = line.split_once("impl").map_or(line, |(_, rest)| rest);
    let mut depth = 0;
    let is_outside = |(_, c): &(usize, char)| {
        depth += i32::from(*c == '<') - i32::from(*c == '>');
        depth == 0 && c.is_alphabetic()
    };
    rest.char_indices().find(is_outside).map_or("", |(start, _)| first_word(&rest[start..]))
}

fn first_word(text: &str) -> &str {
    words(text).next().unwrap_or_default()
}

/// The calls in a piece of code, with their receivers: `device`, `arch` of `device.arch()`.
fn calls(code: &str) -> Vec<(&str, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let dots = code.match_indices('.').map(|(at, _)| at);
    dots.filter_map(|at| {
        let (before, method) = (&code[..at], first_word(&code[at + 1..]));
        let start = before.rfind(|c| !is_word(c)).map_or(0, |last| last + 1);
        let is_first = !before[..start].ends_with('.');
        (is_first && start < at && !method.is_empty()).then(|| (&before[start..], method))
    })
    .collect()
}

/// The names of functions and types that are defined in `sources`.
fn defined(sources: &str) -> BTreeSet<&str> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '(' | '<' | '{' | ':' | ';' | '=');
    let words = sources.split(ends).filter(|word| !word.is_empty());
    let kinds = ["fn", "struct", "enum", "union", "trait", "type", "mod", "macro_rules!"];
    let pairs = words.clone().zip(words.skip(1));
    pairs.filter(|(kind, _)| kinds.contains(kind)).map(|(_, name)| name).collect()
}

/// Names that macros generate.
fn generated(name: &str) -> bool {
    let caches = ["ldca", "ldcg", "ldcs", "ldlu", "stwb", "stcg", "stcs", "stwt"];
    let others = [
        "set_union",
        "fast_sin",
        "fast_exp",
        "fast_div",
        "block",
        "device",
        "system",
        "DevicePtr",
        "DevicePtrMut",
        "Instance",
        "BLOCK",
        "TILE",
        "grid",
    ];
    let of_caches = name.split_once('_').is_some_and(|(way, _)| ["load", "store", "prefetch"].contains(&way));
    caches.contains(&name) || others.contains(&name) || of_caches
}

/// The functions called in a piece of code, and its types.
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
