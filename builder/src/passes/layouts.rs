//! Turns the variables in which the device half describes its layouts into comments before the PTX
//! ([`crate::ptx::layout`]). They are known wherever the PTX is read, and cost nothing on a device.

use ferrogrid_ptx::{Calls, Edits, Linkage, Module};
use ferrogrid_syntax::compiled::LAYOUT_PREFIX;

use crate::ptx::layout::COMMENT;

/// Writes the comments and removes the variables. Those that code refers to stay: LLVM may use one for an
/// equal constant of a kernel, such as a number in a message.
pub(super) fn take<'t>(module: &Module<'t>, edits: &mut Edits<'t>) {
    let referred_to: Vec<&str> = Calls::of(module).mentioned().collect();
    let mut comments = String::new();
    for variable in module.variables().filter(|it| it.linkage == Linkage::Visible && it.space == ".global") {
        let Some(entry) = variable.name().strip_prefix(LAYOUT_PREFIX) else { continue };
        let Some(numbers) = numbers(variable) else { continue };
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        comments.push_str(&format!("{COMMENT}{entry}: {}\n", numbers.join(" ")));
        if !referred_to.contains(&variable.name()) {
            edits.remove_lines(variable.text);
        }
    }
    edits.insert_before(&module.text[..0], comments);
}

/// The numbers of a variable: of `.b8 NAME[16] = {0, 4}` bytes of numbers, lowest first, with zeros at the
/// end left out; of `.u64 NAME[2] = {1024, 4}` the numbers. Without a value all are 0.
fn numbers(variable: &ferrogrid_ptx::Declaration<'_>) -> Option<Vec<u64>> {
    let declared = variable.names.first()?;
    let value = declared.initializer.unwrap_or_default();
    let values = value.trim_matches(['{', '}']).split(',').map(str::trim).filter(|it| !it.is_empty());
    let mut values: Vec<u64> = values.map(|it| it.parse().ok()).collect::<Option<_>>()?;
    values.resize(declared.lengths.first().copied().unwrap_or(1), 0);
    if variable.ty != ".b8" {
        return Some(values);
    }
    let number = |bytes: &[u64]| bytes.iter().rev().fold(0, |sum, byte| (sum << 8) + byte);
    Some(values.chunks(8).map(number).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::after;
    use super::*;
    use crate::ptx::layout::{read, shared_bytes};

    #[test]
    fn variables_become_comments() {
        let assembly = ".version 6.3\n\
            \t// .globl\t__ferrogrid_layout_sums_0123\n\
            .visible .global .align 8 .u64 __ferrogrid_layout_sums_0123[2] = {1024, 4};\n\
            .visible .global .align 8 .b8 __ferrogrid_layout_none_0123[16];\n\
            .visible .global .align 8 .u64 __ferrogrid_layout_one_0123 = 7;\n\
            .visible .global .align 8 .b8 __ferrogrid_layout_bytes_0123[24] = {1, 8, 0, 0, 0, 0, 0, 0, 4};\n\
            .visible .global .align 8 .u64 other = 7;\n\
            .global .align 8 .u64 __ferrogrid_layout_a_users_own = 9;\n";
        let text = after(assembly, take);
        assert!(text.contains("other = 7;") && text.contains("own = 9;"), "{text}");
        assert!(!text.contains(".visible .global .align 8 .u64 __ferrogrid_layout"), "{text}");
        let layouts = read(&format!("// Mathematics: libm\n{text}"));
        assert_eq!(layouts["sums_0123"], [1024, 4]);
        assert_eq!(
            (layouts["none_0123"].as_slice(), layouts["one_0123"].as_slice()),
            ([0, 0].as_slice(), [7].as_slice())
        );
        assert_eq!(layouts["bytes_0123"], [2049, 4, 0]);
        assert_eq!((shared_bytes(&text, "sums_0123"), shared_bytes(&text, "sums_012")), (1024, 0));
    }

    #[test]
    fn a_variable_that_code_reads_stays() {
        let assembly = "\t// .globl\t__ferrogrid_layout_sums_0123\n\
            .visible .global .align 8 .u64 __ferrogrid_layout_sums_0123 = 1024;\n\
            .visible .global .align 8 .u64 __ferrogrid_layout_sums_012 = 8;\n\
            .func f()\n{\n\tmov.b64 \t%rd21, __ferrogrid_layout_sums_0123;\n}\n";
        let text = after(assembly, take);
        assert!(text.contains(".u64 __ferrogrid_layout_sums_0123 = 1024;\n"), "{text}");
        assert!(!text.contains("sums_012 "), "{text}");
        assert_eq!((shared_bytes(&text, "sums_0123"), shared_bytes(&text, "sums_012")), (1024, 8));
    }
}
