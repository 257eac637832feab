//! The wait of a thread that panics for tiles that it copies: left out of modules whose kernels copy none. Kernels that do have a mark.

use ferrogrid_ptx::{Edits, Module};

/// The mark, which no assembler accepts.
const MARK: &str = "ferrogrid.tiles";
/// The function of the device crate that waits.
const WAIT: &str = "__ferrogrid_end_tiles";

/// Removes all marks, and without any the calls.
pub(super) fn wait<'t>(module: &Module<'t>, edits: &mut Edits<'t>) {
    let bodies = module.functions().filter_map(|function| function.body.as_ref());
    let all = bodies.flat_map(|body| &body.statements);
    let instructions: Vec<_> = all.filter_map(|it| Some((it.text, it.instruction()?))).collect();
    let has_tiles = instructions.iter().any(|(_, instruction)| instruction.opcode == MARK);
    for (text, instruction) in instructions {
        if instruction.opcode == MARK || !has_tiles && instruction.callee() == Some(WAIT) {
            edits.remove(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::after;
    use super::*;

    #[test]
    fn threads_wait_for_tiles_only_where_kernels_copy_them() {
        let function = |lines: &str| format!(".func exits()\n{{\n{lines}\texit;\n}}\n");
        let kernel = |lines: &str| format!(".visible .entry kernel()\n{{\n{lines}\tret;\n}}\n");
        let (call, mark) = ("\tcall.uni __ferrogrid_end_tiles, ();\n", "\tferrogrid.tiles;\n");
        let of = |mark: &str| after(&(function(call) + &kernel(mark)), wait);
        let (without, with) = (of(""), of(mark));
        assert!(!without.contains("call"), "{without}");
        assert!(with.contains(call) && !with.contains("ferrogrid.tiles"), "{with}");
    }
}
