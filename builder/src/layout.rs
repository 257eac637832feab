//! What the device half says of its layouts, so that the host half can compare: sizes and alignments behind slices, of
//! shared memory and of constants. It says so in variables, which become comments before the PTX: known wherever the
//! PTX is read, and no cost on a device.

use std::collections::{BTreeMap, BTreeSet};

/// How the names of the variables begin; the entry point follows. The first number is the bytes of shared memory.
const VARIABLE: &str = "__ferrogrid_layout_";

/// How the comments begin.
const COMMENT: &str = "// Layout of ";

/// Takes the variables out of the compiler's text: the text without them, and the comments. Those that code refers to stay:
/// LLVM lets a constant of a kernel, such as a number in a message, be a variable that has its value.
pub(crate) fn take(assembly: &str) -> (String, String) {
    let referred_to: BTreeSet<&str> = assembly.lines().filter_map(entry_referred_to).collect();
    let (mut text, mut comments) = (String::with_capacity(assembly.len()), String::new());
    for line in assembly.split_inclusive('\n') {
        let variable = variable(line);
        if let Some((entry, numbers)) = &variable {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            comments.push_str(&format!("{COMMENT}{entry}: {}\n", numbers.join(" ")));
        }
        if variable.is_none_or(|(entry, _)| referred_to.contains(entry)) {
            text.push_str(line);
        }
    }
    (text, comments)
}

/// The entry point whose variable an instruction names, or another variable's value.
fn entry_referred_to(line: &str) -> Option<&str> {
    let before_comment = line.split("//").next()?;
    if !before_comment.contains(VARIABLE) || variable(line).is_some() {
        return None;
    }
    let (_, rest) = before_comment.split_once(VARIABLE)?;
    rest.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '$')).next()
}

/// `.visible .global .align 8 .b8 __ferrogrid_layout_ENTRY[16] = {0, 4};`, the bytes of numbers, lowest first and
/// without zeros at the end; or `.u64 __ferrogrid_layout_ENTRY[2] = {1024, 4};`, the numbers. Without a value all are 0.
fn variable(line: &str) -> Option<(&str, Vec<u64>)> {
    let declaration = line.trim_end().strip_prefix(".visible .global ")?.strip_suffix(';')?;
    let (declaration, value) = declaration.split_once(" = ").unwrap_or((declaration, ""));
    let (before, name) = declaration.rsplit_once(' ')?;
    let (name, length) = name.split_once('[').unwrap_or((name, "1]"));
    let entry = name.strip_prefix(VARIABLE)?;
    let length: usize = length.strip_suffix(']')?.parse().ok()?;
    let values = value.trim_matches(['{', '}']).split(", ").filter(|it| !it.is_empty());
    let mut values: Vec<u64> = values.map(|it| it.parse().ok()).collect::<Option<_>>()?;
    values.resize(length, 0);
    if !before.ends_with(".b8") {
        return Some((entry, values));
    }
    let number = |bytes: &[u64]| bytes.iter().rev().fold(0, |sum, byte| (sum << 8) + byte);
    Some((entry, values.chunks(8).map(number).collect()))
}

/// What the PTX says of each entry point.
pub(crate) fn read(ptx: &str) -> BTreeMap<String, Vec<u64>> {
    // The comments stand before the first directive.
    let comments = ptx.lines().take_while(|line| line.starts_with("//"));
    let layouts = comments.filter_map(|line| {
        let (entry, numbers) = line.strip_prefix(COMMENT)?.split_once(": ")?;
        let numbers = numbers.split_whitespace().map(|number| number.parse().ok()).collect::<Option<_>>()?;
        Some((entry.to_owned(), numbers))
    });
    layouts.collect()
}

/// The bytes of shared memory that the PTX says of `entry`; 0 if it says nothing.
pub(crate) fn shared_bytes(ptx: &str, entry: &str) -> u64 {
    read(ptx).get(entry).and_then(|numbers| numbers.first()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_become_comments() {
        let assembly = ".version 6.3\n\
            \t// .globl\t__ferrogrid_layout_sums_0123\n\
            .visible .global .align 8 .u64 __ferrogrid_layout_sums_0123[2] = {1024, 4};\n\
            .visible .global .align 8 .b8 __ferrogrid_layout_none_0123[16];\n\
            .visible .global .align 8 .u64 __ferrogrid_layout_one_0123 = 7;\n\
            .visible .global .align 8 .b8 __ferrogrid_layout_bytes_0123[24] = {1, 8, 0, 0, 0, 0, 0, 0, 4};\n\
            .visible .global .align 8 .u64 other = 7;\n";
        let (text, comments) = take(assembly);
        assert!(text.contains("other = 7;") && !text.contains(" __ferrogrid_layout"), "{text}");
        let ptx = format!("// Mathematics: libm\n{comments}{text}");
        let layouts = read(&ptx);
        assert_eq!(layouts["sums_0123"], [1024, 4]);
        assert_eq!(
            (layouts["none_0123"].as_slice(), layouts["one_0123"].as_slice()),
            ([0, 0].as_slice(), [7].as_slice())
        );
        assert_eq!(layouts["bytes_0123"], [2049, 4, 0]);
        assert_eq!((shared_bytes(&ptx, "sums_0123"), shared_bytes(&ptx, "sums_012")), (1024, 0));
    }

    #[test]
    fn a_variable_that_code_reads_stays() {
        let assembly = "\t// .globl\t__ferrogrid_layout_sums_0123\n\
            .visible .global .align 8 .u64 __ferrogrid_layout_sums_0123 = 1024;\n\
            .visible .global .align 8 .u64 __ferrogrid_layout_sums_012 = 8;\n\
            \tmov.b64 \t%rd21, __ferrogrid_layout_sums_0123;\n";
        let (text, comments) = take(assembly);
        assert!(text.contains(".u64 __ferrogrid_layout_sums_0123 = 1024;\n"), "{text}");
        assert!(!text.contains("sums_012 "), "{text}");
        assert_eq!((shared_bytes(&comments, "sums_0123"), shared_bytes(&comments, "sums_012")), (1024, 8));
    }
}
