//! Rewrites of the compiler's PTX that rustc has no option for, as an ordered list of passes.
//!
//! A pass reads a [`Module`] and notes its changes. The changes of several passes are made at once, unless
//! one needs the text that another leaves.
//!
//! | file | pass |
//! |---|---|
//! | `constants.rs` | declares constants in constant memory |
//! | `layouts.rs` | turns the layouts of the device half into comments |
//! | `lanes.rs` | checks the lanes of warp operations that are not proven |
//! | `feedback/panics.rs`, `feedback/formatters.rs` | panics and messages whose arguments the host formats |
//! | `feedback/symbols.rs`, `feedback/record.rs` | the variables and the parameter that device code and host share |
//! | `peephole/mod.rs`, `peephole/` | fewer machine instructions with the same meaning |
//! | `core_atomics.rs` | the ordering of core's atomic operations |
//! | `launch_bounds.rs` | the launch bounds of kernels, as directives |
//! | `registers.rs` | registers that groups of threads leave to each other |
//! | `in_flight.rs` | products that threads wait for before they may end |
//! | `tiles.rs` | the wait of threads that panic for tiles that they copy |
//! | `arithmetic.rs` | `ftz`, `approx_div` and the like, as modifiers |
//! | `lines.rs` | the line table: paths that are the same on every machine |
//! | `tensor_maps.rs` | the alignment of parameters that are tensor maps |
//! | `version.rs` | the version of PTX that instructions of inline assembly need |
//! | `in_order.rs` | numbers for blocks in the order in which they start |

mod arithmetic;
pub(crate) mod constants;
mod core_atomics;
mod feedback;
mod in_flight;
mod in_order;
pub(crate) mod lanes;
mod launch_bounds;
mod layouts;
pub(crate) mod lines;
mod peephole;
mod registers;
mod tensor_maps;
mod tiles;
mod version;

use std::collections::HashSet;
use std::path::PathBuf;

use feedback::{formatters, panics, record, symbols};
use ferrogrid_ptx::{Edits, Module, ParseError};
use ferrogrid_syntax::{Arithmetic, LaunchBounds};
use lanes::Unproven;

/// The options of a build that passes read.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// The name and the launch bounds of each entry point.
    pub(crate) bounds: Vec<(&'a str, LaunchBounds)>,
    /// The arithmetic of the program.
    pub(crate) arithmetic: Arithmetic,
    /// The warp operations to check.
    pub(crate) unproven: Unproven,
    /// The user's files, by their names in the final line table.
    pub(crate) own_files: HashSet<String>,
    /// The name and the arithmetic of each entry point.
    pub(crate) arithmetic_of_kernels: Vec<(&'a str, Arithmetic)>,
    /// Whether the line table stays.
    pub(crate) lines: bool,
    /// Whether two numbers can be rounded to 16 bits at once: from compute capability 8.0 on.
    pub(crate) has_pairs: bool,
    /// Folders, and their names in the line table.
    pub(crate) folders: &'a [(PathBuf, String)],
}

/// Notes the changes of a pass.
type Rewrite = for<'t> fn(&Module<'t>, &Wanted<'_>, &mut Edits<'t>);

/// A rewrite.
struct Pass {
    name: &'static str,
    /// The passes whose result it reads.
    after: &'static [&'static str],
    rewrite: Rewrite,
}

const fn pass(name: &'static str, after: &'static [&'static str], rewrite: Rewrite) -> Pass {
    Pass { name, after, rewrite }
}

/// The passes in order. Each module documents what its pass does and why.
const PASSES: &[Pass] = &[
    pass("constants", &[], |module, _, edits| constants::place(module, edits)),
    pass("layouts", &[], |module, _, edits| layouts::take(module, edits)),
    // A check calls a function of the device crate, which is otherwise unreachable.
    pass("lanes", &[], lanes::check),
    pass("panics", &[], |module, _, edits| panics::redirect(module, edits)),
    pass("tiles", &[], |module, _, edits| tiles::wait(module, edits)),
    // What only core's panicking functions reach is no longer needed.
    pass("formatters", &["lanes", "panics", "tiles"], |module, _, edits| formatters::describe(module, edits)),
    // These and the following read only the remaining code: a fraction of the text.
    pass("symbols", &["formatters"], |module, _, edits| symbols::define(module, edits)),
    pass("record", &["formatters"], |module, _, edits| record::pass_record(module, edits)),
    pass("peephole", &["formatters"], |module, wanted, edits| {
        peephole::rewrite(module, wanted.has_pairs, edits);
    }),
    pass("core atomics", &["formatters"], |module, _, edits| core_atomics::order(module, edits)),
    pass("launch bounds", &["formatters", "layouts"], launch_bounds::declare),
    pass("registers", &["formatters"], registers::keep),
    pass("in flight", &["formatters"], |module, _, edits| in_flight::end(module, edits)),
    pass("arithmetic", &["formatters"], arithmetic::apply),
    pass("lines", &["formatters"], lines::rewrite),
    pass("version", &["formatters"], |module, _, edits| version::raise(module, edits)),
    // Another pass replaces whole lists of parameters.
    pass("tensor maps", &["record"], |module, _, edits| tensor_maps::align(module, edits)),
    // The block's number comes after the wait for other grids, and no other pass may replace instructions
    // that read the index.
    pass("in order", &["launch bounds", "peephole"], in_order::number),
];

/// The compiler's text after all passes.
pub(crate) fn run(assembly: &str, wanted: &Wanted<'_>) -> Result<String, ParseError> {
    let mut text = assembly.to_owned();
    let mut rest = PASSES;
    while !rest.is_empty() {
        let (together, after) = rest.split_at(independent(rest));
        text = apply(&text, |module, edits| {
            together.iter().for_each(|pass| (pass.rewrite)(module, wanted, edits));
        })?;
        rest = after;
    }
    Ok(text)
}

/// How many of the first passes can share a reading of the text.
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
    fn every_pass_follows_the_passes_that_it_reads() {
        for (at, pass) in PASSES.iter().enumerate() {
            for earlier in pass.after {
                assert!(PASSES[..at].iter().any(|it| it.name == *earlier), "{} needs {earlier}", pass.name);
            }
        }
        let (mut readings, mut rest) = (0, PASSES);
        while !rest.is_empty() {
            readings += 1;
            rest = &rest[independent(rest)..];
        }
        assert_eq!(readings, 4, "each reading costs time");
    }

    #[test]
    fn invalid_ptx_is_an_error() {
        assert_eq!(run("ret;", &Wanted::default()).unwrap_err().line, 1);
    }
}
