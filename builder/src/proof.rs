//! What is proven of the compiled code before it is embedded: that no operation of a warp or block stands behind a pointer.
//!
//! Threads that make such an operation together must still do so in the machine code. LLVM keeps that by an attribute of calls,
//! `convergent`, which rustc does not give calls through pointers: it may make two such calls of one, each in an arm of a branch that
//! only some threads take. Such a call is refused, therefore; direct calls are not concerned.

use std::collections::{BTreeMap, BTreeSet};

use ferrogrid_ptx::{Calls, Function, Instruction, Item, Location, Module, StatementKind};

/// Why a program is refused, and where in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The file, as the line table names it; empty if it names none.
    pub(crate) file: String,
    /// Line and column, counted from 1; a column of 0 is the whole line.
    pub(crate) place: (usize, usize),
    pub(crate) message: String,
}

/// What is wrong with the program of which `module` is the final text.
pub(crate) fn check(module: &Module<'_>) -> Vec<Refusal> {
    let calls = Calls::of(module);
    if !(0..module.items.len()).any(|item| calls.calls_by_address(item)) {
        return Vec::new();
    }
    let files: BTreeMap<u32, &str> = module.files().map(|file| (file.number, file.path)).collect();
    let mut refusals = Vec::new();
    for item in behind_pointers(module, &calls) {
        for inner in calls.reachable([item], |_| false) {
            let (Item::Function(outer), Item::Function(inner)) = (&module.items[item], &module.items[inner])
            else {
                continue;
            };
            refusals.extend(
                convergent(inner, &files).map(|(operation, place)| refusal(outer, operation, place, &files)),
            );
        }
    }
    refusals.dedup();
    refusals
}

/// The functions whose addresses are taken.
fn behind_pointers(module: &Module<'_>, calls: &Calls<'_>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for (at, item) in module.items.iter().enumerate() {
        let names: Vec<&str> = match item {
            Item::Function(function) => {
                let others = function.instructions().filter(|instruction| instruction.callee().is_none());
                others.flat_map(Instruction::uses).collect()
            }
            _ => calls.mentioned_by(at).to_vec(),
        };
        let items = names.into_iter().filter_map(|name| calls.definition(name));
        found.extend(items.filter(|&item| matches!(&module.items[item], Item::Function(_))));
    }
    found
}

/// The first operation of a function that threads make together, and where it comes from: the last place before it in the
/// function's own file, which is the first that is not Rust's.
fn convergent<'t>(
    function: &Function<'t>,
    files: &BTreeMap<u32, &str>,
) -> Option<(&'t str, Option<Location<'t>>)> {
    let may_be_own = |place: &Location<'_>| {
        place.line > 0 && files.get(&place.file).is_some_and(|file| !file.starts_with('/'))
    };
    let mut own: Option<Location<'_>> = None;
    for statement in function.statements() {
        match &statement.kind {
            StatementKind::Location(place)
                if own.map_or(may_be_own(place), |own| own.file == place.file && place.line > 0) =>
            {
                own = Some(*place);
            }
            StatementKind::Instruction(instruction) if instruction.is_convergent() => {
                return Some((instruction.opcode, own));
            }
            _ => {}
        }
    }
    None
}

fn refusal(
    outer: &Function<'_>,
    operation: &str,
    place: Option<Location<'_>>,
    files: &BTreeMap<u32, &str>,
) -> Refusal {
    let file = place.and_then(|place| files.get(&place.file)).copied().unwrap_or_default();
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    Refusal {
        file: file.to_owned(),
        place: place.map_or((1, 0), |place| (number(place.line), number(place.column))),
        message: format!(
            "threads work together here (`{operation}`), in code that is called through a pointer: `{:#}`\n  \
             note: the compiler may move such a call to where only some of the threads come\n  \
             help: call it by its type, as a generic parameter or by a `match` over an enum, in place of `dyn` or `fn`",
            rustc_demangle::demangle(outer.name)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program whose kernel calls through the pointers of a table.
    fn program(function: &str) -> String {
        format!(
            ".version 8.0\n.target sm_90\n.global .u64 table[1] = {{behind}};\n\
             .func behind()\n{{\n\t.loc\t1 7 3\n\t{function}\n\tret;\n}}\n\
             .func direct()\n{{\n\t.loc\t1 20 5\n\t.loc\t2 99 1\n\tshfl.sync.idx.b32 %r1, %r2, 0, 31, -1;\n\tret;\n}}\n\
             .visible .entry k()\n{{\n\tbar.sync 0;\n\tcall.uni direct;\n\tmov.u64 %rd1, table;\n\tcall %rd1, prototype_0;\n\tret;\n}}\n\
             \t.file\t1 \"src/main.rs\"\n\t.file\t2 \"device/src/warp.rs\"\n"
        )
    }

    fn checked(text: &str) -> Vec<Refusal> {
        check(&Module::parse(text).unwrap())
    }

    #[test]
    fn operations_of_warps_and_blocks_behind_pointers_are_refused_with_their_lines() {
        let [refusal] = &checked(&program("bar.sync 0;"))[..] else { panic!() };
        assert_eq!((refusal.file.as_str(), refusal.place), ("src/main.rs", (7, 3)));
        assert!(
            refusal.message.contains("`bar.sync`") && refusal.message.contains("`behind`"),
            "{refusal:?}"
        );
    }

    #[test]
    fn what_such_functions_call_counts_and_has_the_line_of_its_own_file() {
        let [refusal] = &checked(&program("call.uni direct;"))[..] else { panic!() };
        assert_eq!((refusal.file.as_str(), refusal.place), ("src/main.rs", (20, 5)));
        assert!(refusal.message.contains("`shfl.sync.idx.b32`"), "{refusal:?}");
    }

    #[test]
    fn direct_calls_and_pointers_to_other_code_are_accepted() {
        assert_eq!(checked(&program("add.s32 %r1, %r1, 1;")), []);
        let without_pointers = program("bar.sync 0;").replace("call %rd1, prototype_0;", "call.uni behind;");
        assert_eq!(checked(&without_pointers), []);
    }
}
