//! Constant memory: rustc puts variables into global memory, so those that are constants of a module are declared
//! in constant memory here, with the bytes that rustc gave them. It must not know who sets them.

use ferrogrid_syntax::CONSTANT_PREFIX;

use crate::ptx::variable_size;

/// The most bytes that the constants of a program have together (CUDA: 64 KiB).
pub(crate) const LIMIT: usize = 65536;

/// The compiler's text with its constants in constant memory.
pub(crate) fn place(assembly: &str) -> String {
    let mut text = String::with_capacity(assembly.len());
    for line in assembly.split_inclusive('\n') {
        match line.strip_prefix(GLOBAL).filter(|rest| is_constant(rest)) {
            Some(rest) => {
                text.push_str(CONST);
                text.push_str(rest);
            }
            None => text.push_str(line),
        }
    }
    text
}

const GLOBAL: &str = ".visible .global ";
const CONST: &str = ".visible .const ";

/// Whether `.align 4 .b8 NAME[36] = {...};` is a constant.
fn is_constant(declaration: &str) -> bool {
    let words = declaration.split([' ', '\t']).take_while(|word| *word != "=");
    words.into_iter().any(|word| word.starts_with(CONSTANT_PREFIX))
}

/// Checks that the constants of a program fit.
///
/// # Errors
/// Names their bytes, and those of the largest.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let sizes = text.lines().filter_map(|line| {
        let (name, size, align) = variable_size(line.strip_prefix(CONST)?)?;
        name.starts_with(CONSTANT_PREFIX).then_some((name, size, align))
    });
    let sizes: Vec<(&str, usize, usize)> = sizes.collect();
    let total = sizes.iter().fold(0, |total: usize, (_, size, align)| total.next_multiple_of(*align) + size);
    let Some((largest, bytes, _)) = sizes.iter().max_by_key(|(_, size, _)| size).filter(|_| total > LIMIT)
    else {
        return Ok(());
    };
    let name = largest.trim_start_matches(CONSTANT_PREFIX);
    let name = name.rsplit_once('_').map_or(name, |(name, _)| name);
    Err(format!(
        "its {} constants take {total} bytes of constant memory, which has {LIMIT} for all modules of a program \
         together; the largest is `{name}` with {bytes}: pass it as a slice",
        sizes.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\t// .globl\t__ferrogrid_constant_A_0123\n\
        .visible .global .align 4 .b8 __ferrogrid_constant_A_0123[8] = {0, 0, 128, 63};\n\
        .visible .global .align 8 .b64 __ferrogrid_constant_B_0123 = 7;\n\
        .visible .global .align 4 .b8 other[8];\n\
        .visible .global .align 8 .u64 p = __ferrogrid_constant_C;\n";

    #[test]
    fn constants_are_moved_with_their_bytes_and_nothing_else_is() {
        let text = place(TEXT);
        assert!(
            text.contains(".visible .const .align 4 .b8 __ferrogrid_constant_A_0123[8] = {0, 0, 128, 63};\n")
        );
        assert!(text.contains(".visible .const .align 8 .b64 __ferrogrid_constant_B_0123 = 7;\n"));
        assert_eq!(text.matches(".global ").count(), 2, "{text}");
        assert_eq!(check(&text), Ok(()));
    }

    #[test]
    fn constants_that_do_not_fit_are_named_with_their_sizes() {
        let line = |name: &str, bytes: usize| {
            format!(".visible .const .align 4 .b8 {CONSTANT_PREFIX}{name}_0123[{bytes}];\n")
        };
        assert_eq!(check(&(line("HALF", 32768) + &line("OTHER", 32768))), Ok(()));
        let error = check(&(line("SMALL", 4) + &line("MY_TABLE", 65536))).unwrap_err();
        assert!(error.contains("2 constants take 65540 bytes"), "{error}");
        assert!(error.contains("`MY_TABLE` with 65536"), "{error}");
    }
}
