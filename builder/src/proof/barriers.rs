//! All threads that a barrier waits for reach it together.
//!
//! The analysis is [`ferrogrid_ptx::uniformity`]; here its findings become sentences about the user's source.

use std::collections::HashSet;

use ferrogrid_ptx::uniformity::{Divergence, Level, divergences};
use ferrogrid_ptx::{Calls, Function, Instruction, Item, Module};

use super::Refusal;
use super::place::Places;

/// The function of `ferrogrid-device` that is the barrier of the grid: no single instruction is.
const SYNC_GRID: &str = "ferrogrid_device::barrier::source::sync_grid";

/// The barriers that some threads may not reach, in entry points that are not `vouched_for` and in what these call.
pub(super) fn check(module: &Module<'_>, vouched_for: &HashSet<&str>, places: &Places<'_>) -> Vec<Refusal> {
    let found = divergences(module, |name| is_sync_grid(name).then_some(Level::Grid));
    if found.is_empty() {
        return Vec::new();
    }
    let is_checked = |at: &usize| match &module.items[*at] {
        Item::Function(function) => function.is_entry && !vouched_for.contains(function.name),
        _ => false,
    };
    let checked = Calls::of(module).reachable((0..module.items.len()).filter(is_checked), |_| false);
    let mut refusals: Vec<Refusal> = Vec::new();
    for divergence in found.iter().filter(|divergence| checked.contains(&divergence.item)) {
        let Item::Function(function) = &module.items[divergence.item] else { continue };
        let refusal = refusal(function, divergence, places);
        if !refusals.contains(&refusal) {
            refusals.push(refusal);
        }
    }
    refusals
}

fn is_sync_grid(name: &str) -> bool {
    name.contains("9sync_grid") && format!("{:#}", rustc_demangle::demangle(name)).starts_with(SYNC_GRID)
}

fn refusal(function: &Function<'_>, divergence: &Divergence, places: &Places<'_>) -> Refusal {
    let (file, place) = places.of(function, divergence.barrier).unwrap_or_default();
    let waiting = match divergence.needs {
        Level::Cluster => "blocks of a cluster",
        Level::Grid => "threads of the grid",
        Level::Block | Level::Thread => "threads of a block",
    };
    let mut message = format!("some {waiting} may not come to this barrier{}", in_function(function));
    let on_line = |at: usize| {
        places.of(function, at).map_or(String::new(), |(file, (line, _))| format!(" ({file}:{line})"))
    };
    message
        .push_str(&format!("\n  note: whether they do depends on a condition{}", on_line(divergence.branch)));
    let source = divergence.because.last().copied().unwrap_or(divergence.branch);
    if let Some(instruction) = function.statements()[source].instruction() {
        message.push_str(&format!("\n  note: which depends on {}{}", origin(instruction), on_line(source)));
    }
    message.push_str(
        "\n  help: guard the work, not the barrier; or decide by what they have in common: parameters, constants, block indices, \
         elements of `&[T]`, results of barriers\n  help: where only you know that it is the same for all, make the kernel an \
         `unsafe fn`: then its launches vouch for it",
    );
    Refusal { file: file.to_owned(), place, message }
}

/// The function, unless it is a kernel, whose line says enough.
fn in_function(function: &Function<'_>) -> String {
    if function.is_entry {
        return String::new();
    }
    format!(", in `{:#}`", rustc_demangle::demangle(function.name))
}

/// What a value that differs comes from, in the user's words.
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
            "an argument or a result of a function that is called with what differs".to_owned()
        }
        ("ld", _) if instruction.has("local") => "an array of the thread's own".to_owned(),
        ("ld", _) => "memory that other threads may write".to_owned(),
        ("shfl" | "vote" | "match" | "redux" | "activemask" | "elect", _) => {
            "an operation of the warp".to_owned()
        }
        _ => format!("`{}`", instruction.opcode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = ".version 8.0\n.target sm_90\n.visible .entry k(\n\t.param .u32 n\n)\n{\n\t.reg .b32 %r<9>;\n\t.reg .pred %p<9>;\n\
        \t.loc\t1 7 9\n\tmov.u32 %r1, %tid.x;\n\t.loc\t1 8 12\n\tsetp.gt.u32 %p1, %r1, 4;\n\t@%p1 bra $after;\n\
        \t.loc\t2 99 1\n\tbar.sync 0;\n$after:\n\tret;\n}\n\t.file\t1 \"src/main.rs\"\n\t.file\t2 \"/rustc/library/x.rs\"\n";

    fn checked(text: &str, vouched_for: &[&str]) -> Vec<Refusal> {
        let module = Module::parse(text).unwrap();
        check(
            &module,
            &vouched_for.iter().copied().collect(),
            &Places::new(&module, &["src/main.rs".to_owned()].into()),
        )
    }

    #[test]
    fn a_barrier_that_some_threads_miss_is_refused_with_the_lines_of_condition_and_origin() {
        let [refusal] = &checked(PROGRAM, &["other"])[..] else { panic!() };
        assert_eq!((refusal.file.as_str(), refusal.place), ("src/main.rs", (8, 12)));
        for part in [
            "some threads of a block may not come to this barrier\n",
            "depends on a condition (src/main.rs:8)\n",
            "which depends on the index of the thread (src/main.rs:7)\n",
        ] {
            assert!(refusal.message.contains(part), "{part} is not in\n{}", refusal.message);
        }
    }

    #[test]
    fn what_all_threads_have_in_common_may_decide() {
        assert_eq!(checked(&PROGRAM.replace("mov.u32 %r1, %tid.x", "ld.param.b32 %r1, [n]"), &[]), []);
        assert_eq!(checked(&PROGRAM.replace("%tid.x", "%ctaid.x"), &[]), []);
    }

    #[test]
    fn who_launches_an_unsafe_kernel_vouches_for_its_barriers() {
        assert_eq!(checked(PROGRAM, &["k"]), []);
    }

    #[test]
    fn functions_count_where_a_checked_kernel_calls_them() {
        let function = PROGRAM.replace(".visible .entry k(\n\t.param .u32 n\n)", ".func f()");
        let calling =
            |name: &str| format!("{function}.visible .entry {name}()\n{{\n\tcall.uni f;\n\tret;\n}}\n");
        let [refusal] = &checked(&calling("safe"), &["vouched"])[..] else { panic!() };
        assert!(refusal.message.contains("this barrier, in `f`\n"), "{refusal:?}");
        assert_eq!(checked(&calling("vouched"), &["vouched"]), []);
    }

    #[test]
    fn a_barrier_of_the_grid_needs_what_all_blocks_have_in_common() {
        let name = "_RINvNtNtCshduLZIDzNpb_16ferrogrid_device7barrier6source9sync_gridKj1_ECsbZ1rkDkQ6cb_11conformance";
        let text = PROGRAM.replace("%tid.x", "%ctaid.x").replace("bar.sync 0", &format!("call.uni {name}"));
        let text = format!("{text}.func {name}()\n{{\n\tbar.sync 0;\n\tret;\n}}\n");
        let [refusal] = &checked(&text, &[])[..] else { panic!() };
        assert!(refusal.message.starts_with("some threads of the grid may not"), "{refusal:?}");
        assert!(refusal.message.contains("depends on the index of the block"), "{refusal:?}");
        assert_eq!(checked(&text.replace("%ctaid.x", "%nctaid.x"), &[]), []);
    }
}
