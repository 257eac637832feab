//! Properties of a module that the host reads from its PTX, once, when the module is loaded.

use std::collections::HashSet;

use ferrogrid_device::failure::RECORD_PARAMETER;
use ferrogrid_device::output::OUTPUT_SYMBOL;
use ferrogrid_ptx::{Linkage, Module, ParseError};

/// What a module's text says.
pub(crate) struct Program {
    /// The entry points that take a failure record: those that may panic.
    taking_record: HashSet<&'static str>,
    /// Whether it has the variable through which kernels print.
    pub(crate) prints: bool,
}

impl Program {
    pub(crate) fn of(ptx: &'static str) -> Result<Self, ParseError> {
        let module = Module::parse(ptx)?;
        let takes_record = |parameters: &[ferrogrid_ptx::Declaration<'_>]| {
            parameters.iter().any(|parameter| parameter.name() == RECORD_PARAMETER)
        };
        let taking_record = module.entries().filter(|entry| takes_record(entry.parameters()));
        let prints =
            module.variables().any(|it| it.linkage == Linkage::Visible && it.name() == OUTPUT_SYMBOL);
        Ok(Program { taking_record: taking_record.map(|entry| entry.name).collect(), prints })
    }

    /// Whether an entry point may panic.
    pub(crate) fn may_panic(&self, entry: &str) -> bool {
        self.taking_record.contains(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_print_define_the_variable() {
        for (line, prints) in [
            (".visible .global .align 8 .u64 __ferrogrid_output = 0;", true),
            ("", false),
            (".extern .global .align 8 .u64 __ferrogrid_output;", false),
            ("// .visible .global .align 8 .u64 __ferrogrid_output = 0;", false),
            (".visible .global .align 8 .u64 __ferrogrid_outputs = 0;", false),
        ] {
            let text = format!(".version 7.0\n{line}\n.visible .entry k()\n{{\n\tret;\n}}\n");
            assert_eq!(Program::of(text.leak()).unwrap().prints, prints, "{line}");
        }
    }

    #[test]
    fn kernels_may_panic_that_take_a_record() {
        let ptx = ".visible .entry adds(\n\t.param .u64 p\n)\n{\n}\n.visible .entry panics(\n\t.param .u64 p,\n\t\
                   .param .u64 __ferrogrid_record\n)\n{\n}\n.visible .entry none()\n{\n}\n";
        let program = Program::of(ptx).unwrap();
        assert!(program.may_panic("panics"));
        for entry in ["adds", "none", "panic", "anics", "that_is_not_there"] {
            assert!(!program.may_panic(entry), "{entry}");
        }
    }
}
