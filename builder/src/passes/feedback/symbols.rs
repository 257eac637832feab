//! Defines the variables that the host and device code share, which the code only declares. Unused ones are
//! left out.

use std::collections::HashSet;

use ferrogrid_abi::output::OUTPUT_SYMBOL;
use ferrogrid_ptx::{Calls, Edits, Linkage, Module};

/// The variables, and the value of each before the host sets it. `None` is 1 or 0: whether messages carry
/// descriptions ([`super::formatters`]).
const VARIABLES: [(&str, Option<u64>); 2] = [(OUTPUT_SYMBOL, Some(0)), ("__ferrogrid_formatters", None)];

/// Defines the variables that the text uses, and removes the others.
pub(crate) fn define<'t>(module: &Module<'t>, edits: &mut Edits<'t>) {
    let calls = Calls::of(module);
    let used: HashSet<&str> = calls.mentioned().collect();
    let describes = !calls.any_calls_by_address();
    for variable in module.variables().filter(|it| it.linkage == Linkage::Extern && it.space == ".global") {
        let Some((name, value)) = VARIABLES.iter().find(|(name, _)| *name == variable.name()) else {
            continue;
        };
        if !used.contains(name) {
            edits.remove_lines(variable.text);
            continue;
        }
        let value = value.unwrap_or(u64::from(describes));
        edits.replace(variable.text, format!(".visible .global .align 8 .u64 {name} = {value};"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::after;

    const DECLARED: &str = ".extern .global .align 8 .u64 __ferrogrid_output;\n.extern .global .align 8 .u64 __ferrogrid_formatters;\n";

    #[test]
    fn used_symbols_are_defined_and_the_rest_removed() {
        let code = ".func f()\n{\n\tld.global.b64 \t%rd1, [__ferrogrid_formatters];\n}\n";
        let defined =
            |value| format!(".visible .global .align 8 .u64 __ferrogrid_formatters = {value};\n{code}");
        assert_eq!(after(&format!("{DECLARED}{code}"), define), defined(1));
        let by_address = ".func g()\n{\n\tcall %rd1, prototype_0;\n}\n";
        assert_eq!(after(&format!("{DECLARED}{code}{by_address}"), define), defined(0) + by_address);
        assert_eq!(after(DECLARED, define), "");
        // Symbols that are already defined, or are not in this list, stay.
        for own in [
            ".visible .global .align 8 .u64 __ferrogrid_output = 7;\n",
            ".extern .shared .align 8 .u64 __ferrogrid_output;\n",
        ] {
            assert_eq!(after(own, define), own);
        }
        // The host has not set the destination of text yet.
        let code = code.replace("formatters", "output");
        let output = format!(".visible .global .align 8 .u64 __ferrogrid_output = 0;\n{code}");
        assert_eq!(after(&format!("{DECLARED}{code}"), define), output);
    }
}
