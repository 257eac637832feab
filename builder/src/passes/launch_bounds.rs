//! Writes what kernels promise of their launches into PTX, as performance-tuning directives of their
//! entry points: rustc has no attribute for them.

use ferrogrid_ptx::{Edits, Module};
use ferrogrid_syntax::LaunchBounds;

use super::Wanted;

/// Puts the directives of each entry point before its body. An entry point that is not there is left for the check of the whole
/// text.
pub(super) fn declare<'t>(module: &Module<'t>, wanted: &Wanted<'_>, edits: &mut Edits<'t>) {
    for (name, bounds) in &wanted.bounds {
        if let Some(body) = module.entry(name).and_then(|entry| entry.body.as_ref()) {
            edits.insert_before(body.text, directives(*bounds));
        }
    }
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
        let fixed = LaunchBounds { block: Some([16, 16, 1]), min_blocks: Some(2), ..LaunchBounds::default() };
        let limited =
            LaunchBounds { max_threads: Some(100), max_registers: Some(64), ..LaunchBounds::default() };
        let fixed = LaunchBounds { cluster: Some([4, 2, 1]), ..fixed };
        let text = declared(vec![("k_10", limited), ("k_1", fixed)]);
        assert!(text.contains("param_0\n)\n.reqntid 16, 16, 1\n.explicitcluster\n.reqnctapercluster 4, 2, 1\n.minnctapersm 2\n{"), "{text}");
        assert!(text.contains(".entry k_10()\n.maxntid 100, 1, 1\n.maxnreg 64\n{"), "{text}");
    }

    #[test]
    fn kernels_without_promises_stay_as_they_are() {
        assert_eq!(declared(vec![("k_1", LaunchBounds::default()), ("gone", LaunchBounds::default())]), TEXT);
    }
}
