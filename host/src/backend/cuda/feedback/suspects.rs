//! Finds the kernel of an interval that panicked. The record does not name it: a panicking thread may be in a function that several
//! kernels call. But the PTX says which kernels hold code of a source line, and the stream remembers what was
//! launched last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use ferrogrid_ptx::{Calls, Item, Module, StatementKind};

use crate::error::{LaunchSites, LaunchedKernel};
use crate::kernel::Kernel;
use crate::sync::lock;

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
    let mut texts = lock(&TEXTS);
    if let Some(known) = texts.get(text.as_str()) {
        return known;
    }
    let kept: &'static str = text.leak();
    texts.insert(kept);
    kept
}

/// Whether the entry point, or a function that it can reach, has code of the line.
fn has_line(ptx: &'static str, entry: &str, file: &str, line: u32) -> bool {
    static KNOWN: Mutex<BTreeMap<usize, Arc<LineTable>>> = Mutex::new(BTreeMap::new());
    let mut known = lock(&KNOWN);
    // A text is there for the rest of the process, and so its address is its own.
    let table = known.entry(ptx.as_ptr() as usize).or_insert_with(|| Arc::new(LineTable::of(ptx))).clone();
    drop(known);
    table.has_line(entry, file, line)
}

/// Which function of a PTX text has code of which lines.
#[derive(Default)]
struct LineTable {
    /// Path and number of each source file.
    files: Vec<(&'static str, u32)>,
    functions: BTreeMap<&'static str, Lines>,
}

/// What a function has code of.
struct Lines {
    /// Numbers of files, and lines.
    own: BTreeSet<(u32, u32)>,
    /// The functions and variables that it refers to.
    mentions: Vec<&'static str>,
}

impl LineTable {
    /// Without lines if the text cannot be read.
    fn of(ptx: &'static str) -> Self {
        let Ok(module) = Module::parse(ptx) else { return LineTable::default() };
        let calls = Calls::of(&module);
        let mut table =
            LineTable { files: module.files().map(|it| (it.path, it.number)).collect(), ..Self::default() };
        for (at, item) in module.items.iter().enumerate() {
            let mentions = calls.mentioned_by(at).to_vec();
            match item {
                Item::Function(function) if function.body.is_some() => {
                    let lines = function.statements().iter().filter_map(|statement| match &statement.kind {
                        StatementKind::Location(place) => Some((place.file, place.line)),
                        _ => None,
                    });
                    table.functions.insert(function.name, Lines { own: lines.collect(), mentions });
                }
                Item::Variable(variable) => {
                    table.functions.insert(variable.name(), Lines { own: BTreeSet::new(), mentions });
                }
                _ => {}
            }
        }
        table
    }

    fn has_line(&self, entry: &str, file: &str, line: u32) -> bool {
        // The two paths may have different beginnings.
        let is_file = |path: &str| path.ends_with(file) || file.ends_with(path);
        let numbers: Vec<u32> = self.files.iter().filter(|(path, _)| is_file(path)).map(|it| it.1).collect();
        let mut open = vec![entry];
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            let Some(lines) = self.functions.get(name).filter(|_| seen.insert(name)) else { continue };
            if numbers.iter().any(|&number| lines.own.contains(&(number, line))) {
                return true;
            }
            open.extend(&lines.mentions);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;

    const PTX: &str = ".visible .entry a_1(\n\t.param .u64 p\n)\n{\n\t.loc\t1 7 3\n\tcall.uni shared, ();\n}\n\
.func  (.param .b32 r) shared(\n)\n{\n\t.loc\t1 20 9\n}\n.visible .entry b_1()\n{\n\t.loc\t2 7 3\n}\n\
\t.file\t1 \"src/main.rs\"\n\t.file\t2 \"src/other.rs\"\n";

    #[test]
    fn a_kernel_has_the_lines_of_its_callees() {
        assert!(has_line(PTX, "a_1", "src/main.rs", 7));
        assert!(has_line(PTX, "a_1", "src/main.rs", 20));
        assert!(!has_line(PTX, "a_1", "src/main.rs", 2));
        assert!(!has_line(PTX, "b_1", "src/main.rs", 7));
        assert!(has_line(PTX, "b_1", "src/other.rs", 7));
    }

    #[test]
    fn without_a_kernel_for_the_line_the_latest_launches_are_named() {
        let (here, there) = (Location::caller(), LaunchSites::default());
        let [a, b] = ["a", "b"].map(|name| LaunchedKernel::new(name, here));
        let launched = LaunchSites::from_iter([here]);
        assert_eq!(find(&[], &[a, a], "src/x.rs", 1), ("a", launched.clone()));
        assert_eq!(find(&[], &[a, b], "src/x.rs", 1), ("a or b", launched));
        assert_eq!(find(&[], &[], "src/x.rs", 1), ("(unknown)", there));
    }
}
