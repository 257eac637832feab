//! Which kernel of an interval panicked. The record does not say: a panicking thread may be in a function that several
//! kernels call. But the PTX says which kernels hold code of a source line, and the stream remembers what was
//! launched last. It must not know the record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use crate::error::{LaunchSites, LaunchedKernel};
use crate::kernel::Kernel;

/// The kernel among `loaded`, which are those that may panic, that has code of the line, and was launched lately if several have; if that
/// leaves more than one, all of their names. And where in the source these were launched, as `recent` says: the
/// launches last made.
pub(super) fn find(
    loaded: &[&'static Kernel],
    recent: &[LaunchedKernel],
    file: &str,
    line: u32,
) -> (&'static str, LaunchSites) {
    let mut names: Vec<&'static str> = Vec::new();
    for kernel in loaded {
        let has_line = kernel.ptx().is_some_and(|ptx| has_line(ptx, kernel.entry(), file, line));
        if has_line && !names.contains(&kernel.name()) {
            names.push(kernel.name());
        }
    }
    let is_recent = |name: &&'static str| recent.iter().any(|launch| launch.name == *name);
    if names.is_empty() {
        let is_loaded = |name: &&'static str| loaded.iter().any(|kernel| kernel.name() == *name);
        names = recent
            .iter()
            .map(|launch| launch.name)
            .filter(|name| loaded.is_empty() || is_loaded(name))
            .collect();
        names.sort_unstable();
        names.dedup();
    } else if names.iter().any(is_recent) {
        names.retain(is_recent);
    }
    let sites = recent.iter().filter(|launch| names.contains(&launch.name)).map(|launch| launch.site);
    let launched = sites.collect();
    let name = match names.as_slice() {
        [] => "(unknown)",
        [one] => one,
        several => interned(several.join(" or ")),
    };
    (name, launched)
}

/// The same text for the same names, for the rest of the process.
fn interned(text: String) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text.as_str()) {
        return known;
    }
    let kept: &'static str = text.leak();
    texts.insert(kept);
    kept
}

/// Whether the entry point, or a function that it can reach, has code of the line.
fn has_line(ptx: &str, entry: &str, file: &str, line: u32) -> bool {
    let bodies = bodies(ptx);
    let numbers: Vec<String> = files(ptx, file).map(|number| format!(".loc\t{number} {line} ")).collect();
    let mut open = vec![entry];
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        let Some(body) = bodies.get(name) else { continue };
        if !seen.insert(name) {
            continue;
        }
        let code = body.lines().map(str::trim_start);
        if code.clone().any(|code| numbers.iter().any(|loc| code.starts_with(loc.as_str()))) {
            return true;
        }
        let words =
            code.flat_map(|code| code.split(|c: char| !(c.is_ascii_alphanumeric() || "_$".contains(c))));
        open.extend(words.filter_map(|word| bodies.get_key_value(word).map(|(name, _)| *name)));
    }
    false
}

/// The numbers of the `.file` directives for a path; the two may have different beginnings.
fn files<'a>(ptx: &'a str, path: &'a str) -> impl Iterator<Item = &'a str> {
    ptx.lines().filter_map(move |line| {
        let rest = line.trim_start().strip_prefix(".file")?.trim_start();
        let (number, name) = rest.split_once(char::is_whitespace)?;
        let name = name.trim().trim_matches('"');
        (name.ends_with(path) || path.ends_with(name)).then_some(number)
    })
}

/// The text of each function, by name.
fn bodies(ptx: &str) -> BTreeMap<&str, &str> {
    ptx.split("\n}").filter_map(function).collect()
}

/// Name and body of the function that a text ends with.
fn function(part: &str) -> Option<(&str, &str)> {
    let (head, body) = part.split_at(part.find("\n{")?);
    let start = head.rfind(".entry ").or(head.rfind(".func "))?;
    let head = head[start..].split_once(' ').map_or("", |(_, rest)| rest).trim_start();
    let head = if head.starts_with('(') { head.split_once(')').map_or("", |(_, rest)| rest) } else { head };
    Some((head.trim_start().split(['(', '\n']).next().unwrap_or_default(), body))
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;

    const PTX: &str = ".visible .entry a_1(\n\t.param .u64 p\n)\n{\n\t.loc\t1 7 3\n\tcall.uni shared, ();\n}\n\
.func  (.param .b32 r) shared(\n)\n{\n\t.loc\t1 20 9\n}\n.visible .entry b_1()\n{\n\t.loc\t2 7 3\n}\n\
\t.file\t1 \"src/main.rs\"\n\t.file\t2 \"src/other.rs\"\n";

    #[test]
    fn a_kernel_has_the_lines_of_what_it_calls() {
        assert!(has_line(PTX, "a_1", "src/main.rs", 7));
        assert!(has_line(PTX, "a_1", "src/main.rs", 20));
        assert!(!has_line(PTX, "a_1", "src/main.rs", 2));
        assert!(!has_line(PTX, "b_1", "src/main.rs", 7));
        assert!(has_line(PTX, "b_1", "src/other.rs", 7));
    }

    #[test]
    fn where_no_kernel_is_known_to_have_the_line_the_last_ones_are_named() {
        let (here, there) = (Location::caller(), LaunchSites::default());
        let [a, b] = ["a", "b"].map(|name| LaunchedKernel::new(name, here));
        let launched = LaunchSites::from_iter([here]);
        assert_eq!(find(&[], &[a, a], "src/x.rs", 1), ("a", launched.clone()));
        assert_eq!(find(&[], &[a, b], "src/x.rs", 1), ("a or b", launched));
        assert_eq!(find(&[], &[], "src/x.rs", 1), ("(unknown)", there));
    }
}
