//! The launch bounds of kernels, as performance-tuning directives of their entry points: rustc has no
//! attribute for them.

use ferrogrid_ptx::{Body, Edits, Instruction, Module, StatementKind};
use ferrogrid_syntax::LaunchBounds;

use super::Wanted;

/// Puts the directives of each entry point before its body. A missing entry point is reported by the check
/// of the whole text.
pub(super) fn declare<'t>(module: &Module<'t>, wanted: &Wanted<'_>, edits: &mut Edits<'t>) {
    let layouts = crate::ptx::layout::read(module.text);
    for (name, bounds) in &wanted.bounds {
        let mut bounds = *bounds;
        if bounds.block_of_constants {
            bounds.block = layouts.get(*name).and_then(|numbers| crate::ptx::layout::block(numbers));
        }
        let Some(body) = module.entry(name).and_then(|entry| entry.body.as_ref()) else { continue };
        edits.insert_before(body.text, directives(bounds));
        if bounds.dependent_launch {
            edits.insert_line_after(before_first_instruction(body), WAIT);
        }
    }
}

/// Waits for the grids before this one, and for their writes. In the PTX no compiler moves loads ahead of
/// it: LLVM does not see it, and ptxas knows it.
const WAIT: &str = "\tgriddepcontrol.wait;\n";

/// Whether an instruction is that wait.
pub(super) fn waits_for_grids(instruction: &Instruction<'_>) -> bool {
    instruction.opcode == "griddepcontrol.wait"
}

/// The last of the declarations at the beginning of a body, or its brace.
pub(super) fn before_first_instruction<'t>(body: &Body<'t>) -> &'t str {
    let declarations =
        body.statements.iter().take_while(|it| matches!(it.kind, StatementKind::Declaration(_)));
    declarations.last().map_or(&body.text[..1], |last| last.text)
}

fn directives(bounds: LaunchBounds) -> String {
    let mut lines = String::new();
    if let Some([x, y, z]) = bounds.block {
        lines.push_str(&format!(".reqntid {x}, {y}, {z}\n"));
    }
    if let Some(threads) = bounds.max_threads {
        lines.push_str(&format!(".maxntid {threads}, 1, 1\n"));
    }
    if let Some([x, y, z]) = bounds.cluster {
        lines.push_str(&format!(".explicitcluster\n.reqnctapercluster {x}, {y}, {z}\n"));
    }
    if let Some(blocks) = bounds.min_blocks {
        lines.push_str(&format!(".minnctapersm {blocks}\n"));
    }
    if let Some(registers) = bounds.max_registers {
        lines.push_str(&format!(".maxnreg {registers}\n"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::tests::after;
    use super::*;

    const TEXT: &str = ".visible .entry k_1(\n\t.param .f32 k_1_param_0\n)\n{\n\tret;\n}\n.visible .entry k_10()\n{\n\tret;\n}\n";

    fn declared(bounds: Vec<(&str, LaunchBounds)>) -> String {
        let wanted = Wanted { bounds, ..Wanted::default() };
        after(TEXT, |module, edits| declare(module, &wanted, edits))
    }

    #[test]
    fn directives_stand_before_the_body_of_their_entry() {
        let fixed = LaunchBounds { block: Some([16, 8, 4]), min_blocks: Some(2), ..LaunchBounds::default() };
        let limited =
            LaunchBounds { max_threads: Some(100), max_registers: Some(64), ..LaunchBounds::default() };
        let fixed = LaunchBounds { cluster: Some([4, 2, 1]), ..fixed };
        let text = declared(vec![("k_10", limited), ("k_1", fixed)]);
        assert!(text.contains("param_0\n)\n.reqntid 16, 8, 4\n.explicitcluster\n.reqnctapercluster 4, 2, 1\n.minnctapersm 2\n{"), "{text}");
        assert!(text.contains(".entry k_10()\n.maxntid 100, 1, 1\n.maxnreg 64\n{"), "{text}");
    }

    #[test]
    fn a_dependent_launch_waits_before_its_first_instruction() {
        let dependent =
            LaunchBounds { dependent_launch: true, max_threads: Some(64), ..LaunchBounds::default() };
        let text = "\
.visible .entry a_1(
\t.param .u64 a_1_param_0
)
{
\t.local .align 8 .b8 \t__local_depot0[8];
\t.reg .b64 \t%SP;
\t.reg .b32 \t%r<2>;
$L__func_begin0:
\t.loc\t1 7 0
\tld.param.b64 \t%rd1, [a_1_param_0];
\tret;
}
";
        let wanted = Wanted { bounds: vec![("k_10", dependent), ("a_1", dependent)], ..Wanted::default() };
        let declared = after(&format!("{TEXT}{text}"), |module, edits| declare(module, &wanted, edits));
        let waits =
            "\t.reg .b32 \t%r<2>;\n\tgriddepcontrol.wait;\n$L__func_begin0:\n\t.loc\t1 7 0\n\tld.param";
        assert!(declared.contains(waits), "{declared}");
        assert!(
            declared.contains(".entry k_10()\n.maxntid 64, 1, 1\n{\n\tgriddepcontrol.wait;\n\tret;"),
            "{declared}"
        );
        assert_eq!(declared.matches("griddepcontrol").count(), 2);
    }

    #[test]
    fn a_kernel_reports_its_constant_block_shape() {
        let wanted = LaunchBounds { block_of_constants: true, ..LaunchBounds::default() };
        let wanted = Wanted { bounds: vec![("k_10", wanted)], ..Wanted::default() };
        let text = format!("// Layout of k_10: 1024 32 8 1 4\n{TEXT}");
        let declared = after(&text, |module, edits| declare(module, &wanted, edits));
        assert!(declared.contains(".entry k_10()\n.reqntid 32, 8, 1\n{"), "{declared}");
    }

    #[test]
    fn kernels_without_promises_stay_as_they_are() {
        assert_eq!(declared(vec![("k_1", LaunchBounds::default()), ("gone", LaunchBounds::default())]), TEXT);
    }
}
