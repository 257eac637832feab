//! Registers that the groups of a block leave to each other (`setmaxnreg`), for kernels of which a multiprocessor has one block.
//!
//! A group that asks for more waits until the block has them free, so a block that began with too few would wait for ever. The device
//! crate's numbers are those of a block that began with all registers of a multiprocessor: `min_blocks = 1` and no other limit. In
//! other kernels, and in functions that any kernel may call, the instructions are left out.

use ferrogrid_ptx::{Edits, Function, Module, Statement};
use ferrogrid_syntax::LaunchBounds;

use super::Wanted;

pub(super) fn keep<'t>(module: &Module<'t>, wanted: &Wanted<'_>, edits: &mut Edits<'t>) {
    let has_all = |function: &Function<'t>| {
        function.is_entry
            && wanted.bounds.iter().any(|(name, bounds)| *name == function.name && has_all_registers(*bounds))
    };
    for function in module.functions().filter(|function| !has_all(function)) {
        let shares = |statement: &&Statement<'_>| {
            statement.instruction().is_some_and(|it| it.opcode.starts_with("setmaxnreg."))
        };
        function.statements().iter().filter(shares).for_each(|it| edits.remove(it.text));
    }
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

    fn kept(bounds: LaunchBounds) -> String {
        let wanted = Wanted { bounds: vec![("kernel", bounds)], ..Wanted::default() };
        after(TEXT, |module, edits| keep(module, &wanted, edits))
    }

    #[test]
    fn groups_exchange_registers_where_a_block_has_all() {
        let all = LaunchBounds { block: Some([384, 1, 1]), min_blocks: Some(1), ..LaunchBounds::default() };
        let text = kept(all);
        assert!(text.contains("setmaxnreg.dec") && !text.contains("setmaxnreg.inc"), "{text}");
        for fewer in [
            LaunchBounds { block: None, ..all },
            LaunchBounds { min_blocks: None, ..all },
            LaunchBounds { min_blocks: Some(2), ..all },
            LaunchBounds { max_registers: Some(64), ..all },
        ] {
            assert!(!kept(fewer).contains("setmaxnreg"), "{fewer:?}");
        }
        assert!(
            kept(LaunchBounds { block: None, block_of_constants: true, ..all }).contains("setmaxnreg.dec")
        );
    }
}
