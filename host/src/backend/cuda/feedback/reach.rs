//! Which kernels of a module may panic, as its PTX says.

use std::collections::BTreeSet;

use ferrogrid_device::failure::FAILURE_SYMBOL;

use super::defines;
use super::suspects::{Function, functions};

/// What a function has that calls others by their address.
const INDIRECT_CALL: &str = ".callprototype";

/// The kernels of a module that cannot panic.
pub(in super::super) struct Reach {
    /// Names of functions; `None` if that is all of them.
    quiet: Option<BTreeSet<Box<str>>>,
}

impl Reach {
    pub(in super::super) fn of(ptx: &str) -> Self {
        if !defines(ptx, FAILURE_SYMBOL) {
            return Reach { quiet: None };
        }
        let mut quiet: Vec<Function<'_>> = functions(ptx).collect();
        let mut loud = vec![FAILURE_SYMBOL, INDIRECT_CALL];
        // Each name is sought once in all that is left.
        while let Some(name) = loud.pop() {
            let (found, rest) = quiet.into_iter().partition(|function| function.body.contains(name));
            let found: Vec<Function<'_>> = found;
            // Nobody calls entry points; their parameters have their names in them.
            loud.extend(found.iter().filter(|function| !function.is_entry).map(|function| function.name));
            quiet = rest;
        }
        Reach { quiet: Some(quiet.into_iter().map(|function| Box::from(function.name)).collect()) }
    }

    /// Whether the kernel with that entry point may panic. One that the text does not have may.
    pub(in super::super) fn may_panic(&self, entry: &str) -> bool {
        self.quiet.as_ref().is_some_and(|quiet| !quiet.contains(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINED: &str = ".visible .global .align 8 .u64 __ferrogrid_failure = 0;\n";
    const CODE: &str = ".func panics()\n{\n\tld.global.u64 \t%rd1, [__ferrogrid_failure];\n}\n\
.func shared()\n{\n\tcall.uni panics, ();\n}\n.func adds()\n{\n\tadd.u32 \t%r1, %r1, 1;\n}\n\
.visible .entry by_itself()\n{\n\tld.global.u64 \t%rd1, [__ferrogrid_failure];\n}\n\
.visible .entry by_another()\n{\n\tcall.uni shared, ();\n}\n\
.visible .entry by_address()\n{\n\tprototype_0 : .callprototype ()_ ();\n\tcall %rd1, (), prototype_0;\n}\n\
.visible .entry never()\n{\n\tcall.uni adds, ();\n}\n\
.visible .entry not_by_itself()\n{\n\tld.param.u64 \t%rd1, [not_by_itself_param_0];\n}\n";

    #[test]
    fn kernels_may_panic_if_they_reach_the_record() {
        let reach = Reach::of(&format!("{DEFINED}{CODE}"));
        for entry in ["by_itself", "by_another", "by_address", "that_the_text_does_not_have"] {
            assert!(reach.may_panic(entry), "{entry}");
        }
        assert!(!reach.may_panic("never") && !reach.may_panic("not_by_itself"));
    }

    #[test]
    fn no_kernel_panics_in_a_module_without_the_record() {
        assert!(!Reach::of(CODE).may_panic("by_address"));
    }
}
