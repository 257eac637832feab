//! Numbers the blocks of kernels with a `BlockOrder` in the order in which they start: reads of `%ctaid.x`
//! get that number.
//!
//! The number is taken here, not in the source: LLVM treats the index of a block as a constant and may read
//! it anywhere, even before the number is taken. In the PTX no compiler moves it.

use std::collections::BTreeSet;

use ferrogrid_ptx::{Calls, Edits, Function, Module};

use super::launch_bounds::before_first_instruction;
use super::{Wanted, launch_bounds};

/// The special register that is replaced.
const INDEX: &str = "%ctaid.x";
/// The register with the number.
const REGISTER: &str = "%ferrogrid_block";
/// The shared variable from which functions read it: the number in a block of a kernel with an order, and after it the number of
/// the launch, which the device crate reads; else the block's index.
const VARIABLE: &str = "ferrogrid_block";

/// Takes the number first and replaces the index by it, also in functions that the kernels call. Panic
/// reports keep the index, which is that of the grid.
pub(super) fn number<'t>(module: &Module<'t>, wanted: &Wanted<'_>, edits: &mut Edits<'t>) {
    let in_order: BTreeSet<&str> =
        wanted.bounds.iter().filter(|(_, bounds)| bounds.in_order).map(|(name, _)| *name).collect();
    let functions = || module.items.iter().enumerate().filter_map(|(at, item)| Some((at, item.function()?)));
    let entries = || functions().filter(|(_, function)| function.is_entry);
    let roots = entries().filter(|(_, entry)| in_order.contains(entry.name)).map(|(at, _)| at);
    let roots: Vec<usize> = roots.collect();
    if roots.is_empty() {
        return;
    }
    let calls = Calls::of(module);
    let reached = |roots: &[usize]| {
        calls.reachable(roots.iter().copied(), |name| name.starts_with("__ferrogrid_panic_"))
    };
    let readers: BTreeSet<usize> =
        reached(&roots).into_iter().filter(|&at| module.items[at].function().is_some_and(reads)).collect();
    for (_, function) in functions().filter(|(at, _)| readers.contains(at)) {
        replace(function, &load(), edits);
    }
    for (at, entry) in entries() {
        if in_order.contains(entry.name) {
            replace(entry, &take(entry), edits);
        } else if !reached(&[at]).is_disjoint(&readers) {
            begin(entry, TELL, edits);
        }
    }
    let first = module.functions().next().map_or(module.text, |function| function.text);
    edits.insert_before(first, format!(".shared .align 8 .b32 {VARIABLE}[2];\n"));
}

/// Whether a function, not an entry point, reads the index.
fn reads(function: &Function<'_>) -> bool {
    !function.is_entry && function.instructions().any(|it| it.uses().contains(&INDEX))
}

/// Replaces the index by the register, whose value the lines `first` set.
fn replace<'t>(function: &Function<'t>, first: &str, edits: &mut Edits<'t>) {
    begin(function, &format!("\t.reg .b32 \t{REGISTER};\n{first}"), edits);
    for statement in function.statements() {
        let reads = statement.instruction().is_some_and(|it| it.uses().contains(&INDEX));
        if let Some(at) = statement.text.find(INDEX).filter(|_| reads) {
            edits.replace(&statement.text[at..at + INDEX.len()], REGISTER);
        }
    }
}

/// Puts `lines` before the first instruction, or after the wait for other grids.
fn begin<'t>(function: &Function<'t>, lines: &str, edits: &mut Edits<'t>) {
    let Some(body) = &function.body else { return };
    let wait = body.statements.iter().find(|it| it.instruction().is_some_and(launch_bounds::waits_for_grids));
    edits.insert_line_after(wait.map_or_else(|| before_first_instruction(body), |it| it.text), lines);
}

/// One thread takes the next number, from the state in the first parameter; then all threads of the block
/// have it. The upper half of that word counts the launches that have used the state: the last block to take a number adds one,
/// and takes the number back to 0. By then all blocks of the launch have read it.
fn take(entry: &Function<'_>) -> String {
    let state = entry.parameters().first().and_then(|it| it.names.first()).map_or("", |it| it.name);
    format!(
        "\t{{\n\t.reg .pred \t%first, %last;\n\t.reg .b32 \t%thread, %number, %launch, %blocks;\n\
         \t.reg .b64 \t%state, %both, %next;\n\
         \tmov.u32 \t%thread, %tid.x;\n\
         \tsetp.eq.u32 \t%first, %thread, 0;\n\
         \tld.param.b64 \t%state, [{state}];\n\
         \tcvta.to.global.u64 \t%state, %state;\n\
         \t@%first atom.relaxed.gpu.global.add.u64 \t%both, [%state], 1;\n\
         \t@%first st.shared.b64 \t[{VARIABLE}], %both;\n\
         \tmov.b64 \t{{%number, %launch}}, %both;\n\
         \tmov.u32 \t%blocks, %nctaid.x;\n\
         \tsub.u32 \t%thread, %blocks, 1;\n\
         \tsetp.eq.and.u32 \t%last, %number, %thread, %first;\n\
         \tcvt.u64.u32 \t%next, %blocks;\n\
         \tsub.u64 \t%next, 4294967296, %next;\n\
         \t@%last red.relaxed.gpu.global.add.u64 \t[%state], %next;\n\
         \tbar.sync \t0;\n\t}}\n{}",
        load()
    )
}

fn load() -> String {
    format!("\tld.shared.b32 \t{REGISTER}, [{VARIABLE}];\n")
}

/// One thread of the block publishes the block's index for the functions that read it.
const TELL: &str = "\t{\n\t.reg .pred \t%first;\n\t.reg .b32 \t%thread, %other, %index;\n\
    \tmov.u32 \t%thread, %tid.x;\n\
    \tmov.u32 \t%other, %tid.y;\n\
    \tor.b32 \t%thread, %thread, %other;\n\
    \tmov.u32 \t%other, %tid.z;\n\
    \tor.b32 \t%thread, %thread, %other;\n\
    \tsetp.eq.u32 \t%first, %thread, 0;\n\
    \tmov.u32 \t%index, %ctaid.x;\n\
    \t@%first st.shared.b32 \t[ferrogrid_block], %index;\n\
    \tbar.sync \t0;\n\t}\n";

#[cfg(test)]
mod tests {
    use ferrogrid_syntax::LaunchBounds;

    use super::super::tests::after;
    use super::*;

    const TEXT: &str = "\
.version 8.0
.target sm_90
.func  (.param .b32 func_retval0) place()
{
\t.reg .b32 \t%r<3>;
\tmov.u32 \t%r1, %ctaid.x;
\tst.param.b32 \t[func_retval0], %r1;
\tret;
}
.func __ferrogrid_panic_text()
{
\t.reg .b32 \t%r<3>;
\tmov.u32 \t%r1, %ctaid.x;
\texit;
}
.visible .entry in_order(
\t.param .u64 .ptr .align 1 in_order_param_0,
\t.param .u32 in_order_param_1
)
{
\t.reg .b32 \t%r<3>;
\t.loc\t1 7 0
\tgriddepcontrol.wait;
\tmov.u32 \t%r1, %ctaid.x;
\tcall.uni __ferrogrid_panic_text;
\tret;
}
.visible .entry other()
{
\t.reg .b32 \t%r<3>;
\tmov.u32 \t%r1, %ctaid.x;
\tret;
}
";

    fn numbered(text: &str) -> String {
        let bounds = LaunchBounds { in_order: true, ..LaunchBounds::default() };
        let wanted = Wanted {
            bounds: vec![("in_order", bounds), ("other", LaunchBounds::default())],
            ..Wanted::default()
        };
        after(text, |module, edits| number(module, &wanted, edits))
    }

    /// The function that begins with `head`.
    fn function<'t>(text: &'t str, head: &str) -> &'t str {
        let at = text.find(head).unwrap();
        &text[at..at + text[at..].find("\n}\n").unwrap()]
    }

    #[test]
    fn a_block_takes_its_number_before_all_else_but_the_wait_for_other_grids() {
        let text = numbered(TEXT);
        let entry = function(&text, ".visible .entry in_order");
        let steps =
            ["griddepcontrol.wait", "[in_order_param_0]", "atom.relaxed.gpu.global.add.u64", "bar.sync"];
        let places: Vec<usize> = steps.iter().map(|step| entry.find(step).unwrap()).collect();
        assert!(
            places.is_sorted() && places[3] < entry.find("mov.u32 \t%r1, %ferrogrid_block").unwrap(),
            "{entry}"
        );
        assert!(!entry.contains(INDEX), "{entry}");
        assert_eq!(text.matches(".shared .align 8 .b32 ferrogrid_block[2];").count(), 1);
        Module::parse(&text).unwrap();
    }

    #[test]
    fn others_and_the_reports_of_panics_keep_the_index_of_the_grid() {
        let text = numbered(TEXT);
        for head in
            [".func  (.param .b32 func_retval0) place", ".func __ferrogrid_panic", ".visible .entry other"]
        {
            assert_eq!(function(&text, head), function(TEXT, head));
        }
        assert_eq!(after(TEXT, |module, edits| number(module, &Wanted::default(), edits)), TEXT);
    }

    #[test]
    fn a_function_of_ordered_and_other_kernels_gets_its_block_number_from_each() {
        let calling =
            TEXT.replace("\tret;\n}\n.visible", "\tcall.uni (retval0), place;\n\tret;\n}\n.visible");
        let text = numbered(&calling);
        let place = function(&text, ".func  (.param .b32 func_retval0) place");
        assert!(
            place.contains(
                "ld.shared.b32 \t%ferrogrid_block, [ferrogrid_block];\n\tmov.u32 \t%r1, %ferrogrid_block"
            ),
            "{place}"
        );
        assert_eq!(function(&text, ".visible .entry other"), function(TEXT, ".visible .entry other"));
        let both = calling.replace("%ctaid.x;\n\tret", "%ctaid.x;\n\tcall.uni (retval0), place;\n\tret");
        let text = numbered(&both);
        let other = function(&text, ".visible .entry other");
        assert!(
            other.contains("@%first st.shared.b32 \t[ferrogrid_block], %index;\n\tbar.sync \t0"),
            "{other}"
        );
        Module::parse(&text).unwrap();
        assert!(other.contains("mov.u32 \t%r1, %ctaid.x"), "{other}");
    }
}
