//! Registers that the groups of a block leave to each other (`setmaxnreg`), for kernels of which a multiprocessor has one block.
//!
//! A group that asks for more waits until the block has them free, so a block that began with too few would wait for ever. The device
//! crate's numbers are those of a block that began with all registers of a multiprocessor: `min_blocks = 1` and no other limit. In
//! other kernels, and in functions that any kernel may call, the instructions are left out. So they are in kernels that may call a
//! function afterwards, for instance to panic: ptxas (13.0 to 13.5) crashes on some of them.

use ferrogrid_ptx::{Body, ControlFlow, Edits, Function, Module, Statement};
use ferrogrid_syntax::LaunchBounds;

use super::Wanted;

pub(super) fn keep<'t>(module: &Module<'t>, wanted: &Wanted<'_>, edits: &mut Edits<'t>) {
    let has_all = |function: &Function<'t>| {
        function.is_entry
            && wanted.bounds.iter().any(|(name, bounds)| *name == function.name && has_all_registers(*bounds))
    };
    for function in module.functions() {
        let Some(body) = &function.body else { continue };
        let exchanges: Vec<usize> =
            (0..body.statements.len()).filter(|at| exchanges_registers(&body.statements[*at])).collect();
        if !exchanges.is_empty() && (!has_all(function) || calls_after(body, &exchanges)) {
            exchanges.iter().for_each(|at| edits.remove(body.statements[*at].text));
        }
    }
}

fn exchanges_registers(statement: &Statement<'_>) -> bool {
    statement.instruction().is_some_and(|it| it.opcode.starts_with("setmaxnreg."))
}

/// Whether a call can follow one of the statements.
fn calls_after(body: &Body<'_>, statements: &[usize]) -> bool {
    let is_call = |at: usize| body.statements[at].instruction().is_some_and(|it| it.operation() == "call");
    ControlFlow::of(body, |_| false).reaches(statements, is_call, |_| false)
}

/// Whether a block has all registers of a multiprocessor when it begins.
fn has_all_registers(bounds: LaunchBounds) -> bool {
    let has_block = bounds.block.is_some() || bounds.block_of_constants;
    has_block && bounds.min_blocks == Some(1) && bounds.max_registers.is_none()
}

#[cfg(test)]
mod tests {
    use super::super::tests::after;
    use super::*;

    const TEXT: &str = "\
.func called()
{
\tsetmaxnreg.inc.sync.aligned.u32 240;
\tret;
}
.visible .entry kernel()
{
\tsetmaxnreg.dec.sync.aligned.u32 24;
\tret;
}
";

    fn all() -> LaunchBounds {
        LaunchBounds { block: Some([384, 1, 1]), min_blocks: Some(1), ..LaunchBounds::default() }
    }

    fn kept(text: &str, bounds: LaunchBounds) -> String {
        let wanted = Wanted { bounds: vec![("kernel", bounds)], ..Wanted::default() };
        after(text, |module, edits| keep(module, &wanted, edits))
    }

    #[test]
    fn kernels_that_may_call_a_function_afterwards_keep_their_registers() {
        let kernel = |first: &str, left: &str, right: &str| {
            let text = format!(
                ".func panic()\n{{\n\tret;\n}}\n.visible .entry kernel()\n{{\n\t.reg .pred %p1;\n{first}\
                 \t@%p1 bra $right;\n\tsetmaxnreg.dec.sync.aligned.u32 24;\n{left}\tret;\n\
                 $right:\n\tsetmaxnreg.inc.sync.aligned.u32 240;\n$again:\n{right}\t@%p1 bra $again;\n\tret;\n}}\n"
            );
            kept(&text, all()).matches("setmaxnreg").count()
        };
        let call = "\tcall.uni panic;\n";
        assert_eq!(kernel(call, "", ""), 2);
        assert_eq!(kernel("", call, ""), 0);
        assert_eq!(kernel("", "", call), 0);
    }

    #[test]
    fn groups_exchange_registers_where_a_block_has_all() {
        let text = kept(TEXT, all());
        assert!(text.contains("setmaxnreg.dec") && !text.contains("setmaxnreg.inc"), "{text}");
        for fewer in [
            LaunchBounds { block: None, ..all() },
            LaunchBounds { min_blocks: None, ..all() },
            LaunchBounds { min_blocks: Some(2), ..all() },
            LaunchBounds { max_registers: Some(64), ..all() },
        ] {
            assert!(!kept(TEXT, fewer).contains("setmaxnreg"), "{fewer:?}");
        }
        assert!(
            kept(TEXT, LaunchBounds { block: None, block_of_constants: true, ..all() })
                .contains("setmaxnreg.dec")
        );
    }
}
