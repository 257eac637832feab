//! Writes what kernels promise of their launches into PTX, as performance-tuning directives of their
//! entry points: rustc has no attribute for them. It must not know where the promises are checked.

use ferrogrid_syntax::LaunchBounds;

/// `text` with the directives of each entry point in `kernels`, before its body. An entry point that
/// is not there is left for the check of the whole text.
pub(crate) fn declare<'a>(text: &str, kernels: impl IntoIterator<Item = (&'a str, LaunchBounds)>) -> String {
    let mut text = text.to_owned();
    for (entry, bounds) in kernels {
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
    fn kernels_without_promises_stay_as_they_are() {
        assert_eq!(
            declare(TEXT, [("k_1", LaunchBounds::default()), ("gone", LaunchBounds::default())]),
            TEXT
        );
    }
}
