//! Rewrites of the compiler's PTX: what rustc has no option for, as an ordered list of passes.
//!
//! A pass reads a [`Module`] and notes its changes; those of several passes are made at once, unless one needs the text as
//! another leaves it.

mod arithmetic;
pub(crate) mod constants;
mod core_atomics;
mod formatters;
mod in_order;
pub(crate) mod lanes;
mod launch_bounds;
mod layouts;
pub(crate) mod lines;
mod panics;
mod peephole;
pub(crate) mod record;
mod symbols;

use std::collections::HashSet;
use std::path::PathBuf;

use ferrogrid_ptx::{Edits, Module, ParseError};
use ferrogrid_syntax::{Arithmetic, LaunchBounds};
use lanes::Unproven;

/// What a build wants of its PTX.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// Name and promises of each entry point.
    pub(crate) bounds: Vec<(&'a str, LaunchBounds)>,
    /// How exact the program is to be.
    pub(crate) arithmetic: Arithmetic,
    /// The operations of warps that are to be checked.
    pub(crate) unproven: Unproven,
    /// The user's files, as the line table names them in the end.
    pub(crate) own_files: HashSet<String>,
    /// Name of each entry point, and how exact it is to be.
    pub(crate) arithmetic_of_kernels: Vec<(&'a str, Arithmetic)>,
    /// Whether it keeps its line table.
    pub(crate) lines: bool,
    /// Folders, and what stands for them in the line table.
    pub(crate) folders: Vec<(PathBuf, String)>,
}

/// A rewrite.
struct Pass {
    name: &'static str,
    /// The passes whose result it reads.
    after: &'static [&'static str],
    rewrite: for<'t> fn(&Module<'t>, &Wanted<'_>, &mut Edits<'t>),
}

/// The passes in their order. Each says in its module what it does and why.
const PASSES: [Pass; 13] = [
    Pass { name: "constants", after: &[], rewrite: |module, _, edits| constants::place(module, edits) },
    Pass { name: "layouts", after: &[], rewrite: |module, _, edits| layouts::take(module, edits) },
    // A check calls a function of the device crate, which nothing else reaches.
    Pass { name: "lanes", after: &[], rewrite: lanes::check },
    Pass { name: "panics", after: &[], rewrite: |module, _, edits| panics::redirect(module, edits) },
    // What core's panicking functions reach is needed no more.
    Pass {
        name: "formatters",
        after: &["lanes", "panics"],
        rewrite: |module, _, edits| formatters::describe(module, edits),
    },
    // Only what is left is looked at, here and below: it is a fraction of the text.
    Pass {
        name: "symbols",
        after: &["formatters"],
        rewrite: |module, _, edits| symbols::define(module, edits),
    },
    Pass {
        name: "record",
        after: &["formatters"],
        rewrite: |module, _, edits| record::hand_on(module, edits),
    },
    Pass {
        name: "peephole",
        after: &["formatters"],
        rewrite: |module, _, edits| peephole::rewrite(module, edits),
    },
    Pass {
        name: "core atomics",
        after: &["formatters"],
        rewrite: |module, _, edits| core_atomics::order(module, edits),
    },
    Pass { name: "launch bounds", after: &["formatters", "layouts"], rewrite: launch_bounds::declare },
    Pass { name: "arithmetic", after: &["formatters"], rewrite: arithmetic::apply },
    Pass { name: "lines", after: &["formatters"], rewrite: lines::rewrite },
    // The number stands behind the wait for other grids; and no other pass may replace what reads the index.
    Pass { name: "in order", after: &["launch bounds", "peephole"], rewrite: in_order::number },
];

/// The compiler's text after all passes.
pub(crate) fn run(assembly: &str, wanted: &Wanted<'_>) -> Result<String, ParseError> {
    let mut text = assembly.to_owned();
    let mut rest = &PASSES[..];
    while !rest.is_empty() {
        let (together, after) = rest.split_at(independent(rest));
        text = apply(&text, |module, edits| {
            together.iter().for_each(|pass| (pass.rewrite)(module, wanted, edits));
        })?;
        rest = after;
    }
    Ok(text)
}

/// How many passes at the beginning of `passes` need nothing of each other.
fn independent(passes: &[Pass]) -> usize {
    let needs_earlier =
        |at: &usize| passes[..*at].iter().any(|earlier| passes[*at].after.contains(&earlier.name));
    (0..passes.len()).find(needs_earlier).unwrap_or(passes.len())
}

/// The text with the changes that `rewrite` notes.
fn apply(
    text: &str,
    rewrite: impl for<'t> FnOnce(&Module<'t>, &mut Edits<'t>),
) -> Result<String, ParseError> {
    let module = Module::parse(text)?;
    let mut edits = Edits::new(text);
    rewrite(&module, &mut edits);
    Ok(edits.apply())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `text` after one pass.
    pub(super) fn after(text: &str, rewrite: impl for<'t> FnOnce(&Module<'t>, &mut Edits<'t>)) -> String {
        apply(text, rewrite).unwrap_or_else(|error| panic!("{error} in\n{text}"))
    }

    /// The statements of an entry point that had these `lines`, after one pass.
    pub(super) fn body_after(
        lines: &str,
        rewrite: impl for<'t> FnOnce(&Module<'t>, &mut Edits<'t>),
    ) -> String {
        const HEAD: &str = ".visible .entry k()\n{\n";
        const REGISTERS: &str = "\t.reg .b32 \t%r<10>;\n\t.reg .b64 \t%rd<10>;\n\t.reg .pred \t%p<10>;\n";
        let text = after(&format!("{HEAD}{REGISTERS}{lines}}}\n"), rewrite);
        let body = text.strip_prefix(HEAD).unwrap().strip_suffix("}\n").unwrap();
        body.replacen(REGISTERS, "", 1)
    }

    #[test]
    fn every_pass_comes_after_those_whose_result_it_reads() {
        for (at, pass) in PASSES.iter().enumerate() {
            for earlier in pass.after {
                assert!(PASSES[..at].iter().any(|it| it.name == *earlier), "{} needs {earlier}", pass.name);
            }
        }
        let mut together = Vec::new();
        let mut rest = &PASSES[..];
        while !rest.is_empty() {
            together.push(independent(rest));
            rest = &rest[independent(rest)..];
        }
        assert_eq!(together, [4, 1, 7, 1], "the text is read four times");
    }

    #[test]
    fn what_is_no_ptx_is_an_error() {
        assert_eq!(run("ret;", &Wanted::default()).unwrap_err().line, 1);
    }
}
