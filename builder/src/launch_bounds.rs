//! Writes what kernels promise of their launches into PTX, as performance-tuning directives of their
//! entry points: rustc has no attribute for them. It must not know where the promises are checked.

use ferrogrid_syntax::LaunchBounds;

/// `text` with the directives of each entry point in `kernels`, before its body. An entry point that
/// is not there is left for the check of the whole text.
pub(crate) fn declare<'a>(text: &str, kernels: impl IntoIterator<Item = (&'a str, LaunchBounds)>) -> String {
    let mut text = text.to_owned();
    for (entry, bounds) in kernels {
        if bounds.dependent_launch
            && let Some(first) = body_of(&text, entry).map(|body| first_instruction(&text, body))
        {
            text.insert_str(first, WAIT);
        }
        let directives = directives(bounds);
        if directives.is_empty() {
            continue;
        }
        if let Some(body) = body_of(&text, entry) {
            text.insert_str(body, &directives);
        }
    }
    text
}

/// Waits for the grids before this one, and for their writes. Put in here, no compiler moves loads ahead of it: LLVM does not
/// see it, and ptxas knows what it is.
const WAIT: &str = "\tgriddepcontrol.wait;\n";

/// Where the declarations at the beginning of that body end.
fn first_instruction(text: &str, body: usize) -> usize {
    let is_declaration =
        |line: &&str| [".reg ", ".local ", ".shared "].iter().any(|kind| line.trim_start().starts_with(kind));
    let start = body + text[body..].find('\n').map_or(0, |end| end + 1);
    let declarations = text[start..].split_inclusive('\n').take_while(is_declaration);
    start + declarations.map(str::len).sum::<usize>()
}

/// Where the body of an entry point begins.
fn body_of(text: &str, entry: &str) -> Option<usize> {
    let declaration = text.find(&format!(".entry {entry}("))?;
    text[declaration..].find('{').map(|brace| declaration + brace)
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
    use super::*;

    const TEXT: &str = ".visible .entry k_1(\n\t.param .f32 k_1_param_0\n)\n{\n\tret;\n}\n.visible .entry k_10()\n{\n\tret;\n}\n";

    #[test]
    fn directives_stand_before_the_body_of_their_entry() {
        let fixed = LaunchBounds { block: Some([16, 16, 1]), min_blocks: Some(2), ..LaunchBounds::default() };
        let limited =
            LaunchBounds { max_threads: Some(100), max_registers: Some(64), ..LaunchBounds::default() };
        let fixed = LaunchBounds { cluster: Some([4, 2, 1]), ..fixed };
        let text = declare(TEXT, [("k_10", limited), ("k_1", fixed)]);
        assert!(text.contains("param_0\n)\n.reqntid 16, 16, 1\n.explicitcluster\n.reqnctapercluster 4, 2, 1\n.minnctapersm 2\n{"), "{text}");
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
        let declared = declare(&format!("{TEXT}{text}"), [("k_10", dependent), ("a_1", dependent)]);
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
    fn kernels_without_promises_stay_as_they_are() {
        assert_eq!(
            declare(TEXT, [("k_1", LaunchBounds::default()), ("gone", LaunchBounds::default())]),
            TEXT
        );
    }
}
