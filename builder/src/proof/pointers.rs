//! Refuses warp and block operations behind pointers.
//!
//! Threads that make such an operation together must still do so in the machine code. LLVM preserves that
//! for calls with the attribute `convergent`, which rustc does not give to calls through pointers. LLVM may
//! duplicate such a call into the arms of a branch that only some threads take. So operations behind
//! pointers are refused; direct calls are not affected.

use ferrogrid_ptx::{Calls, Function, Instruction, Module};

use super::place::Places;
use super::{Refusal, marks};

/// The refusals of operations behind pointers.
pub(super) fn check(module: &Module<'_>, places: &Places<'_, '_>) -> Vec<Refusal> {
    if !module.functions().any(|function| function.instructions().any(Instruction::calls_by_address)) {
        return Vec::new();
    }
    let calls = Calls::of(module);
    let mut refusals = Vec::new();
    for item in calls.behind_pointers(module) {
        let Some(outer) = module.items[item].function() else { continue };
        for inner in calls.reachable([item], |_| false) {
            let Some(inner) = module.items[inner].function() else { continue };
            let found = convergent(inner);
            refusals.extend(found.map(|(at, operation)| refusal(outer, inner, at, operation, places)));
        }
    }
    refusals
}

/// The first convergent operation of a function.
fn convergent<'t>(function: &Function<'t>) -> Option<(usize, &'t str)> {
    function.statements().iter().enumerate().find_map(|(at, statement)| {
        let convergent = |it: &&Instruction<'_>| it.is_convergent() && !marks::is_of_warp(it);
        statement.instruction().filter(convergent).map(|it| (at, it.opcode))
    })
}

fn refusal(
    outer: &Function<'_>,
    inner: &Function<'_>,
    at: usize,
    operation: &str,
    places: &Places<'_, '_>,
) -> Refusal {
    let (file, place) = places.of(inner, at).unwrap_or_default();
    Refusal {
        file,
        place,
        message: format!(
            "threads work together here (`{operation}`), in code that is called through a pointer: `{:#}`\n  \
             note: the compiler may move such a call into a branch that only some threads take\n  \
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
             \t.file\t1 \"src/main.rs\"\n\t.file\t2 \"device/src/warp/mod.rs\"\n"
        )
    }

    fn checked(text: &str) -> Vec<Refusal> {
        let module = Module::parse(text).unwrap();
        check(&module, &Places::new(&module, &["src/main.rs".to_owned()].into(), &[]))
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
    fn transitive_calls_count_and_have_their_own_line() {
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
