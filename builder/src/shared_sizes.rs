//! How much shared memory kernels have, as the compiler computed it: the device half says it in variables, which
//! become comments, so that the size is known wherever the PTX is read and costs nothing on a device. It must not
//! know who asks for it.

use std::collections::BTreeSet;

/// How the names of the variables begin; the entry point follows.
const VARIABLE: &str = "__ferrogrid_shared_";

/// How the comments begin.
const COMMENT: &str = "// Shared memory of ";

/// Takes the variables out of the compiler's text: the text without them, and the comments. Those that code refers to stay:
/// LLVM lets a constant of a kernel, such as a number in a message, be a variable that has its value.
pub(crate) fn take(assembly: &str) -> (String, String) {
    let referred_to: BTreeSet<&str> = assembly.lines().filter_map(entry_referred_to).collect();
    let (mut text, mut comments) = (String::with_capacity(assembly.len()), String::new());
    for line in assembly.split_inclusive('\n') {
        let variable = variable(line);
        if let Some((entry, bytes)) = variable {
            comments.push_str(&format!("{COMMENT}{entry}: {bytes} bytes\n"));
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
    if variable(line).is_some() {
        return None;
    }
    let (_, rest) = before_comment.split_once(VARIABLE)?;
    rest.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '$')).next()
}

/// `.visible .global .align 8 .b8 __ferrogrid_shared_ENTRY[8] = {0, 4};`, the bytes of a number, lowest first and
/// without zeros at the end; or `.u64 __ferrogrid_shared_ENTRY = 1024;`. Without a value it is 0.
fn variable(line: &str) -> Option<(&str, u64)> {
    let declaration = line.trim_end().strip_prefix(".visible .global ")?.strip_suffix(';')?;
    let (declaration, value) = declaration.split_once(" = ").unwrap_or((declaration, "0"));
    let name = declaration.rsplit(' ').next()?.split('[').next()?;
    let mut bytes = value.trim_matches(['{', '}']).rsplit(", ").map(|byte| byte.parse::<u64>().ok());
    let number = bytes.try_fold(0, |sum, byte| Some((sum << 8) + byte?))?;
    Some((name.strip_prefix(VARIABLE)?, number))
}

/// The bytes of shared memory that the PTX says of `entry`; 0 if it says nothing.
pub(crate) fn of(ptx: &str, entry: &str) -> u64 {
    // They stand before the first directive.
    let comments = ptx.lines().take_while(|line| line.starts_with("//"));
    let of_entry =
        comments.filter_map(|line| line.strip_prefix(COMMENT)?.strip_prefix(entry)?.strip_prefix(": "));
    of_entry.filter_map(|rest| rest.strip_suffix(" bytes")?.parse().ok()).next().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_become_comments() {
        let assembly = ".version 6.3\n\
            \t// .globl\t__ferrogrid_shared_sums_0123\n\
            .visible .global .align 8 .u64 __ferrogrid_shared_sums_0123 = 1024;\n\
            .visible .global .align 8 .u64 __ferrogrid_shared_none_0123;\n\
            .visible .global .align 8 .b8 __ferrogrid_shared_bytes_0123[8] = {1, 8};\n\
            .visible .global .align 8 .u64 other = 7;\n";
        let (text, comments) = take(assembly);
        assert!(text.contains("other = 7;") && !text.contains("global .align 8 .u64 __"), "{text}");
        let ptx = format!("// Mathematics: libm\n{comments}{text}");
        assert_eq!(of(&ptx, "bytes_0123"), 2049);
        assert_eq!((of(&ptx, "sums_0123"), of(&ptx, "none_0123"), of(&ptx, "sums_012")), (1024, 0, 0));
    }

    #[test]
    fn a_variable_that_code_reads_stays() {
        let assembly = "\t// .globl\t__ferrogrid_shared_sums_0123\n\
            .visible .global .align 8 .u64 __ferrogrid_shared_sums_0123 = 1024;\n\
            .visible .global .align 8 .u64 __ferrogrid_shared_sums_012 = 8;\n\
            \tmov.b64 \t%rd21, __ferrogrid_shared_sums_0123;\n";
        let (text, comments) = take(assembly);
        assert!(text.contains(".u64 __ferrogrid_shared_sums_0123 = 1024;\n"), "{text}");
        assert!(!text.contains("sums_012 "), "{text}");
        assert_eq!((of(&comments, "sums_0123"), of(&comments, "sums_012")), (1024, 8));
    }
}
