//! Proves that all threads which a barrier waits for reach it together.
//!
//! The analysis is [`ferrogrid_ptx::uniformity`]. Here its findings become messages about the user's source.

use std::collections::HashSet;

use ferrogrid_ptx::uniformity::{Divergence, Level, Program};
use ferrogrid_ptx::{Calls, Function, Instruction, Module};

use super::place::Places;
use super::{Refusal, marks};

/// The barriers that some of their threads may miss.
pub(super) fn check(program: &Program<'_, '_>, places: &Places<'_, '_>) -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = Vec::new();
    for divergence in program.divergences() {
        let Some(function) = program.module().items[divergence.item].function() else { continue };
        // Its mark was checked above.
        if marks::is_marked(function, divergence.barrier) {
            continue;
        }
        let refusal = refusal(function, &divergence, places);
        if !refusals.contains(&refusal) {
            refusals.push(refusal);
        }
    }
    refusals
}

/// The grid's barriers in entry points that are not `cooperative`: their blocks need not be resident at the
/// same time.
pub(super) fn of_the_grid(
    module: &Module<'_>,
    cooperative: &HashSet<&str>,
    places: &Places<'_, '_>,
) -> Vec<Refusal> {
    let waits = |item: usize| {
        let function = module.items[item].function()?;
        let mut statements = function.statements().iter();
        let at = statements.position(|it| it.instruction().is_some_and(waits_for_grid))?;
        Some((function, at))
    };
    if !(0..module.items.len()).any(|item| waits(item).is_some()) {
        return Vec::new();
    }
    let calls = Calls::of(module);
    let is_one = |function: &Function<'_>| function.is_entry && !cooperative.contains(function.name);
    let entries = (0..module.items.len()).filter(|&item| module.items[item].function().is_some_and(is_one));
    let refusals = entries.filter_map(|entry| {
        let (function, at) = calls.reachable([entry], |_| false).into_iter().find_map(waits)?;
        let (file, place) = places.of(function, at).unwrap_or_default();
        let message = "the blocks of this launch need not be there at the same time, so they cannot wait for each other\n  \
                       help: make the kernel `#[kernel(cooperative)]`";
        Some(Refusal { file, place, message: message.to_owned() })
    });
    refusals.collect()
}

fn waits_for_grid(instruction: &Instruction<'_>) -> bool {
    instruction.opcode == "ferrogrid.together.grid"
}

fn refusal(function: &Function<'_>, divergence: &Divergence, places: &Places<'_, '_>) -> Refusal {
    let (file, place) = places.of(function, divergence.barrier).unwrap_or_default();
    let threads = match divergence.needs {
        Level::Cluster => "threads of a cluster",
        Level::Grid => "threads of the grid",
        Level::Block | Level::Warp | Level::Thread => "threads of a block",
    };
    let (because, in_function) = (&divergence.because, in_function(function));
    let condition = divergence
        .branch
        .map(|branch| places.written(function, [branch].into_iter().chain(because.iter().copied())));
    let mut message = match &condition {
        Some(condition) => format!(
            "some {threads} may not reach this barrier{in_function}\n  note: whether they do depends on a condition{condition}"
        ),
        None => {
            format!("{threads} may pass different regions of shared memory to this barrier{in_function}")
        }
    };
    let source = because.last().copied().or(divergence.branch).unwrap_or(divergence.barrier);
    if let Some(instruction) = function.statements()[source].instruction() {
        // Where the value enters the user's own code, if that is not in the condition itself.
        let entered = Some(places.written(function, because.iter().rev().copied()));
        let entered = entered.filter(|entered| condition.as_ref() != Some(entered)).unwrap_or_default();
        message.push_str(&format!("\n  note: which depends on {}{entered}", origin(instruction)));
    }
    message.push_str(
        "\n  help: guard the work, not the barrier; or decide by what they have in common: parameters, constants, block indices, \
         elements of `&[T]`, results of barriers\n  help: `t.broadcast(value)` gives all threads of a block what the first one holds; \
         where only you know that a value is the same in all of them, say so: `unsafe { t.assume_uniform(value) }`",
    );
    if !function.is_entry {
        message.push_str(
            "\n  help: the function is compiled apart from what calls it, which may know more: `#[inline(always)]` above it, for the body of a \
             kernel above `#[kernel]`, lets both be seen at once",
        );
    }
    Refusal { file, place, message }
}

/// The name of the function, unless it is a kernel, whose line suffices.
fn in_function(function: &Function<'_>) -> String {
    if function.is_entry {
        return String::new();
    }
    format!(", in `{:#}`", rustc_demangle::demangle(function.name))
}

/// The source of a non-uniform value, for the message.
fn origin(instruction: &Instruction<'_>) -> String {
    let special = instruction.uses().into_iter().find(|name| name.starts_with('%') && name.contains('.'));
    let special = special.or_else(|| instruction.uses().into_iter().find(|name| name.starts_with('%')));
    let name = special.unwrap_or_default().split('.').next().unwrap_or_default();
    match (instruction.operation(), name) {
        ("mov" | "cvt", "%tid") => "the index of the thread".to_owned(),
        ("mov" | "cvt", "%laneid" | "%warpid") => "the place of the thread in its warp or block".to_owned(),
        ("mov" | "cvt", "%ctaid" | "%cluster_ctaid" | "%cluster_ctarank") => {
            "the index of the block".to_owned()
        }
        ("mov" | "cvt", "%clusterid") => "the index of the cluster".to_owned(),
        ("atom", _) => "the result of an atomic operation".to_owned(),
        ("ld", _) if instruction.has("param") => {
            "an argument or a result of a function that is called with different values".to_owned()
        }
        ("ld", _) if instruction.has("local") => "an array of the thread".to_owned(),
        ("ld" | "suld", _) => "memory that other threads may write".to_owned(),
        ("shfl" | "vote" | "match" | "redux" | "activemask" | "elect", _) => {
            "an operation of the warp".to_owned()
        }
        _ if instruction.is_of_matrices() => "an operation of the warp".to_owned(),
        _ => format!("`{}`", instruction.opcode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = ".version 8.0\n.target sm_90\n.visible .entry k(\n\t.param .u32 n\n)\n{\n\t.reg .b32 %r<9>;\n\t.reg .pred %p<9>;\n\
        \t.loc\t1 7 9\n\tmov.u32 %r1, %tid.x;\n\t.loc\t1 8 12\n\tsetp.gt.u32 %p1, %r1, 4;\n\t@%p1 bra $after;\n\
        \t.loc\t2 99 1\n\tbar.sync 0;\n$after:\n\tret;\n}\n\t.file\t1 \"src/main.rs\"\n\t.file\t2 \"/rustc/library/x.rs\"\n";

    fn checked(text: &str, cooperative: &[&str]) -> Vec<Refusal> {
        let module = Module::parse(text).unwrap();
        let places = Places::new(&module, &["src/main.rs".to_owned()].into(), &[]);
        let mut refusals = check(&Program::of(&module), &places);
        refusals.extend(of_the_grid(&module, &cooperative.iter().copied().collect(), &places));
        refusals
    }

    #[test]
    fn a_barrier_that_some_threads_miss_is_refused_with_the_lines_of_condition_and_origin() {
        for barrier in ["bar.sync 0;", "ferrogrid.together.block 0, 0, 0, 0; bar.sync 0;"] {
            let [refusal] = &checked(&PROGRAM.replace("bar.sync 0;", barrier), &[])[..] else { panic!() };
            assert_eq!((refusal.file.as_str(), refusal.place), ("src/main.rs", (8, 12)));
            for part in [
                "some threads of a block may not reach this barrier\n",
                "depends on a condition (src/main.rs:8)\n",
                "which depends on the index of the thread (src/main.rs:7)\n",
            ] {
                assert!(refusal.message.contains(part), "{part} is not in\n{}", refusal.message);
            }
            assert!(!refusal.message.contains("inline"), "a kernel is compiled alone: {}", refusal.message);
        }
    }

    #[test]
    fn conditions_may_depend_on_uniform_values() {
        assert_eq!(checked(&PROGRAM.replace("mov.u32 %r1, %tid.x", "ld.param.b32 %r1, [n]"), &[]), []);
        assert_eq!(checked(&PROGRAM.replace("%tid.x", "%ctaid.x"), &[]), []);
        let assumed = "mov.u32 %r2, %tid.x; ferrogrid.assumed.block %r1, %r2";
        assert_eq!(checked(&PROGRAM.replace("mov.u32 %r1, %tid.x", assumed), &[]), []);
    }

    #[test]
    fn threads_bring_one_region_to_a_barrier() {
        let chosen = "selp.b32 %r2, 64, 0, %p1;\n\tferrogrid.together.block 0, 0, 0, 0, %r2;\n\tbar.sync 0;";
        let text = PROGRAM.replace("\t@%p1 bra $after;\n", "").replace("bar.sync 0;", chosen);
        let [refusal] = &checked(&text, &[])[..] else { panic!() };
        let message = "threads of a block may pass different regions of shared memory to this barrier\n  note: which depends on \
                       the index of the thread (src/main.rs:7)";
        assert!(refusal.message.starts_with(message), "{refusal:?}");
        assert_eq!(checked(&text.replace("%tid.x", "%ctaid.x"), &[]), []);
    }

    #[test]
    fn a_barrier_in_a_function_is_refused_where_some_threads_call_it() {
        let function = PROGRAM.replace(".visible .entry k(\n\t.param .u32 n\n)", ".func f()");
        let calling =
            |function: &str| format!("{function}.visible .entry k()\n{{\n\tcall.uni f;\n\tret;\n}}\n");
        let [refusal] = &checked(&calling(&function), &[])[..] else { panic!() };
        assert!(refusal.message.contains("this barrier, in `f`\n"), "{refusal:?}");
        assert!(refusal.message.contains("`#[inline(always)]` above it"), "{refusal:?}");
        assert_eq!(checked(&calling(&function.replace("%tid.x", "%ntid.x")), &[]), []);
    }

    #[test]
    fn a_grid_barrier_requires_a_uniform_path_and_a_cooperative_launch() {
        let text =
            PROGRAM.replace("%tid.x", "%ctaid.x").replace("bar.sync 0", "ferrogrid.together.grid 0, 0, 0, 0");
        let [refusal] = &checked(&text, &["k"])[..] else { panic!() };
        assert!(refusal.message.starts_with("some threads of the grid may not"), "{refusal:?}");
        assert!(refusal.message.contains("depends on the index of the block"), "{refusal:?}");
        let text = text.replace("%ctaid.x", "%nctaid.x");
        assert_eq!(checked(&text, &["k"]), []);
        let [refusal] = &checked(&text, &["other"])[..] else { panic!() };
        assert_eq!(refusal.place, (8, 12));
        assert!(refusal.message.contains("`#[kernel(cooperative)]`"), "{refusal:?}");
    }
}
